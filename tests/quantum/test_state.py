"""Operations on a state and questions about it, compared with NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from onehop import BadInput, Group, Mismatch, _core, quantum
from threads import run_threads, same_on

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
    circuit = brute_force.random_circuit(n, 60, 11)
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
        for qubits in ([1], [6, 0], [2, 6, 4], [0, 5, 1, 3]):
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


@pytest.mark.parametrize(
    ("amplitudes", "message"),
    [
        ([1, 1, 0, 0], "norm 1 within 1e-5, found the norm 1.41421; pass normalize=True"),
        ([1.0001, 0, 0, 0], "found the norm 1.0001"),
        ([0, 0, 0, 0], "found the norm 0"),
        ([1, np.nan, 0, 0], "expected finite amplitudes.*at index 1"),
        ([0, 0, 0, complex(0, np.inf)], "expected finite amplitudes.*at index 3"),
        ([1, 0, 0], r"expected 2\^2 amplitudes, found 3"),
    ],
)
def test_amplitudes_that_are_no_state_are_refused(amplitudes: list[complex], message: str) -> None:
    def attempt(group: Group) -> bool:
        state = quantum.State(2, group).set_amplitudes([0, 0.6, 0.8j, 0])
        with pytest.raises(BadInput, match=message):
            state.set_amplitudes(np.array(amplitudes, complex))
        return np.allclose(state.vector(), [0, 0.6, 0.8j, 0], rtol=0, atol=1e-15)

    assert all(run_threads(2, attempt))


@pytest.mark.parametrize("wrong", ["nan", "norm", "length", "other"])
def test_amplitudes_that_differ_between_ranks_are_refused_on_all(wrong: str) -> None:
    good = np.full(16, 0.25)
    bad = {"nan": np.append(good[:15], np.nan), "norm": good * 3, "length": good[:8], "other": np.eye(16)[3]}[
        wrong
    ]

    def attempt(group: Group) -> list[str]:
        state, said = quantum.State(4, group), []
        for amplitudes in (bad if group.rank == 1 else good, good):
            try:
                said.append(np.linalg.norm(state.set_amplitudes(amplitudes).vector()))
            except (BadInput, Mismatch) as error:
                said.append(type(error).__name__)
        return said

    first, second = run_threads(2, attempt)
    assert first == ["Mismatch", pytest.approx(1)]
    assert second == ["Mismatch" if wrong == "other" else "BadInput", pytest.approx(1)]


def test_queries_make_one_all_gather() -> None:
    def count(group: Group) -> list[int]:
        state, begun = quantum.State(4, group), []
        for query in (lambda: state.probabilities([3]), lambda: state.amplitudes([1]), state.norm):
            before = _core.allgathers_begun()
            query()
            begun.append(_core.allgathers_begun() - before)
        return begun

    assert run_threads(2, count) == [[1, 1, 1]] * 2


def test_ranks_in_different_calls_do_not_take_numbers_of_each_other() -> None:
    def attempt(group: Group) -> str:
        state = quantum.State(4, group)
        told = (
            r"found another call on rank 1|bytes from rank \d, found \d+; every rank must make the same calls"
        )
        with pytest.raises(Mismatch, match=told):
            _ = state.amplitudes(range(16)) if group.rank == 0 else quantum.State(4, group)
        return "refused"

    assert run_threads(2, attempt) == ["refused"] * 2


def test_amplitudes_are_normalised_if_asked_for() -> None:
    state = quantum.State(2).set_amplitudes([3, 0, 4j, 0], normalize=True)
    np.testing.assert_allclose(state.vector(), [0.6, 0, 0.8j, 0], rtol=0, atol=1e-15)
    for wrong in ([0, 0, 0, 0], [np.nan, 1, 0, 0], [1e200, 0, 0, 0], [2e-162, 0, 0, 0], [0, 1e-155j, 0, 0]):
        with pytest.raises(BadInput, match="expected"):
            state.set_amplitudes(wrong, normalize=True)


def test_a_file_whose_state_has_another_norm_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    state = quantum.State(3).set_basis_state(2)
    state.local()[:] *= 2
    state.save(tmp_path / "state.h5")
    with pytest.raises(BadInput, match=r"state.h5: expected amplitudes of norm 1, found the norm 2"):
        quantum.State.load(tmp_path / "state.h5")


@pytest.mark.parametrize("values", [["a", "b"], [[1, 0], [0]], [1, {}], "text"])
def test_what_is_no_array_of_numbers_is_refused(values: Any) -> None:
    for call in (
        quantum.State(1).set_amplitudes,
        quantum.DensityMatrix(1).set_vector,
        quantum.DensityMatrix(1).set_matrix,
        lambda wrong: quantum.Circuit(1).unitary(wrong, [0]),
        lambda wrong: quantum.Circuit(1).diagonal(wrong, [0]),
        lambda wrong: quantum.Circuit(1).generated(wrong, 0.3, [0]),
        lambda wrong: quantum.Channel((wrong,)),
    ):
        with pytest.raises(BadInput, match="expected an array of numbers, found"):
            call(values)


@pytest.mark.parametrize("indices", [[0.5], 1.0, ["0"], [True], [-1], [4]])
def test_amplitudes_at_indices_that_are_none_are_refused(indices: Any) -> None:
    with pytest.raises(BadInput):
        quantum.State(2).amplitudes(indices)
