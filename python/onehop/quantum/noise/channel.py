"""Noise channels as Kraus operators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.arguments import complex_array, instance, items, quoted, real_number, whole_number
from onehop.error import BadInput
from onehop.text import counted

__all__ = ["Channel", "channel", "channel_names"]

Matrix = NDArray[np.complex128]

_MOST_QUBITS = 6  # of a depolarizing channel: its Kraus operators have 16^k numbers
_PAULI: dict[str, Any] = {
    "I": np.eye(2),
    "X": np.array([[0, 1], [1, 0]]),
    "Y": np.array([[0, -1j], [1j, 0]]),
    "Z": np.diag([1, -1]),
}


@dataclass(frozen=True, eq=False, repr=False)
class Channel:
    """A noise channel on k qubits: rho becomes the sum of K rho K^dagger over the Kraus operators K.

    Parameters
    ----------
    kraus : sequence of arrays of complex, shape (2^k, 2^k)
        Kraus operators. The first qubit is the least significant bit of their index.
    name : str
        Name in messages.

    Attributes
    ----------
    probabilities : array of float, or None
        Probability of each Kraus operator if every one is a multiple of a unitary matrix, so that the probabilities
        do not depend on the state; otherwise None.

    Raises
    ------
    BadInput
        The matrices have different or impossible shapes, or do not preserve the trace: the sum of K^dagger K is not 1.
    """

    kraus: tuple[Matrix, ...]
    name: str = "kraus"
    probabilities: NDArray[np.float64] | None = field(init=False)

    def __post_init__(self) -> None:
        matrices = tuple(complex_array(matrix, self.name) for matrix in items(self.kraus, self.name))
        if not matrices or matrices[0].ndim != 2 or len(matrices[0]) < 2 or len(matrices[0]).bit_count() != 1:
            shape = matrices[0].shape if matrices else "none"
            raise BadInput(
                f"{self.name}: expected one or more matrices of 2^k rows and columns, found {shape}"
            )
        size = len(matrices[0])
        if any(matrix.shape != (size, size) for matrix in matrices):
            shapes = ", ".join(str(matrix.shape) for matrix in matrices)
            raise BadInput(f"{self.name}: expected Kraus operators of shape ({size}, {size}), found {shapes}")
        products = [matrix.conj().T @ matrix for matrix in matrices]
        worst = np.abs(sum(products) - np.eye(size)).max()
        if not worst <= 1e-9:
            raise BadInput(
                f"{self.name}: the Kraus operators do not preserve the trace: "
                f"the sum of K^dagger K differs from 1 by {worst:.3g}"
            )
        weights = np.array([product[0, 0].real for product in products])
        mixed = all(
            np.abs(product - weight * np.eye(size)).max() < 1e-13
            for product, weight in zip(products, weights, strict=True)
        )
        object.__setattr__(self, "kraus", matrices)
        object.__setattr__(self, "probabilities", weights if mixed else None)

    @property
    def qubits(self) -> int:
        """Number of qubits on which the channel acts."""
        return len(self.kraus[0]).bit_length() - 1

    def __repr__(self) -> str:
        number = counted(len(self.kraus), "Kraus operator")
        return f"<Channel {self.name}: {counted(self.qubits, 'qubit')}, {number}>"

    def superoperator(self) -> Matrix:
        """Return the matrix of shape (4^k, 4^k) that acts on a density matrix stored column by column."""
        return sum((np.kron(matrix.conj(), matrix) for matrix in self.kraus), np.zeros((1, 1), complex))


def check_probability(name: str, value: float, upper: float = 1.0) -> float:
    """Return a probability; raise BadInput if it is outside [0, upper]."""
    number = real_number(value, name)
    if not 0 <= number <= upper:
        raise BadInput(f"{name}: expected a probability from 0 to {upper:.6g}, found {value}")
    return number


def _mixture(name: str, weights: Mapping[str, float]) -> Channel:
    """Make a channel of Pauli strings with probabilities; the last letter belongs to the first qubit, as in Qiskit."""
    operators = []
    for letters, weight in weights.items():
        matrix = np.eye(1)
        for letter in letters:
            matrix = np.kron(matrix, _PAULI[letter])
        if weight > 0:
            operators.append(math.sqrt(weight) * matrix)
    return Channel(tuple(operators), name)


def depolarizing(probability: float, qubits: int = 1) -> Channel:
    """Depolarizing channel on k qubits: rho becomes (1 - p) rho + p 1/2^k, with p from 0 to 4^k / (4^k - 1)."""
    if not 1 <= (qubits := whole_number(qubits, "depolarizing")) <= _MOST_QUBITS:
        raise BadInput(
            f"depolarizing: expected 1 to {_MOST_QUBITS} qubits, because it has 4^k Kraus operators, found {qubits}; "
            "replace the gate by smaller ones, or name the gates that it follows"
        )
    number = 4**qubits
    p = check_probability("depolarizing", probability, number / (number - 1))
    strings = ["".join(letters) for letters in itertools.product("IXYZ", repeat=qubits)]
    weights = dict.fromkeys(strings, p / number)
    weights["I" * qubits] = max(0.0, 1 - p * (number - 1) / number)
    return _mixture("depolarizing", weights)


def pauli(weights: Mapping[str, float]) -> Channel:
    """Pauli channel: strings (last letter: first qubit) with their probabilities; the identity has the remainder."""
    lengths = {len(letters) for letters in weights}
    if len(lengths) != 1 or any(set(letters) - set("IXYZ") for letters in weights):
        raise BadInput(f"pauli: expected strings of I, X, Y, Z of one length, found {', '.join(weights)}")
    for weight in weights.values():
        check_probability("pauli", weight)
    identity = "I" * lengths.pop()
    rest = sum(weight for letters, weight in weights.items() if letters != identity)
    return _mixture("pauli", {**weights, identity: 1 - check_probability("pauli", rest)})


def thermal_relaxation(t1: float, t2: float, time: float, excited: float = 0.0) -> Channel:
    """Relaxation of a qubit during a time.

    The deviation of the population from its equilibrium decays as exp(-time/t1), and the off-diagonal elements as
    exp(-time/t2): generalised amplitude damping and phase damping with the definition of T1 and T2 in M. A. Nielsen and
    I. L. Chuang, Quantum Computation and Quantum Information, sections 7.7.4, 8.3.5 and 8.3.6.

    Parameters
    ----------
    t1, t2, time : float
        Relaxation times and the time that passes, in one unit; t2 is at most 2 t1.
    excited : float
        Population of |1> in equilibrium.
    """
    name = "thermal_relaxation"
    t1, t2, time = (real_number(one, name) for one in (t1, t2, time))
    one = check_probability(name, excited)
    if not (t1 > 0 and 0 < t2 <= 2 * t1 and 0 <= time < math.inf):
        raise BadInput(
            f"{name}: expected times t1 above 0, t2 above 0 and at most 2 t1, and a time of 0 or more, found "
            f"{t1:g}, {t2:g} and {time:g}"
        )
    reset, coherence = -math.expm1(-time / t1), math.exp(-time / t2)
    # The diagonal Kraus operators are the Cholesky factor of [[stays in 0, coherence], [coherence, stays in 1]].
    first = math.sqrt(1 - one * reset)
    second = coherence / first if first else 0.0
    rest = max(0.0, 1 - (1 - one) * reset - second**2)
    operators: list[Any] = [
        np.diag([first, second]),
        np.diag([0, math.sqrt(rest)]),
        [[0, math.sqrt((1 - one) * reset)], [0, 0]],
        [[0, 0], [math.sqrt(one * reset), 0]],
    ]
    return Channel(tuple(operator for operator in operators if np.any(operator)), name)


# The other channels have one parameter, a probability p.
_MIXTURES: dict[str, Callable[[float], Mapping[str, float]]] = {
    "dephasing": lambda p: {"I": 1 - p / 2, "Z": p / 2},
    "bit_flip": lambda p: {"I": 1 - p, "X": p},
    "phase_flip": lambda p: {"I": 1 - p, "Z": p},
}
_DAMPINGS: dict[str, Callable[[float], Any]] = {
    "amplitude_damping": lambda p: [[0, math.sqrt(p)], [0, 0]],
    "phase_damping": lambda p: np.diag([0, math.sqrt(p)]),
}
_MAKERS: dict[str, Callable[..., Channel]] = {
    "depolarizing": depolarizing,
    "pauli": pauli,
    "thermal_relaxation": thermal_relaxation,
}
_NAMES = ("depolarizing", *_MIXTURES, *_DAMPINGS, "pauli", "thermal_relaxation")


def channel_names() -> list[str]:
    """Return the names that `channel` and noise models accept."""
    return list(_NAMES)


def channel(name: str, *parameters: Any) -> Channel:
    """Make a named channel.

    Parameters
    ----------
    name : str
        One of `depolarizing`, `dephasing` (off-diagonal elements are multiplied by 1 - p), `bit_flip` (X with
        probability p), `phase_flip` (Z with probability p), `amplitude_damping` (|1> decays to |0> with probability
        p), `phase_damping` (off-diagonal elements are multiplied by sqrt(1 - p)), `pauli`, `thermal_relaxation`.
    *parameters
        A probability; `depolarizing` takes a number of qubits after it; `pauli` takes a mapping from Pauli strings
        to probabilities. `thermal_relaxation` takes T1, T2, the time that passes, and optionally the population of |1>
        in equilibrium (default 0): the population decays to it as exp(-time/T1), the off-diagonal elements as
        exp(-time/T2) (M. A. Nielsen and I. L. Chuang, Quantum Computation and Quantum Information, section 8.3).

    Raises
    ------
    BadInput
        The name is unknown, or the parameters are out of range.
    """
    name = instance(name, str, "name").replace("depolarising", "depolarizing")
    if name not in _NAMES:
        raise BadInput(f"there is no channel called {quoted(name)}; there are {', '.join(_NAMES)}")
    try:
        if name in _MAKERS:
            return _MAKERS[name](*parameters)
    except TypeError as error:
        raise BadInput(f"{name}: {error}") from error
    if len(parameters) != 1:
        raise BadInput(f"{name}: expected one probability, found {counted(len(parameters), 'parameter')}")
    p = check_probability(name, parameters[0])
    if name in _MIXTURES:
        return _mixture(name, _MIXTURES[name](p))
    return Channel((np.diag([1, math.sqrt(1 - p)]), _DAMPINGS[name](p)), name)
