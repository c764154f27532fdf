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
from onehop.quantum.simulation_options import core_options
from onehop.quantum.steps import Program

METHODS = ("statevector", "density_matrix")


@dataclass
class ProgramResult:
    """The result of a program; the same on every rank."""

    outcomes: _core.Outcomes  # classical bits of each shot
    saved: dict[str, Saved]  # saved data by label
    seconds: float  # as for `Result`
    ranks: int  # as for `Result`
    bytes_moved: int  # as for `Result`


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
    """
    if method not in METHODS:
        raise BadInput(f"expected the method {' or '.join(METHODS)}, found {method!r}")
    mixed = method == "density_matrix"
    options = core_options(
        mixed=mixed, shots=shots, seed=seed, precision=precision, histories=bool(program.kinds)
    )
    core = _core.run_program(core_program(program, mixed=mixed), group_or_alone(group), options)
    saved = merge_saved(core.made, program, mixed=mixed)
    return ProgramResult(core.outcomes, saved, core.seconds, core.ranks, core.bytes_moved)


def run_tree(
    program: Program, shots: int, split: Callable[[int, float], int], *, precision: str, threads: int
) -> list[tuple[float, list[bool], NDArray[np.complex128]]]:
    """Run a program once for each record of outcomes; return weight, classical bits and saved data of each run.

    The runs are in the order of a tree whose branch of outcome 0 comes first. The program saves data at its end.
    `split` draws how many of some shots have the outcome 1, of a probability. Without shots the weights are
    probabilities, and every outcome that has one is followed.
    """
    options = core_options(trajectories=max(shots, 1), precision=precision, threads=threads, exact=not shots)
    if shots:
        options.split = split
    core = _core.run_program(core_program(program, mixed=False), Group.alone(), options)
    return [(run.count if shots else run.weight, run.clbits, run.saved[-1][2]) for run in core.made]
