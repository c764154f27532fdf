"""Settings of Sphinx for the documentation site; `make docs` builds it."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import typer
from typer.cli import get_docs_for_click

import onehop
from onehop import _core
from onehop.cli import make_app

ROOT = Path(__file__).resolve().parents[1]
DOXYGEN = ROOT / "build" / "doxygen"
GENERATED = ROOT / "build" / "generated"

project = "onehop"
author = "the onehop authors"
copyright = "the onehop authors, Apache License 2.0"  # noqa: A001, the name is Sphinx's
version = release = onehop.__version__

extensions = [
    "breathe",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["model"]
# ref.python: types such as `bytes` in signatures are also names of attributes. duplicate_declaration.cpp: every header
# opens the namespace onehop.
suppress_warnings = ["config.cache", "ref.python", "duplicate_declaration.cpp"]

# Markdown: every heading down to level 4 is an anchor, and a link to a missing page or anchor is a warning.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

# Python API. Optional packages that are not installed are replaced by mocks.
autodoc_mock_imports = [
    name for name in ("torch", "qiskit", "h5py") if importlib.util.find_spec(name) is None
]
autodoc_default_options = {"members": True, "member-order": "groupwise"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

# C++ API.
breathe_projects = {"onehop": str(DOXYGEN / "xml")}
breathe_default_project = "onehop"
breathe_default_members = ("members",)
cpp_index_common_prefix = ["onehop::"]

smartquotes_action = "qe"  # quotes and ellipses, but not dashes: options begin with two hyphens

html_theme = "furo"
html_title = f"onehop {release}"
html_static_path = ["_static"]
html_css_files = ["onehop.css"]
html_show_sphinx = False
html_copy_source = False


def use_whole_summaries(command: Any) -> None:
    """Let lists of commands show the first paragraph of each help text, which typer cuts off otherwise.

    Also remove hidden commands (old names), which typer's generator would list.
    """
    command.short_help = command.short_help or " ".join((command.help or "").partition("\n\n")[0].split())
    parts = getattr(command, "commands", {})
    for name, part in list(parts.items()):
        if part.hidden:
            del parts[name]
        else:
            use_whole_summaries(part)


def write_commands(_app: Any) -> None:
    """Write the command line reference, which reference/cli.md includes, with typer's own generator."""
    command = typer.main.get_command(make_app())
    use_whole_summaries(command)
    with command.make_context("onehop", [], resilient_parsing=True) as context:
        text = get_docs_for_click(obj=command, ctx=context, name="onehop", title="onehop")
    GENERATED.mkdir(parents=True, exist_ok=True)
    (GENERATED / "cli.md").write_text(text)


def write_variables(_app: Any) -> None:
    """Write the table of environment variables, which reference/environment.md includes."""
    rows = ["| variable | meaning |", "|---|---|"]
    for one in _core.environment_variables():
        meaning = (
            f"{one['meaning']}<br>*Values*: {one['values']}. *Default*: {one['default']}. "
            f"*Set by*: {one['set_by']}. *Read in*: `{one['read_in']}`"
        )
        rows.append(f"| `{one['name']}` | " + meaning.replace("|", "\\|") + " |")
    GENERATED.mkdir(parents=True, exist_ok=True)
    (GENERATED / "environment.md").write_text("\n".join(rows) + "\n")


def run_doxygen(_app: Any) -> None:
    """Read the headers into XML, from which Breathe makes pages."""
    if shutil.which("doxygen") is None:
        raise SystemExit(
            "docs: no doxygen. Run, then make docs again: sudo apt-get install -y --no-install-recommends doxygen"
        )
    DOXYGEN.mkdir(parents=True, exist_ok=True)
    subprocess.run(["doxygen", "docs/Doxyfile"], cwd=ROOT, check=True)


def mark_up_docstring(
    _app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]
) -> None:
    """Turn `code` into literals and escape what reStructuredText takes for markup: docstrings are plain text."""

    def mark_up(line: str) -> str:
        parts = re.split(r"(``?[^`]+``?)", line)
        return "".join(
            f"``{part.strip('`')}``" if part.startswith("`") else re.sub(r"([|*\\])", r"\\\1", part)
            for part in parts
        )

    made: list[str] = []
    literal = attributes = False
    for number, line in enumerate(lines):
        # An example: indented, after a paragraph and an empty line.
        starts_block = line.startswith("    ") and number > 1 and not lines[number - 1]
        if not literal and starts_block and lines[number - 2][:1].strip():
            made += [".. code-block:: python", ""]
            literal = True
        literal = literal and (not line or line.startswith("    "))
        if re.fullmatch(r"\w+(, \w+)+ : .*", line) and attributes:
            line = re.sub(r", (?=[^:]* : )", ",", line)  # napoleon takes a blank for the end of a type
        attributes = line == "Attributes" or (attributes and line != "Parameters")
        made.append(line if literal else mark_up(line))
    lines[:] = made


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", mark_up_docstring, priority=400)
    app.connect("builder-inited", write_commands)
    app.connect("builder-inited", write_variables)
    app.connect("builder-inited", run_doxygen)
