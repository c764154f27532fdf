"""`onehop docs`: the pages of the documentation, which travel with the package, as text."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from onehop import _core
from onehop.cli.screen import is_terminal
from onehop.error import BadInput, Error
from onehop.options import Options, argument
from onehop.text import alternatives

# In the order of the list. In the wheel the pages are below the package, in a checkout beside it.
_FOLDERS = ("tutorials", "howto", "reference", "performance", "design")
_PLACES = (Path(__file__).parents[1] / "docs", Path(__file__).parents[3] / "docs")
_PROGRAMS = ("docs/tutorials/*.py", "docs/tutorials/*.ipynb", "examples/halo.*", "examples/mpi_stencil.cc")
_BLOCK = re.compile(r"^```\{(\w+)\}(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r'^:([a-z-]+): "?(.*?)"?\n', re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


@dataclass(kw_only=True)
class Docs(Options):
    page: str | None = argument(
        "PAGE",
        "The page to show, such as launch or reference/codecs, or a program of the tutorials, such as lattice.py.",
        None,
    )


def _place() -> Path:
    place = next((one for one in _PLACES if one.is_dir()), None)
    if place is None:
        raise Error("the pages are not installed with this package; read docs/ in the repository of onehop")
    return place


def programs() -> dict[str, Path]:
    """Return the programs and notebooks of the tutorials by their names, of two with one name the tutorial's."""
    found = [file for files in reversed(_PROGRAMS) for file in sorted(_place().parent.glob(files))]
    return {one.name: one for one in found}


def pages() -> dict[str, Path]:
    """Return the pages by their names, such as "howto/launch"."""
    found = [file for folder in _FOLDERS for file in sorted((_place() / folder).glob("*.md"))]
    return {f"{one.parent.name}/{one.stem}": one for one in found if one.stem != "index"}


def _linked(text: str) -> str:
    """Return Markdown whose links name the page to ask for."""

    def link(found: re.Match[str]) -> str:
        picture, text, target = found.groups()
        file, _, _ = target.partition("#")
        if picture:
            return f"[figure: {text}]"
        if "//" in target or not file:
            return text if not file else f"{text} <{target}>"
        return f"{text} (onehop docs {Path(file).stem})" if file.endswith(".md") else text

    return _LINK.sub(link, text)


def _generated(name: str, folder: Path) -> str:
    """Return what `make docs` generates for the site: commands, variables, or the cells of a notebook."""
    if name == "cli":
        from onehop.cli.commands import leaves

        return "\n".join(f"    onehop {' '.join(path):28} {command.about}" for path, command in leaves())
    if name == "environment":
        return "\n\n".join(f"{one['name']}: {one['meaning']}" for one in _core.environment_variables())
    cells = json.loads((folder / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    texts = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    return "\n\n".join(_linked(text) if kind == "markdown" else f"```py\n{text}\n```" for kind, text in texts)


def _block(folder: Path, found: re.Match[str]) -> str:
    """Return a directive of MyST as plain text."""
    kind, name, body = found.groups()
    options = dict(_OPTION.findall(body))
    if kind == "include":
        return _generated(Path(name).stem, folder)
    if kind == "literalinclude":
        text = (folder / name).read_text(encoding="utf-8")
        text = text[text.rfind("\n", 0, text.index(options.get("start-at", ""))) + 1 :]
        if end := options.get("end-before") or options.get("end-at"):
            place = text.index(end, text.index("\n"))
            text = text[: text.rfind("\n", 0, place) if "end-before" in options else text.index("\n", place)]
        return f"```{Path(name).suffix[1:]}\n{text.rstrip()}\n```"
    if kind == "figure":
        return f"[figure: {options.get('alt', name)}]\n{_OPTION.sub('', body).strip()}"
    return "" if kind == "toctree" else _OPTION.sub("", body).strip()


def page_text(page: Path) -> str:
    """Return a page as text, with the programs that it shows."""
    return _BLOCK.sub(lambda found: _block(page.parent, found), _linked(page.read_text(encoding="utf-8")))


def docs(options: Docs) -> None:
    """Show a page of the documentation as text, or list the pages."""
    known = pages()
    if options.page is None:
        for name, page in known.items():
            title = page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            print(f"{name:32} {title}")
        print(f"\nPrograms and notebooks of the tutorials: {', '.join(sorted(programs()))}")
        print("`onehop docs PAGE` shows a page, `onehop docs NAME > NAME` writes a program.")
        return
    if program := programs().get(Path(options.page).name):
        print(program.read_text(encoding="utf-8"), end="")
        return
    wanted = options.page.removeprefix("docs/").removesuffix(".md")
    names = [name for name in known if wanted in (name, name.partition("/")[2])]
    if len(names) != 1:
        import difflib

        alike = difflib.get_close_matches(wanted, {*known, *(name.partition("/")[2] for name in known)}, 3)
        near = names or [name for one in alike for name in known if one in (name, name.partition("/")[2])][:3]
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
