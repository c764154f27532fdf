"""Cartan (KAK) decomposition of two-qubit unitaries into one-qubit gates and rotations by XX, YY and ZZ."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from onehop.quantum.io.program import Program

__all__ = ["add_two_qubit_unitary", "haar_unitary"]

Matrix = NDArray[np.complex128]

# The magic basis: Bell states as columns. In it, products of one-qubit gates are real, and XX, YY, ZZ are diagonal.
_MAGIC = np.array([[1, 0, 0, 1j], [0, 1j, 1, 0], [0, 1j, -1, 0], [1, 0, 0, -1j]]) / math.sqrt(2)
_X = np.array([[0, 1], [1, 0]])
_Y = np.array([[0, -1j], [1j, 0]])
_Z = np.diag([1, -1])
_EIGENVALUES = np.array(
    [np.diag(_MAGIC.conj().T @ np.kron(pauli, pauli) @ _MAGIC).real for pauli in (_X, _Y, _Z)]
)


def haar_unitary(size: int, random: np.random.Generator) -> Matrix:
    """Return a random unitary matrix of shape (size, size) from the Haar measure."""
    normal = random.normal(size=(size, size)) + 1j * random.normal(size=(size, size))
    q, r = np.linalg.qr(normal)
    return q * (np.diag(r) / np.abs(np.diag(r)))


def _real_eigenvectors(symmetric: Matrix) -> NDArray[np.float64]:
    """Return a real orthogonal matrix of determinant 1 that diagonalises a symmetric unitary matrix."""
    # The real and imaginary parts commute, so a linear combination has the eigenvectors of both unless eigenvalues
    # coincide by accident; then try another combination.
    for weight in (0.6180339887, 0.2360679775, 1.4142135624):
        _, vectors = np.linalg.eigh(symmetric.real + weight * symmetric.imag)
        rotated = vectors.T @ symmetric @ vectors
        if np.abs(rotated - np.diag(np.diag(rotated))).max() < 1e-9:
            break
    if np.linalg.det(vectors) < 0:
        vectors[:, 0] = -vectors[:, 0]
    return vectors


def _factors(product: Matrix) -> tuple[Matrix, Matrix]:
    """Factor a Kronecker product into its 2x2 matrices: that of the high qubit, then that of the low qubit."""
    blocks = product.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3).reshape(4, 4)
    u, s, v = np.linalg.svd(blocks)
    return math.sqrt(s[0]) * u[:, 0].reshape(2, 2), math.sqrt(s[0]) * v[0].reshape(2, 2)


def _add_one_qubit(circuit: Program, matrix: Matrix, qubit: int) -> None:
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


def add_two_qubit_unitary(circuit: Program, unitary: Matrix, low: int, high: int) -> None:
    """Append a two-qubit unitary, up to a global phase, as gates `u`, `rxx`, `ryy` and `rzz`.

    Parameters
    ----------
    circuit : Program
        Program to append to.
    unitary : array of complex, shape (4, 4)
        Unitary matrix. Bit 0 of its index is qubit `low`, bit 1 is qubit `high`.
    low, high : int
        Qubits.
    """
    special = unitary / np.linalg.det(unitary) ** 0.25
    inside = _MAGIC.conj().T @ special @ _MAGIC
    right = _real_eigenvectors(inside.T @ inside)
    phases = np.angle(np.diag(right.T @ inside.T @ inside @ right)) / 2
    left = inside @ right @ np.diag(np.exp(-1j * phases))
    if np.linalg.det(left).real < 0:  # phases are known modulo pi: shift one of them
        phases[0] += math.pi
        left[:, 0] = -left[:, 0]
    before = _factors(_MAGIC @ right.T @ _MAGIC.conj().T)
    after = _factors(_MAGIC @ left @ _MAGIC.conj().T)
    strengths = _EIGENVALUES @ phases / 4  # of exp(i (a XX + b YY + c ZZ)), up to a phase
    _add_one_qubit(circuit, before[0], high)
    _add_one_qubit(circuit, before[1], low)
    for name, strength in zip(("rxx", "ryy", "rzz"), strengths, strict=True):
        circuit.add(name, (low, high), -2 * float(strength))
    _add_one_qubit(circuit, after[0], high)
    _add_one_qubit(circuit, after[1], low)
