"""The documentation site builds without warnings, loads nothing from the network, and works in a browser."""

from __future__ import annotations

import fcntl
import functools
import http.server
import importlib.util
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from onehop import _core

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("sphinx", "furo", "myst_parser", "breathe", "sphinx_copybutton")


@pytest.fixture(scope="module")
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


@pytest.mark.timeout(900)
def test_nothing_is_loaded_from_a_host(site: Path) -> None:
    loads = re.compile(
        r'<(?:script|img|iframe|source)[^>]*\ssrc="(?:https?:)?//[^"]*"|'
        r'<link[^>]*rel="(?:stylesheet|preload|icon)"[^>]*href="(?:https?:)?//[^"]*"'
    )
    pages = list(site.rglob("*.html"))
    assert len(pages) > 60
    for page in pages:
        assert not loads.findall(page.read_text()), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", sheet.read_text()), sheet


@pytest.mark.timeout(900)
def test_a_newcomer_finds(site: Path) -> None:
    home = (site / "index.html").read_text()
    assert "Where is the heat bath?" in home
    assert 'href="howto/extend.html#a-codec"' in home
    assert 'id="a-codec"' in (site / "howto/extend.html").read_text()
    assert 'id="onehop-timeout"' in (site / "reference/environment.html").read_text()
    assert "heat_bath" in (site / "reference/cpp/lattice.html").read_text()


def test_every_variable_is_on_the_page() -> None:
    page = (ROOT / "docs/reference/environment.md").read_text()
    reads = re.compile(r'(?:getenv|environ\.get|environ|env)\w*\s*[(\[]\s*"(ONEHOP_[A-Z_]+)"')
    folders = ("src", "quantum", "lattice", "poisson", "collectives", "compat", "python/onehop")
    found = {
        name
        for folder in folders
        for file in (ROOT / folder).rglob("*")
        if file.suffix in {".cc", ".h", ".py"}
        for name in reads.findall(file.read_text())
    }
    found |= {one["name"] for one in _core.environment_variables() if one["set_by"] == "user"}
    assert len(found) > 8
    assert {name for name in found if f"`{name}`" not in page} == set()


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


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("page", "seen"),
    [
        ("index.html", "Where to start"),
        ("search.html?q=thermalize", "reference/lattice_gauge.html"),
        ("tutorials/lattice.html", "effective mass"),
        ("reference/python/core.html", "onehop.plan.Plan"),
    ],
    ids=["home", "search", "tutorial", "api"],
)
def test_in_a_browser(address: str, tmp_path: Path, page: str, seen: str) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium; on Debian: apt-get install chromium")
    shot = tmp_path / "page.png"
    flags = ["--headless", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={tmp_path}/profile"]
    flags += ["--no-sandbox"] if os.geteuid() == 0 else []
    # No other host is reachable, so a page that needs one fails the test.
    flags += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--virtual-time-budget=8000"]
    url = f"{address}/{page}"
    dom = subprocess.run(
        [chromium, *flags, "--dump-dom", url], capture_output=True, text=True, timeout=240, check=False
    )
    assert seen in dom.stdout, dom.stderr[-2000:]
    size = "--window-size=1300,1600"
    subprocess.run(
        [chromium, *flags, size, f"--screenshot={shot}", url], capture_output=True, timeout=240, check=True
    )
    assert shot.stat().st_size > 20000
    if page == "tutorials/lattice.html":
        assert 'src="../_images/lattice.svg"' in dom.stdout
