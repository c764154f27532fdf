"""The scripts and programs of the tutorials run, and print what their pages show."""

import os
import re
import shutil
from pathlib import Path

import pytest

from ranks import Ranks, completed

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/tutorials"
SCRIPTS = sorted(script.stem for script in FOLDER.glob("*.py"))
WITH_TORCH = ("fsdp", "train")


def test_a_page_shows_every_script_with_its_output_and_figure() -> None:
    pages = "".join(page.read_text() for page in FOLDER.glob("*.md"))
    for name in SCRIPTS:
        assert f"docs/tutorials/{name}.py\n" in pages, name  # the command that runs it
        assert f"{{literalinclude}} {name}.py\n```" in pages, name
        assert f"{{literalinclude}} {name}.txt" in pages, name
        assert (FOLDER / f"{name}.svg").exists() == ("save_figure" in (FOLDER / f"{name}.py").read_text())


@pytest.mark.parametrize("name", SCRIPTS)
def test_output_and_figure(ranks: Ranks, name: str) -> None:
    if name in WITH_TORCH:
        pytest.importorskip(
            "torch", reason="there is no torch in this environment; `make setup-torch` brings one"
        )
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    environment = {**ranks.environment, "TMPDIR": str(ranks.folder)}  # torch leaves files there
    line = ("launch", "-n", 2, "--prefix", "rank0", FOLDER / f"{name}.py")
    done = ranks.onehop(*line, cwd=ranks.folder, env=environment, status=0)
    assert done.stdout == (FOLDER / f"{name}.txt").read_text()
    assert [file.name for file in ranks.folder.glob("*.svg")] == [
        file.name for file in FOLDER.glob(f"{name}.svg")
    ]


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
    done = completed([compiler, *words[1:]], cwd=ranks.folder, status=0)
    done = ranks.onehop("launch", "-n", 2, "./halo", cwd=ranks.folder, status=0)
    assert sorted(done.stdout.splitlines()) == output.splitlines()
