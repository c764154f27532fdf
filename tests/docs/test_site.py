"""The documentation site builds without warnings, loads nothing from the network, and works in a browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from onehop import _core

ROOT = Path(__file__).resolve().parents[2]


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
def test_every_variable_has_one_entry(site: Path) -> None:
    """The page has a section, or a row of a table, for each variable of the table in src/base/env.cc."""
    page = (site / "reference/environment.html").read_text()
    section = r'<h\d><code[^>]*><span class="pre">(ONEHOP_\w+)</span></code>'
    row = r'<tr[^>]*><td><p><code[^>]*><span class="pre">(ONEHOP_\w+)</span></code></p></td>'
    described = re.findall(section, page) + re.findall(row, page)
    assert sorted(described) == [one["name"] for one in _core.environment_variables()]
    for one in _core.environment_variables():
        words = re.split(r"[`'\"]", one["meaning"])[0]  # up to what the page writes differently
        assert page.count(words) == 1, one["name"]


@pytest.mark.timeout(900)
def test_no_markup_is_left(site: Path) -> None:
    """No fence of a code block and no caret of an exponent reaches the reader."""
    for page in site.rglob("*.html"):
        if page.stem in {"genindex", "search"}:
            continue
        article = page.read_text().partition("<article")[2].partition("</article>")[0]
        code = re.findall(r"<pre>.*?</pre>", article, re.S)
        assert not [block for block in code if "```" in block], page
        text = re.sub(r"<(pre|code|dt|h\d)\b.*?</\1>", " ", article, flags=re.S)
        assert re.findall(r"[\w)|]\^[\w({-].{0,20}", re.sub(r"<[^>]+>", "", text)) == [], page
    assert "On 12<sup>4</sup>" in (site / "reference/lattice_gauge.html").read_text()
    assert "<sub>μ</sub>" in (site / "reference/lattice_wilson.html").read_text()


def in_browser(url: str, folder: Path, *options: str) -> str:
    """Open a page in headless Chromium and return what that prints. No host but this one can be reached."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium; on Debian: apt-get install chromium")
    flags = ["--headless", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile"]
    flags += ["--no-sandbox"] if os.geteuid() == 0 else []
    flags += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--virtual-time-budget=8000"]
    done = subprocess.run(
        [chromium, *flags, *options, url], capture_output=True, text=True, timeout=240, check=True
    )
    return done.stdout


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("page", "seen"),
    [
        ("search.html?q=thermalize", "reference/lattice_gauge.html"),
        ("tutorials/lattice.html", "effective mass"),
        ("reference/python/core.html", "onehop.plan.Plan"),
    ],
    ids=["search", "tutorial", "api"],
)
def test_in_a_browser(address: str, tmp_path: Path, page: str, seen: str) -> None:
    dom = in_browser(f"{address}/{page}", tmp_path, "--dump-dom")
    assert seen in dom
    shot = tmp_path / "page.png"
    in_browser(f"{address}/{page}", tmp_path, "--window-size=1300,1600", f"--screenshot={shot}")
    assert shot.stat().st_size > 20000
    if page == "tutorials/lattice.html":
        assert 'src="../_images/lattice.svg"' in dom
