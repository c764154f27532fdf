"""Trotter circuits: exp(-i H t) as a product of rotations by the terms of H."""

from __future__ import annotations

from onehop.error import BadInput
from onehop.quantum.io.program import Program
from onehop.quantum.observables import PauliSum, PauliTerm

__all__ = ["add_trotter", "trotter"]


def trotter(
    hamiltonian: PauliSum, time: float, steps: int, *, order: int = 2, qubits: int | None = None
) -> Program:
    """A circuit that evolves any state by exp(-i H t), up to the Trotter error.

    Parameters
    ----------
    hamiltonian : PauliSum
        H, with real weights.
    time : float
        t.
    steps : int
        The time is cut into so many equal ones.
    order : int
        1: every term after the other, error of order t²/steps; 2: forwards and backwards for half the time each,
        error of order t³/steps².
    qubits : int, optional
        Of the circuit; by default what H names.

    Raises
    ------
    BadInput
        Weights that are not real, an order other than 1 or 2, no steps, or too few qubits.
    """
    hamiltonian.require(hamiltonian.qubits if qubits is None else qubits)
    circuit = Program(qubits or max(hamiltonian.qubits, 1), name="trotter")
    return add_trotter(circuit, hamiltonian, time, steps, order=order)


def add_trotter(
    circuit: Program, hamiltonian: PauliSum, time: float, steps: int, *, order: int = 2
) -> Program:
    """Append exp(-i H t) to a circuit; arguments and errors as for `trotter`."""
    if not hamiltonian.is_hermitian:
        raise BadInput("an evolution needs a Hamiltonian with real weights")
    if order not in (1, 2):
        raise BadInput(f"expected Trotter order 1 or 2, found {order}")
    if steps < 1:
        raise BadInput(f"expected at least 1 Trotter step, found {steps}")
    # Diagonal terms stand together: they commute, and move nothing between ranks.
    terms = sorted(hamiltonian, key=lambda term: not term.is_diagonal)
    angle = 2 * time / steps
    for step in range(steps):
        if order == 1:
            _rotate(circuit, terms, angle)
        else:
            _second_order(circuit, terms, angle, first=step == 0, last=step == steps - 1)
    return circuit


def _rotate(circuit: Program, terms: list[PauliTerm], angle: float) -> None:
    for term in terms:
        circuit.rotate(term.paulis, angle * term.coefficient.real)


def _second_order(circuit: Program, terms: list[PauliTerm], angle: float, *, first: bool, last: bool) -> None:
    """Diagonal terms for half the time, the others to and fro, diagonal ones again; halves that meet are one."""
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
    """Whether every two of the terms commute; looked at only where it is cheap."""
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
