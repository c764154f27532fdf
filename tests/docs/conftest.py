"""The built documentation site, and a server for it."""

from __future__ import annotations

import fcntl
import functools
import http.server
import importlib.util
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("sphinx", "furo", "myst_parser", "breathe", "sphinx_copybutton")


@pytest.fixture(scope="session")
def site() -> Path:
    """Bring the site of `make docs` up to date and return its folder. Several processes of tests share it."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    missing += [] if shutil.which("doxygen") else ["doxygen"]
    if missing:
        pytest.skip(f"no {', '.join(missing)}; `make docs` brings what the site is built with")
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build/docs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["tools/docs.sh"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ROOT / "build/docs"


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """Serve the site on this machine and return its address. The search needs a server."""
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(quiet, directory=site)
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
