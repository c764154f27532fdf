"""The type stub of the extension lists every name of the extension, with its docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onehop
from onehop import _core

REMEDY = "make it again: .venv/bin/python tools/make_stub.py"


def public(names: list[str] | dict[str, object]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def members(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    named = {node.name: node for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    return {**named, **{node.target.id: node for node in body if isinstance(node, ast.AnnAssign)}}


def stub() -> list[ast.stmt]:
    return ast.parse(Path(onehop.__file__).with_name("_core.pyi").read_text(encoding="utf-8")).body


def words(text: str | None) -> str:
    return " ".join((text or "").split())


def documented(body: list[ast.stmt], owner: Any, path: str) -> Iterator[tuple[str, set[str], str]]:
    """Yield each name with its docstrings in the stub, one for each overload, and that of the extension.

    The latter has the signatures in it, too.
    """
    found: dict[str, set[str]] = {}
    for node in body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            continue
        if isinstance(node, ast.ClassDef):
            yield from documented(node.body, getattr(owner, node.name), f"{path}{node.name}.")
        if not any(ast.unparse(mark).endswith(".setter") for mark in getattr(node, "decorator_list", ())):
            found.setdefault(node.name, set()).add(words(ast.get_docstring(node)))
    for name, docstrings in found.items():
        yield path + name, docstrings, getattr(owner, name).__doc__ or ""


def test_stub_and_extension_agree() -> None:
    names = members(stub())
    assert public(list(names)) == public(vars(_core)), REMEDY
    for name, node in names.items():
        if isinstance(node, ast.ClassDef):
            assert public(list(members(node.body))) == public(vars(getattr(_core, name))), f"{name}: {REMEDY}"


def test_docstrings_agree() -> None:
    wrong = []
    compared = 0
    for name, docstrings, whole in documented(stub(), _core, ""):
        for docstring in docstrings - {""}:
            compared += 1
            if docstring not in words(whole):
                wrong.append(f"{name}: {docstring!r} is not in {words(whole)!r}")
        # A function's text follows its signature after an empty line; that of a property or a class stands alone.
        has_text = "\n\n" in whole or (whole and " -> " not in whole)
        if docstrings == {""} and has_text and not name.endswith("__"):
            wrong.append(f"{name}: without {whole!r}")
    assert compared > 400
    assert not wrong, f"{REMEDY}\n" + "\n".join(wrong)
