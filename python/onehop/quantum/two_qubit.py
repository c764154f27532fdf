"""Two-qubit unitaries as one-qubit gates and rotations by XX, YY and ZZ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.quantum.circuit import Circuit

Matrix = NDArray[np.complex128]


def haar_unitary(size: int, random: np.random.Generator) -> Matrix:
    """Return a random unitary matrix of shape (size, size) from the Haar measure."""
    normal = random.normal(size=(size, size)) + 1j * random.normal(size=(size, size))
    q, r = np.linalg.qr(normal)
    return q * (np.diag(r) / np.abs(np.diag(r)))


def add_two_qubit_unitary(circuit: Circuit, unitary: Matrix, low: int, high: int) -> None:
    """Append a two-qubit unitary, up to a global phase, as gates `u`, `rxx`, `ryy` and `rzz`; its bit 0 is `low`."""
    before, after, strengths = _core.kak_decomposition(np.ascontiguousarray(unitary).reshape(-1).tolist())
    _add_one_qubit(circuit, before, (low, high))
    for name, strength in zip(("rxx", "ryy", "rzz"), strengths, strict=True):
        circuit.gate(name, (low, high), [-2 * strength])
    _add_one_qubit(circuit, after, (low, high))


def _add_one_qubit(circuit: Circuit, matrices: Sequence[Any], qubits: Sequence[int]) -> None:
    for values, qubit in zip(matrices, qubits, strict=True):
        first = values[0] if abs(values[0]) > 1e-12 else 1
        circuit.unitary(np.reshape(values, (2, 2)) * abs(first) / first, [qubit], name="u")
