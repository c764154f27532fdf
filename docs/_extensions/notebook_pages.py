"""Turn the notebooks of the tutorials into pages: text, cells of code, and their outputs as they are in the file."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ROOT / "build" / "generated"


def _output(one: dict[str, Any]) -> str:
    if "text" in one:
        return f"```text\n{''.join(one['text']).rstrip()}\n```\n"
    for form in ("image/svg+xml", "text/html"):
        if form in one["data"]:
            shown = "".join(one["data"][form])
            shown = shown[shown.index("<svg") :] if form == "image/svg+xml" else shown
            return f'```{{raw}} html\n<div class="notebook-output">\n{shown}\n</div>\n```\n'
    return f"```text\n{''.join(one['data']['text/plain'])}\n```\n"


def page_of(notebook: dict[str, Any]) -> str:
    """Write a notebook as Markdown for the site."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source + "\n")
        else:
            parts += [f"```python\n{source}\n```\n", *map(_output, cell["outputs"])]
    return "\n".join(parts)


def write_notebooks(_app: Any) -> None:
    """Write the page of each notebook, which the page of the same name in docs/tutorials includes."""
    GENERATED.mkdir(parents=True, exist_ok=True)
    for file in (ROOT / "docs/tutorials").glob("*.ipynb"):
        (GENERATED / f"{file.stem}.md").write_text(page_of(json.loads(file.read_text())))


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
