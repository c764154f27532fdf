"""`Program`: a circuit with steps that a `Circuit` cannot hold: channels, saved data, set states and loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.quantum.circuit import Circuit, Condition, Operation
from onehop.quantum.observables import PauliSum

__all__ = ["STATE_KINDS", "Apply", "Jump", "Mark", "Misread", "Program", "Save", "SetState", "Step"]

# What `Save` stores, and whether it needs a state vector or a density matrix.
STATE_KINDS = {
    "state": "",
    "statevector": "statevector",
    "statevector_dict": "statevector",
    "amplitudes": "statevector",
    "amplitudes_sq": "",
    "density_matrix": "",
    "probabilities": "",
    "probabilities_dict": "",
    "expval": "",
    "expval_var": "",
}


@dataclass(frozen=True, eq=False)
class Apply:
    """A channel, given by Kraus operators of shape (2^k, 2^k), on k qubits."""

    kraus: tuple[NDArray[np.complex128], ...]
    qubits: list[int]
    name: str = "kraus"
    condition: Condition = field(default_factory=lambda: Condition([], 0))


@dataclass(frozen=True, eq=False)
class Save:
    """Data of the current state to keep under a label.

    Attributes
    ----------
    kind : str
        A key of `STATE_KINDS`.
    label : str
        Key of the data in the result.
    mode : str
        "single" (the last value), "list" (one for each shot), "average" over the shots, or "accum" (their sum).
    conditional : bool
        Whether to keep the data of each value of the classical bits apart.
    qubits : list of int
        Qubits of the data, the least significant first.
    indices : array of int
        Indices of the amplitudes to save.
    observable : PauliSum, optional
        Observable of an expectation value.
    """

    kind: str
    label: str
    mode: str
    conditional: bool
    qubits: list[int]
    indices: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    observable: PauliSum | None = None
    condition: Condition = field(default_factory=lambda: Condition([], 0))


@dataclass(frozen=True, eq=False)
class SetState:
    """Amplitudes of shape (2^n,), or a density matrix of shape (2^n, 2^n), that replace the state of all n qubits."""

    values: NDArray[np.complex128]
    qubits: list[int]
    condition: Condition = field(default_factory=lambda: Condition([], 0))


@dataclass(frozen=True, eq=False)
class Misread:
    """A readout error of several classical bits: entry [a, b] of the table is the probability to read b for a."""

    table: NDArray[np.float64]
    clbits: list[int]
    condition: Condition = field(default_factory=lambda: Condition([], 0))


@dataclass(frozen=True)
class Mark:
    """A place that `Jump` goes to."""

    label: int
    condition: Condition = field(default_factory=lambda: Condition([], 0))


@dataclass(frozen=True, eq=False)
class Jump:
    """Go on at the mark with this label."""

    label: int
    condition: Condition = field(default_factory=lambda: Condition([], 0))


Step = Apply | Save | SetState | Misread | Mark | Jump


@dataclass
class Program:
    """A circuit, the steps between its operations, and the readout errors of its measurements.

    Attributes
    ----------
    circuit : Circuit
        All operations.
    steps : list of (int, Step)
        Steps with the number of operations before them, ascending.
    readout : list of (int, float, float)
        Qubits with their probabilities to read 1 for 0, and 0 for 1.
    """

    circuit: Circuit
    steps: list[tuple[int, Step]] = field(default_factory=list)
    readout: list[tuple[int, float, float]] = field(default_factory=list)

    @property
    def is_plain(self) -> bool:
        """Whether the circuit is the whole program."""
        return not self.steps and not self.readout

    def items(self) -> list[Operation | Step]:
        """List operations and steps in their order."""
        found: list[Operation | Step] = []
        operations = self.circuit.operations
        done = 0
        for place, step in self.steps:
            found += operations[done:place]
            found.append(step)
            done = place
        return [*found, *operations[done:]]

    def of(self, kind: type[Any]) -> list[Any]:
        """List the steps of a type."""
        return [step for _, step in self.steps if isinstance(step, kind)]
