"""Where UCX is searched, and what it prints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onehop import _core

PROGRAM = "from onehop import _core; print(*_core.ucx_library()['tried'], sep='\\n')"


def _tried(**variables: str) -> tuple[str, str]:
    """Return what a process has tried, and what else it writes."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout, result.stderr + result.stdout  # UCX writes its lines to stdout


def test_the_environment_below_a_virtual_one(tmp_path: Path) -> None:
    """Its UCX counts if the virtual environment sees its packages. The file here is none, so the search goes on."""
    library = tmp_path / "below/lib/python3.11/site-packages/libucx/lib/libucp.so.0"
    library.parent.mkdir(parents=True)
    library.write_text("no library")
    (tmp_path / "below/bin").mkdir()
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/lib").mkdir()
    for sees in (True, False):
        (tmp_path / "venv/pyvenv.cfg").write_text(
            f"home = {tmp_path}/below/bin\ninclude-system-site-packages = {str(sees).lower()}\nversion = 3.11.2\n"
        )
        tried, _ = _tried(VIRTUAL_ENV=str(tmp_path / "venv"))
        assert f"{tmp_path}/venv/lib: no libucp.so.0 there" in tried, tried
        assert (str(library) in tried) == sees, tried


@pytest.mark.skipif(not _core.ucx_library()["path"], reason="no UCX library was found")
def test_ucx_prints_no_errors_that_onehop_reports() -> None:
    """Unless the user asks for UCX's lines."""
    tried, written = _tried(UCX_TLS="nosuch")
    assert "starting UCX (do UCX_TLS and UCX_NET_DEVICES name transports" in tried
    assert "ERROR" not in written, written
    _, written = _tried(UCX_TLS="nosuch", UCX_LOG_LEVEL="error")
    assert "UCX  ERROR" in written, written
