"""Noise channels as Kraus operators, and `NoiseModel`, which says which channel follows which gate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.quantum.circuit import Circuit, Operation, gate_names
from onehop.text import counted

__all__ = ["Channel", "NoiseModel", "channel", "channel_names"]

Matrix = NDArray[np.complex128]

_PAULI: dict[str, Any] = {
    "I": np.eye(2),
    "X": np.array([[0, 1], [1, 0]]),
    "Y": np.array([[0, -1j], [1j, 0]]),
    "Z": np.diag([1, -1]),
}


@dataclass(frozen=True, eq=False)
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
        matrices = tuple(np.ascontiguousarray(matrix, np.complex128) for matrix in self.kraus)
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

    def superoperator(self) -> Matrix:
        """Return the matrix of shape (4^k, 4^k) that acts on a density matrix stored column by column."""
        return sum((np.kron(matrix.conj(), matrix) for matrix in self.kraus), np.zeros((1, 1), complex))


def _probability(name: str, value: float, upper: float = 1.0) -> float:
    if not 0 <= value <= upper:
        raise BadInput(f"{name}: expected a probability from 0 to {upper:.6g}, found {value}")
    return float(value)


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
    number = 4**qubits
    p = _probability("depolarizing", probability, number / (number - 1))
    strings = ["".join(letters) for letters in itertools.product("IXYZ", repeat=qubits)]
    weights = dict.fromkeys(strings, p / number)
    weights["I" * qubits] = max(0.0, 1 - p * (number - 1) / number)
    return _mixture("depolarizing", weights)


def dephasing(probability: float) -> Channel:
    """Dephasing channel: off-diagonal elements are multiplied by 1 - p."""
    p = _probability("dephasing", probability)
    return _mixture("dephasing", {"I": 1 - p / 2, "Z": p / 2})


def bit_flip(probability: float) -> Channel:
    """Bit flip: X with probability p."""
    p = _probability("bit_flip", probability)
    return _mixture("bit_flip", {"I": 1 - p, "X": p})


def phase_flip(probability: float) -> Channel:
    """Phase flip: Z with probability p."""
    p = _probability("phase_flip", probability)
    return _mixture("phase_flip", {"I": 1 - p, "Z": p})


def pauli(weights: Mapping[str, float]) -> Channel:
    """Pauli channel: strings (last letter: first qubit) with their probabilities; the identity has the remainder."""
    lengths = {len(letters) for letters in weights}
    if len(lengths) != 1 or any(set(letters) - set("IXYZ") for letters in weights):
        raise BadInput(f"pauli: expected strings of I, X, Y, Z of one length, found {', '.join(weights)}")
    for weight in weights.values():
        _probability("pauli", weight)
    identity = "I" * lengths.pop()
    rest = sum(weight for letters, weight in weights.items() if letters != identity)
    return _mixture("pauli", {**weights, identity: 1 - _probability("pauli", rest)})


def amplitude_damping(probability: float) -> Channel:
    """Amplitude damping: |1> decays to |0> with probability p."""
    p = _probability("amplitude_damping", probability)
    kraus = (np.diag([1, math.sqrt(1 - p)]), np.array([[0, math.sqrt(p)], [0, 0]]))
    return Channel(kraus, "amplitude_damping")


def phase_damping(probability: float) -> Channel:
    """Phase damping: off-diagonal elements are multiplied by sqrt(1 - p)."""
    p = _probability("phase_damping", probability)
    return Channel((np.diag([1, math.sqrt(1 - p)]), np.diag([0, math.sqrt(p)])), "phase_damping")


_NAMED: dict[str, Callable[..., Channel]] = {
    "depolarizing": depolarizing,
    "dephasing": dephasing,
    "bit_flip": bit_flip,
    "phase_flip": phase_flip,
    "amplitude_damping": amplitude_damping,
    "phase_damping": phase_damping,
    "pauli": pauli,
}


def channel_names() -> list[str]:
    """Return the names that `channel` and noise models accept."""
    return list(_NAMED)


def channel(name: str, *parameters: Any) -> Channel:
    """Make a named channel.

    Parameters
    ----------
    name : str
        One of `depolarizing`, `dephasing`, `bit_flip`, `phase_flip`, `amplitude_damping`, `phase_damping`, `pauli`.
    *parameters
        A probability; `depolarizing` takes a number of qubits after it; `pauli` takes a mapping from Pauli strings
        to probabilities.

    Raises
    ------
    BadInput
        The name is unknown, or the parameters are out of range.
    """
    make = _NAMED.get(name.replace("depolarising", "depolarizing"))
    if make is None:
        raise BadInput(f"there is no channel called '{name}'; there are {', '.join(_NAMED)}")
    try:
        return make(*parameters)
    except TypeError as error:
        raise BadInput(f"{name}: {error}") from error


@dataclass
class _Rule:
    """A channel, made for a number of qubits, and the gates and qubits that it follows; None: all."""

    make: Callable[[int], Channel]
    gates: frozenset[str] | None
    qubits: frozenset[int] | None


class NoiseModel:
    """The channels that follow each gate, and the readout errors of measurements.

    Examples
    --------
    >>> noise = NoiseModel().add("depolarizing", 0.01, gates=["cx"]).add("amplitude_damping", 0.002).readout(0.02)
    """

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._readout: list[tuple[float, float, frozenset[int] | None]] = []

    def check_names(self, circuit: Circuit) -> None:
        """Check the gate names of the rules against a circuit.

        Raises
        ------
        BadInput
            A rule names a gate that is neither in the circuit nor known to `gate`.
        """
        present = {operation.name for operation in circuit.operations if operation.is_gate}
        known = present.union(name for name, _, _ in gate_names())
        for rule in self._rules:
            for name in sorted((rule.gates or frozenset()) - known):
                raise BadInput(
                    f"noise after gate {name!r}: there is no such gate; this circuit has {', '.join(sorted(present))}"
                )

    def add(
        self,
        what: str | Channel,
        *parameters: Any,
        gates: Sequence[str] | None = None,
        qubits: Sequence[int] | None = None,
    ) -> NoiseModel:
        """Add a channel after gates; return the model.

        Parameters
        ----------
        what : str or Channel
            Name of a channel, or a channel. `depolarizing` by name acts jointly on all qubits of the gate; other
            channels on one qubit act on each qubit of the gate separately.
        *parameters
            Parameters of a named channel.
        gates : sequence of str, optional
            Names of the gates that the channel follows. Default: all gates.
        qubits : sequence of int, optional
            Restrict the channel to gates all of whose qubits are in this list.

        Raises
        ------
        BadInput
            As for `channel`; `gates` is one text.
        """
        if isinstance(gates, str):
            raise BadInput(f"gates: expected a list of names, found the text {gates!r}; write [{gates!r}]")
        if isinstance(what, str):
            named = channel(what, *parameters)
            together = named.name == "depolarizing" and len(parameters) == 1
            cache: dict[int, Channel] = {1: named}

            def make(number: int) -> Channel:
                if not together:
                    return named
                return cache.setdefault(number, cache.get(number) or depolarizing(parameters[0], number))
        elif not isinstance(what, Channel):
            raise BadInput(
                f"expected the name of a channel or a Channel, found {type(what).__name__}; "
                "Channel(matrices) makes one of Kraus operators"
            )
        else:
            own = what

            def make(number: int) -> Channel:
                return own

        self._rules.append(
            _Rule(
                make,
                None if gates is None else frozenset(gates),
                None if qubits is None else frozenset(qubits),
            )
        )
        return self

    def readout(
        self, one_for_zero: float, zero_for_one: float | None = None, *, qubits: Sequence[int] | None = None
    ) -> NoiseModel:
        """Set the readout errors of measurements; return the model.

        Parameters
        ----------
        one_for_zero : float
            Probability to read 1 for a 0.
        zero_for_one : float, optional
            Probability to read 0 for a 1. Default: the same.
        qubits : sequence of int, optional
            Qubits that the errors apply to. Default: all qubits. The last call for a qubit counts.

        Raises
        ------
        BadInput
            A probability is outside [0, 1].
        """
        other = one_for_zero if zero_for_one is None else zero_for_one
        self._readout.append(
            (
                _probability("readout", one_for_zero),
                _probability("readout", other),
                None if qubits is None else frozenset(qubits),
            )
        )
        return self

    def after(self, operation: Operation) -> list[tuple[Channel, list[int]]]:
        """Return the channels that follow an operation, with the qubits of each.

        Raises
        ------
        BadInput
            A channel on several qubits follows a gate on another number of qubits.
        """
        if not operation.is_gate:
            return []
        touched = [*operation.controls, *operation.targets]
        found = []
        for rule in self._rules:
            if rule.gates is not None and operation.name not in rule.gates:
                continue
            if not touched or (rule.qubits is not None and not rule.qubits.issuperset(touched)):
                continue
            one = rule.make(len(touched))
            if one.qubits == len(touched):
                found.append((one, touched))
            elif one.qubits == 1:
                found.extend((one, [qubit]) for qubit in touched)
            else:
                raise BadInput(
                    f"a channel on {counted(one.qubits, 'qubit')} ({one.name}) cannot follow {operation.name} on "
                    f"{len(touched)}"
                )
        return found

    def misread(self, qubit: int) -> tuple[float, float]:
        """Return the probabilities to read 1 for 0 and 0 for 1 on a qubit."""
        for zero, one, qubits in reversed(self._readout):
            if qubits is None or qubit in qubits:
                return zero, one
        return 0.0, 0.0

    @classmethod
    def parse(cls, text: str) -> NoiseModel:
        """Parse a model such as `depolarizing=0.01:cx,cz; amplitude_damping=0.002; readout=0.02,0.03`.

        Raises
        ------
        BadInput
            A part is not of the form NAME=NUMBERS or NAME=NUMBERS:GATES, a name is unknown, or a number is out of
            range.
        """
        model = cls()
        parts = [part.strip() for part in text.split(";") if part.strip()]
        if not parts:
            raise BadInput(f"expected noise as NAME=NUMBERS or NAME=NUMBERS:GATES, found {text!r}")
        for part in parts:
            name, equals, rest = part.partition("=")
            numbers, _, gates = rest.partition(":")
            try:
                values = [float(number) for number in numbers.split(",")]
            except ValueError:
                values = []
            if not equals or not values:
                raise BadInput(f"expected noise as NAME=NUMBERS or NAME=NUMBERS:GATES, found '{part}'")
            if name.strip() == "readout" and len(values) <= 2:
                model.readout(*values)
            elif len(values) > 1 or name.strip() == "pauli":
                if name.strip() != "pauli" or len(values) != 3:
                    raise BadInput(f"'{part}': expected one number, two for readout, or three for pauli")
                weights = dict(zip("XYZ", values, strict=True))
                model.add("pauli", weights, gates=_names(gates))
            else:
                model.add(name.strip(), values[0], gates=_names(gates))
        return model


def _names(text: str) -> list[str] | None:
    return [name.strip() for name in text.split(",")] if text.strip() else None
