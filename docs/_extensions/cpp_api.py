"""Run Doxygen, and describe C++ functions that share a comment as one entry."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.domains.cpp import CPPDomain

ROOT = Path(__file__).resolve().parents[2]
DOXYGEN = ROOT / "build" / "doxygen"


def run_doxygen(_app: Any) -> None:
    """Read the headers into XML, from which Breathe makes pages."""
    if shutil.which("doxygen") is None:
        raise SystemExit(
            "docs: no doxygen. Run, then make docs again: sudo apt-get install -y --no-install-recommends doxygen"
        )
    DOXYGEN.mkdir(parents=True, exist_ok=True)
    subprocess.run(["doxygen", "docs/Doxyfile"], cwd=ROOT, check=True)


class WithoutParameters(CPPDomain):
    """The domain of C++ objects, whose parameters are neither in the index nor in the search."""

    def get_objects(self) -> Iterator[tuple[str, str, str, str, str, int]]:
        """Return all objects but the parameters of functions and templates."""
        return (one for one in super().get_objects() if one[2] not in ("functionParam", "templateParam"))


def merge_entries(app: Any, tree: nodes.document) -> None:
    """Give the functions that share a comment one entry with several signatures.

    tools/doxygen_filter.py describes all of them but the first by the word "ditto".
    """
    if not app.env.docname.startswith("reference/cpp/"):
        return
    for entry in list(tree.findall(addnodes.desc)):
        *signatures, content = entry.children
        if content.astext().strip() != "ditto":
            continue
        before = entry.parent[: entry.parent.index(entry)]
        first = next((one for one in reversed(before) if isinstance(one, addnodes.desc)), None)
        if first is None:
            content.clear()
            continue
        first[-1:-1] = signatures
        entry.parent.remove(entry)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_domain(WithoutParameters, override=True)
    app.connect("builder-inited", run_doxygen)
    app.connect("doctree-read", merge_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
