"""The Python examples of the documentation run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import Ranks

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
# An example is a whole program: a block that imports onehop. Others are lines of one.
EXAMPLES = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    if page.exists()
    for number, block in enumerate(BLOCK.findall(page.read_text()))
    if re.search(r"^(from|import) .*onehop", block, re.M) and "onehop.launch" not in block
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run_on_two_ranks(ranks: Ranks, example: str) -> None:
    done = ranks.launch(2, example)
    assert done.returncode == 0, done.stderr
