"""`State`: a state vector that is split over ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.arguments import complex_array, instance, quoted, require_seed
from onehop.error import BadInput
from onehop.group import Group, group_or_alone, require_same, together
from onehop.quantum.circuit import Circuit, Operation
from onehop.quantum.io.state_file import read_state_together, save_state
from onehop.quantum.observables import PauliSum, core_sum, sums_of
from onehop.quantum.split_state import SplitState, check_base, entropy_of

__all__ = ["State"]


class State(SplitState):
    """A state vector that is split over the ranks of a group, initially |0...0>.

    All methods except `local` are collective: every rank of the group calls them with the same arguments and gets the
    same result. Qubit 0 is the least significant bit of an amplitude's index.

    Parameters
    ----------
    qubits : int
        Number of qubits. The whole state has 2^qubits amplitudes, of which each rank holds an equal share.
    group : Group, optional
        Ranks that hold the state, a power of two of them. Default: this process alone.
    precision : str
        "double" (16 bytes per amplitude) or "single" (8 bytes), or a codec as for `simulate`.
    threads : int
        Threads per rank; 0: the rank's share of the cores.
    staging : int
        Maximum number of bytes that an exchange buffers per partner; 0: 8 MiB.
    device : str
        Where the amplitudes are: "cpu", or in the memory of a card: "cuda" or "hip", of which the ranks of a host take
        one after the other, or for example "cuda:1". "processor" runs the kernels of cards on this processor: a test.

    Raises
    ------
    BadInput
        The number of ranks is no power of two, or exceeds the number of amplitudes.
    Error
        There is no such device, or the memory does not suffice. The message says what is needed, what is available and
        what would suffice.
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
        self._core = _core.State(
            Group.alone() if group is None else group,
            qubits=qubits,
            precision=precision,
            threads=threads,
            staging=staging,
            device=device,
        )

    @classmethod
    def load(
        cls, file: str | Path, group: Group | None = None, *, threads: int = 0, staging: int = 0
    ) -> State:
        """Read a state from a file of `save` or from a checkpoint into memory; each rank reads its share. Collective.

        Parameters
        ----------
        file : path
            HDF5 file. All ranks must see it.
        group, threads, staging
            As for the constructor. The file decides on the number of qubits and the precision.

        Raises
        ------
        BadInput
            On every rank: the file does not exist, holds no state, is truncated, or was altered, or the norm of its
            amplitudes is not 1 within 1e-3.
        """
        group = group_or_alone(group)
        stored = read_state_together(file, group)
        state = cls(stored.qubits, group, precision=stored.precision, threads=threads, staging=staging)
        state._core.set_layout(list(stored.bits), 0)
        with together(group):
            stored.fill(state._core)
        # Rounding in single precision changes the norm in the course of a long circuit.
        if not abs(state.norm() - 1) <= 1e-3:
            raise BadInput(f"{file}: expected amplitudes of norm 1, found the norm {state.norm():.6g}")
        return state

    @classmethod
    def _of(cls, core: _core.State) -> State:
        """Wrap a state of the library."""
        state = cls.__new__(cls)
        state._core = core
        return state

    @property
    def qubits(self) -> int:  # type: ignore[override]
        """Number of qubits."""
        return self._core.qubits

    # -- changing the state ----------------------------------------------------------------------------------------

    def set_basis_state(self, index: int) -> State:
        """Set the state to the basis state with this index; return the state."""
        require_same(self._core.group, "set_basis_state", index=index)
        self._core.set_basis_state(index)
        return self

    def set_amplitudes(self, amplitudes: Any, *, normalize: bool = False) -> State:
        """Set all amplitudes; return the state. Collective.

        Parameters
        ----------
        amplitudes : array of complex, shape (2^qubits,)
            The same array on every rank.
        normalize : bool
            Divide the amplitudes by their norm. Otherwise the norm must be 1 within 1e-5.

        Raises
        ------
        BadInput
            The array has another length, an amplitude is infinite or NaN, or the norm is not 1 (with `normalize`: below
            1e-145).
        Mismatch
            Another rank refuses its array, or the arrays of the ranks differ.
        """
        self._core.set_amplitudes(complex_array(amplitudes, "set_amplitudes"), normalize)
        return self

    def run(self, circuit: Circuit, *, seed: int = 0) -> list[int]:
        """Run a circuit on this state. Measurements collapse it.

        Parameters
        ----------
        circuit : Circuit
            Circuit with as many qubits as the state.
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
        return self._core.run(circuit, require_seed(seed))

    def save(
        self, file: str | Path, group: Group | None = None, attributes: Mapping[str, Any] | None = None
    ) -> State:
        """Write all amplitudes in the order of their index to an HDF5 file (needs h5py); return the state.

        The file appears when it is complete. The qubits are brought in order first (`restore_order`).

        Parameters
        ----------
        file : path
            File to write.
        group : Group, optional
            All ranks that call this method; needed if there is more than one.
        attributes : mapping, optional
            Further attributes of the file.

        Raises
        ------
        BadInput
            On every rank: the file cannot be written, or h5py is missing.
        """
        save_state(file, self, group_or_alone(group), attributes)
        return self

    def restore_order(self) -> State:
        """Store the amplitudes in the order of their index; return the state. Only `local` shows the difference."""
        self._core.restore_order()
        return self

    # -- reading the state -------------------------------------------------------------------------------------------

    def amplitudes(self, indices: int | Sequence[int] | NDArray[np.integer]) -> NDArray[np.complex128]:
        """Return the amplitudes with these indices, in the same order."""
        found = np.atleast_1d(np.asarray(indices))
        if found.size and (found.dtype.kind not in "iu" or found.min() < 0):
            raise BadInput(
                f"amplitudes: expected whole numbers of 0 or more as indices, found {quoted(indices)}"
            )
        return self._core.amplitudes(found.astype(np.uint64))

    def vector(self) -> NDArray[np.complex128]:
        """Return all 2^qubits amplitudes. Every rank needs 16 bytes times 2^qubits for them."""
        return self._core.gather()

    def local(self) -> NDArray[np.complexfloating]:
        """Return a view of the amplitudes of this rank. Not collective.

        After `restore_order` they begin with index `rank * len(local())`; before, their order is arbitrary.

        Returns
        -------
        array of complex64 or complex128, shape (2^qubits / ranks,)
        """
        return self._core.local()

    def norm(self) -> float:
        """Return the norm of the state: 1 within rounding, unless `local` was written."""
        return float(np.sqrt(self._core.norm_squared()))

    def sample(
        self, shots: int, qubits: Sequence[int] | None = None, *, seed: int = 0, bases: str | None = None
    ) -> NDArray[np.uint64]:
        """Sample outcomes of a measurement of some qubits, without changing the state.

        Parameters
        ----------
        shots : int
            Number of outcomes.
        qubits : sequence of int, optional
            Qubits to measure. Default: all qubits.
        seed : int
            The same seed gives the same outcomes on every number of ranks.
        bases : str, optional
            A letter X, Y or Z for each of the qubits: the Pauli operator whose eigenvalue is measured. Default: Z for
            all. The state is rotated and rotated back, so that its amplitudes may change within rounding.

        Returns
        -------
        array of uint64, shape (shots,)
            Bit i of an outcome is the value of qubits[i]: 0 for the eigenvalue 1, 1 for the eigenvalue -1.

        Raises
        ------
        BadInput
            There is not one letter X, Y or Z for each qubit.
        """
        measured = self._all_or(qubits)
        if bases is None:
            return self._core.sample(measured, shots, require_seed(seed))
        there, back = rotations_to(bases, measured, self.qubits)
        self._core.apply(there, 0)
        try:
            return self._core.sample(measured, shots, require_seed(seed))
        finally:
            self._core.apply(back, 0)

    def variances(self, observables: Sequence[Any]) -> list[float]:
        """Return the variances of several Hermitian observables, each as by `variance`. Needs a second state."""
        sums = sums_of(observables, self.qubits, hermitian=True)
        return self._core.variances([core_sum(one) for one in sums])

    def inner_product(self, other: State) -> complex:
        """Return <self|other>. Both states must be split over the same ranks and have the same precision."""
        return self._core.inner_product(instance(other, State, "other")._core)

    def fidelity(self, other: State) -> float:
        """Return |<self|other>|^2."""
        return abs(self.inner_product(other)) ** 2

    def entropy(self, qubits: Sequence[int], *, base: float = 2) -> float:
        """Return the entanglement entropy between some qubits and the others.

        Parameters
        ----------
        qubits : sequence of int
            One side of the cut. The smaller side may have at most 12 qubits.
        base : float
            Base of the logarithm; 2 gives bits.

        Raises
        ------
        BadInput
            A qubit is named twice or does not exist, or the base is not above 1.
        """
        side = self._distinct(qubits)
        check_base(base)
        if 2 * len(side) > self.qubits:
            side = self._others(qubits)
        if not side:
            return 0.0
        return entropy_of(self.density_matrix(side), base)

    def _scale(self, factor: float) -> None:
        """Multiply the amplitudes by a factor."""
        scale = Operation("diagonal", "normalise", [0], values=np.full(2, factor, complex))
        self._core.apply(Circuit(self.qubits)._append(scale), 0)

    def _probabilities(self, qubits: list[int]) -> NDArray[np.float64]:
        return self._core.probabilities(qubits)

    def _expectations(self, sums: Sequence[PauliSum]) -> Sequence[complex]:
        return self._core.expectations([core_sum(one) for one in sums])

    def _reduced(self, qubits: list[int]) -> NDArray[np.complex128]:
        return self._core.reduced_density_matrix(qubits)


def rotations_to(bases: str, measured: Sequence[int], qubits: int) -> tuple[Circuit, Circuit]:
    """Return circuits that rotate the eigenvectors of Pauli operators to basis states, and back.

    Raise BadInput if there is not one letter X, Y or Z for each measured qubit.
    """
    if len(instance(bases, str, "bases")) != len(measured) or set(bases) - set("XYZ"):
        raise BadInput(f"expected a letter X, Y or Z for each of {len(measured)} qubits, found {bases!r}")
    there, back = Circuit(qubits), Circuit(qubits)
    for letter, qubit in zip(bases, measured, strict=True):
        if letter == "Y":
            there.sdg(qubit)
        if letter != "Z":
            there.h(qubit)
            back.h(qubit)
        if letter == "Y":
            back.s(qubit)
    return there, back
