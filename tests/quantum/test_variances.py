"""Variances, their derivatives, and samples in other bases: against matrices and parameter shifts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import brute_force
from brute_force import sum_matrix
from gradient_checks import exact, random_sum
from onehop import BadInput, Group, quantum
from onehop.quantum import Circuit, NoiseModel, Parameter, gradients, parameter_shift
from onehop.quantum.memory_use import MemoryUse
from threads import run_threads

N = 5


def test_products_of_observables_are_those_of_matrices() -> None:
    draw = np.random.default_rng(1)
    left, right = random_sum(draw, N, 8), random_sum(draw, N, 5)
    a, b = sum_matrix(left, N), sum_matrix(right, N)
    np.testing.assert_allclose(sum_matrix(left @ right, N), a @ b, rtol=0, atol=1e-12)
    np.testing.assert_allclose(sum_matrix(left.squared(), N), a @ a, rtol=0, atol=1e-12)
    assert left.squared().is_hermitian


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_variances_are_those_of_matrices(ranks: int) -> None:
    draw = np.random.default_rng(2)
    circuit = brute_force.random_circuit(N, 25, 3)
    vector = brute_force.run(circuit)
    sums = [random_sum(draw, N, terms) for terms in (1, 12)]
    matrices = [sum_matrix(one, N) for one in sums]
    expected = [
        np.vdot(vector, m @ m @ vector).real - np.vdot(vector, m @ vector).real ** 2 for m in matrices
    ]

    def look(group: Group) -> Any:
        state = quantum.simulate(circuit, group).state
        np.testing.assert_allclose(state.variances(sums), expected, rtol=0, atol=1e-12)
        rho = quantum.DensityMatrix(N, group)
        rho.set_vector(vector)
        np.testing.assert_allclose(rho.variances(sums), expected, rtol=0, atol=1e-12)
        return state.variance(sums[1])

    found = run_threads(ranks, look)
    assert found == [found[0]] * ranks
    with pytest.raises(BadInput, match="Hermitian observable with real weights"):
        quantum.State(2).variance("(1j) X0")


@pytest.mark.parametrize("ranks", [1, 2])
def test_variances_count_what_observables_do_to_idle_qubits(ranks: int) -> None:
    circuit = Circuit(4).ry(Parameter("a"), 2).cx(2, 0)
    sums = ["Y1", "X1 Z2 + X1 + Z2", "2 Y2 + X1 + Z2 Y1 - 0.5 Y1 X3 + X1 Y3 + Z1 Z0 + X0 X2 Z3"]

    def at(angle: float) -> Any:
        state = quantum.State(4)
        state.run(circuit.bind([angle]))
        return np.array(state.variances(sums))

    def look(group: Group) -> None:
        compiled = quantum.compile(circuit, group)
        found = compiled.gradients([0.3], sums, variance=True)
        weighted = compiled.gradients([0.3], sums, [1.0, 2.0, -0.5], variance=True)
        expected, after, before = (at(0.3 + h) for h in (0, 1e-5, -1e-5))
        np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.derivatives[:, 0], (after - before) / 2e-5, rtol=0, atol=1e-8)
        np.testing.assert_allclose(weighted.values, expected, rtol=0, atol=1e-12)
        expected = np.array([1.0, 2.0, -0.5]) @ found.derivatives
        np.testing.assert_allclose(weighted.derivatives, expected, rtol=0, atol=1e-12)

    run_threads(ranks, look)


def ansatz() -> Circuit:
    circuit = Circuit(N)
    for layer in range(2):
        for qubit in range(N):
            circuit.ry(Parameter(f"y{layer}{qubit}"), qubit).rz(2 * Parameter(f"z{qubit}") - 0.3, qubit)
        for qubit in range(N - 1):
            circuit.cx(qubit, qubit + 1)
    return circuit


@pytest.mark.parametrize("ranks", [1, 4])
def test_derivatives_of_variances_are_those_of_parameter_shifts(ranks: int) -> None:
    draw = np.random.default_rng(3)
    circuit = ansatz()
    values = draw.normal(size=len(circuit.parameters)).tolist()
    sums = [random_sum(draw, N, 1), random_sum(draw, N, 6)]
    both = parameter_shift(circuit, values, [*sums, *(one.squared() for one in sums)], exact)
    means, of_means = both.values[:2], both.derivatives[:2]
    expected = both.derivatives[2:] - 2 * means[:, None] * of_means

    def look(group: Group) -> Any:
        compiled = quantum.compile(circuit, group)
        found = compiled.gradients(values, sums, variance=True)
        weighted = compiled.gradients(values, sums, [0.5, -2.0], variance=True)
        again = compiled.gradients(values, sums)
        return found.values, found.derivatives, weighted.derivatives, again.derivatives

    for variances, derivatives, weighted, plain in run_threads(ranks, look):
        np.testing.assert_allclose(variances, both.values[2:] - means**2, rtol=0, atol=1e-11)
        np.testing.assert_allclose(derivatives, expected, rtol=0, atol=1e-10)
        np.testing.assert_allclose(weighted, 0.5 * expected[0] - 2 * expected[1], rtol=0, atol=1e-10)
        np.testing.assert_allclose(plain, of_means, rtol=0, atol=1e-10)


def test_derivatives_take_at_most_three_states() -> None:
    use = MemoryUse()
    circuit = Circuit(20).ry(Parameter("a"), 0).cx(0, 1).rx(Parameter("b"), 1)
    for qubit in range(2, 20):
        circuit.h(qubit)
    compiled = quantum.compile(circuit)
    for weights in (None, [0.5, -2.0]):
        for variance in (True, False):
            compiled.gradients([0.4, 1.1], ["Z1", "X0 X1"], weights, variance=variance)
    state = 16 * 2**20
    assert 2.9 * state < use.peak() - use.before < 3.7 * state


def test_derivatives_of_variances_with_noise() -> None:
    circuit = Circuit(2).ry(Parameter("a"), 0).cx(0, 1).rx(Parameter("b"), 1)
    noise = NoiseModel().add("depolarizing", 0.1)
    observable, values, step = "Z0 Z1 + 0.5*X1", np.array([0.4, 1.1]), 1e-5
    found = gradients(circuit, values, [observable], noise=noise, variance=True)

    def variance(at: np.ndarray) -> float:
        rho = quantum.simulate_density(circuit.bind(at), noise=noise).state
        return rho.variance(observable)

    assert found.values[0] == pytest.approx(variance(values), abs=1e-12)
    for place in range(2):
        shift = step * np.eye(2)[place]
        slope = (variance(values + shift) - variance(values - shift)) / (2 * step)
        assert found.derivatives[0, place] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("ranks", [1, 4])
def test_samples_in_other_bases(ranks: int) -> None:
    """Correlations of sampled Pauli operators are expectation values, and the state stays as it is."""
    circuit = brute_force.random_circuit(4, 20, 5)
    vector, shots = brute_force.run(circuit), 20_000

    def look(group: Group) -> Any:
        state = quantum.simulate(circuit, group).state
        drawn = []
        for bases, qubits in (("XY", [0, 3]), ("ZX", [2, 1]), ("YYZX", None)):
            values = state.sample(shots, qubits, seed=4, bases=bases)
            where = range(4) if qubits is None else qubits
            text = " ".join(f"{letter}{qubit}" for letter, qubit in zip(bases, where, strict=True))
            parity = np.array([int(one).bit_count() % 2 for one in values])
            expected = state.expectation(text)
            error = ((1 - expected**2) / shots) ** 0.5
            assert abs(np.mean(1 - 2 * parity) - expected) < 5 * error + 1e-9
            drawn.append(values.tolist())
        np.testing.assert_allclose(state.vector(), vector, rtol=0, atol=1e-12)
        return drawn

    found = run_threads(ranks, look)
    assert found == [found[0]] * ranks
    with pytest.raises(BadInput, match="a letter X, Y or Z for each of 2 qubits, found 'XA'"):
        quantum.State(2).sample(5, bases="XA")
