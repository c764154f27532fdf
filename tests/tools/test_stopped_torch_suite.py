"""What `make torch` keeps of a driver that does not end, and what it says if there is nothing to compare."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ranks import Ranks

ROOT = Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location("torch_suite", ROOT / "tools/torch_suite.py")
assert _SPEC is not None
torch_suite = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(torch_suite)  # type: ignore[union-attr]

# Writes its outcomes; then it and a forked rank wait.
DRIVER = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[3]).write_text('{}')
os.mkdir(os.path.join(os.environ["TMPDIR"], "left"))
os.fork()
time.sleep({})
"""


def driver(folder: Path, outcomes: str, seconds: int) -> Path:
    """Write a driver with given outcomes, which then waits."""
    file = folder / "driver.py"
    file.write_text(DRIVER.format(outcomes, seconds))
    return file


def test_a_driver_that_hangs_leaves_results_and_no_process(
    ranks: Ranks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in ranks.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch_suite.tempfile, "tempdir", str(ranks.temporary))
    monkeypatch.setattr(torch_suite, "LIMIT_SECONDS", 5)
    monkeypatch.setattr(torch_suite, "DRIVER", driver(ranks.folder, '{"test_a": ["passed", ""]}', 600))
    assert torch_suite.run("onehop", 2, ["test_a", "test_b"]) == {"test_a": ["passed", ""]}
    assert "onehop was stopped after 5 s" in capsys.readouterr().err
    ranks.assert_nothing_left()


def test_nothing_to_compare_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_suite, "DRIVER", driver(tmp_path, '{"test_a": ["failed", "why"]}', 0))
    with pytest.raises(SystemExit, match="gloo passed none of 1 tests\nwhy"):
        torch_suite.compare(2, ["test_a"])
