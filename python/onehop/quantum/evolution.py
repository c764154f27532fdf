"""Evolution that is not unitary: imaginary time on state vectors, and Lindblad's equation on density matrices.

Both are products of exact factors in a symmetric order, so that the error of a run falls as the square of the time
step (G. Strang, SIAM J. Numer. Anal. 5 (1968) 506). The factors are gates and channels for the engine, so states may be
split over ranks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.arguments import complex_array, instance, items, quoted, real_number, whole_number, whole_numbers
from onehop.error import BadInput
from onehop.group import Group, require_same
from onehop.quantum.circuit import Circuit, Operation
from onehop.quantum.noise.channel import Channel
from onehop.quantum.noise.core_program import core_program
from onehop.quantum.noise.density_matrix import DensityMatrix
from onehop.quantum.observables import PauliSum, PauliTerm
from onehop.quantum.state import State, rotations_to
from onehop.quantum.steps import Program
from onehop.refusals import collective

__all__ = ["imaginary_time", "lindblad"]

_LARGEST_JUMP = 3  # qubits
_LARGEST_STEP = 1e6  # of a rate times a time, beyond which the exponential is not exact


@collective
def imaginary_time(state: State, hamiltonian: Any, time: float, steps: int) -> list[float]:
    """Evolve a state by exp(-H t) and normalise it: long times lead to the ground state. Collective.

    Parameters
    ----------
    state : State
        State to change.
    hamiltonian : PauliSum, str or Qiskit operator
        Hermitian Hamiltonian H; anything that `PauliSum.of` takes.
    time : float
        Time t in units of one over energy.
    steps : int
        Number of equal steps. The state is normalised after each.

    Returns
    -------
    list of float
        The energy <H> after each step.

    Raises
    ------
    BadInput
        H is not Hermitian or acts on a qubit that the state does not have, the time is not finite, or there are no
        steps.
    """
    terms = _checked(instance(state, State, "state")._core.group, hamiltonian, state.qubits, time, steps)
    there = Circuit(state.qubits)
    for term in terms:
        _damp(there, term, time / steps / 2)
    back = Circuit(state.qubits)
    for term in reversed(terms):
        _damp(back, term, time / steps / 2)
    energies = []
    for _ in range(steps):
        for circuit in (there, back):
            state._core.apply(circuit, 0)
        norm = state.norm()
        if not 0 < norm < math.inf:
            raise BadInput(
                f"expected steps so short that the state keeps a finite norm, found {norm:g}; take more steps"
            )
        state._scale(1 / norm)
        energies.append(float(np.real(state.expectation(PauliSum(tuple(terms))))))
    return energies


@collective
def lindblad(
    matrix: DensityMatrix,
    hamiltonian: Any,
    jumps: Sequence[tuple[Any, Sequence[int]]],
    time: float,
    steps: int,
) -> DensityMatrix:
    """Evolve a density matrix by Lindblad's equation; return it. Collective.

    The equation is d rho/dt = -i [H, rho] + the sum over jump operators L of L rho L^dagger - {L^dagger L, rho} / 2.
    The factor of each jump operator is its exact channel, so that every step preserves trace and positivity.

    Parameters
    ----------
    matrix : DensityMatrix
        Density matrix to change.
    hamiltonian, time, steps
        As for `imaginary_time`.
    jumps : sequence of (array of complex of shape (2^k, 2^k), sequence of int)
        Jump operators with the square roots of their rates, and their k qubits, at most 3. The first qubit is the
        least significant bit of the index.

    Raises
    ------
    BadInput
        As for `imaginary_time`; a jump operator has another shape, is not finite, or acts on qubits that are not
        distinct or do not exist.
    """
    terms = _checked(
        instance(matrix, DensityMatrix, "matrix")._whole, hamiltonian, matrix.qubits, time, steps
    )
    if time < 0:
        raise BadInput(f"lindblad: expected a time of 0 or more, found {time}")
    half = time / steps / 2
    rotations = [_rotation(term, 2 * half) for term in terms if term.paulis]
    channels = [_channel(jump, half, matrix.qubits) for jump in items(jumps, "jumps")]
    step = Program(Circuit(matrix.qubits))
    for rotation in rotations:
        step.circuit.add(rotation)
    for channel, where in [*channels, *reversed(channels)]:
        step.channel(channel.kraus, where, channel.name)
    for rotation in reversed(rotations):
        step.circuit.add(rotation)
    program = core_program(step, mixed=True)
    for _ in range(steps if len(step.circuit) else 0):
        matrix._run(program, 0)
    return matrix


def _checked(group: Group, hamiltonian: Any, qubits: int, time: float, steps: int) -> list[PauliTerm]:
    require_same(group, "evolution", time=time, steps=steps)
    total = PauliSum.of(hamiltonian)
    total.require(qubits)
    if not total.is_hermitian:
        raise BadInput(f"expected a Hermitian Hamiltonian with real weights, found {str(total)[:80]}")
    if not math.isfinite(real_number(time, "time")):
        raise BadInput(f"expected a finite time, found {time}")
    whole_number(steps, "steps", 1)
    # Diagonal terms commute, and need no exchange between ranks.
    return sorted(total.terms, key=lambda term: not term.is_diagonal)


def _rotation(term: PauliTerm, angle: float) -> Operation:
    """Return exp(-i angle/2 w P)."""
    return Operation(
        "pauli_rotation",
        "pauli_rotation",
        [qubit for qubit, _ in term.paulis],
        paulis="".join(letter for _, letter in term.paulis),
        angle=angle * term.coefficient.real,
    )


def _damp(circuit: Circuit, term: PauliTerm, time: float) -> None:
    """Append exp(-time w P): a rotation to Z, the parity of the string on its last qubit, and a diagonal there."""
    if not term.paulis:
        return  # a factor, which normalisation removes
    where = [qubit for qubit, _ in term.paulis]
    there, back = rotations_to("".join(letter for _, letter in term.paulis), where, circuit.qubits)
    exponent = time * term.coefficient.real
    # Divide by the larger factor, so that nothing overflows.
    values = np.exp(np.array([-exponent, exponent]) - abs(exponent)).astype(complex)
    parity = list(itertools.pairwise(where))
    for operation in there.operations:
        circuit.add(operation)
    for one, other in parity:
        circuit.cx(one, other)
    circuit.add(Operation("diagonal", "damp", where[-1:], values=values))
    for one, other in reversed(parity):
        circuit.cx(one, other)
    for operation in back.operations:
        circuit.add(operation)


def _channel(jump_on: Any, time: float, available: int) -> tuple[Channel, list[int]]:
    """Return the channel exp(time D) of a jump operator, where D is its dissipator."""
    pair = items(jump_on, "jumps")
    if len(pair) != 2:
        raise BadInput(f"jumps: expected pairs of an operator and its qubits, found {quoted(jump_on)}")
    jump, where = complex_array(pair[0], "jumps"), whole_numbers(pair[1], "jumps")
    size = 1 << len(where)
    if not 1 <= len(where) <= _LARGEST_JUMP or jump.shape != (size, size) or not np.isfinite(jump).all():
        raise BadInput(
            f"lindblad: expected finite jump operators of shape (2^k, 2^k) on k qubits (at most {_LARGEST_JUMP}), "
            f"found one of shape {jump.shape} on {len(where)}"
        )
    if len(set(where)) != len(where) or any(not 0 <= one < available for one in where):
        raise BadInput(f"lindblad: expected distinct qubits from 0 to {available - 1}, found {where}")
    # On a matrix stored column by column: A rho B is (B^T (x) A) rho.
    with np.errstate(all="ignore"):
        one, square = np.eye(size), jump.conj().T @ jump
        dissipator = time * (np.kron(jump.conj(), jump) - (np.kron(one, square) + np.kron(square.T, one)) / 2)
    if not np.abs(dissipator).max() < _LARGEST_STEP:
        raise BadInput(
            f"lindblad: expected rates of jumps below {_LARGEST_STEP:g} in half a step, found "
            f"{np.abs(dissipator).max():g}; take more steps"
        )
    return Channel(_kraus(_exponential(dissipator)), "jump"), where


def _exponential(matrix: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return the exponential of a matrix by scaling and squaring of its Taylor series, to rounding."""
    squarings = max(0, math.ceil(math.log2(max(np.abs(matrix).sum(axis=0).max(), 1e-300))) + 1)
    small = matrix / 2.0**squarings
    result = term = np.eye(len(matrix), dtype=complex)
    for k in range(1, 20):
        term = term @ small / k
        result = result + term
    for _ in range(squarings):
        result = result @ result
    return result


def _kraus(superoperator: NDArray[np.complex128]) -> tuple[NDArray[np.complex128], ...]:
    """Return Kraus operators: the eigenvectors of the Choi matrix with their weights."""
    size = math.isqrt(len(superoperator))
    # Entry [(c, a), (d, b)] of the superoperator takes rho[b, d] to rho[a, c]; the Choi matrix has (b, a) and (d, c).
    choi = superoperator.reshape((size,) * 4).transpose(3, 1, 2, 0).reshape(superoperator.shape)
    values, vectors = np.linalg.eigh((choi + choi.conj().T) / 2)
    return tuple(
        np.sqrt(value) * vector.reshape(size, size).T
        for value, vector in zip(values, vectors.T, strict=True)
        if value > 1e-15
    )
