"""The build makes the type stub of the extension, with every name of the extension and its docstring."""

import ast
from pathlib import Path

import onehop
from onehop import _core


def test_the_stub_has_every_name() -> None:
    body = ast.parse(Path(onehop.__file__).with_name("_core.pyi").read_text(encoding="utf-8")).body
    found = {node.name: node for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert {name for name in vars(_core) if not name.startswith("__")} <= found.keys()
    group = ast.get_docstring(found["Group"])
    assert group is not None
    assert group in _core.Group.__doc__
