"""Every kernel obeys ONEHOP_SIMD, and every command refuses a value that the processor does not support."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onehop import _core
from ranks import completed

ROOT = Path(__file__).resolve().parents[2]

# A few tests of every family of kernels, for the levels that the other tests do not run at. Those that start programs
# are left out: they are about commands and errors.
SELECTION = (
    "tests/codec/test_codec.py",
    "tests/plan/test_plan.py",
    "tests/poisson/test_poisson.py",
    "tests/quantum/test_gates.py",
    "tests/lattice/test_gauge.py",
    "--deselect=tests/lattice/test_gauge.py::test_plaquette_at_strong_coupling",  # a quarter of the time
)


def run(level: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python with this value of ONEHOP_SIMD."""
    paths = filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH")])
    environment = {**os.environ, "ONEHOP_SIMD": level, "PYTHONPATH": os.pathsep.join(paths)}
    return completed([sys.executable, *command], env=environment, cwd=ROOT, timeout=300)


@pytest.mark.parametrize("level", [level for level in _core.simd_levels() if level != _core.simd_level()])
def test_kernels_are_right_at_every_level(level: str) -> None:
    asked = run(level, "-c", "from onehop import _core; print(_core.simd_level())")
    assert asked.stdout.strip() == level
    done = run(level, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not programs", *SELECTION)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "command", [("launch", "-n", "2", "program.py"), ("doctor",), ("run", "-n", "2", "none.qasm")]
)
def test_a_wrong_level_ends_every_command_before_it_starts(command: tuple[str, ...]) -> None:
    done = run("mmx", "-m", "onehop", *command)
    assert done.returncode == 2
    assert done.stderr.count("ONEHOP_SIMD: expected portable") == 1
    assert "found 'mmx'" in done.stderr.replace("\n", " ")


def test_a_wrong_level_is_an_error_of_the_first_group() -> None:
    done = run("mmx", "-c", "import onehop; onehop.Group.alone()")
    assert "BadInput" in done.stderr
    assert "ONEHOP_SIMD" in done.stderr
