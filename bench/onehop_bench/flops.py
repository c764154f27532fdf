"""The arithmetic that a circuit needs: a count of floating-point operations by the least known methods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onehop_bench.circuits_cases import Gate

__all__ = ["least_flops"]

_MOVES = ("x", "cx", "swap")
_SIGNS = ("cz", "mcz")
_PHASES = ("cp", "rzz")
_ROTATION = 4  # (a - t b, b + t a) for complex a and b: a real multiply and an add for each real number
_BLOCK = 16  # the non-local part of a two-qubit gate, and the real rotations of both its qubits
_PRODUCT = 6  # of an amplitude and a complex factor


def least_flops(gates: Sequence[Gate]) -> float:
    """Floating-point operations per amplitude of the least known method for these gates.

    - Gates that move amplitudes (`x`, `cx`, `swap`) and signs (`cz`, `mcz`) are free.
    - A Hadamard is an addition of complex numbers: 2.
    - `rx` is a real rotation after a relabelling of phases: 4. A matrix of one qubit is a real rotation between two
      diagonals (ZYZ): 4. A matrix of two qubits is 16 after Cartan's decomposition.
    - All phases between two gates that mix the same qubits are one product: 6. If all of them are controlled by one
      qubit, only half of the amplitudes change: 3.

    A QFT of n qubits so takes 5 n, the count of a radix-2 FFT.
    """
    total = 0.0
    waiting: list[
        tuple[frozenset[int], frozenset[int]]
    ] = []  # phases: their qubits, and those that control them

    def flush() -> None:
        nonlocal total
        if waiting:
            halved = frozenset.intersection(*(controls for _, controls in waiting))
            total += _PRODUCT / 2 if halved else _PRODUCT
        waiting.clear()

    for name, qubits, numbers in gates:
        touched = frozenset(qubits)
        if name in _PHASES:
            waiting.append((touched, touched if name == "cp" else frozenset()))
            continue
        if name in _MOVES or name in _SIGNS:
            continue
        if any(phase & touched for phase, _ in waiting):
            flush()
        if name == "h":
            total += 2
        elif name == "rx":
            total += _ROTATION
        else:
            total += _matrix_flops(numbers, len(qubits))
            waiting.append((touched, frozenset()))  # its last diagonal
    flush()
    return total


def _matrix_flops(numbers: Sequence[float], qubits: int) -> int:
    size = 1 << qubits
    matrix = np.array(numbers).view(np.complex128).reshape(size, size)
    if np.count_nonzero(matrix - np.diag(np.diag(matrix))) == 0:
        return 0
    return _ROTATION if qubits == 1 else _BLOCK
