"""Set exponents and indices of formulas in text, and turn the names of documentation files into links."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

GROUP = r"\{[^}]*\}|\((?:[^()]|\([^()]*\))*\)"  # in braces, or in brackets with at most one more pair inside
EXPONENT = rf"(?<=[\w)|\]])\^(?P<superscript>{GROUP}|[-\N{{MINUS SIGN}}]?(?:\d+|[^\W_]+))"
INDEX = rf"(?<=(?<!\w)[A-Za-zΑ-ω])_(?P<subscript>{GROUP}|[A-Za-zΑ-ω]{{1,4}}|\d+)(?![A-Za-z0-9_])"
PAGE = r"(?<![\w/])docs/(?P<page>(?:design|howto|performance|reference|tutorials)/\w+)\.md"
PATTERN = re.compile(rf"{EXPONENT}|{INDEX}|{PAGE}")
AS_WRITTEN = (
    nodes.literal,
    nodes.FixedTextElement,
    nodes.title,
    nodes.raw,
    nodes.reference,
    addnodes.desc_signature,
)


def is_written_as_is(text: nodes.Text) -> bool:
    """Whether the text belongs to code, a signature, a title or a link."""
    node = text.parent
    if isinstance(node, addnodes.pending_xref):
        return True
    while node is not None and not isinstance(node, AS_WRITTEN):
        node = node.parent
    return node is not None


def mark_up(text: str, document: str) -> list[nodes.Node]:
    """Split a text into plain parts, exponents, indices and links to pages."""
    made: list[nodes.Node] = []
    end = 0
    for found in PATTERN.finditer(text):
        if end < found.start():
            made.append(nodes.Text(text[end : found.start()]))
        kind, target = found.lastgroup, found[found.lastgroup or 0]
        if kind == "page":
            link = addnodes.pending_xref(
                "", refdomain="std", reftype="doc", reftarget=f"/{target}", refdoc=document, refexplicit=False
            )
            link += nodes.inline("", f"docs/{target}.md")
            made.append(link)
        else:
            plain = re.sub(r"^[({](.*)[)}]$", r"\1", target).replace("-", "\N{MINUS SIGN}")
            made.append(nodes.superscript("", plain) if kind == "superscript" else nodes.subscript("", plain))
        end = found.end()
    return [*made, nodes.Text(text[end:])] if end < len(text) else made


def mark_up_texts(app: Any, tree: nodes.document) -> None:
    """Mark up every text of a page that is neither code nor a title."""
    for text in list(tree.findall(nodes.Text)):
        if PATTERN.search(text) and not is_written_as_is(text):
            text.parent.replace(text, mark_up(str(text), app.env.docname))


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", mark_up_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
