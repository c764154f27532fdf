"""What a program saves of its states, and how the values of several shots become one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.quantum.noise.core_program import saved_value
from onehop.quantum.steps import Program


@dataclass
class Saved:
    """The data of one label."""

    kind: str  # as for `Save`. The kind "state" has become "statevector" or "density_matrix"
    mode: str  # as for `Save`. The kind "state" has become "statevector" or "density_matrix"
    conditional: bool  # as for `Save`. The kind "state" has become "statevector" or "density_matrix"
    # values by the classical bits as a hexadecimal number; "" without conditions. One value, or in mode "list" one
    # for each shot
    groups: dict[str, list[NDArray[Any]]] = field(default_factory=dict)


def merge_saved(runs: Iterable[_core.Run], program: Program, *, mixed: bool) -> dict[str, Saved]:
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
            groups.setdefault(key, []).append((run.shots, saved_value(save, data, mixed=mixed)))
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
