"""What a program saves of its states, and how the values of several shots become one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.quantum.state import State
from onehop.quantum.steps import STATE_KINDS, Save

__all__ = ["Saved", "merge_saved", "saved_value"]


class ReadState(Protocol):
    """The methods of `State` and `DensityMatrix` that saving uses."""

    qubits: int

    def density_matrix(self, qubits: Sequence[int]) -> NDArray[np.complex128]:
        """Return a reduced density matrix."""

    def probabilities(self, qubits: Sequence[int]) -> NDArray[np.float64]:
        """Return the probabilities of the values of some qubits."""

    def expectation(self, observable: Any) -> float | complex:
        """Return an expectation value."""

    def variance(self, observable: Any) -> float:
        """Return the variance of an observable."""


@dataclass
class Saved:
    """The data of one label.

    Attributes
    ----------
    kind, mode, conditional
        As for `Save`. The kind "state" has become "statevector" or "density_matrix".
    groups : dict of str to list of array
        Values by the classical bits as a hexadecimal number; "" without conditions. One value, or in mode "list" one
        for each shot.
    """

    kind: str
    mode: str
    conditional: bool
    groups: dict[str, list[NDArray[Any]]] = field(default_factory=dict)


def saved_value(save: Save, state: ReadState) -> NDArray[Any]:
    """Compute the data to save of a state vector or a density matrix. Collective.

    Raises
    ------
    BadInput
        The data are amplitudes, and the state is a density matrix.
    """
    kind = save.kind
    pure = isinstance(state, State)
    if STATE_KINDS[kind] == "statevector" and not pure:
        raise BadInput(
            f"save_{kind}: expected a state vector, found a density matrix; save the density matrix, or run with "
            'method="statevector"'
        )
    if kind == "density_matrix" or (kind == "state" and not pure):
        return state.density_matrix(save.qubits)
    if kind in ("probabilities", "probabilities_dict"):
        return state.probabilities(save.qubits)
    if kind == "expval":
        return np.array(state.expectation(save.observable).real)
    if kind == "expval_var":
        return np.array([state.expectation(save.observable).real, state.variance(save.observable)])
    wanted = save.indices if kind.startswith("amplitudes") else np.arange(1 << state.qubits)
    indices = np.zeros_like(wanted)
    for bit, qubit in enumerate(save.qubits):
        indices |= (wanted >> bit & 1) << qubit
    if not pure:
        return state.probabilities(range(state.qubits))[indices]
    amplitudes = state.amplitudes(indices)
    return np.abs(amplitudes) ** 2 if kind == "amplitudes_sq" else amplitudes


def merge_saved(
    runs: Iterable[tuple[NDArray[np.int64], Sequence[tuple[Save, tuple[int, ...], NDArray[Any]]]]],
    clbits: int,
    mixed: bool,
) -> dict[str, Saved]:
    """Merge what the runs of a program have saved.

    Parameters
    ----------
    runs : iterable
        The shots of each run with its (save, classical bits, value) triples.
    clbits : int
        Number of classical bits that are not hidden.
    mixed : bool
        Whether the states are density matrices.
    """
    state = "density_matrix" if mixed else "statevector"
    collected: dict[str, tuple[Saved, dict[str, list[tuple[NDArray[np.int64], NDArray[Any]]]]]] = {}
    for shots, saves in runs:
        for save, bits, value in saves:
            kind = state if save.kind == "state" else save.kind
            label = state if save.label == "_method_" else save.label
            saved, groups = collected.setdefault(label, (Saved(kind, save.mode, save.conditional), {}))
            if (saved.kind, saved.mode, saved.conditional) != (kind, save.mode, save.conditional):
                raise BadInput(f"expected one kind of data under the label {label!r}, found two")
            number = sum(bit << place for place, bit in enumerate(bits[:clbits]))
            groups.setdefault(hex(number) if save.conditional else "", []).append((shots, value))
    for saved, groups in collected.values():
        for key in sorted(groups):
            saved.groups[key] = _merged(saved.mode, groups[key])
    return {label: saved for label, (saved, _) in collected.items()}


def _merged(mode: str, found: list[tuple[NDArray[np.int64], NDArray[Any]]]) -> list[NDArray[Any]]:
    if mode == "list":
        pairs = [(shot, place) for place, (shots, _) in enumerate(found) for shot in shots.tolist()]
        return [found[place][1] for _, place in sorted(pairs)]
    if mode == "single":
        return [max(found, key=lambda pair: pair[0].max())[1]]
    total = sum(len(shots) * value for shots, value in found)
    return [np.asarray(total if mode == "accum" else total / sum(len(shots) for shots, _ in found))]
