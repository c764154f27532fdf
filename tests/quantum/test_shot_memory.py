"""Shots and trajectories that no memory holds are refused in one line before anything is run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onehop import Group, quantum
from onehop.cli import main
from onehop.quantum import NoiseModel
from threads import refused_on

BELL = quantum.Circuit(2).h(0).cx(0, 1)
INSIDE = quantum.Circuit(2, 2).h(0).measure(0, 0).h(0).measure([0, 1], [0, 1])
NOISE = NoiseModel().add("depolarizing", 0.1)
MANY = 1 << 31

RUNS: dict[str, Callable[[Group], Any]] = {
    "shots": lambda group: quantum.simulate(BELL, group, shots=MANY),
    "shots with measurements inside": lambda group: quantum.simulate(INSIDE, group, shots=MANY),
    "shots of a density matrix": lambda group: quantum.simulate_density(BELL, group, noise=NOISE, shots=MANY),
    "trajectories": lambda group: quantum.simulate_trajectories(BELL, group, noise=NOISE, trajectories=MANY),
    "trajectories with few shots": lambda group: quantum.simulate_trajectories(
        BELL, group, noise=NOISE, trajectories=MANY, shots=10
    ),
    "samples": lambda group: quantum.simulate(BELL, group).state.sample(MANY),
    "samples of a density matrix": lambda group: quantum.simulate_density(
        BELL, group, noise=NOISE
    ).state.sample(MANY),
}


@pytest.fixture(autouse=True)
def _little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEHOP_TEST_FREE_MEMORY", str(1 << 30))


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("kind", RUNS)
def test_a_count_that_no_memory_holds(kind: str, ranks: int) -> None:
    """All ranks are told the same."""
    words = r"expected shots that fit into .* left, found .*2147483648 (shots|trajectories) that need .*; take fewer"
    refused_on(ranks, words, RUNS[kind])


@pytest.mark.parametrize("more", [["--shots"], ["--noise", "depolarizing=0.1", "--trajectories"]])
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    file = tmp_path / "bell.qasm"
    file.write_text('OPENQASM 3.0;\ninclude "stdgates.inc";\nqubit[2] q;\nh q[0];\ncx q[0], q[1];\n')
    assert main(["run", str(file), *more, str(MANY)]) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: expected shots that fit into ")
    assert message.endswith("; take fewer, and several runs with different seeds\n")
