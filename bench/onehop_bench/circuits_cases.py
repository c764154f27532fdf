"""The circuits of `onehop bench circuits`, from kinds of gates that every simulator has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from onehop.error import BadInput
from onehop.quantum.circuit import Circuit
from onehop.quantum.generators import ghz, qft, qpe
from onehop.quantum.two_qubit import haar_unitary

__all__ = ["CIRCUIT_CASES", "Gate", "brickwork", "make_gates", "to_circuit"]

Gate = tuple[str, list[int], list[float]]
"""Name, qubits, numbers: angles in radians, or a matrix row by row, real and imaginary part in turn.

Names are h, x, cx, cz, cp, swap, rx, rzz, `matrix` (of one qubit or two, the first the least significant bit of its
index) and `mcz` (-1 where all of its qubits are 1).
"""

_STEPS = 10  # steps of the first-order Trotter formula
_LAYERS = 10  # layers of quantum volume
_DEPTH = 20  # layers of the brickwork
_ITERATIONS = 5  # iterations of Grover's search


def _gates(circuit: Circuit) -> list[Gate]:
    """Return the gates of a circuit whose only gate with an angle is `cp`."""
    return [
        (
            one.name,
            [*one.controls, *one.targets],
            [float(np.angle(one.values[1]))] if one.name == "cp" else [],
        )
        for one in circuit.operations
        if one.is_gate
    ]


def _matrix(matrix: np.ndarray, qubits: list[int]) -> Gate:
    return (
        "matrix",
        qubits,
        np.ascontiguousarray(matrix, np.complex128).reshape(-1).view(np.float64).tolist(),
    )


def _tfim(qubits: int, bonds: list[tuple[int, int]]) -> list[Gate]:
    step: list[Gate] = [("rzz", list(bond), [0.2]) for bond in bonds]
    step += [("rx", [qubit], [0.14]) for qubit in range(qubits)]
    return step * _STEPS


def _tfim_1d(qubits: int) -> list[Gate]:
    return _tfim(qubits, [(qubit, (qubit + 1) % qubits) for qubit in range(qubits)])


def _tfim_2d(qubits: int) -> list[Gate]:
    """The Ising model on rows of four qubits with open ends; the last row may be shorter."""
    bonds = []
    for qubit in range(qubits):
        if qubit % 4 != 3 and qubit + 1 < qubits:
            bonds.append((qubit, qubit + 1))
        if qubit + 4 < qubits:
            bonds.append((qubit, qubit + 4))
    return _tfim(qubits, bonds)


def brickwork(qubits: int, depth: int = _DEPTH) -> list[Gate]:
    """Layers of random gates on every qubit, each followed by CZ on every second pair of neighbours."""
    random = np.random.default_rng(1)
    gates: list[Gate] = []
    for layer in range(depth):
        gates += [_matrix(haar_unitary(2, random), [qubit]) for qubit in range(qubits)]
        gates += [("cz", [qubit, qubit + 1], []) for qubit in range(layer % 2, qubits - 1, 2)]
    return gates


def _volume(qubits: int) -> list[Gate]:
    random = np.random.default_rng(2)
    gates: list[Gate] = []
    for _ in range(_LAYERS):
        order = [int(qubit) for qubit in random.permutation(qubits)]
        gates += [
            _matrix(haar_unitary(4, random), [a, b]) for a, b in zip(order[::2], order[1::2], strict=False)
        ]
    return gates


def _grover(qubits: int) -> list[Gate]:
    """Grover's search for the number 0101...01."""
    register = list(range(qubits))
    zeros: list[Gate] = [("x", [qubit], []) for qubit in register if qubit % 2]
    hadamards: list[Gate] = [("h", [qubit], []) for qubit in register]
    flips: list[Gate] = [("x", [qubit], []) for qubit in register]
    marked: Gate = ("mcz", register, [])
    iteration = [*zeros, marked, *zeros, *hadamards, *flips, marked, *flips, *hadamards]
    return hadamards + iteration * _ITERATIONS


CIRCUIT_CASES: dict[str, Callable[[int], list[Gate]]] = {
    "qft": lambda qubits: _gates(qft(qubits)),
    "qpe": lambda qubits: _gates(qpe(qubits)),
    "tfim-1d": _tfim_1d,
    "tfim-2d": _tfim_2d,
    "brickwork": brickwork,
    "volume": _volume,
    "ghz": lambda qubits: _gates(ghz(qubits)),
    "grover": _grover,
}


def make_gates(case: str, qubits: int) -> list[Gate]:
    """The gates of a case in their order, for the state |0...0>. Raise BadInput if there is no such case."""
    if case not in CIRCUIT_CASES:
        raise BadInput(f"expected a case among {', '.join(CIRCUIT_CASES)}, found {case!r}")
    return CIRCUIT_CASES[case](qubits)


def _add(circuit: Circuit, name: str, qubits: list[int], numbers: list[float]) -> Any:
    if name == "matrix":
        size = 1 << len(qubits)
        return circuit.unitary(np.array(numbers).view(np.complex128).reshape(size, size), qubits)
    if name == "mcz":
        return circuit.diagonal([1, -1], qubits[:1], controls=qubits[1:])
    return circuit.gate(name, qubits, numbers)


def to_circuit(gates: Iterable[Gate], qubits: int, name: str = "") -> Circuit:
    """Build onehop's circuit from the gates."""
    circuit = Circuit(qubits, name=name)
    for gate in gates:
        _add(circuit, *gate)
    return circuit
