"""`run_program`: a program of operations and steps on a state vector or on a density matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group, group_or_alone
from onehop.quantum.noise.core_program import SAVED_KINDS, core_program
from onehop.quantum.simulation_options import core_options
from onehop.quantum.steps import Program, Save

METHODS = ("statevector", "density_matrix")


@dataclass
class Saved:
    """The data of one label."""

    kind: str  # of `Save`, but "statevector" or "density_matrix" instead of "state"
    mode: str
    conditional: bool
    # values by the classical bits as a hexadecimal number; "" without conditions. One value, or in mode "list" one
    # for each shot
    groups: dict[str, list[NDArray[Any]]] = field(default_factory=dict)


def run_program(
    program: Program,
    group: Group | None = None,
    *,
    method: str = "statevector",
    shots: int = 1,
    seed: int = 0,
    precision: str = "double",
) -> tuple[_core.SimulationResult, dict[str, Saved]]:
    """Run a program from |0...0>; return the result of the library, and the saved data by label. Collective.

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
    return core, _merge_saved(core.made, program, mixed=mixed)


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


def _merge_saved(runs: Iterable[_core.Run], program: Program, *, mixed: bool) -> dict[str, Saved]:
    """Merge what the runs of a program have saved."""
    state = "density_matrix" if mixed else "statevector"
    clbits = program.circuit.clbits
    collected: dict[str, tuple[Saved, dict[str, list[tuple[NDArray[np.uint64], NDArray[Any]]]]]] = {}
    for run in runs:
        for number, bits, data in run.saved:
            save = program.saves[number]
            kind = state if save.kind == "state" else save.kind
            label = state if save.label == "_method_" else save.label
            saved, groups = collected.setdefault(label, (Saved(kind, save.mode, save.conditional), {}))
            if (saved.kind, saved.mode, saved.conditional) != (kind, save.mode, save.conditional):
                raise BadInput(f"expected one kind of data under the label {label!r}, found two")
            key = (
                hex(sum(bit << place for place, bit in enumerate(bits[:clbits]))) if save.conditional else ""
            )
            groups.setdefault(key, []).append((run.shots, _saved_value(save, data, mixed=mixed)))
    for saved, groups in collected.values():
        for key in sorted(groups):
            saved.groups[key] = _merged(saved.mode, groups[key])
    return {label: saved for label, (saved, _) in collected.items()}


def _merged(mode: str, found: list[tuple[NDArray[np.uint64], NDArray[Any]]]) -> list[NDArray[Any]]:
    if mode == "list":
        pairs = [(shot, place) for place, (shots, _) in enumerate(found) for shot in shots.tolist()]
        return [found[place][1] for _, place in sorted(pairs)]
    if mode == "single":
        return [max(found, key=lambda pair: pair[0].max())[1]]
    total = sum(len(shots) * value for shots, value in found)
    return [np.asarray(total if mode == "accum" else total / sum(len(shots) for shots, _ in found))]


def _saved_value(save: Save, data: NDArray[np.complex128], *, mixed: bool) -> NDArray[Any]:
    """Convert the data that the library has saved."""
    if save.kind == "density_matrix" or (save.kind == "state" and mixed):
        return data.reshape(math.isqrt(len(data)), -1)
    if save.kind == "expval":
        return np.array(data[0].real)
    return data if SAVED_KINDS.get(save.kind, "state") == "state" else data.real
