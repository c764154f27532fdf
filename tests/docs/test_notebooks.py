"""The notebooks of the tutorials run, and show what their files and pages have."""

import json
import re
from pathlib import Path

import pytest

from notebooks import run_notebook, texts

FOLDER = Path(__file__).resolve().parents[2] / "docs/tutorials"
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")


@pytest.mark.parametrize("name", sorted(file.stem for file in FOLDER.glob("*.ipynb")))
def test_a_notebook_shows_what_its_file_has(name: str) -> None:
    """Numbers may differ by 5 %: the last bits depend on the processor, and a descent enlarges them."""
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    stored = json.loads((FOLDER / f"{name}.ipynb").read_text())
    found = run_notebook(FOLDER / f"{name}.ipynb")
    for one, other in zip(texts(found), texts(stored), strict=True):
        assert [NUMBER.sub("N", text) for text in one] == [NUMBER.sub("N", text) for text in other]
        numbers, expected = (
            [float(n) for text in part for n in NUMBER.findall(text)] for part in (one, other)
        )
        assert numbers == pytest.approx(expected, rel=0.05, abs=1e-3)
    figures = json.dumps(found).count('"image/svg+xml"')
    assert figures == json.dumps(stored).count('"image/svg+xml"') > 0
    assert f"generated/{name}.md" in (FOLDER / f"{name}.md").read_text()
