"""`State`: a state vector split over ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum.circuit import Circuit
from onehop.quantum.io.state_file import agree, read_state_together, save_state
from onehop.quantum.observables import PauliSum

__all__ = ["State"]


class State:
    """A state vector split over the ranks of a group, and what can be asked of it.

    It begins as |0...0>. Everything but the attributes is collective: every rank of the group calls it with the same
    arguments and gets the same result.

    Parameters
    ----------
    qubits : int
        The whole state has 2^qubits amplitudes; each rank holds its share of them.
    group : Group, optional
        A power of two of ranks; this process alone unless given.
    precision : str
        "double" (16 bytes an amplitude) or "single" (8).
    threads : int
        Of each rank; 0: its share of the cores that it may use.
    staging : int
        Bytes that an exchange may hold per partner, at most; 0: 8 MiB.

    Attributes
    ----------
    qubits, ranks : int
    precision : str
    exchanges : int
        Exchanges between ranks so far.
    bytes_sent : int
        What this rank has sent in them.

    Raises
    ------
    BadInput
        Not a power of two of ranks, or more than there are amplitudes.
    Error
        The memory does not suffice; the message says what is needed, what there is, and what would do.
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
        self._core = _core.State(group or Group.alone(), qubits, precision, threads, staging)

    @classmethod
    def load(
        cls, file: str | Path, group: Group | None = None, *, threads: int = 0, staging: int = 0
    ) -> State:
        """A state from a file of `save` (or a checkpoint), each rank its share. Collective.

        Raises
        ------
        BadInput
            No such file, no state in it, cut short, or altered.
        """
        group = group or Group.alone()
        stored, wrong = read_state_together(file, group), ""
        state = cls(stored.qubits, group, precision=stored.precision, threads=threads, staging=staging)
        state._core.set_layout(list(stored.bits), 0)
        try:
            stored.fill(state.local(), state._core.rank)
        except BadInput as error:
            wrong = str(error)
        agree(group, wrong)
        return state

    @classmethod
    def _of(cls, core: _core.State) -> State:
        state = cls.__new__(cls)
        state._core = core
        return state

    @property
    def qubits(self) -> int:  # noqa: D102
        return self._core.qubits

    @property
    def ranks(self) -> int:  # noqa: D102
        return self._core.ranks

    @property
    def precision(self) -> str:  # noqa: D102
        return self._core.precision

    @property
    def exchanges(self) -> int:  # noqa: D102
        return self._core.exchanges

    @property
    def bytes_sent(self) -> int:  # noqa: D102
        return self._core.bytes_sent

    # -- setting and changing --------------------------------------------------------------------------------------

    def set_basis_state(self, index: int) -> State:
        """Become the basis state with this index."""
        self._core.set_basis_state(index)
        return self

    def set_amplitudes(self, amplitudes: Any) -> State:
        """Become the state with these 2^qubits amplitudes, which every rank passes. Nothing is normalised."""
        self._core.set_amplitudes(np.ascontiguousarray(amplitudes, np.complex128))
        return self

    def run(self, circuit: Circuit, *, seed: int = 0) -> list[int]:
        """Run a circuit on this state. Its measurements are made, with random numbers from `seed`.

        Returns
        -------
        list of int
            The classical bits.
        """
        return self._core.run(circuit, seed)

    def save(
        self, file: str | Path, group: Group | None = None, attributes: Mapping[str, Any] | None = None
    ) -> State:
        """Write all amplitudes, by index, to a file (HDF5, needs h5py), which appears when it is complete.

        Parameters
        ----------
        file : path
        group : Group, optional
            All ranks that call this; needed if there is more than one.
        attributes : mapping, optional
            What else the file says.

        Raises
        ------
        BadInput
            On every rank: the file cannot be written.
        """
        save_state(file, self, group or Group.alone(), attributes)
        return self

    def restore_order(self) -> State:
        """Bring qubit i back to bit i of an amplitude's place; nothing but `local` shows the difference."""
        self._core.restore_order()
        return self

    # -- looking -----------------------------------------------------------------------------------------------------

    def amplitudes(self, indices: int | Sequence[int] | NDArray[np.integer]) -> NDArray[np.complex128]:
        """The amplitudes with these indices (qubit 0 least significant)."""
        return self._core.amplitudes(np.atleast_1d(np.asarray(indices)).astype(np.uint64))

    def vector(self) -> NDArray[np.complex128]:
        """All 2^qubits amplitudes, on every rank: 16 bytes times 2^qubits."""
        return self._core.gather()

    def local(self) -> NDArray[np.complexfloating]:
        """What this rank holds, not copied; after `restore_order` those from rank * size on."""
        return self._core.local()

    def norm(self) -> float:
        """The norm; 1 within rounding, unless something else was set."""
        return float(np.sqrt(self._core.norm_squared()))

    def probabilities(self, qubits: Sequence[int] | None = None) -> NDArray[np.float64]:
        """The probabilities of the 2^k values of some qubits (all unless given), the first least significant.

        At most 24 qubits.
        """
        return self._core.probabilities(list(range(self.qubits) if qubits is None else qubits))

    def sample(self, shots: int, qubits: Sequence[int] | None = None, *, seed: int = 0) -> NDArray[np.uint64]:
        """Outcomes of measuring some qubits (all unless given), `shots` times, each time of this state.

        Bit i of an outcome is that of qubits[i]. The same seed gives the same outcomes on every number of ranks.
        """
        return self._core.sample(list(range(self.qubits) if qubits is None else qubits), shots, seed)

    def expectation(self, observable: Any) -> float | complex:
        """<state| observable |state>: of a `PauliSum` or its text; real if its coefficients are."""
        return self.expectations([observable])[0]

    def expectations(self, observables: Sequence[Any]) -> list[float | complex]:
        """Those of several observables; their common strings are looked at once."""
        sums = [PauliSum.of(o) for o in observables]
        return real_where_real(sums, self._core.expectations([core_sum(s) for s in sums]))

    def inner_product(self, other: State) -> complex:
        """<self|other>. Both states must be split over the same ranks, in the same precision."""
        return self._core.inner_product(other._core)

    def fidelity(self, other: State) -> float:
        """|<self|other>|^2."""
        return abs(self.inner_product(other)) ** 2

    def density_matrix(self, qubits: Sequence[int]) -> NDArray[np.complex128]:
        """The reduced density matrix of some qubits (at most 12), the first least significant."""
        size = 1 << len(qubits)
        return self._core.reduced_density_matrix(list(qubits)).reshape(size, size)

    def partial_trace(self, qubits: Sequence[int]) -> NDArray[np.complex128]:
        """What is left when these qubits are traced out: the density matrix of the others, in their order."""
        gone = set(qubits)
        return self.density_matrix([q for q in range(self.qubits) if q not in gone])

    def entropy(self, qubits: Sequence[int], *, base: float = 2) -> float:
        """The entropy of entanglement between some qubits and the others; 12 qubits at most on the smaller side."""
        side = list(qubits)
        if 2 * len(side) > self.qubits:
            side = [q for q in range(self.qubits) if q not in set(qubits)]
        if not side:
            return 0.0
        eigenvalues = np.linalg.eigvalsh(self.density_matrix(side))
        eigenvalues = eigenvalues[eigenvalues > 0]
        return float(-np.sum(eigenvalues * np.log(eigenvalues)) / np.log(base))

    def __repr__(self) -> str:
        return f"<State: {self.qubits} qubits, {self.precision} precision, {self.ranks} ranks>"


def core_sum(observable: PauliSum) -> _core.PauliSum:
    """The same for the library."""
    return _core.PauliSum([(complex(t.coefficient), list(t.paulis)) for t in observable.terms])


def real_where_real(sums: Sequence[PauliSum], values: Sequence[complex]) -> list[float | complex]:
    """Expectation values, real where all coefficients are."""
    return [float(v.real) if s.is_hermitian else complex(v) for s, v in zip(sums, values, strict=True)]
