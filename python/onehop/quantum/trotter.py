"""Trotter circuits: exp(-i H t) as a product of rotations by the terms of H."""

from __future__ import annotations

from onehop.error import BadInput
from onehop.quantum.circuit import Circuit
from onehop.quantum.observables import PauliSum, PauliTerm


def add_trotter(
    circuit: Circuit, hamiltonian: PauliSum, time: float, steps: int, *, order: int = 2
) -> Circuit:
    """Append exp(-i H t) to a circuit, up to the Trotter error.

    Order 1 is one term after the other, with an error of order t²/steps; order 2 is forwards and backwards for half a
    step each, with an error of order t³/steps².
    """
    hamiltonian.require(circuit.qubits)
    if not hamiltonian.is_hermitian:
        raise BadInput("expected a Hamiltonian with real weights, found complex ones")
    if order not in (1, 2):
        raise BadInput(f"expected Trotter order 1 or 2, found {order}")
    if steps < 1:
        raise BadInput(f"expected at least 1 Trotter step, found {steps}")
    # Group the diagonal terms: they commute, and need no exchange between ranks.
    terms = sorted(hamiltonian, key=lambda term: not term.is_diagonal)
    angle = 2 * time / steps
    for step in range(steps):
        if order == 1:
            _rotate(circuit, terms, angle)
        else:
            _second_order(circuit, terms, angle, first=step == 0, last=step == steps - 1)
    return circuit


def _rotate(circuit: Circuit, terms: list[PauliTerm], angle: float) -> None:
    for term in terms:
        qubits, letters = [qubit for qubit, _ in term.paulis], "".join(one for _, one in term.paulis)
        turn = angle * term.coefficient.real
        if letters in ("X", "Y", "Z", "XX", "YY", "ZZ"):
            circuit.gate("r" + letters.lower(), qubits, [turn])
        else:
            circuit.pauli_rotation(letters, turn, qubits)


def _second_order(circuit: Circuit, terms: list[PauliTerm], angle: float, *, first: bool, last: bool) -> None:
    """Append a step: diagonal terms for half the time, the others forwards and backwards, diagonal terms again.

    Half steps of the diagonal terms that meet between two steps are merged.
    """
    diagonal = [term for term in terms if term.is_diagonal]
    others = [term for term in terms if not term.is_diagonal]
    if first:
        _rotate(circuit, diagonal, angle / 2)
    if _all_commute(others):
        _rotate(circuit, others, angle)
    else:
        _rotate(circuit, others, angle / 2)
        _rotate(circuit, others[::-1], angle / 2)
    _rotate(circuit, diagonal, angle / 2 if last else angle)


def _all_commute(terms: list[PauliTerm]) -> bool:
    """Check whether all terms commute. Return False if the check would be expensive."""
    if len({letter for term in terms for _, letter in term.paulis}) <= 1:
        return True
    if len(terms) > 200:
        return False
    masks = [(term.x_mask, term.z_mask) for term in terms]
    return all(
        ((x & other_z).bit_count() + (z & other_x).bit_count()) % 2 == 0
        for k, (x, z) in enumerate(masks)
        for other_x, other_z in masks[:k]
    )
