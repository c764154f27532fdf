"""`run_program`: a program of operations and steps on a state vector or on a density matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group, group_or_alone
from onehop.quantum.noise.core_program import core_program
from onehop.quantum.noise.saved import Saved, merge_saved
from onehop.quantum.steps import Program

__all__ = ["METHODS", "ProgramResult", "run_program", "run_tree"]

METHODS = ("statevector", "density_matrix")


@dataclass
class ProgramResult:
    """The result of a program; the same on every rank.

    Attributes
    ----------
    outcomes : Outcomes
        Classical bits of each shot.
    saved : dict from str to Saved
        Saved data by label.
    seconds, ranks, bytes_moved
        As for `Result`.
    """

    outcomes: _core.Outcomes
    saved: dict[str, Saved]
    seconds: float
    ranks: int
    bytes_moved: int


def run_program(
    program: Program,
    group: Group | None = None,
    *,
    method: str = "statevector",
    shots: int = 1,
    seed: int = 0,
    precision: str = "double",
) -> ProgramResult:
    """Run a program from |0...0>. Collective.

    Shots whose random choices agree share a run. On a density matrix only the outcomes of measurements inside the
    program are random.

    Parameters
    ----------
    program : Program
        Program to run.
    group : Group, optional
        As for `simulate`.
    method : str
        "statevector" or "density_matrix".
    shots : int
        Number of shots, at least 1.
    seed : int
        The same seed gives the same shots on every number of ranks.
    precision : str
        As for `simulate`.

    Raises
    ------
    BadInput
        The circuit is invalid, the method is unknown, a channel does not preserve the trace, or a step needs the other
        method.
    Error
        The memory does not suffice, or a loop makes too many turns.
    """
    if method not in METHODS:
        raise BadInput(f"expected the method {' or '.join(METHODS)}, found {method!r}")
    mixed = method == "density_matrix"
    core = _core.run_program(
        core_program(program, mixed=mixed),
        group_or_alone(group),
        mixed=mixed,
        shots=shots,
        seed=seed,
        precision=precision,
        histories=bool(program.kinds),
    )
    saved = merge_saved(core.made, program, mixed=mixed)
    return ProgramResult(core.outcomes, saved, core.seconds, core.ranks, core.bytes_moved)


def run_tree(
    program: Program, shots: int, split: Callable[[int, float], int], *, precision: str, threads: int
) -> list[tuple[float, list[bool], NDArray[np.complex128]]]:
    """Run a program once for each record of outcomes; return weight, classical bits and saved data of each run.

    The runs are in the order of a tree whose branch of outcome 0 comes first. The program saves data at its end.

    Parameters
    ----------
    program : Program
        Program without other random choices than measurements.
    shots : int
        Number of shots, which are the weights; 0: weights are probabilities, and every outcome that has one is
        followed.
    split : callable
        Draws how many of some shots have the outcome 1, of a probability.
    precision, threads
        As for `simulate`.
    """
    core = _core.run_program(
        core_program(program, mixed=False),
        Group.alone(),
        trajectories=max(shots, 1),
        precision=precision,
        threads=threads,
        exact=not shots,
        split=split if shots else None,
    )
    return [(run.count if shots else run.weight, run.clbits, run.saved[-1][2]) for run in core.made]
