"""`SplitState`: what state vectors and density matrices have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.arguments import real_number, whole_numbers
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum.observables import PauliSum, real_where_real, sums_of
from onehop.refusals import make_collective
from onehop.text import counted


def check_base(base: float) -> None:
    """Raise BadInput unless logarithms may have this base."""
    if not real_number(base, "base") > 1:
        raise BadInput(f"entropy: expected a base above 1, found {base}")


def entropy_of(matrix: NDArray[Any], base: float) -> float:
    """Return the von Neumann entropy of a density matrix."""
    eigenvalues = np.linalg.eigvalsh(matrix)
    eigenvalues = eigenvalues[eigenvalues > 0]
    return float(-np.sum(eigenvalues * np.log(eigenvalues)) / np.log(float(base)))


class SplitState(ABC):
    """Base class of quantum states that are split over the ranks of a group.

    A subclass stores its numbers in a `_core.State`, whose attributes are those of this class, and implements the
    measurements from which the others follow.
    """

    qubits: int
    _core: _core.State

    @property
    def ranks(self) -> int:
        """Number of ranks over which the state is split."""
        return self._core.ranks

    @property
    def precision(self) -> str:
        """Precision of the stored numbers: "double" or "single"."""
        return self._core.precision

    @property
    def exchanges(self) -> int:
        """Number of exchanges between ranks so far."""
        return self._core.exchanges

    @property
    def bytes_sent(self) -> int:
        """Bytes that this rank has sent in these exchanges."""
        return self._core.bytes_sent

    @property
    def bytes_between_hosts(self) -> int:
        """Part of these bytes that went to ranks on other hosts."""
        return self._core.bytes_between_hosts

    @abstractmethod
    def _probabilities(self, qubits: list[int]) -> NDArray[np.float64]: ...

    @abstractmethod
    def _expectations(self, sums: Sequence[PauliSum]) -> Sequence[complex]: ...

    @abstractmethod
    def _reduced(self, qubits: list[int]) -> NDArray[np.complex128]: ...

    @abstractmethod
    def variances(self, observables: Sequence[Any]) -> list[float]:
        """Return the variances of several observables."""

    def probabilities(self, qubits: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Return the probabilities of the 2^k values of k qubits. Collective.

        Parameters
        ----------
        qubits : sequence of int, optional
            At most 24 qubits, the least significant first. Default: all qubits.

        Returns
        -------
        array of float, shape (2^k,)
        """
        return self._probabilities(self._all_or(qubits))

    def expectations(self, observables: Sequence[Any]) -> list[float | complex]:
        """Return the expectation values of several observables, each as by `expectation`. Collective.

        Pauli strings that the observables have in common are evaluated once.
        """
        sums = sums_of(observables, self.qubits)
        return real_where_real(sums, self._expectations(sums))

    def density_matrix(self, qubits: Sequence[int]) -> NDArray[np.complex128]:
        """Return the reduced density matrix of k qubits. Collective.

        Parameters
        ----------
        qubits : sequence of int
            Qubits, the least significant first; of a state vector at most 12.

        Returns
        -------
        array of complex128, shape (2^k, 2^k)

        Raises
        ------
        BadInput
            The qubits are not distinct, or do not exist.
        """
        listed = whole_numbers(qubits, "qubits")
        return self._reduced(listed).reshape((1 << len(listed),) * 2)

    def probability_of_one(self, qubit: int) -> float:
        """Return the probability that a qubit is 1, divided by the norm of the state. Collective."""
        zero, one = self.probabilities([qubit])
        return float(one / (zero + one))

    def expectation(self, observable: Any) -> float | complex:
        """Return the expectation value of an observable. Collective.

        Parameters
        ----------
        observable : PauliSum, str or Qiskit operator
            Anything that `PauliSum.of` takes.

        Returns
        -------
        float or complex
            A float if all coefficients of the observable are real.

        Raises
        ------
        BadInput
            The observable cannot be read, or names a qubit that the state does not have.
        """
        return self.expectations([observable])[0]

    def variance(self, observable: Any) -> float:
        """Return the variance <O^2> - <O>^2 of a Hermitian observable O. Collective.

        Parameters
        ----------
        observable : PauliSum, str or Qiskit operator
            As for `expectation`.

        Raises
        ------
        BadInput
            As for `expectation`; the observable is not Hermitian.
        """
        return self.variances([observable])[0]

    def partial_trace(self, qubits: Sequence[int]) -> NDArray[np.complex128]:
        """Trace out some qubits; return the density matrix of the others in ascending order. Collective.

        Raises
        ------
        BadInput
            The qubits are not distinct, or do not exist.
        """
        return self.density_matrix(self._others(qubits))

    def _others(self, qubits: Sequence[int]) -> list[int]:
        """Return the qubits that are not listed, in ascending order."""
        listed = self._distinct(qubits)
        return [qubit for qubit in range(self.qubits) if qubit not in listed]

    def _distinct(self, qubits: Sequence[int]) -> list[int]:
        listed = whole_numbers(qubits, "qubits")
        if len(set(listed)) != len(listed) or any(not 0 <= one < self.qubits for one in listed):
            raise BadInput(f"expected distinct qubits from 0 to {self.qubits - 1}, found {listed}")
        return listed

    def _all_or(self, qubits: Sequence[int] | None) -> list[int]:
        """Return the listed qubits, or all for None."""
        return list(range(self.qubits)) if qubits is None else whole_numbers(qubits, "qubits")

    @classmethod
    @abstractmethod
    def _of(cls, core: _core.State) -> Any: ...

    def __reduce__(self) -> tuple[Any, ...]:
        if self.ranks > 1:
            raise BadInput(
                f"expected a state of one rank to copy or pickle, found one that is split over {self.ranks}; `save` "
                "writes it to a file"
            )
        values = self._core.gather()
        if self.precision != "double":
            values = values.astype(np.complex64)
        return _restored, (type(self), self._core.qubits, self.precision, values)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {counted(self.qubits, 'qubit')}, {self.precision} precision, "
            f"{counted(self.ranks, 'rank')}>"
        )


def _restored(kind: type[SplitState], qubits: int, precision: str, values: NDArray[Any]) -> Any:
    core = _core.State(Group.alone(), qubits=qubits, precision=precision, threads=0, staging=0, device="cpu")
    core.set_amplitudes(values.astype(np.complex128), check=False)
    return kind._of(core)


make_collective(globals(), ["SplitState"])
