"""`DensityMatrix`: a mixed state that is split over ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.arguments import complex_array, instance, whole_number, whole_numbers
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum.circuit import Circuit, Operation
from onehop.quantum.noise.channel import Channel
from onehop.quantum.noise.model import NoiseModel, warn_without
from onehop.quantum.noise.noisy_run import run_once
from onehop.quantum.noise.superoperators import on_rows_and_columns, part_for
from onehop.quantum.observables import sums_of
from onehop.quantum.random_numbers import require_seed, uniform
from onehop.quantum.split_state import SplitState
from onehop.quantum.state import State, hermitian_sums, real_where_real

__all__ = ["DensityMatrix"]

_TOLERANCE = 1e-5


class DensityMatrix(SplitState):
    """A density matrix that is split over the ranks of a group, initially |0...0><0...0|.

    All methods are collective, as for `State`. The matrix is stored as a state vector of 2n qubits, whose index has
    the row in its lower and the column in its upper n bits. A gate acts as U on the rows and as its complex conjugate
    on the columns; a channel acts as a superoperator on both.

    A matrix that is too small for all ranks, or for an operation on so many, is split over fewer. Equal parts of the
    group then hold the same matrix and change it alike, as in `simulate_density`.

    Parameters
    ----------
    qubits : int
        Number of qubits n. The whole matrix has 4^n entries, of which each rank holds an equal share.
    group, precision, threads, staging
        As for `State`.

    Attributes
    ----------
    qubits : int
        Number of qubits n.
    state : State
        The vector of 2n qubits.

    Raises
    ------
    BadInput, Error
        As for `State` with 2n qubits.
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
        self.qubits = qubits = whole_number(qubits, "qubits")
        self._options: dict[str, Any] = {"precision": precision, "threads": threads, "staging": staging}
        self._whole = group or Group.alone()
        self._split(part_for(Circuit(2 * qubits), self._whole) if qubits > 0 else self._whole)

    # -- changing the state --------------------------------------------------------------------------------------------

    def set_matrix(self, matrix: Any, *, normalize: bool = False) -> DensityMatrix:
        """Set all entries; return the density matrix.

        Parameters
        ----------
        matrix : array of complex, shape (2^n, 2^n)
            The same matrix on every rank.
        normalize : bool
            Divide the matrix by its trace. Otherwise the trace must be 1 within 1e-5.

        Raises
        ------
        BadInput
            The matrix has another shape, has infinite or NaN entries, is not Hermitian, has a negative eigenvalue, or
            its trace is not 1 (with `normalize`: not above 0).
        """
        values = complex_array(matrix, "set_matrix")
        if values.shape != (1 << self.qubits, 1 << self.qubits):
            raise BadInput(f"expected a matrix of {1 << self.qubits} rows and columns, found {values.shape}")
        values = _checked(values, normalize=normalize)
        self._core.set_amplitudes(np.ascontiguousarray(values.T.reshape(-1)), check=False)
        return self

    def set_vector(self, vector: Any, *, normalize: bool = False) -> DensityMatrix:
        """Set the density matrix to the pure state with these 2^n amplitudes; return it.

        Parameters and errors are those of `State.set_amplitudes`.
        """
        pure = State(self.qubits).set_amplitudes(vector, normalize=normalize)
        values = pure.vector()
        self._core.set_amplitudes(np.outer(values.conj(), values).reshape(-1), check=False)
        return self

    def set_basis_state(self, index: int) -> DensityMatrix:
        """Set the density matrix to the basis state with this index; return it."""
        index = whole_number(index, "index", 0, (1 << self.qubits) - 1)
        self.state.set_basis_state(index | index << self.qubits)
        return self

    def run(self, circuit: Circuit, noise: NoiseModel | None = None, *, seed: int = 0) -> list[int]:
        """Run a circuit on this state. Noise follows each gate, and measurements collapse the state.

        Parameters
        ----------
        circuit : Circuit
            Circuit with n qubits.
        noise : NoiseModel, optional
            Channels after gates, and readout errors of measurements. Default: no noise.
        seed : int
            Seed of the measurement outcomes.

        Returns
        -------
        list of int
            The classical bits, 0 or 1 each.

        Raises
        ------
        BadInput
            The circuit is invalid, or has another number of qubits.
        """
        instance(circuit, Circuit, "circuit")
        if noise is not None and instance(noise, NoiseModel, "noise") and self._whole.rank == 0:
            warn_without(noise.without(circuit))
        return run_once(self, circuit, noise or NoiseModel(), seed)

    def apply(self, channel: Channel, qubits: Sequence[int]) -> DensityMatrix:
        """Apply a channel to some qubits; return the density matrix.

        Parameters
        ----------
        channel : Channel
            Channel on k qubits.
        qubits : sequence of int
            The k qubits. The first one is the least significant bit of the Kraus operators' index.

        Raises
        ------
        BadInput
            The qubits are not distinct, do not exist, or are not k.
        """
        self._check(qubits)
        self.do([(instance(channel, Channel, "channel"), list(qubits))])
        return self

    def do(self, items: Sequence[Operation | tuple[Channel, list[int]]]) -> None:
        """Apply gates and (channel, qubits) pairs in this order, ignoring conditions. They share one placement."""
        both = on_rows_and_columns(items, self.qubits)
        if not len(both):
            return
        part = part_for(both, self._part)
        if part is not self._part:
            entries = self.state.vector()
            self._split(part)
            self._core.set_amplitudes(entries, check=False)
        self._core.apply(both, 0)

    def measure(self, qubits: Sequence[int], *, seed: int = 0) -> list[int]:
        """Measure qubits one after the other and collapse the state; return the outcomes, drawn from `seed`."""
        seed = require_seed(seed)
        outcomes = []
        for event, qubit in enumerate(whole_numbers(qubits, "qubits")):
            one = self.probability_of_one(qubit)
            outcomes.append(int(uniform(seed, 0, event) < one))
            self.collapse(qubit, outcomes[-1], one if outcomes[-1] else 1 - one)
        return outcomes

    def collapse(self, qubit: int, value: int, probability: float) -> None:
        """Project onto a value (0 or 1) of a qubit and divide by the probability of that value."""
        kept = np.zeros(4, complex)
        kept[3 * value] = 1 / probability
        circuit = Circuit(2 * self.qubits)
        circuit.add(Operation("diagonal", "collapse", [qubit, qubit + self.qubits], values=kept))
        self._core.apply(circuit, 0)

    # -- reading the state ---------------------------------------------------------------------------------------------

    def matrix(self) -> NDArray[np.complex128]:
        """Return the whole matrix of shape (2^n, 2^n). Every rank needs 16 bytes times 4^n for it."""
        size = 1 << self.qubits
        return self.state.vector().reshape(size, size).T

    def trace(self) -> float:
        """Return the trace: 1 within rounding."""
        return float(self._diagonal().sum())

    def purity(self) -> float:
        """Return Tr rho^2: 1 for pure states, 2^-n for the completely mixed state."""
        return float(self._core.norm_squared())

    def probabilities(self, qubits: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Return the probabilities of the 2^k values of k qubits.

        Parameters
        ----------
        qubits : sequence of int, optional
            Qubits, the least significant first. Default: all qubits.

        Returns
        -------
        array of float, shape (2^k,)
        """
        kept = self._all_or(qubits)
        self._check(kept)
        index = np.arange(1 << self.qubits)
        value = np.zeros_like(index)
        for i, qubit in enumerate(kept):
            value |= (index >> qubit & 1) << i
        return np.bincount(value, self._diagonal(), 1 << len(kept))

    def sample(self, shots: int, qubits: Sequence[int] | None = None, *, seed: int = 0) -> NDArray[np.uint64]:
        """Sample outcomes of a measurement of some qubits, without changing the state.

        Parameters
        ----------
        shots : int
            Number of outcomes.
        qubits : sequence of int, optional
            Qubits to measure. Default: all qubits.
        seed : int
            The same seed gives the same outcomes.

        Returns
        -------
        array of uint64, shape (shots,)
            Bit i of an outcome is the value of qubits[i].
        """
        seed = require_seed(seed)
        cumulated = np.cumsum(np.maximum(self.probabilities(qubits), 0))
        drawn = uniform(seed, np.arange(whole_number(shots, "shots", 0, 1 << 31)), 1 << 40) * cumulated[-1]
        return np.searchsorted(cumulated, drawn, side="right").astype(np.uint64)

    def expectations(self, observables: Sequence[Any]) -> list[float | complex]:
        """Return the expectation values Tr(rho O) of several observables O, each as by `expectation`."""
        rows = np.arange(1 << self.qubits)
        entries: dict[int, NDArray[np.complex128]] = {}
        sums = sums_of(observables)
        values = []
        for observable in sums:
            observable.require(self.qubits)
            value = 0j
            for term in observable.terms:
                x, z = term.x_mask, term.z_mask
                if x not in entries:
                    # <r| rho P |r> needs rho where the column differs from the row by x.
                    entries[x] = self.state.amplitudes(rows | (rows ^ x) << self.qubits)
                signs = 1 - 2 * (_bit_count(rows & z) & 1)
                value += term.coefficient * (1j) ** (x & z).bit_count() * np.sum(signs * entries[x])
            values.append(value)
        return real_where_real(sums, values)

    def variances(self, observables: Sequence[Any]) -> list[float]:
        """Return the variances of several Hermitian observables, each as by `variance`."""
        sums = hermitian_sums(observables, self.qubits)
        values = self.expectations([*sums, *(one.squared() for one in sums)])
        means, squares = np.array(values, float).reshape(2, -1)
        return np.maximum(squares - means**2, 0).tolist()

    def density_matrix(self, qubits: Sequence[int]) -> NDArray[np.complex128]:
        """Return the reduced density matrix of k qubits.

        Parameters
        ----------
        qubits : sequence of int
            Qubits, the least significant first.

        Returns
        -------
        array of complex128, shape (2^k, 2^k)

        Raises
        ------
        BadInput
            The qubits are not distinct, or do not exist.
        """
        self._check(qubits)
        others = self._others(qubits)
        kept = _spread(np.arange(1 << len(qubits)), list(qubits))
        result = np.zeros((len(kept), len(kept)), complex)
        for gone in _spread(np.arange(1 << len(others)), others):
            rows = kept | gone
            wanted = rows[:, None] | rows[None, :] << self.qubits
            result += self.state.amplitudes(wanted.reshape(-1)).reshape(result.shape)
        return result

    def entropy(self, qubits: Sequence[int] | None = None, *, base: float = 2) -> float:
        """Return the von Neumann entropy of some qubits.

        Parameters
        ----------
        qubits : sequence of int, optional
            Qubits. Default: all.
        base : float
            Base of the logarithm; 2 gives bits.
        """
        eigenvalues = np.linalg.eigvalsh(self.density_matrix(self._all_or(qubits)))
        eigenvalues = eigenvalues[eigenvalues > 0]
        return float(-np.sum(eigenvalues * np.log(eigenvalues)) / np.log(base))

    def partial_trace(self, qubits: Sequence[int]) -> NDArray[np.complex128]:
        """Trace out some qubits; return the density matrix of the others in ascending order. Collective.

        Raises
        ------
        BadInput
            The qubits are not distinct, or do not exist.
        """
        self._check(qubits)
        return super().partial_trace(qubits)

    def fidelity(self, other: DensityMatrix | State | NDArray[Any]) -> float:
        """Return the fidelity with another state. Every rank needs memory for the whole matrix.

        Parameters
        ----------
        other : DensityMatrix, State or array of complex, shape (2^n,)
            A density matrix, or a pure state.

        Returns
        -------
        float
            <psi|rho|psi> for a pure state, (Tr sqrt(sqrt(rho) sigma sqrt(rho)))^2 for a density matrix sigma.

        Raises
        ------
        BadInput
            The other state has another number of qubits, or its amplitudes are not finite or not normalised.
        """
        qubits = getattr(other, "qubits", None)
        size = np.shape(other) if qubits is None else (1 << qubits,)
        if size != (1 << self.qubits,):
            found = f"an array of shape {size}" if qubits is None else f"one of {qubits}"
            raise BadInput(f"fidelity: expected a state of {self.qubits} qubits, found {found}")
        own = self.matrix()
        if isinstance(other, DensityMatrix):
            values, vectors = np.linalg.eigh(own)
            root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.conj().T
            inside = np.linalg.eigvalsh(root @ other.matrix() @ root)
            return float(np.sqrt(np.maximum(inside, 0)).sum() ** 2)
        if not isinstance(other, State):
            other = State(self.qubits).set_amplitudes(other)
        vector = other.vector()
        return float(np.vdot(vector, own @ vector).real)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _split(self, part: Group) -> None:
        """Make the vector on a part of the group. All parts place gates as the whole group would."""
        self._part = part
        self.state = State(2 * self.qubits, part, **self._options)
        self._core = self.state._core
        self._core.ranks_per_host = _core.ranks_per_host(self._whole)

    def _diagonal(self) -> NDArray[np.float64]:
        index = np.arange(1 << self.qubits)
        return self.state.amplitudes(index | index << self.qubits).real

    def _check(self, qubits: Sequence[int]) -> None:
        numbers = whole_numbers(qubits, "qubits")
        if len(set(numbers)) != len(numbers) or any(not 0 <= one < self.qubits for one in numbers):
            raise BadInput(f"expected distinct qubits from 0 to {self.qubits - 1}, found {numbers}")


def _spread(values: NDArray[np.int64], qubits: list[int]) -> NDArray[np.int64]:
    """Move bit i of each value to the bit of qubits[i]."""
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


def _checked(values: NDArray[np.complex128], *, normalize: bool) -> NDArray[np.complex128]:
    """Check that a matrix is a density matrix; divide it by its trace if asked to."""
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
    return values
