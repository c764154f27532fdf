"""Repeated circuits come from the cache, with the same results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from onehop import BadInput, Group, _core, quantum
from threads import run_threads


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32),
    qubits=st.integers(5, 11),
    ranks=st.sampled_from([1, 2, 4]),
    precision=st.sampled_from(["double", "single"]),
)
def test_repeated_runs_are_equal(seed: int, qubits: int, ranks: int, precision: str) -> None:
    circuit = brute_force.random_circuit(qubits, 25, seed, 3)
    vector = brute_force.random_vector(np.random.default_rng(seed), qubits)
    expected = brute_force.run(circuit, vector)

    def run(group: Group) -> list[np.ndarray]:
        found = []
        for _ in range(3):
            state = quantum.State(qubits, group, precision=precision).set_amplitudes(vector)
            state.run(circuit)
            found.append(state.vector())
        # The layout of the state has changed by now, and some rank bits are inverted.
        state = quantum.State(qubits, group, precision=precision).set_amplitudes(vector)
        for _ in range(3):
            state.run(circuit)
        return [*found, state.vector()]

    tolerance = 1e-12 if precision == "double" else 2e-5
    for found in run_threads(ranks, run):
        assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
        np.testing.assert_allclose(found[0], expected, rtol=0, atol=tolerance)
        thrice = brute_force.run(circuit, brute_force.run(circuit, expected))
        np.testing.assert_allclose(found[3], thrice, rtol=0, atol=3 * tolerance)


def test_flips_of_the_ranks_bits() -> None:
    """X on a rank bit moves nothing, and a second run finds this bit inverted."""
    circuit = quantum.Circuit(11).x(10).h(0).cx(10, 0).rx(0.3, 9).cx(0, 9)
    expected = brute_force.random_vector(np.random.default_rng(3), 11)

    def run(group: Group) -> list[np.ndarray]:
        state = quantum.State(11, group).set_amplitudes(expected)
        vectors = []
        for _ in range(4):
            state.run(circuit)
            vectors.append(state.vector())
        return vectors

    for vectors in zip(*run_threads(2, run), strict=True):
        expected = brute_force.run(circuit, expected)
        for vector in vectors:
            np.testing.assert_allclose(vector, expected, rtol=0, atol=1e-12)


U = brute_force.random_unitary(np.random.default_rng(0), 4)
V = np.diag([1, 1, 1, np.exp(0.1j)]) @ U

PAIRS: dict[str, tuple[Callable[[quantum.Circuit], object], Callable[[quantum.Circuit], object]]] = {
    "angle": (lambda c: c.rx(0.3, 1), lambda c: c.rx(0.4, 1)),
    "qubit": (lambda c: c.rx(0.3, 1), lambda c: c.rx(0.3, 2)),
    "order of qubits": (lambda c: c.unitary(U, [1, 2]), lambda c: c.unitary(U, [2, 1])),
    "entry of a matrix": (lambda c: c.unitary(U, [1, 2]), lambda c: c.unitary(V, [1, 2])),
    "value of a control": (
        lambda c: c.unitary(U, [1, 2], controls=[3]),
        lambda c: c.unitary(U, [1, 2], controls=[3], control_values=0),
    ),
    "which is the control": (lambda c: c.cx(1, 2), lambda c: c.cx(2, 1)),
    "letters": (
        lambda c: c.pauli_rotation("XY", 0.7, [1, 2]),
        lambda c: c.pauli_rotation("YX", 0.7, [1, 2]),
    ),
    "angle of a rotation": (
        lambda c: c.pauli_rotation("XY", 0.7, [1, 2]),
        lambda c: c.pauli_rotation("XY", -0.7, [1, 2]),
    ),
    "kind": (lambda c: c.diagonal([1, 1j], [1]), lambda c: c.global_phase(np.pi / 2, controls=[1])),
    "one more": (lambda c: c.h(1), lambda c: c.h(1).h(2)),
}


@pytest.mark.parametrize("what", PAIRS)
def test_circuits_that_differ_are_told_apart(what: str) -> None:
    vector = brute_force.random_vector(np.random.default_rng(1), 10)
    for change in PAIRS[what] * 2:
        circuit = quantum.Circuit(10).h(0)
        change(circuit)
        state = quantum.State(10).set_amplitudes(vector)
        state.run(circuit)
        np.testing.assert_allclose(state.vector(), brute_force.run(circuit, vector), rtol=0, atol=1e-12)


def test_conditions_and_measurements_are_not_cached() -> None:
    circuit = quantum.Circuit(10, 1).h(0).measure(0, 0)
    with circuit.when(0):
        circuit.x(1)
    state = quantum.State(10)
    outcomes = set()
    for seed in range(20):
        state.set_basis_state(0)
        (bit,) = state.run(circuit, seed=seed)
        assert state.probabilities([0, 1]).argmax() == 3 * bit
        outcomes.add(bit)
    assert outcomes == {0, 1}
    counts = [quantum.simulate(circuit, shots=200, seed=seed).counts for seed in (1, 2, 1)]
    assert counts[0] == counts[2] != counts[1]


def test_invalid_circuits_are_refused_again() -> None:
    circuit = quantum.Circuit(10).unitary([[1, 0], [0, 2]], [0])
    for _ in range(2):
        with pytest.raises(BadInput, match="unitary"):
            quantum.State(10).run(circuit)


def test_more_circuits_than_the_cache_holds() -> None:
    circuits = [quantum.Circuit(10).h(0).rx(0.1 * k, 1).cx(0, 2) for k in range(40)]
    for _ in range(2):
        for circuit in circuits:
            state = quantum.State(10)
            state.run(circuit)
            np.testing.assert_allclose(state.vector(), brute_force.run(circuit), rtol=0, atol=1e-12)


def counted_run(circuit: quantum.Circuit, *, held: bool, **options: object) -> tuple[int, int]:
    """Plan and simulate a circuit; return how many circuits were placed and found meanwhile."""
    before = _core.circuit_cache_counters()
    plan = quantum.plan(circuit, **options)
    if not held:
        del plan
    quantum.simulate(circuit, **options)
    placed, found = (after - b for after, b in zip(_core.circuit_cache_counters(), before, strict=True))
    return placed, found


def test_a_planned_circuit_is_not_placed_again() -> None:
    """Measurements at the end are the same to a plan and to a run."""
    circuit = brute_force.random_circuit(8, 60, 17)
    measured = quantum.Circuit(8, 8)
    for operation in circuit.operations:
        measured.add(operation)
    measured.measure_all()
    assert counted_run(measured, held=True) == (1, 1)
    assert counted_run(measured, held=True) == (0, 2)
    assert counted_run(measured, held=True, precision="single") == (1, 1)
    assert counted_run(measured, held=True, search_seconds=0) == (1, 1)


def test_a_circuit_that_is_too_long_for_the_cache_is_found_while_its_plan_lives() -> None:
    circuit = quantum.Circuit(3)
    for k in range(70_000):
        circuit.rx(0.1 * k, k % 3)
    circuit.cx(0, 1).cx(1, 2)
    short = quantum.Circuit(2).h(0).cx(0, 1)
    assert counted_run(short, held=False) == (1, 1)
    assert counted_run(circuit, held=True, search_seconds=0) == (1, 1)
    assert counted_run(circuit, held=False, search_seconds=0) == (2, 0)
    assert counted_run(short, held=False) == (0, 2)  # the long one has not displaced it


def test_ranks_that_are_threads_share_a_placement() -> None:
    circuit = brute_force.random_circuit(8, 60, 18, 3)
    plan = quantum.plan(circuit, 4)
    before = _core.circuit_cache_counters()
    vectors = run_threads(4, lambda group: quantum.simulate(circuit, group).state.vector())
    placed, found = (after - b for after, b in zip(_core.circuit_cache_counters(), before, strict=True))
    assert (placed, found) == (0, 4)
    assert plan.ranks == 4
    for vector in vectors:
        np.testing.assert_allclose(vector, brute_force.run(circuit), rtol=0, atol=1e-12)


def test_a_planned_density_matrix_is_not_placed_again() -> None:
    circuit = quantum.Circuit(4, 4).h(0).cx(0, 1).rx(0.3, 2).cx(2, 3).measure_all()
    noise = quantum.NoiseModel.parse("depolarizing=0.01:cx; readout=0.02")
    plan = quantum.plan_density(circuit, noise=noise)
    before = _core.circuit_cache_counters()
    quantum.simulate_density(circuit, noise=noise, shots=100, seed=1)
    placed, found = (after - b for after, b in zip(_core.circuit_cache_counters(), before, strict=True))
    assert (placed, found) == (0, 1)
    assert plan.kind == "density matrix"


def test_operations_of_a_plan_count_final_measurements() -> None:
    circuit = quantum.Circuit(3, 4).h(0).cx(0, 1).measure(0, 0).cx(0, 2).measure([0, 1, 2], [1, 2, 3])
    plan = quantum.plan(circuit)
    # Without the gate on a fresh qubit. The placement leaves out the measurements at the end.
    assert plan.operations == 4
    assert sum(len(stage.operations) for stage in plan.placement.stages) == 3


def test_number_of_ranks_of_a_plan() -> None:
    for ranks, remedy in [(0, "take 1 or 2"), (3, "take 2 or 4"), (12, "take 8 or 16")]:
        with pytest.raises(
            BadInput, match=f"expected a number of ranks that is a power of two, found {ranks}; {remedy}"
        ):
            quantum.plan(quantum.Circuit(5).h(0), ranks)
    chain = quantum.Circuit(5).cx(0, 1).cx(1, 2).cx(2, 3).cx(3, 4)
    assert quantum.plan(chain, 2**30).ranks == 16
    for ranks in (2**31, 2**40, 2**60, 2**62 + 1):
        with pytest.raises(BadInput, match=rf"expected at most {2**30} ranks \(2\^30\), found {ranks}$"):
            quantum.plan(quantum.Circuit(5).h(0), ranks)
