"""The tour: what it reports, and that a wrong answer fails it."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from commands import refused
from onehop import BadInput, Group, tour
from onehop.launch import find_mpi_launcher
from onehop.quantum import Circuit, gate
from onehop.tour import StepResult
from ranks import Ranks
from threads import run_threads


@pytest.mark.parametrize("ranks_wanted", [1, 3])  # two: below, beside MPI
def test_command(ranks: Ranks, ranks_wanted: int) -> None:
    done = ranks.onehop(
        "tour", "-n", ranks_wanted, "--mpi", "none", "--seconds", 0.05, "--json", "-", timeout=110, status=0
    )
    found = json.loads(done.stdout)
    assert found["ranks"] == ranks_wanted
    assert [one["name"].replace(":", " ").split()[0] for one in found["steps"]] == [
        "Poisson",
        "Halo",
        "QPE",
        "TFIM",
        "Sum",
        "Gauge",
        "HISQ",
        "Clover",
    ]
    for one in found["steps"]:
        assert one["ok"] is True
        assert one["checked_against"]
        assert one["seconds"] > 0
        assert one["baseline_seconds"] is None
    # Two faces of 60 sites, or of 64 x 64, leave each rank; two ranks or three lie in a row.
    crossing = 0 if ranks_wanted == 1 else ranks_wanted * 2
    assert found["steps"][1]["bytes_moved"] == crossing * 64 * 64 * 8
    sums = 101 * 8 * ranks_wanted * (ranks_wanted - 1)
    assert found["steps"][0]["bytes_moved"] == crossing * 60 * 8 * 1000 + sums
    assert "mpiexec" in found["no_baseline"]
    assert "mpiexec" in done.stderr  # the table goes there


def test_command_beside_mpi(ranks: Ranks) -> None:
    try:
        find_mpi_launcher()
    except BadInput:
        pytest.skip("there is no MPI to compare with")
    done = ranks.onehop("tour", "-n", 2, "--seconds", 0.05, "--json", "-", timeout=110, status=0)
    steps = json.loads(done.stdout)["steps"]
    assert all(one["ok"] is True for one in steps)
    for one in steps[:2]:
        assert one["baseline_seconds"] > 0
        assert one["ratio"] > 0


@pytest.mark.parametrize("seconds", ["0", "-1", "1000"])
def test_command_says_what_is_wrong(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--seconds" in refused(["tour", "--seconds", seconds], capsys)


def _spoiled(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def wrong(*arguments: object, **more: object) -> np.ndarray:
        result = function(*arguments, **more)
        result.flat[result.size // 2 + 3] += 1e-9
        return result

    return wrong


@pytest.mark.parametrize(("number", "checked"), [(0, "solve_directly"), (1, "_expected_ghosts")])
def test_a_wrong_answer_is_noticed(monkeypatch: pytest.MonkeyPatch, number: int, checked: str) -> None:
    right = run_threads(2, lambda group: tour.STEPS[number](group, 0.01))
    assert all(one.ok for one in right)
    monkeypatch.setattr(tour, checked, _spoiled(getattr(tour, checked)))
    assert not any(one.ok for one in run_threads(2, lambda group: tour.STEPS[number](group, 0.01)))


@pytest.mark.parametrize("number", [2, 3])
def test_a_wrong_circuit_is_noticed(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    right = tour._example_circuit

    def wrong(*arguments: object) -> tuple[object, str]:
        circuit, source = right(*arguments)
        changed = Circuit(circuit.qubits, circuit.clbits)
        for operation in [gate("x", [0]), *circuit.operations]:
            changed.add(operation)
        return changed, source

    monkeypatch.setattr(tour, "_example_circuit", wrong)
    assert not tour.STEPS[number](Group.alone(), 0.01).ok


def test_a_failed_step_is_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from onehop.cli import main

    def fails(group: Group, seconds: float) -> StepResult:
        return StepResult(1.0, name="fails", ok=False, checked_against="nothing", bytes_moved=0)

    monkeypatch.setattr(tour, "STEPS", [fails])
    monkeypatch.setattr("onehop.cli.tour.STEPS", [fails])
    assert main(["tour", "-n", "1", "--mpi", "none", "--seconds", "0.01"]) == 1
