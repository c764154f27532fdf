"""Settings of Sphinx for the documentation site; `make docs` builds it."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import onehop

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "onehop"
author = "the onehop authors"
copyright = "the onehop authors, Apache License 2.0"  # noqa: A001, the name is Sphinx's
version = release = onehop.__version__

extensions = [
    "api_pages",
    "breathe",
    "cpp_api",
    "generated_pages",
    "notebook_pages",
    "myst_parser",
    "python_api",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "typography",
]
exclude_patterns = ["model"]
# duplicate_declaration.cpp: every header opens the namespace onehop. mocked_object: the device for PennyLane derives
# from a class of that package, which may be absent.
suppress_warnings = ["autodoc.mocked_object", "config.cache", "duplicate_declaration.cpp"]

# Markdown: every heading down to level 4 is an anchor, and a link to a missing page or anchor is a warning.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

# Python API. Optional packages that are not installed are replaced by mocks.
autodoc_mock_imports = [
    name
    for name in ("torch", "qiskit", "h5py", "pennylane", "cirq", "pytket")
    if importlib.util.find_spec(name) is None
]
autodoc_default_options = {"members": True, "member-order": "groupwise"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

# C++ API.
breathe_projects = {"onehop": str(HERE.parent / "build/doxygen/xml")}
breathe_default_project = "onehop"
breathe_default_members = ("members",)
breathe_show_include = False  # the heading names the header
cpp_index_common_prefix = ["onehop::"]

smartquotes_action = "qe"  # quotes and ellipses, but not dashes: options begin with two hyphens

html_theme = "furo"
html_title = f"onehop {release}"
html_static_path = ["_static"]
html_css_files = ["onehop.css"]
html_favicon = "_static/favicon.svg"
html_search_scorer = str(HERE / "_static/scorer.js")
html_show_sphinx = False
html_copy_source = False


def _keep_colons(
    _app: Any, what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Undo that napoleon reads the words before a colon in the first line of a property as its type."""
    types = [line for line in lines if line.startswith(":type: ")]
    if what in ("attribute", "data", "property") and types:
        lines.remove(types[0])
        lines[0] = f"{types[0].removeprefix(':type: ')}: {lines[0]}"


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _keep_colons, priority=900)  # napoleon has 500
