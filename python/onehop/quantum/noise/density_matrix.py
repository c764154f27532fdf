"""`DensityMatrix`: a mixed state that is split over ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.arguments import complex_array, instance, require_seed, whole_number, whole_numbers
from onehop.error import BadInput
from onehop.group import Group, group_or_alone, require_same, together
from onehop.quantum.circuit import Circuit
from onehop.quantum.noise.channel import Channel, check_probability
from onehop.quantum.noise.core_program import core_program, noisy_program
from onehop.quantum.noise.model import NoiseModel, warn_without
from onehop.quantum.observables import PauliSum, core_sum, sums_of, texts_of
from onehop.quantum.precision import require_plain
from onehop.quantum.split_state import SplitState, check_base, entropy_of
from onehop.quantum.state import State
from onehop.quantum.steps import Program, matrix_entries
from onehop.text import counted

__all__ = ["DensityMatrix"]


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
    group, precision, threads, staging, device
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
        device: str = "cpu",
    ) -> None:
        self.qubits = qubits = whole_number(qubits, "qubits")
        require_plain(precision, "density matrix")
        self._options: dict[str, Any] = {"precision": precision, "threads": threads, "staging": staging}
        self._options["device"] = device
        self._whole = group_or_alone(group)
        self._split(_part_for(Circuit(2 * qubits), self._whole) if qubits > 0 else self._whole)

    @classmethod
    def _of(cls, core: _core.State) -> DensityMatrix:
        """Wrap a state of the library."""
        matrix = cls.__new__(cls)
        matrix.qubits = core.qubits // 2
        matrix._options = {"precision": core.precision, "device": core.device}
        matrix._whole = matrix._part = Group(core.group)
        matrix.state, matrix._core = State._of(core), core
        return matrix

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
        with together(self._whole):
            values = complex_array(matrix, "set_matrix")
            if values.shape != (1 << self.qubits, 1 << self.qubits):
                raise BadInput(
                    f"expected a matrix of {1 << self.qubits} rows and columns, found {values.shape}"
                )
            entries = matrix_entries(values, normalize=normalize)
        self._core.set_amplitudes(entries, check=False)
        return self

    def set_vector(self, vector: Any, *, normalize: bool = False) -> DensityMatrix:
        """Set the density matrix to the pure state with these 2^n amplitudes; return it.

        Parameters and errors are those of `State.set_amplitudes`.
        """
        with together(self._whole):
            values = State(self.qubits).set_amplitudes(vector, normalize=normalize).vector()
        self._core.set_amplitudes(np.outer(values.conj(), values).reshape(-1), check=False)
        return self

    def set_basis_state(self, index: int) -> DensityMatrix:
        """Set the density matrix to the basis state with this index; return it."""
        require_same(self._whole, "set_basis_state", index=index)
        index = whole_number(index, "index", 0, (1 << self.qubits) - 1)
        self.state.set_basis_state(index | index << self.qubits)
        return self

    def run(self, circuit: Circuit, noise: NoiseModel | None = None, *, seed: int = 0) -> list[int]:
        """Run a circuit on this state. Noise follows each gate, and measurements collapse the state.

        Parameters
        ----------
        circuit, seed
            As for `State.run`, which documents the result and the errors, too.
        noise : NoiseModel, optional
            Channels after gates, and readout errors of measurements. Default: no noise.
        """
        instance(circuit, Circuit, "circuit")
        if noise is not None and instance(noise, NoiseModel, "noise") and self._whole.rank == 0:
            warn_without(noise.without(circuit))
        if circuit.qubits != self.qubits:
            raise BadInput(
                f"expected a circuit of {counted(self.qubits, 'qubit')}, as the density matrix has, found "
                f"{circuit.qubits}"
            )
        return self._run(noisy_program(circuit, noise), require_seed(seed))

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
        self._distinct(qubits)
        program = Program(Circuit(self.qubits))
        found = instance(channel, Channel, "channel")
        if found.qubits != len(qubits):
            raise BadInput(
                f"{found.name}: expected {counted(found.qubits, 'qubit')}, found {len(qubits)}: {list(qubits)}"
            )
        program.channel(found.kraus, qubits, found.name)
        self.run_program(program)
        return self

    def run_program(self, program: Program) -> None:
        """Run a program of gates and channels on this matrix."""
        self._run(core_program(program, mixed=True), 0)

    def _run(self, program: _core.Program, seed: int) -> list[int]:
        """Run a program on this matrix, split over fewer ranks if an operation needs it; return the classical bits."""
        _core.require_same_program(self._whole, program, seed)
        program.validate(mixed=True)
        part = _part_for(program.on_rows_and_columns(), self._part)
        if part is not self._part:
            entries = self.state.vector()
            self._split(part)
            self._core.set_amplitudes(entries, check=False)
        return [int(bit) for bit in _core.run_program_once(self._core, program, seed)]

    def measure(self, qubits: Sequence[int], *, seed: int = 0) -> list[int]:
        """Measure qubits one after the other and collapse the state; return the outcomes, drawn from `seed`."""
        require_same(self._whole, "measure", qubits=qubits, seed=seed)
        seed = require_seed(seed)
        outcomes = []
        for event, qubit in enumerate(whole_numbers(qubits, "qubits")):
            one = self.probability_of_one(qubit)
            outcomes.append(int(_core.uniform(seed, 0, event) < one))
            self.collapse(qubit, outcomes[-1], one if outcomes[-1] else 1 - one)
        return outcomes

    def collapse(self, qubit: int, value: int, probability: float) -> None:
        """Project onto a value (0 or 1) of a qubit and divide by the probability of that value, which is above 0."""
        require_same(self._whole, "collapse", qubit=qubit, value=value, probability=probability)
        self._distinct([qubit])
        if not check_probability("probability", probability) > 0:
            raise BadInput(f"probability: expected one above 0, found {probability}")
        _core.mixed_collapse(self._core, qubit, whole_number(value, "value", 0, 1), probability)

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

    def sample(self, shots: int, qubits: Sequence[int] | None = None, *, seed: int = 0) -> NDArray[np.uint64]:
        """Sample outcomes of a measurement of some qubits, without changing the state: as `State.sample`."""
        require_same(self._whole, "sample", shots=shots, qubits=qubits, seed=seed)
        seed, kept = require_seed(seed), self._all_or(qubits)
        self._distinct(kept)
        return _core.mixed_sample(self._core, kept, whole_number(shots, "shots", 0, 1 << 31), seed)

    def variances(self, observables: Sequence[Any]) -> list[float]:
        """Return the variances of several Hermitian observables, each as by `variance`."""
        sums = sums_of(observables, self.qubits, hermitian=True)
        values = self.expectations([*sums, *(one.squared() for one in sums)])
        means, squares = np.array(values, float).reshape(2, -1)
        return np.maximum(squares - means**2, 0).tolist()

    def entropy(self, qubits: Sequence[int] | None = None, *, base: float = 2) -> float:
        """Return the von Neumann entropy of some qubits.

        Parameters
        ----------
        qubits : sequence of int, optional
            Qubits. Default: all.
        base : float
            Base of the logarithm; 2 gives bits.

        Raises
        ------
        BadInput
            A qubit is named twice or does not exist, or the base is not above 1.
        """
        check_base(base)
        return entropy_of(self.density_matrix(self._all_or(qubits)), base)

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

    def _probabilities(self, qubits: list[int]) -> NDArray[np.float64]:
        require_same(self._whole, "probabilities", qubits=qubits)
        self._distinct(qubits)
        return _core.mixed_probabilities(self._core, qubits)

    def _expectations(self, sums: Sequence[PauliSum]) -> Sequence[complex]:
        require_same(self._whole, "expectations", observables=texts_of(sums))
        return _core.mixed_expectations(self._core, [core_sum(one) for one in sums]).tolist()

    def _reduced(self, qubits: list[int]) -> NDArray[np.complex128]:
        require_same(self._whole, "density_matrix", qubits=qubits)
        self._distinct(qubits)
        return _core.mixed_density_matrix(self._core, qubits)

    def _diagonal(self) -> NDArray[np.float64]:
        index = np.arange(1 << self.qubits)
        return self.state.amplitudes(index | index << self.qubits).real


def _part_for(circuit: _core.Circuit, group: Group) -> Group:
    """Return the equal part of a group over which the state of a circuit can be split; all of it if it can."""
    ranks = _core.usable_ranks(circuit, group.size)
    if ranks == group.size or group.size & (group.size - 1):
        return group
    return Group(group.split(group.rank // ranks, group.rank % ranks))
