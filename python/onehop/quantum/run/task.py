"""Tasks and outcomes of simulations as plain values, which `records` makes messages of."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum import Circuit, Result, simulate
from onehop.quantum.noise.core_program import Saved, run_program
from onehop.quantum.observables import PauliSum
from onehop.quantum.steps import Program


@dataclass(frozen=True)
class Task:
    """A circuit to simulate, with shots and observables."""

    circuit: Circuit
    shots: int = 0  # number of samples; 0: none
    seed: int = 0  # the same seed gives the same shots on any number of ranks
    observables: tuple[PauliSum, ...] = ()
    precision: str = "double"  # "double" or "single"
    program: Program | None = None  # program with this circuit. It takes no observables but saves
    method: str = "statevector"  # "statevector" or "density_matrix", for programs
    device: str = "cpu"  # as for State


@dataclass(frozen=True)
class Outcome:
    """The results of a task; the same on every rank."""

    values: list[int]  # the distinct values of the classical bits, bit 0 least significant
    counts: list[int]  # number of shots with each value
    of_shot: NDArray[np.uint32]  # index into `values` for each shot
    expectations: list[float | complex] = field(default_factory=list)  # one for each observable
    seconds: float = 0.0
    ranks: int = 1  # number of ranks over which the state was split
    bytes_moved: int = 0  # bytes moved between ranks, summed over all ranks
    saved: dict[str, Saved] = field(default_factory=dict)  # what a program has saved, by label

    def __post_init__(self) -> None:
        numbers, places = [*self.values, *self.counts], self.of_shot
        if len(self.values) != len(self.counts) or min(numbers, default=0) < 0 or self.ranks < 1:
            raise BadInput("outcome: expected as many counts as values, numbers from 0, found something else")
        if places.ndim != 1 or (len(places) and places.max() >= len(self.values)):
            raise BadInput(f"outcome: expected places below {len(self.values)}, found others")


def run_task(task: Task, group: Group) -> Outcome:
    """Run a task. Collective; every rank gets the same outcome."""
    options = {"seed": task.seed, "precision": task.precision, "device": task.device}
    expectations, saved = [], {}
    result: Result | _core.SimulationResult
    if task.program is not None:
        shots = max(task.shots, 1)
        result, saved = run_program(task.program, group, method=task.method, shots=shots, **options)
    else:
        result = simulate(task.circuit, group, shots=task.shots, observables=task.observables, **options)
        expectations = result.expectations
    outcomes = result.outcomes
    return Outcome(
        outcomes.values,
        outcomes.counts.tolist(),
        outcomes.of_shot,
        expectations,
        result.seconds,
        result.ranks,
        result.bytes_moved,
        saved,
    )
