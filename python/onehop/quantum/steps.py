"""`Program`: a circuit with operations that a `Circuit` cannot hold: channels, saved data and set states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.quantum.circuit import Circuit, Condition, Operation
from onehop.quantum.observables import PauliSum

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
ALWAYS = Condition([], 0)
Kraus = tuple[NDArray[np.complex128], ...]
_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class Save:
    """Data of the current state to keep under a label."""

    kind: str  # a key of `STATE_KINDS`
    label: str  # key of the data in the result
    # "single" (the last value), "list" (one for each shot), "average" over the shots, or "accum" (their sum)
    mode: str = "single"
    conditional: bool = False  # whether to keep the data of each value of the classical bits apart
    # indices of the amplitudes to save
    indices: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    observable: PauliSum | None = None  # of an expectation value


@dataclass
class Program:
    """A circuit whose operations may be those of programs, and what these operations name by their index."""

    circuit: Circuit
    # names and Kraus operators of the channels
    channels: list[tuple[str, Kraus]] = field(default_factory=list)
    saves: list[Save] = field(default_factory=list)
    # qubits with their probabilities to read 1 for 0, and 0 for 1
    readout: list[tuple[int, float, float]] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)  # kinds of the operations that a circuit does not have
    _numbers: dict[int, int] = field(default_factory=dict, init=False, repr=False)

    @property
    def is_plain(self) -> bool:
        """Whether the circuit is the whole program."""
        return not self.kinds and not self.readout

    def channel(
        self, kraus: Kraus, qubits: Sequence[int], name: str = "kraus", condition: Condition = ALWAYS
    ) -> None:
        """Append a channel, given by Kraus operators of shape (2^k, 2^k), on k qubits."""
        number = self._numbers.setdefault(id(kraus), len(self.channels))
        if number == len(self.channels):
            self.channels.append((name, kraus))
        self._add("channel", name, condition, list(qubits), index=number)

    def save(self, save: Save, qubits: Sequence[int], condition: Condition = ALWAYS) -> None:
        """Append data to save of some qubits, the least significant first."""
        self._add("save", f"save_{save.kind}", condition, list(qubits), index=len(self.saves))
        self.saves.append(save)

    def set_state(
        self, values: NDArray[np.complex128], qubits: Sequence[int], condition: Condition = ALWAYS
    ) -> None:
        """Append amplitudes of shape (2^n,), or a density matrix, that replace the state of all n qubits."""
        size, count = 1 << self.circuit.qubits, self.circuit.qubits
        if values.shape not in ((size,), (size, size)) or sorted(qubits) != list(range(count)):
            raise BadInput(f"expected a state of {count} qubits, found an array of shape {values.shape}")
        index = np.arange(size)
        source = np.zeros_like(index)
        for bit, qubit in enumerate(qubits):
            source |= (index >> qubit & 1) << bit
        if values.ndim == 1:
            self._add("set_state", "set_statevector", condition, values=values[source])
        else:
            entries = matrix_entries(values[np.ix_(source, source)], normalize=False)
            self._add("set_state", "set_density_matrix", condition, values=entries)
            self.kinds.add("set_density_matrix")

    def misread(
        self, table: NDArray[np.float64], clbits: Sequence[int], condition: Condition = ALWAYS
    ) -> None:
        """Append a readout error of several classical bits: [a, b] is the probability to read b for a."""
        if table.shape != (1 << len(clbits),) * 2:
            raise BadInput(f"expected a readout error of {len(clbits)} bits, found {table.shape}")
        values = np.ascontiguousarray(table, np.complex128).reshape(-1)
        self._add("misread", "readout", condition, clbits=list(clbits), values=values)

    def postselect(self, condition: Condition) -> None:
        """Append the end of runs for which a condition does not hold; they count for nothing."""
        self._add("postselect", "postselect", condition)

    def mark(self, label: int) -> None:
        """Append a place that `jump` goes to."""
        self.circuit.add(Operation("mark", "mark", [], index=label))

    def jump(self, label: int, condition: Condition = ALWAYS) -> None:
        """Append a jump to a mark."""
        self.circuit.add(Operation("jump", "jump", [], condition=condition, index=label))

    def _add(
        self, kind: str, name: str, condition: Condition, qubits: Sequence[int] = (), **fields: Any
    ) -> None:
        self.kinds.add(kind)
        self.circuit.add(Operation(kind, name, list(qubits), condition=condition, **fields))


def matrix_entries(values: NDArray[np.complex128], *, normalize: bool) -> NDArray[np.complex128]:
    """Return the entries of a density matrix column by column; divide it by its trace if asked to."""
    if not np.isfinite(values).all():
        raise BadInput("set_matrix: expected finite entries, found an infinity or NaN")
    trace = float(np.trace(values).real)
    if normalize and trace > 0:
        values, trace = values / trace, 1.0
    if not abs(trace - 1) <= _TOLERANCE:
        remedy = "" if normalize else "; pass normalize=True to divide by it"
        raise BadInput(f"set_matrix: expected a matrix of trace 1, found the trace {trace:.6g}{remedy}")
    if np.abs(values - values.conj().T).max() > _TOLERANCE:
        raise BadInput("set_matrix: expected a Hermitian matrix, found one that differs from its adjoint")
    try:
        np.linalg.cholesky(values + _TOLERANCE * np.eye(len(values)))
    except np.linalg.LinAlgError as error:
        raise BadInput("set_matrix: expected eigenvalues of 0 or more, found a negative one") from error
    return np.ascontiguousarray(values.T).reshape(-1)


def require_certain(circuit: Circuit, *, mixed: bool = False) -> None:
    """Raise BadInput for a circuit whose final state, before the last measurements, depends on chance.

    On a `mixed` state channels and resets have no outcomes; the reset of a qubit that is still 0 has none anywhere.
    """
    first: dict[int, int] = {}  # the operation after which a qubit need not be 0
    for place, one in enumerate(circuit.operations):
        if one.kind not in ("reset", "barrier"):
            for qubit in (*one.targets, *one.controls):
                first.setdefault(qubit, place)
    later: set[int] = set()  # qubits on which operations follow
    for place, one in reversed(list(enumerate(circuit.operations))):
        is_zero = one.kind == "reset" and all(first.get(qubit, place) >= place for qubit in one.targets)
        random = not mixed and not is_zero and one.kind in ("reset", "channel")
        if random or one.condition or (one.kind == "measure" and not later.isdisjoint(one.targets)):
            raise BadInput(
                f"{circuit.name or 'the circuit'}: expected gates and final measurements for a state or expectation "
                f"values, found {one.name} inside, whose outcome is random; give a number of shots, whose mean is the "
                "result, or take a density matrix, for which resets and noise are not random"
            )
        if one.kind not in ("measure", "barrier"):
            later.update(one.targets, one.controls)
