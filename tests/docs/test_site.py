"""The documentation site builds without warnings, loads nothing from the network, and works in a browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from urllib.parse import quote_plus

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
def test_a_newcomer_finds(site: Path) -> None:
    home = (site / "index.html").read_text()
    assert "Where is the heat bath?" in home
    assert 'href="howto/extend.html#add-a-codec"' in home
    assert 'id="add-a-codec"' in (site / "howto/extend.html").read_text()
    assert 'id="onehop-timeout"' in (site / "reference/environment.html").read_text()
    assert "heat_bath" in (site / "reference/cpp/lattice.html").read_text()


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
def test_sidebar_has_groups(site: Path) -> None:
    sidebar = re.search(
        r'<div class="sidebar-tree">(.*?)</div>\s*</div>', (site / "index.html").read_text(), re.S
    )
    assert sidebar is not None
    found = re.findall(r'caption-text">([^<]+)|class="toctree-l1[^"]*"><a[^>]*>([^<]+)', sidebar[1])
    groups: dict[str, list[str]] = {}
    for caption, entry in found:
        if caption:
            groups[caption] = []
        else:
            groups[list(groups)[-1]].append(entry)
    assert list(groups) == ["Guides", "Reference", "Background"]
    subjects = ["Core", "Collective operations", "Quantum circuits", "Lattice field theory", "Poisson solver"]
    assert groups["Reference"][1:9] == [*subjects, "Machines", "Python API", "C++ API"]


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
    assert "on 6<sup>4</sup>" in (site / "reference/lattice_gauge.html").read_text()
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
        ("index.html", "Where to start"),
        ("search.html?q=thermalize", "reference/lattice_gauge.html"),
        ("tutorials/lattice.html", "effective mass"),
        ("reference/python/core.html", "onehop.plan.Plan"),
    ],
    ids=["home", "search", "tutorial", "api"],
)
def test_in_a_browser(address: str, tmp_path: Path, page: str, seen: str) -> None:
    dom = in_browser(f"{address}/{page}", tmp_path, "--dump-dom")
    assert seen in dom
    shot = tmp_path / "page.png"
    in_browser(f"{address}/{page}", tmp_path, "--window-size=1300,1600", f"--screenshot={shot}")
    assert shot.stat().st_size > 20000
    if page == "tutorials/lattice.html":
        assert 'src="../_images/lattice.svg"' in dom


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("where is the heat bath", "reference/lattice_gauge.html#the-heat-bath"),
        ("how do I add a codec?", "howto/extend.html#add-a-codec"),
        ("what does ONEHOP_TIMEOUT do", "reference/environment.html#onehop-timeout"),
        ("How do I resume a run?", "howto/resume.html"),
        ("Group.world", "reference/python/core.html#onehop.group.Group.world"),
    ],
)
def test_search_answers_in_the_first_three_hits(
    address: str, tmp_path: Path, question: str, answer: str
) -> None:
    dom = in_browser(f"{address}/search.html?q={quote_plus(question)}", tmp_path, "--dump-dom")
    hits = re.findall(r'<li class="kind-\w+"><a href="([^"]*)"', dom.partition('class="search"')[2])
    assert answer in [unescape(hit).partition("?")[0] for hit in hits[:3]], hits[:6]
