"""What the interfaces of Cirq, PennyLane and pytket share. Their first qubit is the last one of a `Circuit`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from onehop.error import BadInput
from onehop.quantum.circuit import Circuit
from onehop.quantum.observables import PauliSum, PauliTerm

LARGEST_MATRIX = 10  # qubits of a gate that becomes its matrix


def check_precision(precision: Any) -> str:
    """Return the precision of a simulator, or raise BadInput."""
    if precision not in ("single", "double"):
        raise BadInput(f"expected precision 'single' or 'double', found {precision!r}")
    return precision


def append_matrix(circuit: Circuit, matrix: Any, qubits: Sequence[int], **options: Any) -> None:
    """Append a matrix, of which the first qubit is the most significant bit, as a diagonal if it is one."""
    if np.count_nonzero(matrix - np.diag(np.diag(matrix))) == 0:
        circuit.diagonal(np.diag(matrix), qubits[::-1], **options)
    else:
        circuit.unitary(matrix, qubits[::-1], **options)


def observable_of(
    strings: Iterable[tuple[object, Any, Mapping[Any, str]]], places: Mapping[Any, int]
) -> PauliSum:
    """Make an observable of strings: what errors name, the weight, and the letter of each qubit."""
    terms = []
    for shown, weight, letters in strings:
        try:
            number = complex(weight)
        except TypeError as error:
            raise BadInput(f"{shown}: expected a number as weight, found {weight}") from error
        if abs(number.imag) > 1e-12:
            raise BadInput(f"{shown}: expected a Hermitian observable with real weights, found {weight}")
        if not letters.keys() <= places.keys():
            raise BadInput(f"{shown}: expected qubits of the circuit, found others")
        paulis = sorted((places[qubit], letter) for qubit, letter in letters.items())
        terms.append(PauliTerm(complex(number.real), tuple(paulis)))
    return PauliSum(tuple(terms))
