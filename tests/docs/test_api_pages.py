"""The pages of the Python and C++ API: signatures, links of types, and entries that say something."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(900)


def pages(site: Path, language: str) -> dict[str, str]:
    """The text of each API page of a language, by name."""
    return {page.stem: page.read_text() for page in (site / "reference" / language).glob("*.html")}


def plain(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", html).split())


def entry(page: str, anchor: str) -> str:
    """The signatures and the description of an object, as text."""
    found = re.search(rf'<dt [^>]*id="{re.escape(anchor)}".*?</dd>', page, re.S)
    assert found is not None, anchor
    return plain(found[0])


def is_alias(name: str) -> bool:
    """Return whether a module declares a name as the alias of a type."""
    module, _, alias = name.rpartition(".")
    return getattr(importlib.import_module(module), "__annotations__", {}).get(alias) == "TypeAlias"


def test_types_link_to_types_only(site: Path) -> None:
    """A type such as `list` is no link to an attribute of that name, such as `Slice.list`."""
    texts = pages(site, "python")
    kinds = {
        anchor: kind
        for text in texts.values()
        for kind, anchor in re.findall(r'<dl class="py (\w+)">\s*<dt [^>]*id="([^"]+)"', text)
    }
    assert kinds["onehop.schedule.Slice.list"] == "method"
    assert kinds["onehop.channel.Sender.bytes"] == "property"
    links = [
        (target, plain(text))
        for page in texts.values()
        for target, text in re.findall(
            r'<a class="reference internal" href="[^"]*#(onehop[\w.]+)" title="onehop[\w.]+">(.*?)</a>',
            page,
            re.S,
        )
    ]
    assert len(links) > 300
    wrong = {(target, text) for target, text in links if kinds.get(target) not in {"class", "exception"}}
    assert {link for link in wrong if not is_alias(link[0])} == set()
    assert "ref.python" not in (ROOT / "docs/conf.py").read_text()


def test_python_entries_say_something(site: Path) -> None:
    texts = pages(site, "python")
    for text in texts.values():
        assert not re.search(r"nb_func|Alias for field number|~onehop|&lt;factory&gt;| -- ", plain(text))
    core = texts["core"]
    assert "static range(offset: int, count: int)" in entry(core, "onehop.schedule.Slice.range")
    assert "cut(first: int, last: int)" in entry(core, "onehop.schedule.Slice.cut")
    assert "Algorithm of a reduction: one_shot" in entry(core, "onehop.collectives.Collective.algorithm")


def test_cpp_entries_say_something(site: Path) -> None:
    texts = pages(site, "cpp")
    assert {"core", "collectives", "quantum", "lattice", "poisson"} <= set(texts)
    kinds = "function|class|struct|enum|enum-class|type|var|member"
    for text in texts.values():
        assert not re.search(r"\bditto\b|namespace detail|[(;] docs/\w+/\w+\.md", plain(text))
        for section in text.split('<section id="onehop-')[1:]:
            declared = re.findall(rf'<dl class="cpp (?:{kinds})">\s*<dt', section)
            assert len(declared) > section.count(">namespace<"), section[:80]
    core = texts["core"]
    channel = core.partition('<section id="onehop-channel-h">')[2]
    assert 'href="../../design/protocol.html"' in channel
    shared = re.search(r"<dt [^>]*id=\"[^\"]*Sender5bytesEv\".*?</dd>", core, re.S)
    assert shared is not None
    for name in (
        "bytes() const noexcept",
        "in_place() const noexcept",
        "peer() const noexcept",
        "Bytes of one message",
    ):
        assert name in plain(shared[0])


def test_every_public_header_is_on_a_page(site: Path) -> None:
    written = "".join(pages(site, "cpp").values())
    # The headers of C, beside that folder, are a page of their own: howto/c_and_fortran.md.
    for header in (ROOT / "include" / "onehop").rglob("*.h"):
        anchor = re.sub(r"\W", "-", header.relative_to(ROOT / "include").as_posix()).replace("_", "-")
        assert f'<section id="{anchor}">' in written or header.parent.name == "detail", header


def test_colons_of_properties_are_no_types(site: Path) -> None:
    found = entry(pages(site, "python")["machine"], "onehop.machine.Level.taper")
    assert "full bisection" in found
    assert "Type:" not in found


def test_no_parameter_is_in_the_index(site: Path) -> None:
    assert "(C++ function parameter)" not in (site / "genindex.html").read_text()
    assert "function parameter" not in (site / "searchindex.js").read_text().partition("objnames")[2][:2000]
