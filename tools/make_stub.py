"""Write python/onehop/_core.pyi, the type stub of the extension: its signatures and docstrings.

    .venv/bin/python tools/make_stub.py

nanobind makes the stub of the extension that is built in python/onehop. Its docstrings are wrapped here, and ruff
formats the result; `tools/setup.sh lint` installs it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

from nanobind.stubgen import StubGen

ROOT = Path(__file__).resolve().parents[1]
STUB = ROOT / "python/onehop/_core.pyi"
WIDTH = 110


def wrapped(docstring: str, indent: str) -> list[str]:
    """Return the lines of a docstring in its quotes, none of them longer than `WIDTH` where words allow it."""
    single = f'{indent}"""{docstring}"""'
    if "\n" not in docstring and len(single) <= WIDTH:
        return [single]
    lines: list[str] = []
    for line in docstring.splitlines():
        inner = indent + line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line.strip(),
            WIDTH,
            initial_indent=inner,
            subsequent_indent=inner,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return [f'{indent}"""', *lines, f'{indent}"""']


def with_wrapped_docstrings(source: str) -> str:
    """Return a stub with all its docstrings wrapped."""
    lines = source.splitlines()
    found = [
        node.body[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None
    ]
    # From the last to the first, so that line numbers stay right.
    for docstring in sorted(found, key=lambda node: -node.lineno):
        assert isinstance(docstring, ast.Expr)
        text = ast.literal_eval(docstring.value)
        cleaned = textwrap.dedent(" " * docstring.col_offset + text.strip("\n")) if "\n" in text else text
        lines[docstring.lineno - 1 : docstring.end_lineno] = wrapped(
            cleaned.strip(), " " * docstring.col_offset
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the stub; return the exit code."""
    sys.path.insert(0, str(ROOT / "python"))
    from onehop import _core

    generator = StubGen(_core, include_private=True)
    generator.put(_core)
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(STUB), "-"]
    source = with_wrapped_docstrings(generator.get())
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"cannot format the stub: {done.stderr.strip()}; run tools/setup.sh lint", file=sys.stderr)
        return 1
    STUB.write_text(done.stdout, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
