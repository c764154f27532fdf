"""Imaginary time and Lindblad's equation, against the exponentials of whole matrices, on several ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from brute_force import sum_matrix
from onehop import BadInput, Group
from onehop.quantum import Circuit, DensityMatrix, PauliSum, State
from onehop.quantum.evolution import imaginary_time, lindblad
from threads import same_on

MODEL = "0.7*Z0 Z1 + 0.4*X2 - 0.3*Y0 X1 Z3 + 0.9*X0 + 0.2 + 0.5*Z2 Z3 - 0.6*Y3"


def _start(qubits: int) -> Circuit:
    circuit = Circuit(qubits)
    for qubit in range(qubits):
        circuit.ry(0.3 + qubit, qubit)
        circuit.cx(qubit, (qubit + 1) % qubits)
    return circuit


def _damped(hamiltonian: Any, vector: Any, time: float) -> Any:
    values, vectors = np.linalg.eigh(hamiltonian)
    found = vectors @ (np.exp(-time * values) * (vectors.conj().T @ vector))
    return found / np.linalg.norm(found)


def test_imaginary_time_is_of_second_order_and_finds_the_ground_state() -> None:
    hamiltonian = sum_matrix(PauliSum.parse(MODEL), 4)
    state = State(4)
    state.run(_start(4))
    start = state.vector()
    errors = []
    for steps in (10, 20):
        state.set_amplitudes(start)
        energies = imaginary_time(state, MODEL, 0.8, steps)
        expected = _damped(hamiltonian, start, 0.8)
        errors.append(np.abs(state.vector() - expected).max())
        assert energies[-1] == pytest.approx(
            np.vdot(state.vector(), hamiltonian @ state.vector()).real, abs=1e-12
        )
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)
    energies = imaginary_time(state, MODEL, 40, 800)
    assert np.diff(energies).max() < 1e-12
    assert energies[-1] == pytest.approx(np.linalg.eigvalsh(hamiltonian)[0], abs=1e-3)
    imaginary_time(state, "500*Z0", 10, 1)  # exp(10,000) would overflow
    assert state.norm() == pytest.approx(1)


def _liouvillian(hamiltonian: Any, jumps: list[Any]) -> Any:
    one = np.eye(len(hamiltonian))
    total = -1j * (np.kron(one, hamiltonian) - np.kron(hamiltonian.T, one))
    for jump in jumps:
        square = jump.conj().T @ jump
        total += np.kron(jump.conj(), jump) - (np.kron(one, square) + np.kron(square.T, one)) / 2
    return total


def test_lindblad_is_of_second_order_and_preserves_the_trace() -> None:
    text, rng = "0.7*Z0 Z1 + 0.4*X2 - 0.3*Y0 X1 + 0.9*X0 + 0.5*Z2", np.random.default_rng(3)
    lower = np.array([[0, 1], [0, 0]])
    pair = 0.3 * (rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4)))
    jumps = [(0.5 * lower, [0]), (0.4 * np.diag([1, -1]), [2]), (pair, [2, 1])]
    whole = [
        np.kron(np.eye(4), jumps[0][0]),
        np.kron(jumps[1][0], np.eye(4)),
        # the first of the qubits 2, 1 is the least significant bit
        np.kron(pair.reshape(2, 2, 2, 2).transpose(1, 0, 3, 2).reshape(4, 4), np.eye(2)),
    ]
    values, vectors = np.linalg.eig(_liouvillian(sum_matrix(PauliSum.parse(text), 3), whole))
    inverse = np.linalg.inv(vectors)
    matrix = DensityMatrix(3)
    matrix.run(_start(3))
    start = matrix.matrix()
    expected = (vectors @ (np.exp(0.6 * values) * (inverse @ start.T.reshape(-1)))).reshape(8, 8).T
    errors = []
    for steps in (8, 16):
        lindblad(matrix.set_matrix(start), text, jumps, 0.6, steps)
        assert matrix.trace() == pytest.approx(1, abs=1e-12)
        errors.append(np.abs(matrix.matrix() - expected).max())
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


def test_decay_has_its_rate() -> None:
    matrix = DensityMatrix(1).set_basis_state(1)
    lindblad(matrix, "0*Z0", [(np.array([[0, np.sqrt(0.3)], [0, 0]]), [0])], 2.0, 3)
    assert matrix.probabilities()[1] == pytest.approx(np.exp(-0.6), abs=1e-14)


def test_any_number_of_ranks_gives_the_same() -> None:
    def evolved(group: Group) -> bytes:
        state = State(5, group)
        state.run(Circuit(5).ry(0.4, 0).cx(0, 4).ry(1.1, 3).h(2))
        energies = imaginary_time(state, "Z0 Z4 + 0.5*X3 X4 - 0.2*Y1 + 0.1*Z2", 0.5, 4)
        rho = DensityMatrix(3, group)
        rho.run(Circuit(3).h(0).cx(0, 2))
        lindblad(rho, "X0 X2 + 0.3*Z1", [(np.array([[0, 0.7], [0, 0]]), [2])], 0.5, 4)
        parts = [state.entropy([1, 4]), rho.entropy([0, 2]), rho.fidelity(rho), state.fidelity(state)]
        parts += [
            *rho.probabilities([2, 0]),
            *state.probabilities([4, 1]),
            abs(state.density_matrix([3, 0])[1, 2]),
        ]
        numbers = [*energies, *np.abs(state.vector()[::7]), *np.abs(rho.matrix()[1]), *parts]
        return (np.round(numbers, 7) + 0.0).tobytes()

    assert len({same_on(ranks, evolved) for ranks in (1, 2, 4)}) == 1


def test_entropy_of_density_matrices() -> None:
    matrix = DensityMatrix(3)
    matrix.run(Circuit(3).ry(0.8, 0).cx(0, 1))
    pure = State(3)
    pure.run(Circuit(3).ry(0.8, 0).cx(0, 1))
    assert matrix.entropy() == pytest.approx(0, abs=1e-12)
    assert matrix.entropy([0]) == pytest.approx(pure.entropy([0]))
    assert matrix.entropy([1, 2], base=np.e) == pytest.approx(pure.entropy([0], base=np.e))
    matrix.set_matrix(np.eye(8) / 8)
    assert matrix.entropy() == pytest.approx(3)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda s, _: imaginary_time(s, "(0+1j)*Z0", 1, 1), "Hermitian"),
        (lambda s, _: imaginary_time(s, "Z7", 1, 1), "qubit"),
        (lambda s, _: imaginary_time(s, "Z0", np.nan, 1), "finite time"),
        (lambda s, _: imaginary_time(s, "Z0", 1, 0), "steps: expected a whole number from 1"),
        (lambda _, m: lindblad(m, "Z0", [(np.eye(3), [0])], 1, 1), r"shape \(3, 3\) on 1"),
        (lambda _, m: lindblad(m, "Z0", [(np.eye(4), [0, 0])], 1, 1), "distinct qubits"),
        (lambda _, m: lindblad(m, "Z0", [(np.full((2, 2), np.inf), [0])], 1, 1), "finite jump"),
        (lambda _, m: lindblad(m, "Z0", [], -1, 1), "0 or more"),
        (lambda s, _: imaginary_time(s, "Z0", 1e9, 1), "a finite norm, found 0; take more steps"),
        (lambda _, m: lindblad(m, "Z0", [(np.eye(2) * 1e200, [0])], 1, 1), "found nan; take more steps"),
        (lambda _, m: lindblad(m, "Z0", [([[0, 1e5], [0, 0]], [0])], 1, 1), "take more steps"),
    ],
)
def test_bad_input_is_refused(run: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        run(State(2), DensityMatrix(2))
