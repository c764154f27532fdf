"""`DensityMatrix`: mixed states, split over ranks as a state vector of twice as many qubits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum.circuit import Circuit, Operation
from onehop.quantum.noise.channel import Channel, NoiseModel
from onehop.quantum.noise.noisy_run import run_once
from onehop.quantum.noise.superoperators import on_rows_and_columns
from onehop.quantum.observables import PauliSum
from onehop.quantum.random_numbers import uniform
from onehop.quantum.state import State

__all__ = ["DensityMatrix"]


class DensityMatrix:
    """A density matrix split over the ranks of a group, and what can be asked of it.

    It begins as |0...0><0...0|. Everything is collective, as for `State`. Inside it is a vector of 2n qubits: row
    index below, column index above; a gate acts as U on the rows and as its conjugate on the columns, a channel as a
    superoperator on both.

    Parameters
    ----------
    qubits : int
        The whole matrix has 4^qubits entries; each rank holds its share.
    group, precision, threads, staging
        As for `State`.

    Raises
    ------
    BadInput, Error
        As for `State`.
    """

    def __init__(
        self,
        qubits: int,
        group: Group | None = None,
        *,
        precision: str = "double",
        threads: int = 0,
        staging: int = 0,
    ) -> None:
        self.qubits = qubits
        self._group = group or Group.alone()
        self.state = State(2 * qubits, self._group, precision=precision, threads=threads, staging=staging)

    @property
    def ranks(self) -> int:
        """Over how many ranks it is split."""
        return self.state.ranks

    # -- setting and changing ------------------------------------------------------------------------------------------

    def set_matrix(self, matrix: Any) -> DensityMatrix:
        """Become this matrix of 2^n rows, which every rank passes. Nothing is normalised."""
        values = np.asarray(matrix, np.complex128)
        if values.shape != (1 << self.qubits, 1 << self.qubits):
            raise BadInput(f"expected a matrix of {1 << self.qubits} rows and columns, found {values.shape}")
        self.state.set_amplitudes(values.T.reshape(-1))
        return self

    def set_vector(self, vector: Any) -> DensityMatrix:
        """Become the pure state with these 2^n amplitudes."""
        values = np.asarray(vector, np.complex128).reshape(-1)
        return self.set_matrix(np.outer(values, values.conj()))

    def set_basis_state(self, index: int) -> DensityMatrix:
        """Become the basis state with this index."""
        self.state.set_basis_state(index | index << self.qubits)
        return self

    def run(self, circuit: Circuit, noise: NoiseModel | None = None, *, seed: int = 0) -> list[int]:
        """Run a circuit on this state, each gate followed by its noise.

        Measurements are made, with random numbers from `seed`, and read wrongly as often as the noise says.

        Returns
        -------
        list of int
            The classical bits.
        """
        return run_once(self, circuit, noise or NoiseModel(), seed)

    def apply(self, channel: Channel, qubits: Sequence[int]) -> DensityMatrix:
        """Apply a channel to some qubits, the first the least significant bit of its matrices' index."""
        self._check(qubits)
        self.do([(channel, list(qubits))])
        return self

    def do(self, items: Sequence[Operation | tuple[Channel, list[int]]]) -> None:
        """Apply gates and channels, placed together; conditions are not looked at."""
        both = on_rows_and_columns(items, self.qubits)
        if len(both):
            self.state._core.apply(both, 0)

    def measure(self, qubits: Sequence[int], *, seed: int = 0) -> list[int]:
        """Measure qubits: what they become, with random numbers from `seed`."""
        outcomes = []
        for event, qubit in enumerate(qubits):
            one = self.probability_of_one(qubit)
            outcomes.append(int(uniform(seed, 0, event) < one))
            self.collapse(qubit, outcomes[-1], one if outcomes[-1] else 1 - one)
        return outcomes

    def probability_of_one(self, qubit: int) -> float:
        """The probability that a qubit is 1."""
        zero, one = self.probabilities([qubit])
        return float(one / (zero + one))

    def collapse(self, qubit: int, value: int, probability: float) -> None:
        """Keep the part where a qubit has this value, divided by its probability."""
        kept = np.zeros(4, complex)
        kept[3 * value] = 1 / probability
        circuit = Circuit(2 * self.qubits)
        circuit.add(Operation("diagonal", "collapse", [qubit, qubit + self.qubits], values=kept))
        self.state._core.apply(circuit, 0)

    # -- looking -------------------------------------------------------------------------------------------------------

    def matrix(self) -> NDArray[np.complex128]:
        """The whole matrix, on every rank: 16 bytes times 4^n."""
        size = 1 << self.qubits
        return self.state.vector().reshape(size, size).T

    def trace(self) -> float:
        """The trace; 1 within rounding."""
        return float(self._diagonal().sum())

    def purity(self) -> float:
        """Tr rho^2: 1 for pure states, 2^-n for the completely mixed one."""
        return float(self.state._core.norm_squared())

    def probabilities(self, qubits: Sequence[int] | None = None) -> NDArray[np.float64]:
        """The probabilities of the 2^k values of some qubits (all unless given), the first least significant."""
        kept = list(range(self.qubits) if qubits is None else qubits)
        self._check(kept)
        index = np.arange(1 << self.qubits)
        value = np.zeros_like(index)
        for i, qubit in enumerate(kept):
            value |= (index >> qubit & 1) << i
        return np.bincount(value, self._diagonal(), 1 << len(kept))

    def sample(self, shots: int, qubits: Sequence[int] | None = None, *, seed: int = 0) -> NDArray[np.uint64]:
        """Outcomes of measuring some qubits (all unless given), `shots` times, each time of this state."""
        cumulated = np.cumsum(np.maximum(self.probabilities(qubits), 0))
        drawn = uniform(seed, np.arange(shots), 1 << 40) * cumulated[-1]
        return np.searchsorted(cumulated, drawn, side="right").astype(np.uint64)

    def expectation(self, observable: Any) -> float | complex:
        """Tr(rho observable), of a `PauliSum` or its text; real if its coefficients are."""
        return self.expectations([observable])[0]

    def expectations(self, observables: Sequence[Any]) -> list[float | complex]:
        """Those of several observables."""
        rows = np.arange(1 << self.qubits)
        entries: dict[int, NDArray[np.complex128]] = {}
        values = []
        for observable in map(PauliSum.of, observables):
            observable.require(self.qubits)
            value = 0j
            for term in observable.terms:
                x, z = term.x_mask, term.z_mask
                if x not in entries:
                    # <r| rho P |r> needs rho where the column differs from the row by x.
                    entries[x] = self.state.amplitudes(rows | (rows ^ x) << self.qubits)
                signs = 1 - 2 * (_bit_count(rows & z) & 1)
                value += term.coefficient * (1j) ** (x & z).bit_count() * np.sum(signs * entries[x])
            values.append(float(value.real) if observable.is_hermitian else complex(value))
        return values

    def density_matrix(self, qubits: Sequence[int]) -> NDArray[np.complex128]:
        """The reduced density matrix of some qubits, the first least significant."""
        self._check(qubits)
        others = [qubit for qubit in range(self.qubits) if qubit not in set(qubits)]
        kept = _spread(np.arange(1 << len(qubits)), list(qubits))
        result = np.zeros((len(kept), len(kept)), complex)
        for gone in _spread(np.arange(1 << len(others)), others):
            rows = kept | gone
            wanted = rows[:, None] | rows[None, :] << self.qubits
            result += self.state.amplitudes(wanted.reshape(-1)).reshape(result.shape)
        return result

    def partial_trace(self, qubits: Sequence[int]) -> NDArray[np.complex128]:
        """What is left when these qubits are traced out: the density matrix of the others, in their order."""
        self._check(qubits)
        return self.density_matrix([q for q in range(self.qubits) if q not in set(qubits)])

    def fidelity(self, other: DensityMatrix | State | NDArray[Any]) -> float:
        """With a pure state (a `State` or its amplitudes) <psi|rho|psi>; with another (Tr sqrt(sqrt(a) b sqrt(a)))^2.

        Needs whole matrices on every rank.
        """
        own = self.matrix()
        if isinstance(other, DensityMatrix):
            values, vectors = np.linalg.eigh(own)
            root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.conj().T
            inside = np.linalg.eigvalsh(root @ other.matrix() @ root)
            return float(np.sqrt(np.maximum(inside, 0)).sum() ** 2)
        vector = other.vector() if isinstance(other, State) else np.asarray(other, np.complex128)
        return float(np.vdot(vector, own @ vector).real)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _diagonal(self) -> NDArray[np.float64]:
        index = np.arange(1 << self.qubits)
        return self.state.amplitudes(index | index << self.qubits).real

    def _check(self, qubits: Sequence[int]) -> None:
        if len(set(qubits)) != len(qubits) or any(not 0 <= qubit < self.qubits for qubit in qubits):
            raise BadInput(f"expected different qubits from 0 to {self.qubits - 1}, found {list(qubits)}")

    def __repr__(self) -> str:
        return f"<DensityMatrix: {self.qubits} qubits, {self.state.precision} precision, {self.ranks} ranks>"


def _spread(values: NDArray[np.int64], qubits: list[int]) -> NDArray[np.int64]:
    spread = np.zeros_like(values)
    for i, qubit in enumerate(qubits):
        spread |= (values >> i & 1) << qubit
    return spread


def _bit_count(values: NDArray[np.int64]) -> NDArray[np.int64]:
    count = np.zeros_like(values)
    while values.any():
        count += values & 1
        values = values >> 1
    return count
