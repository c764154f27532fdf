"""torch finds the backend of an installed onehop by itself, and starts even if onehop is broken."""

import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

import onehop_torch
from ranks import PYTHON_FOLDER, Ranks
from torch_program import WITHOUT_TORCH

INSTALLED = """
    import torch  # and nothing of onehop
    import torch.distributed as dist

    assert "onehop" in dist.Backend.backend_list
    dist.init_process_group("onehop", store=dist.HashStore(), rank=0, world_size=1)
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert (tensor == 1).all()
    dist.destroy_process_group()
    print("reduced")
"""


def site(folder: Path) -> Path:
    """A folder that says what pip writes for an installed onehop."""
    about = folder / "onehop-0.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: onehop\nVersion: 0.0\n")
    (about / "entry_points.txt").write_text("[torch.backends]\nonehop = onehop_torch:register\n")
    return folder


def run(ranks: Ranks, *path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**ranks.environment, "PYTHONPATH": os.pathsep.join(map(str, path))}
    return ranks.run([sys.executable, ranks.script(INSTALLED)], env=environment, cwd=ranks.folder)


def test_an_installed_onehop_is_known_to_torch(ranks: Ranks) -> None:
    pytest.importorskip("torch", reason=WITHOUT_TORCH)
    done = run(ranks, site(ranks.folder / "site"), PYTHON_FOLDER)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "reduced\n"


def test_a_broken_onehop_is_noticed_when_it_is_used_and_not_before(ranks: Ranks) -> None:
    pytest.importorskip("torch", reason=WITHOUT_TORCH)
    folder = site(ranks.folder / "site")
    shutil.copytree(PYTHON_FOLDER / "onehop_torch", folder / "onehop_torch")
    # As without the compiled part; this folder comes before any other onehop.
    (folder / "onehop").mkdir()
    (folder / "onehop/__init__.py").write_text("raise ImportError('the compiled part is missing')\n")
    done = run(ranks, folder)
    assert done.returncode == 1
    assert "init_process_group" in done.stderr
    assert "ImportError: the compiled part is missing" in done.stderr


@pytest.mark.parametrize("state", ["no torch", "no distributed", "no such class", "another signature"])
def test_registering_never_raises(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    torch, dist = types.ModuleType("torch"), types.ModuleType("torch.distributed")
    torch.distributed = dist  # type: ignore[attr-defined]
    dist.is_available = lambda: state != "no distributed"  # type: ignore[attr-defined]
    if state == "another signature":

        class Backend:
            backend_list = ()

            @staticmethod
            def register_backend(name: str) -> None:
                raise AssertionError("was called as if it were the known one")

        dist.Backend = Backend  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", None if state == "no torch" else torch)
    monkeypatch.setitem(sys.modules, "torch.distributed", None if state == "no torch" else dist)
    onehop_torch.register()
