"""A schedule for the tests of commands."""

from pathlib import Path

import pytest

from onehop.cli import main


@pytest.fixture
def halo(tmp_path: Path) -> str:
    path = str(tmp_path / "halo.json")
    assert main(["schedule", "halo", "--extent", "128x64x64", "--grid", "2x1x1", "-o", path]) == 0
    return path
