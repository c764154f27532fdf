"""The documentation site builds without warnings and loads nothing from the network."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

from onehop import _core
from onehop.cli.commands import leaves
from ranks import completed

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


@pytest.mark.timeout(900)
def test_internal_links_lead_somewhere(site: Path) -> None:
    pages = {page: page.read_text() for page in site.rglob("*.html")}
    anchors = {page: set(re.findall(r'\sid="([^"]+)"', text)) for page, text in pages.items()}
    links = 0
    for page, text in pages.items():
        for link in re.findall(r'<a\s[^>]*href="([^"]+)"', text):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = (page.parent / path.partition("?")[0]).resolve() if path else page
            assert target.exists(), f"{page.relative_to(site)}: {link}"
            assert not anchor or anchor in anchors.get(target, {anchor}), f"{page.relative_to(site)}: {link}"
            links += 1
    assert links > 5000
    assert 'rel="icon"' in pages[site / "index.html"] or "favicon" in pages[site / "index.html"]


@pytest.mark.timeout(900)
def test_every_command_has_a_page(site: Path) -> None:
    listed = (site / "reference/cli.html").read_text()
    for path, _ in leaves():
        page = f"cli/{'_'.join(path)}.html"
        assert f'href="{page}"' in listed
        assert f"Usage: onehop {' '.join(path)}" in re.sub(
            r"<[^>]+>", "", (site / "reference" / page).read_text()
        )


@pytest.mark.timeout(900)
def test_the_search_ranks_guides_first(site: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("the search is JavaScript, and there is no node")
    wanted = {
        "halo exchange": "tutorials/halo",
        "restart": "howto/resume",
        "timeout": "reference/environment",
        "when not to use": "index",
        "pion mass": "tutorials/lattice",
        "noise": "tutorials/notebook_noise",
        "install": "howto/install",
        "fortran": "howto/c_and_fortran",
        "checkpoint": "reference/checkpoint",
        "pytorch": "howto/torch",
    }
    done = completed(["node", ROOT / "tests/support/search.js", site, *wanted], status=0)
    first = {query: found[0] for query, found in zip(wanted, json.loads(done.stdout), strict=True)}
    assert first == wanted
