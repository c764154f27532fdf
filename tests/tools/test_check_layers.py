"""The check of dependencies between parts passes on this tree, and finds forbidden edges in changed copies."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ranks import completed

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "src",
    "quantum",
    "lattice",
    "poisson",
    "collectives",
    "machine",
    "compat",
    "measure",
    "bench",
    "include",
    "python",
    "tools",
)


def check(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the check on a tree."""
    command = [sys.executable, str(ROOT / "tools/check_layers.py"), "--root", str(root)]
    return completed(command)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the sources that the check reads."""
    for folder in FOLDERS:
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
    return tmp_path


def test_this_tree_passes() -> None:
    done = check(ROOT)
    assert done.returncode == 0, done.stderr
    assert "all allowed" in done.stdout


# A file, the line that is added to it, and what the check must say. All lines go into one copy; the check reports all.
WRONG = (
    (
        "src/base/json_text.cc",
        '#include "onehop/group.h"',
        "src/base may include no other part, not src/group",
    ),
    ("quantum/kernels/kernels.cc", '#include "onehop/quantum/state.h"', "not quantum/state"),
    ("lattice/gauge/gauge.cc", '#include "onehop/lattice/solver.h"', "not lattice/solver"),
    ("compat/rdma_comlib/new.c", '#include "src/channel/waiting.h"', "not src/channel"),
    ("compat/quest/comm.cpp", '#include "onehop/quantum/state.h"', "not quantum/state"),
    ("src/plan/run/plan.cc", '#include "plan_run.h"', "write the path from the root"),
    ("include/onehop/unheard_of.h", '#include "onehop/error.h"', "expected a part of tools/layers.toml"),
    ("python/onehop/error.py", "import onehop.group", "onehop.error may import no other part"),
    ("python/onehop/lattice/field.py", "from onehop.quantum import state", "not onehop.quantum"),
    ("python/onehop/schedule.py", "import onehop.codec, onehop.plan", "not onehop.plan"),
    (
        "python/onehop/lattice/field.py",
        "from . import gauge",
        "has `from . import gauge`: write the full name",
    ),
    ("python/onehop/plan.py", "import onehop", "onehop.plan imports onehop, but"),
    ("python/onehop/quantum/io/program.py", "import onehop.quantum.state", "not onehop.quantum.state"),
    (
        "python/onehop/quantum/noise/channel.py",
        "import onehop.quantum",
        "channel imports onehop.quantum, but",
    ),
    (
        "python/onehop/quantum/gradients.py",
        "from onehop.quantum.run import task",
        "not onehop.quantum.run",
    ),
    ("python/onehop/unheard_of.py", "import onehop.error", "expected a part of tools/layers.toml"),
)


def test_wrong_edges_are_found(tree: Path) -> None:
    for file, line, _ in WRONG:
        with (tree / file).open("a", encoding="utf-8") as stream:
            stream.write(f"\n{line}\n")
    # An edge that the table allows.
    with (tree / "python/onehop/qiskit/backend.py").open("a", encoding="utf-8") as stream:
        stream.write("\nimport onehop.quantum.run.task\n")
    done = check(tree)
    assert done.returncode == 1
    for file, line, words in WRONG:
        module = file.removeprefix("python/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        found = [
            said for said in done.stderr.splitlines() if words in said and (file in said or module in said)
        ]
        assert found, (file, line, done.stderr)
    assert "onehop.qiskit.backend" not in done.stderr
    assert len(done.stderr.splitlines()) >= len(WRONG)


def test_the_figure_shows_this_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figure has an arrow for each edge that no chain of arrows replaces, and for no other."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    layers = importlib.import_module("check_layers")
    table = layers.tomllib.loads((ROOT / "tools/layers.toml").read_text(encoding="utf-8"))
    edges = {edge for edge in layers.check_cpp(ROOT, table)[1] if set(edge) <= table["cpp"].keys()}
    drawing = (ROOT / "docs/figures/layers.svg").read_text(encoding="utf-8")
    shown = {tuple(text.split("--")) for text in re.findall(r'id="([\w/]+--[\w/]+)"', drawing)}
    remedy = "run .venv/bin/python tools/draw_layers.py docs/figures/layers.svg"
    assert shown <= edges, remedy
    # What arrows lead to, over any number of parts in between, is what includes lead to.
    closures = []
    for pairs in (shown, edges):
        reached = set(pairs)
        while more := {(a, d) for a, b in reached for c, d in pairs if b == c} - reached:
            reached |= more
        closures.append(reached)
    assert closures[0] == closures[1], remedy
    assert all((a, c) not in shown for a, b in shown for b2, c in shown if b == b2), remedy


def test_cycles_are_found(tree: Path) -> None:
    (tree / "src/base/one.h").write_text('#include "src/base/two.h"\n', encoding="utf-8")
    (tree / "src/base/two.h").write_text('#include "src/base/one.h"\n', encoding="utf-8")
    (tree / "python/onehop/quantum/one.py").write_text("import onehop.quantum.two\n", encoding="utf-8")
    (tree / "python/onehop/quantum/two.py").write_text(
        "def late():\n    from onehop.quantum import one\n", encoding="utf-8"
    )
    done = check(tree)
    assert done.returncode == 1
    assert "include each other in a cycle: src/base/one.h, src/base/two.h" in done.stderr
    assert "import each other in a cycle: onehop.quantum.one, onehop.quantum.two" in done.stderr
