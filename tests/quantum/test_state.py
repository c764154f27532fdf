"""Operations on a state and questions about it, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from onehop import Group, quantum
from threads import same_on

TOLERANCE = {"double": 1e-12, "single": 1e-5}


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), ranks=st.sampled_from([1, 2, 4, 8]), gates=st.integers(1, 10))
def test_circuits_on_an_existing_state(seed: int, ranks: int, gates: int) -> None:
    rng = np.random.default_rng(seed)
    vector = brute_force.random_vector(rng, 6)
    circuits = [brute_force.random_circuit(6, gates, seed + i) for i in range(3)]

    def run(group: Group) -> np.ndarray:
        state = quantum.State(6, group).set_amplitudes(vector)
        for circuit in circuits:
            state.run(circuit)
        before = state.vector()
        state.restore_order()
        assert before.tobytes() == state.vector().tobytes()
        assert state.local().tobytes() == before.reshape(ranks, -1)[group.rank].tobytes()
        return before

    expected = vector
    for circuit in circuits:
        expected = brute_force.run(circuit, expected)
    np.testing.assert_allclose(same_on(ranks, run), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_queries_of_a_state(ranks: int) -> None:
    rng = np.random.default_rng(7)
    n = 7
    circuit = brute_force.random_circuit(n, 40, 11)
    vector = brute_force.run(circuit)
    other = brute_force.random_vector(rng, n)
    tensor = np.abs(vector.reshape([2] * n)) ** 2  # axis 0 is the highest qubit

    def look(group: Group) -> list[Any]:
        state = quantum.simulate(circuit, group).state
        indices = [5, 0, 127, 64]
        np.testing.assert_allclose(state.amplitudes(indices), vector[indices], atol=1e-12)
        for qubits in ([0], [6, 2], [3, 0, 6, 5], list(range(n)), []):
            rest = tuple(n - 1 - q for q in range(n) if q not in qubits)
            expected = tensor.sum(axis=rest)  # keeps the requested axes, the highest qubit first
            kept = sorted(qubits, reverse=True)
            order = [kept.index(q) for q in reversed(qubits)]
            np.testing.assert_allclose(
                state.probabilities(qubits), expected.transpose(order).reshape(-1), atol=1e-12
            )
        second = quantum.State(n, group).set_amplitudes(other)
        second.run(quantum.Circuit(n).x(n - 1).x(n - 1))
        assert state.inner_product(second) == pytest.approx(np.vdot(vector, other), abs=1e-12)
        assert state.fidelity(second) == pytest.approx(abs(np.vdot(vector, other)) ** 2, abs=1e-12)
        for qubits in ([1], [6, 0], [2, 6, 4]):
            axes = [n - 1 - q for q in reversed(qubits)]
            rest = [a for a in range(n) if a not in axes]
            m = vector.reshape([2] * n).transpose(axes + rest).reshape(1 << len(qubits), -1)
            np.testing.assert_allclose(state.density_matrix(qubits), m @ m.conj().T, atol=1e-12)
            values = np.linalg.svd(m, compute_uv=False) ** 2
            entropy = -sum(v * np.log2(v) for v in values if v > 1e-15)
            assert state.entropy(qubits) == pytest.approx(entropy, abs=1e-10)
        np.testing.assert_allclose(
            state.partial_trace([0, 1, 3, 4, 5]), state.density_matrix([2, 6]), atol=1e-12
        )
        assert state.norm() == pytest.approx(1, abs=1e-12)
        return [state.entropy([0, 1]), state.probabilities([5, 6]).tolist()]

    same_on(ranks, look)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), ranks=st.sampled_from([1, 2, 4, 8]), terms=st.integers(1, 60))
def test_expectations_agree_with_matrices(seed: int, ranks: int, terms: int) -> None:
    """Includes strings with X or Y on every qubit, which no layout makes local."""
    n = 6
    rng = np.random.default_rng(seed)
    circuit = brute_force.random_circuit(n, 15, seed)
    strings = ["".join(rng.choice(list("IXYZ"), n, p=rng.dirichlet([1] * 4))) for _ in range(terms)]
    weights = rng.normal(size=terms)
    vector = brute_force.run(circuit)
    expected = sum(
        w * np.vdot(vector, brute_force.pauli_matrix(s) @ vector).real
        for w, s in zip(weights, strings, strict=True)
    )
    text = " + ".join(
        f"{w}*" + (" ".join(f"{p}{q}" for q, p in enumerate(s) if p != "I") or "I")
        for w, s in zip(weights, strings, strict=True)
    ).replace("+ -", "- ")

    def look(group: Group) -> list[Any]:
        result = quantum.simulate(circuit, group, observables=[text, f"2*{'X' + str(n - 1)}"])
        np.testing.assert_allclose(result.state.vector(), vector, atol=1e-12)
        return result.expectations

    found = same_on(ranks, look)
    assert found[0] == pytest.approx(expected, abs=1e-11)
