"""No source of the package can run code that another process sends: no pickle, and no eval."""

import ast

import pytest

from ranks import PYTHON_FOLDER

_FORBIDDEN_MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
_FORBIDDEN_MODULES |= {"multiprocessing", "xmlrpc", "dbm"}
_FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
_FORBIDDEN_NAMES = {"all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"}
_FORBIDDEN_NAMES |= {"send_object_list", "recv_object_list", "fromstring_pickle", "read_pickle"}


def _objections(source: str) -> list[str]:
    """Return the expressions in a source that could run code from another process."""
    found = []
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            found += [
                f"{line}: {one.name}" for one in node.names if one.name.split(".")[0] in _FORBIDDEN_MODULES
            ]
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").split(".")[0] in _FORBIDDEN_MODULES:
                found.append(f"{line}: {node.module}")
        elif isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "weights_only"):
            if not (
                isinstance(node.value, ast.Constant) and node.value.value is (node.arg == "weights_only")
            ):
                found.append(f"{line}: {node.arg}")
        elif isinstance(node, (ast.Name, ast.Attribute)):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in _FORBIDDEN_NAMES or (isinstance(node, ast.Name) and name in _FORBIDDEN_CALLS):
                found.append(f"{line}: {name}")
            owner = node.value if isinstance(node, ast.Attribute) else None
            if name == "load" and isinstance(owner, ast.Name) and owner.id == "torch":
                found.append(f"{line}: torch.load")
    return found


@pytest.mark.parametrize("folder", ["onehop", "onehop_torch"])
def test_the_package_has_no_pickle_and_no_eval(folder: str) -> None:
    files = sorted((PYTHON_FOLDER / folder).rglob("*.py"))
    assert files
    found = [
        f"{file.relative_to(PYTHON_FOLDER)}:{one}" for file in files for one in _objections(file.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import os, marshal",
        "def f():\n    from multiprocessing.connection import Connection",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "import torch\ntorch.load('x')",
        "torch.load('x', weights_only=False)",
        "dist.all_gather_object(a, b)",
        "eval('1')",
        "f = exec",
    ],
)
def test_the_search_for_pickle_finds_it(source: str) -> None:
    assert _objections(source)
    assert not _objections("import json\nnumpy.load('x', allow_pickle=False)\nlogic.evaluate(x)")
