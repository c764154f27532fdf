"""What is to be simulated and what came of it, as plain values that travel between processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.group import Group
from onehop.quantum import Circuit
from onehop.quantum.observables import PauliSum
from onehop.quantum.travel import from_values, to_values

__all__ = ["Outcome", "Task", "perform"]


@dataclass(frozen=True)
class Task:
    """A circuit and what is asked of it.

    Attributes
    ----------
    circuit : Circuit
        What runs.
    shots : int
        How often it is sampled; 0: not at all.
    seed : int
        The same seed gives the same shots on any number of ranks.
    observables : tuple of PauliSum
        Whose expectation values are wanted.
    precision : str
        "double" or "single".
    """

    circuit: Circuit
    shots: int = 0
    seed: int = 0
    observables: tuple[PauliSum, ...] = ()
    precision: str = "double"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "circuit": to_values(self.circuit)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "circuit": from_values(state["circuit"])})


@dataclass(frozen=True)
class Outcome:
    """What a task gave; the same on every rank.

    Attributes
    ----------
    values : list of int
        The distinct values of the classical bits, bit 0 least significant.
    counts : list of int
        How often each was found.
    of_shot : array of int
        For each shot the place of its value in `values`.
    expectations : list of float or complex
        One for each observable.
    seconds : float
        How long the simulation took.
    ranks : int
        Over which the state was split.
    bytes_moved : int
        Between ranks, all ranks together.
    """

    values: list[int]
    counts: list[int]
    of_shot: NDArray[np.integer]
    expectations: list[Any] = field(default_factory=list)
    seconds: float = 0.0
    ranks: int = 1
    bytes_moved: int = 0


def perform(task: Task, group: Group) -> Outcome:
    """Do a task. Collective; every rank gets the same outcome."""
    from onehop.quantum import simulate

    result = simulate(
        task.circuit,
        group,
        shots=task.shots,
        seed=task.seed,
        observables=task.observables,
        precision=task.precision,
    )
    return Outcome(
        values=list(result.outcomes.values),
        counts=list(result.outcomes.counts),
        of_shot=np.asarray(result.outcomes.of_shot),
        expectations=list(result.expectations),
        seconds=result.seconds,
        ranks=result.ranks,
        bytes_moved=result.bytes_moved,
    )
