"""Make the pages of the Python API readable: docstrings, signatures and cross-references."""

import re
from typing import Any

from docutils import nodes
from sphinx.domains.python import PythonDomain

from onehop import _core


class TypesAreNotAttributes(PythonDomain):
    """The domain of Python objects, in which a type in a signature never becomes a link to an attribute.

    Sphinx falls back to attributes if it knows no class of that name, so `list` would link to `Slice.list`.
    """

    def resolve_xref(
        self,
        env: Any,
        fromdocname: str,
        builder: Any,
        type: str,  # noqa: A002, the name is Sphinx's
        target: str,
        node: Any,
        contnode: Any,
    ) -> Any:
        """Make a link of a reference. A type that is no class and no alias of this package stays text."""
        where = (env, node.get("py:module"), node.get("py:class"), target)
        if type == "class" and not any(self.find_obj(*where, role, 1) for role in ("class", "data")):
            return None
        return super().resolve_xref(env, fromdocname, builder, type, target, node, contnode)


def mark_up_docstring(
    _app: Any, what: str, _name: str, _object: Any, _options: Any, lines: list[str]
) -> None:
    """Turn `code` into literals and escape what reStructuredText takes for markup: docstrings are plain text."""

    def mark_up(line: str) -> str:
        parts = re.split(r"(``?[^`]+``?)", line)
        return "".join(
            f"``{part.strip('`')}``" if part.startswith("`") else re.sub(r"([|*\\])", r"\\\1", part)
            for part in parts
        )

    made: list[str] = (
        [""] if what in ("attribute", "property") else []
    )  # or napoleon takes "Sum: ..." for a type
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


def mend_signature(
    _app: Any, _what: str, _name: str, _object: Any, _options: Any, arguments: str | None, result: str | None
) -> tuple[str | None, str | None]:
    """Shorten a signature: no `self` in compiled methods, no modules of types, and arrays as in the source.

    Defaults that are no Python expression become `...`; Sphinx cannot parse the signature otherwise.
    """

    def mend(text: str) -> str:
        text = re.sub(r"<factory>|<object object at \w+>", "...", text)
        text = re.sub(r"^\(self(, )?", "(", text)
        text = re.sub(r"\b(?:collections\.abc|onehop\._core)\.", "", text)
        text = re.sub(r"\bnumpy\.ndarray\[dtype=(\w+)[^]]*\]", r"NDArray[\1]", text)
        return re.sub(r"\bndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]", r"NDArray[\1]", text)

    return arguments and mend(arguments), result and mend(result)


def skip_member(_app: Any, _what: str, _name: str, member: Any, skip: bool, _options: Any) -> bool | None:
    """Leave out the fields of named tuples, whose only text is their position; the signature has them."""
    return True if not skip and type(member).__name__ == "_tuplegetter" else None


def document_static_functions(_app: Any) -> None:
    """Wrap the static functions of compiled classes in Python functions, which autodoc recognises."""

    def wrap(function: Any) -> staticmethod:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            return function(*arguments, **options)

        wrapper.__name__, wrapper.__doc__ = function.__name__, function.__doc__
        return staticmethod(wrapper)

    for kind in vars(_core).values():
        for name, member in list(vars(kind).items()) if isinstance(kind, type) else []:
            if type(member).__name__ == "nb_func" and not name.startswith("_"):
                setattr(kind, name, wrap(member))


def mend_fields(_app: Any, tree: nodes.document) -> None:
    """Replace words and punctuation that Sphinx writes into lists of parameters and attributes."""
    for field in tree.findall(nodes.field):
        name, body = field.children
        if name.astext() == "Variables":
            name.children = [nodes.Text("Attributes")]
        for text in list(body.findall(nodes.Text)):
            if " -- " in text:
                text.parent.replace(text, nodes.Text(text.replace(" -- ", " \N{EN DASH} ")))
            elif isinstance(text.parent, nodes.strong):  # several attributes with one description
                text.parent.replace(text, nodes.Text(re.sub(r",(?=\w)", ", ", text)))


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    app.add_domain(TypesAreNotAttributes, override=True)
    app.connect("builder-inited", document_static_functions)
    app.connect("autodoc-process-docstring", mark_up_docstring, priority=400)
    app.connect("autodoc-process-signature", mend_signature)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("doctree-read", mend_fields)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
