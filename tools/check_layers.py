"""Check that includes and imports follow the table of allowed edges in tools/layers.toml.

    check_layers.py [--root FOLDER]

Exits with 1 and one line for each forbidden edge, each include whose path does not start at the root of the repository,
each relative import, and each cycle.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)
CPP_FOLDERS = (
    "src",
    "quantum",
    "lattice",
    "poisson",
    "collectives",
    "machine",
    "compat",
    "c",
    "measure",
    "bench",
    "include",
    "python/bindings",
)
Edge = tuple[str, str]  # from a file or module to another


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of more than one node that all reach each other."""

    def reached_from(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = edges.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        return seen

    reached = {node: reached_from(node) for node in edges}
    groups = {
        tuple(sorted(other for other in reached[node] if node in reached.get(other, ()))) for node in edges
    }
    return [list(group) for group in sorted(groups) if len(group) > 1]


def cpp_edges(root: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield (file, included file of this repository, found from the root) for every include in C and C++."""
    for folder in CPP_FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".c", ".cc", ".cpp", ".h"):
                continue
            for bracket, name in INCLUDE.findall(file.read_text(encoding="utf-8")):
                own = file.relative_to(root).as_posix()
                for candidate in (f"include/{name}", name):
                    if (root / candidate).is_file():
                        yield own, candidate, True
                        break
                else:
                    if bracket == '"' and (file.parent / name).is_file():
                        yield own, name, False


class CppLayers:
    """The C++ part of the table."""

    def __init__(self, table: dict) -> None:
        self.allowed: dict[str, list[str]] = table["cpp"]
        self.core: list[str] = table["cpp_rules"]["core"]
        self.unrestricted: list[str] = table["cpp_rules"]["unrestricted"]
        self.header_of = {
            ("include/" if name.startswith("onehop") else "include/onehop/") + f"{name}.h": part
            for part, names in table["cpp_headers"].items()
            for name in names
        }

    def part(self, file: str) -> str | None:
        """Return the part that a file belongs to; None if the table does not list it."""
        if file.startswith("include/"):
            return self.header_of.get(file)
        names = [name for name in (*self.allowed, *self.unrestricted) if file.startswith(name + "/")]
        return max(names, key=len, default=None)

    def is_core(self, file: str) -> bool:
        """Return whether every simulation may include this header."""
        return any(fnmatch(file, pattern) and file.count("/") == pattern.count("/") for pattern in self.core)

    def why_not(self, file: str, target: str) -> str | None:
        """Return why an include is forbidden; None if it is allowed."""
        own, other = self.part(file), self.part(target)
        if own is None or other is None:
            unknown = file if own is None else target
            return (
                f"{unknown}: expected a part of tools/layers.toml that contains it, found none; add it there"
            )
        if own in self.unrestricted or own == other:
            return None
        allowed = self.allowed[own]
        if other in allowed or ("core" in allowed and self.is_core(target)):
            return None
        listed = f"only {', '.join(allowed)}" if allowed else "no other part"
        return f"{file} includes {target}, but {own} may include {listed}, not {other}"


def check_cpp(root: Path, table: dict) -> tuple[list[str], set[Edge]]:
    """Return the violations in the C++ sources, and the edges between parts."""
    layers = CppLayers(table)
    faults: list[str] = []
    parts: set[Edge] = set()
    graph: dict[str, set[str]] = {}
    for file, target, from_root in cpp_edges(root):
        if not from_root:
            faults.append(
                f'{file} includes "{target}" from its own folder; write the path from the root of the repository'
            )
            continue
        graph.setdefault(file, set()).add(target)
        if reason := layers.why_not(file, target):
            faults.append(reason)
        elif (own := layers.part(file)) != (other := layers.part(target)) and own and other:
            parts.add((own, other))
    faults += [f"these headers include each other in a cycle: {', '.join(cycle)}" for cycle in cycles(graph)]
    return faults, parts


def module_name(file: Path, root: Path) -> str:
    """Return the dotted name of a Python source."""
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, modules: set[str]) -> Iterator[str]:
    """Yield the modules of this repository that a source imports, at any place in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for name in node.names:
                full = f"{node.module}.{name.name}"
                if full in modules:
                    yield full
                elif node.module in modules:
                    yield node.module


def relative_imports(tree: ast.AST) -> list[str]:
    """Return the relative imports of a source, as they are written there."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level > 0]
    return [ast.unparse(node) for node in found]


def may_import(own: str, other: str | None, allowed: list[str]) -> bool:
    """Return whether a part may import another one.

    A part outside of a package that may import the package may import all parts of it.
    """
    if other == own or other in allowed or allowed == ["*"]:
        return True
    packages = [part for part in allowed if part != "onehop" and not own.startswith(part + ".")]
    return other is not None and any(other.startswith(part + ".") for part in packages)


def python_part(module: str, parts: list[str], aliases: dict[str, str]) -> str | None:
    """Return the part with the longest name that contains a module; "onehop" is the package's `__init__` only."""
    names = [part for part in parts if module == part or (part != "onehop" and module.startswith(part + "."))]
    return aliases.get(module) or max(names, key=len, default=None)


def check_python(root: Path, table: dict) -> tuple[list[str], set[Edge]]:
    """Return the violations in the Python package, and the edges between parts."""
    allowed: dict[str, list[str]] = table["python"]
    aliases: dict[str, str] = table["python_aliases"]
    files = {
        module_name(file, base): file
        for base in (root / "python", root / "bench")
        for file in sorted(base.rglob("*.py"))
    }
    modules = {*files, "onehop._core"}
    graph: dict[str, set[str]] = {}
    faults: list[str] = []
    parts: set[Edge] = set()
    for module, file in files.items():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        faults += [
            f"{module} has `{line}`: write the full name of the module" for line in relative_imports(tree)
        ]
        targets = set(imports(tree, modules)) - {module, "onehop._core"}
        graph[module] = targets
        own = python_part(module, list(allowed), aliases)
        if own is None:
            faults.append(
                f"{module}: expected a part of tools/layers.toml that contains it, found none; add it there"
            )
            continue
        for target in sorted(targets):
            other = python_part(target, list(allowed), aliases)
            if may_import(own, other, allowed[own]):
                if other and other != own:
                    parts.add((own, other))
                continue
            listed = f"only {', '.join(allowed[own])}" if allowed[own] else "no other part"
            faults.append(f"{module} imports {target}, but {own} may import {listed}, not {other}")
    faults += [f"these modules import each other in a cycle: {', '.join(cycle)}" for cycle in cycles(graph)]
    return faults, parts


def main() -> int:
    """Check the tree; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--root", type=Path, default=Path(__file__).resolve().parents[1], help="The tree to check."
    )
    options = parser.parse_args()
    table = tomllib.loads((options.root / "tools/layers.toml").read_text(encoding="utf-8"))
    cpp_faults, cpp_parts = check_cpp(options.root, table)
    python_faults, python_parts = check_python(options.root, table)
    faults = cpp_faults + python_faults
    for name, parts in (("C++", cpp_parts), ("Python", python_parts)):
        graph: dict[str, set[str]] = {}
        for own, other in parts:
            graph.setdefault(own, set()).add(other)
        faults += [f"these {name} parts depend on each other: {', '.join(cycle)}" for cycle in cycles(graph)]
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(
            f"layers: {len(cpp_parts)} C++ and {len(python_parts)} Python dependencies between parts, all allowed"
        )
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
