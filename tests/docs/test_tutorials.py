"""The scripts of the tutorials run, and print what their pages show."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranks import Ranks

FOLDER = Path(__file__).resolve().parents[2] / "docs/tutorials"
PAGES = sorted(page.stem for page in FOLDER.glob("*.md") if page.stem != "index")


def test_every_tutorial_has_a_script() -> None:
    assert sorted(script.stem for script in FOLDER.glob("*.py")) == PAGES
    for name in PAGES:
        assert f"{{literalinclude}} {name}.py" in (FOLDER / f"{name}.md").read_text()


@pytest.mark.parametrize("name", [name for name in PAGES if name != "ddp"])
def test_output_and_figure(ranks: Ranks, name: str) -> None:
    if name == "circuit":
        pytest.importorskip("qiskit", reason="reading OpenQASM needs Qiskit")
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    done = ranks.onehop("launch", "-n", 2, "--output", "rank0", FOLDER / f"{name}.py", cwd=ranks.folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (FOLDER / f"{name}.txt").read_text()
    assert "<svg" in (ranks.folder / f"{name}.svg").read_text()


def test_ddp(ranks: Ranks) -> None:
    pytest.importorskip("torch", reason="there is no torch in this environment; `make torch` brings one")
    done = ranks.torchrun(FOLDER / "ddp.py")
    assert done.returncode == 0, done.stderr
    assert "loss fell below a tenth: True" in done.stdout
    assert "sent 20% of the bytes" in done.stdout
