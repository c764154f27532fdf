"""The scripts and programs of the tutorials run, and print what their pages show."""

import os
import re
import shutil
from pathlib import Path

import pytest

from ranks import Ranks, completed

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/tutorials"
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
    done = ranks.onehop("launch", "-n", 2, "--prefix", "rank0", FOLDER / f"{name}.py", cwd=ranks.folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (FOLDER / f"{name}.txt").read_text()
    assert "<svg" in (ranks.folder / f"{name}.svg").read_text()


@pytest.mark.timeout(300)
def test_halo_in_cpp(ranks: Ranks) -> None:
    """Compile with the command of the page and the library that was built for these tests."""
    page = (FOLDER / "halo.md").read_text()
    (command,) = re.findall(r"^g\+\+ .*$", page, re.M)
    (output,) = re.findall(r"```text\n(\[0\] rank 0 .*?)```", page, re.S)
    library = ROOT / "build/release/libonehop.a"
    if not library.exists():
        pytest.skip("no C++ library in build/release; `make build` makes one")
    compiler = next(
        filter(None, map(shutil.which, filter(None, [os.environ.get("CXX"), "g++-12", "g++"]))), None
    )
    if compiler is None:
        pytest.skip("no C++ compiler")
    installed = ranks.folder / "onehop"
    (installed / "lib").mkdir(parents=True)
    (installed / "include").symlink_to(ROOT / "include")
    (installed / "lib/libonehop.a").symlink_to(library)
    words = command.replace("~/onehop", str(installed)).replace("examples/", f"{ROOT}/examples/").split()
    done = completed([compiler, *words[1:]], cwd=ranks.folder)
    assert done.returncode == 0, done.stderr
    done = ranks.onehop("launch", "-n", 2, "./halo", cwd=ranks.folder)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == output.splitlines()


def test_ddp(ranks: Ranks) -> None:
    pytest.importorskip(
        "torch", reason="there is no torch in this environment; `make setup-torch` brings one"
    )
    done = ranks.torchrun(FOLDER / "ddp.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (FOLDER / "ddp.txt").read_text()
