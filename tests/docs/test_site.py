"""The documentation site builds without warnings and loads nothing from the network."""

import re
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
