"""Two-qubit unitaries as one-qubit gates and rotations by XX, YY and ZZ."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.quantum.io.qasm_program import QasmProgram

Matrix = NDArray[np.complex128]


def haar_unitary(size: int, random: np.random.Generator) -> Matrix:
    """Return a random unitary matrix of shape (size, size) from the Haar measure."""
    normal = random.normal(size=(size, size)) + 1j * random.normal(size=(size, size))
    q, r = np.linalg.qr(normal)
    return q * (np.diag(r) / np.abs(np.diag(r)))


def _add_one_qubit(circuit: QasmProgram, matrix: Matrix, qubit: int) -> None:
    """Append a one-qubit unitary as `u`, up to a global phase."""
    theta = 2 * math.atan2(abs(matrix[1, 0]), abs(matrix[0, 0]))
    plus = np.angle(matrix[1, 1]) - np.angle(matrix[0, 0])
    minus = np.angle(matrix[1, 0]) - np.angle(-matrix[0, 1])
    if abs(matrix[0, 0]) < 1e-12:
        plus = 0.0
    if abs(matrix[1, 0]) < 1e-12:
        minus = 0.0
    phi, lambda_ = (plus + minus) / 2, (plus - minus) / 2
    # plus and minus are known modulo 2 pi, so their half sum has an ambiguous sign, which the lower left entry decides.
    if abs(matrix[0, 0]) > 1e-12 and abs(matrix[1, 0]) > 1e-12:
        wanted = matrix[1, 0] / matrix[0, 0]
        if (np.exp(1j * phi) / wanted).real < 0:
            phi, lambda_ = phi + math.pi, lambda_ + math.pi
    circuit.add("u", qubit, (theta, float(phi), float(lambda_)))


def add_two_qubit_unitary(circuit: QasmProgram, unitary: Matrix, low: int, high: int) -> None:
    """Append a two-qubit unitary, up to a global phase, as gates `u`, `rxx`, `ryy` and `rzz`; its bit 0 is `low`."""
    before, after, strengths = _core.kak_decomposition(np.ascontiguousarray(unitary).reshape(-1).tolist())
    for matrix, qubit in zip(before, (low, high), strict=True):
        _add_one_qubit(circuit, np.reshape(matrix, (2, 2)), qubit)
    for name, strength in zip(("rxx", "ryy", "rzz"), strengths, strict=True):
        circuit.add(name, (low, high), -2 * strength)
    for matrix, qubit in zip(after, (low, high), strict=True):
        _add_one_qubit(circuit, np.reshape(matrix, (2, 2)), qubit)
