"""`onehop docs`: the pages of the documentation, which travel with the package, as text."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from onehop.cli.screen import is_terminal
from onehop.error import BadInput, Error
from onehop.options import Options, argument
from onehop.text import alternatives

# In the order of the list. In the wheel the pages are below the package, in a checkout beside it.
_FOLDERS = ("tutorials", "howto", "reference", "performance", "design")
_PLACES = (Path(__file__).parents[1] / "docs", Path(__file__).parents[3] / "docs")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


@dataclass(kw_only=True)
class Docs(Options):
    page: str | None = argument("PAGE", "The page to show, such as launch or reference/codecs.", None)


def pages() -> dict[str, Path]:
    """Return the pages by their names, such as "howto/launch"."""
    place = next((one for one in _PLACES if one.is_dir()), None)
    if place is None:
        raise Error("the pages are not installed with this package; read docs/ in the repository of onehop")
    found = [file for folder in _FOLDERS for file in sorted((place / folder).glob("*.md"))]
    return {f"{one.parent.name}/{one.stem}": one for one in found if one.stem != "index"}


def page_text(page: Path) -> str:
    """Return a page as text: Markdown whose links name the page to ask for."""

    def link(found: re.Match[str]) -> str:
        picture, text, target = found.groups()
        file, _, _ = target.partition("#")
        if picture:
            return f"[figure: {text}]"
        if "//" in target or not file:
            return text if not file else f"{text} <{target}>"
        return f"{text} (onehop docs {Path(file).stem})" if file.endswith(".md") else text

    text = page.read_text(encoding="utf-8")
    return _LINK.sub(link, text.replace("```{toctree}", "```"))


def docs(options: Docs) -> None:
    """Show a page of the documentation as text, or list the pages."""
    known = pages()
    if options.page is None:
        for name, page in known.items():
            title = page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            print(f"{name:32} {title}")
        print("\n`onehop docs PAGE` shows a page.")
        return
    wanted = options.page.removeprefix("docs/").removesuffix(".md")
    names = [name for name in known if wanted in (name, name.partition("/")[2])]
    if len(names) != 1:
        import difflib

        near = names or difflib.get_close_matches(wanted, [*known, *(n.partition("/")[2] for n in known)], 3)
        advice = f"did you mean {alternatives(near)}? " if near else ""
        raise BadInput(
            f"expected a page of the documentation, found {options.page!r}; {advice}`onehop docs` lists them"
        )
    text = page_text(known[names[0]])
    if is_terminal(sys.stdout):
        import pydoc

        pydoc.pager(text)
    else:
        print(text, end="")
