"""The type stub of the extension lists every name of the extension."""

from __future__ import annotations

import ast
from pathlib import Path

import onehop
from onehop import _core

REMEDY = "make it again: python -m nanobind.stubgen -P -m onehop._core -o python/onehop/_core.pyi"


def public(names: list[str] | dict[str, object]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def members(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    named = {node.name: node for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    return {**named, **{node.target.id: node for node in body if isinstance(node, ast.AnnAssign)}}


def test_stub_and_extension_agree() -> None:
    stub = members(ast.parse(Path(onehop.__file__).with_name("_core.pyi").read_text()).body)
    assert public(list(stub)) == public(vars(_core)), REMEDY
    for name, node in stub.items():
        if isinstance(node, ast.ClassDef):
            assert public(list(members(node.body))) == public(vars(getattr(_core, name))), f"{name}: {REMEDY}"
