"""The build makes the type stub of the extension, with every name of it and its docstring, and that of keywords."""

import ast
import dataclasses
from pathlib import Path

import onehop
from onehop import _core
from onehop.lattice.operators import WilsonSolverOptions
from onehop.schedule import HaloOptions


def test_the_stub_has_every_name() -> None:
    body = ast.parse(Path(onehop.__file__).with_name("_core.pyi").read_text(encoding="utf-8")).body
    found = {node.name: node for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert {name for name in vars(_core) if not name.startswith("__")} <= found.keys()
    group = ast.get_docstring(found["Group"])
    assert group is not None
    assert group in _core.Group.__doc__


def test_keywords_are_the_fields_of_options() -> None:
    text = Path(onehop.__file__).with_name("_keywords.pyi").read_text(encoding="utf-8")
    found = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}

    def kinds(name: str) -> dict[str, str]:
        fields = [field for field in found[name].body if isinstance(field, ast.AnnAssign)]
        return {ast.unparse(field.target): ast.unparse(field.annotation) for field in fields}

    halo = kinds("HaloKeywords")
    assert halo.keys() == {field.name for field in dataclasses.fields(HaloOptions)}
    assert (halo["extents"], halo["corners"]) == ("Required[Sequence[int]]", "bool")
    wilson = kinds("WilsonSolverKeywords")
    assert ast.unparse(found["WilsonSolverKeywords"].bases[0]) == "SolverKeywords"
    assert (kinds("SolverKeywords") | wilson).keys() == {
        one.name for one in dataclasses.fields(WilsonSolverOptions)
    }
