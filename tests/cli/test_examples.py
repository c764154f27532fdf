"""The examples run, on one rank and on several, and check themselves. (The C++ ones are tests of ctest.)"""

import sys
from pathlib import Path

import pytest

from ranks import Ranks

FOLDER = Path(__file__).resolve().parents[2] / "examples"
# The tests of torch and PennyLane run the examples that need these packages.
OTHERS = {"ddp_digits", "ddp_text", "pennylane_optimization"}
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.stem not in OTHERS)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_example(ranks: Ranks, example: Path, count: int) -> None:
    if count == 1:
        command = [sys.executable, str(example)]
        done = ranks.run(command, cwd=ranks.folder, timeout=60)
    else:
        done = ranks.onehop("launch", "-n", count, str(example), cwd=ranks.folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_example_is_there_in_both_languages() -> None:
    assert [path.stem for path in EXAMPLES] == ["channel", "halo", "poisson"]
    assert all(path.with_suffix(".cc").exists() for path in EXAMPLES)
