"""Runs notebooks without Jupyter.

`python tests/support/notebooks.py FILE...` runs each and writes its outputs into it.
"""

import ast
import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

_FORMS = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}


def _shown(value: object) -> dict[str, Any]:
    """What a notebook shows of the last value of a cell."""
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    for form, method in _FORMS.items():
        shown = getattr(value, method, lambda: None)()
        if shown:
            data[form] = shown.splitlines(keepends=True)
    return {"output_type": "execute_result", "data": data, "metadata": {}}


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell, and return its outputs: what it prints, and its last value."""
    body = ast.parse(source).body
    last = ast.Expression(body.pop().value) if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        if last is not None and not source.rstrip().endswith(";"):
            value = eval(compile(last, "cell", "eval"), names)
    text = printed.getvalue().splitlines(keepends=True)
    outputs = [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
    return outputs + ([] if value is None else [_shown(value)])


def run_notebook(file: Path) -> dict[str, Any]:
    """Run the cells of a notebook, and return it with their outputs."""
    notebook = json.loads(file.read_text())
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            outputs = run_cell("".join(cell["source"]), names)
            for one in outputs:
                if one["output_type"] == "execute_result":
                    one["execution_count"] = number
            cell.update(outputs=outputs, execution_count=number)
    return notebook


def texts(notebook: dict[str, Any]) -> list[list[str]]:
    """The texts that each cell of code shows, without times, which differ, and without pictures."""
    found = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        parts = [
            "".join(one.get("text", [])) or "".join(one["data"].get("text/html", one["data"]["text/plain"]))
            for one in cell["outputs"]
        ]
        parts = [re.sub(r"[\d.]+ (ns|µs|ms|s)\b", "TIME", part) for part in parts]
        found.append(
            [
                re.sub(r"it (fits|does not fit) into the [\d.]+ \w+ that are free here", "FITS", part)
                for part in parts
            ]
        )
    return found


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(json.dumps(run_notebook(Path(name)), indent=1, ensure_ascii=False) + "\n")
