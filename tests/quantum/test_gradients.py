"""Parameters, compiled circuits and derivatives: against parameter shifts, differences, formulas and other programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradient_checks import NUMBERS, exact, random_circuit, random_sum
from onehop import _core, quantum
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum import Circuit, NoiseModel, Parameter, PauliSum, gradients, parameter_shift
from threads import run_threads

RANKS = [1, 2, 4, 8]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), ranks=st.sampled_from(RANKS), qubits=st.integers(5, 6))
def test_adjoint_gradients_are_those_of_parameter_shifts(seed: int, ranks: int, qubits: int) -> None:
    draw = np.random.default_rng(seed)
    circuit = random_circuit(draw, qubits, 20)
    values = draw.normal(size=len(circuit.parameters)).tolist()
    sums = [random_sum(draw, qubits, 1), random_sum(draw, qubits, 10)]
    expected = parameter_shift(circuit, values, sums, exact)

    def look(group: Group) -> Any:
        compiled = quantum.compile(circuit, group, search_seconds=0)
        found = compiled.gradients(values, sums)
        weighted = compiled.gradients(values, sums, [0.5, -2])
        return found.values, found.derivatives, weighted.derivatives

    for found_values, derivatives, weighted in run_threads(ranks, look):
        np.testing.assert_allclose(found_values, expected.values, rtol=0, atol=1e-10)
        np.testing.assert_allclose(derivatives, expected.derivatives, rtol=0, atol=1e-10)
        np.testing.assert_allclose(
            weighted, 0.5 * expected.derivatives[0] - 2 * expected.derivatives[1], rtol=0, atol=1e-10
        )


# The final state has flipped bits, which only the values of a weighted sum resolve: what was compiled for one of the
# two does not fit the other.
@pytest.mark.parametrize("weighted_first", [False, True])
def test_gradients_of_a_circuit_with_flipped_bits_follow_each_other(weighted_first: bool) -> None:
    draw = np.random.default_rng(65536)
    circuit = random_circuit(draw, 6, 20)
    values = draw.normal(size=len(circuit.parameters)).tolist()
    sums = [random_sum(draw, 6, 1), random_sum(draw, 6, 10)]
    expected = parameter_shift(circuit, values, sums, exact).derivatives
    weighted = 0.5 * expected[0] - 2 * expected[1]

    def look(group: Group) -> Any:
        compiled = quantum.compile(circuit, group, search_seconds=0)
        calls = [([], expected), ([0.5, -2], weighted)] * 2
        if weighted_first:
            calls.reverse()
        return [
            (compiled.gradients(values, sums, *filter(None, [how])).derivatives, right)
            for how, right in calls
        ]

    for found in run_threads(4, look):
        for derivatives, right in found:
            np.testing.assert_allclose(derivatives, right, rtol=0, atol=1e-10)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), precision=st.sampled_from(["double", "single"]))
def test_gradients_on_tiles_are_those_of_differences(seed: int, precision: str) -> None:
    draw = np.random.default_rng(seed)
    circuit = random_circuit(draw, 11, 40)
    values = draw.normal(size=len(circuit.parameters))
    sums = [random_sum(draw, 11, 5)]
    found = gradients(circuit, values, sums, precision=precision)
    step = 1e-4
    for place in range(len(values)):
        ends = [
            exact(circuit.bind(values + sign * step * np.eye(len(values))[place]), sums)[0]
            for sign in (1, -1)
        ]
        slope = (ends[0] - ends[1]) / (2 * step)
        assert found.derivatives[0, place] == pytest.approx(
            slope, abs=1e-6 if precision == "double" else 1e-3
        )


@pytest.mark.parametrize("ranks", RANKS)
def test_exact_formulas(ranks: int) -> None:
    # A rotation of each qubit, then CX in a chain: Z on the last qubit becomes the product of all cosines.
    qubits = 6
    circuit = Circuit(qubits)
    for qubit in range(qubits):
        circuit.ry(Parameter(f"t{qubit}"), qubit)
    for qubit in range(qubits - 1):
        circuit.cx(qubit, qubit + 1)
    values = np.linspace(0.2, 1.7, qubits)
    cosines = np.cos(values)
    expected = [-np.sin(values[k]) * np.prod(np.delete(cosines, k)) for k in range(qubits)]
    for found in run_threads(ranks, lambda group: gradients(circuit, values, [f"Z{qubits - 1}"], group)):
        assert found.method == "adjoint"
        np.testing.assert_allclose(found.values, [np.prod(cosines)], rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.derivatives, [expected], rtol=0, atol=1e-10)


@pytest.mark.parametrize("ranks", [1, 2])
def test_only_gates_that_matter_to_the_observables_run(ranks: int) -> None:
    draw = np.random.default_rng(7)
    qubits = 12
    circuit = Circuit(qubits)
    for layer in range(4):
        for qubit in range(qubits):
            circuit.gate("rx" if layer % 2 else "ry", [qubit], [Parameter(f"p{layer},{qubit}")])
        for qubit in range(layer % 2, qubits - 1, 2):
            circuit.gate(["cx", "swap", "cz", "rxx"][layer], [qubit, qubit + 1], [0.4] if layer == 3 else [])
    values = draw.normal(size=len(circuit.parameters)).tolist()
    everything = PauliSum.parse(" ".join(f"X{qubit}" for qubit in range(qubits)))
    # One after the other, so that what was made for one does not serve another.
    sums = ["Z0", everything, "Z5 Z6 + 2 Z5", "Z0", "X3 + Z3", "Y11", "3 I"]
    expected = parameter_shift(circuit, values, sums, exact).derivatives

    def look(group: Group) -> Any:
        compiled = quantum.compile(circuit, group)
        found = []
        for one in sums:
            gradient = compiled.gradients(values, [one])
            np.testing.assert_allclose(compiled.run(values).norm(), 1, rtol=0, atol=1e-12)
            many = compiled.run_many([values, values], [one])
            values_found = [gradient.values[0], *many[:, 0].real, *compiled.expectations(values, [one])]
            found.append((gradient.derivatives[0], gradient.backward_multiply_adds, values_found))
        return found

    for found in run_threads(ranks, look):
        work = [done for _, done, _ in found]
        for (derivatives, _, each), right in zip(found, expected, strict=True):
            np.testing.assert_allclose(derivatives, right, rtol=0, atol=1e-10)
            np.testing.assert_allclose(each, each[0], rtol=0, atol=1e-12)
        assert max(work) == work[1] > 0
        assert max(work[0], work[3], work[5]) < 0.6 * work[1]
        assert work[6] == 0


def test_generated_gates_are_exponentials() -> None:
    draw = np.random.default_rng(4)
    matrix = draw.normal(size=(8, 8)) + 1j * draw.normal(size=(8, 8))
    matrix += matrix.conj().T
    energies, vectors = np.linalg.eigh(matrix)
    unitary = (vectors * np.exp(-0.7j * energies)) @ vectors.conj().T
    found = quantum.simulate(Circuit(3).generated(matrix, 0.7, [0, 1, 2])).state.vector()
    np.testing.assert_allclose(found, unitary[:, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("qubits", [4, 11])
def test_many_bindings_are_single_runs(qubits: int) -> None:
    draw = np.random.default_rng(5)
    circuit = random_circuit(draw, qubits, 30)
    sums = [random_sum(draw, qubits, 3), random_sum(draw, qubits, 2)]
    rows = draw.normal(size=(7, len(circuit.parameters)))
    rows[3] = np.pi  # special angles take other forms
    rows[4] = 0
    expected = [exact(circuit.bind(row), sums) for row in rows]
    for ranks in (1, 2):
        for found in run_threads(ranks, lambda group: quantum.compile(circuit, group).run_many(rows, sums)):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    compiled = quantum.compile(circuit)
    for row, values in zip(rows, expected, strict=True):
        np.testing.assert_allclose(compiled.expectations(row, sums), values, rtol=0, atol=1e-12)


def test_the_state_of_an_earlier_run_with_idle_qubits_is_overwritten() -> None:
    circuit = Circuit(14).ry(Parameter("a"), 3)
    compiled = quantum.compile(circuit)
    first = compiled.run([0.1])
    view = first.local()
    second = compiled.run([0.2])
    assert np.shares_memory(view, second.local())
    np.testing.assert_array_equal(first.vector(), second.vector())


def test_noise_takes_parameter_shifts() -> None:
    a, b = Parameter("a"), Parameter("b")
    circuit = Circuit(2, 2).rx(2 * a, 0).cx(0, 1).gate("crx", [1, 0], [b]).u(a, b, 0.3, 1)
    circuit.measure([0, 1], [0, 1])
    noise = NoiseModel.parse("depolarizing=0.05; amplitude_damping=0.1")
    values = np.array([0.4, -1.1])
    found = gradients(circuit, values, ["Z0", "X1"], noise=noise)
    assert found.method == "parameter-shift"
    step = 1e-5
    for place in range(2):
        ends = [
            quantum.simulate_density(
                circuit.bind(values + sign * step * np.eye(2)[place]), noise=noise, observables=["Z0", "X1"]
            ).expectations
            for sign in (1, -1)
        ]
        slope = (np.array(ends[0]) - np.array(ends[1])) / (2 * step)
        np.testing.assert_allclose(found.derivatives[:, place], slope, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["crx", "r", "u3"])
def test_shift_rules_of_controlled_gates(name: str) -> None:
    # With further controls, expectation values have more frequencies.
    quantum_circuit = Circuit(3).h(0).h(1)
    angles = [Parameter(f"p{k}") for k in range(NUMBERS[name])]
    quantum_circuit.gate(name, [1, 2] if name == "crx" else [2], angles)
    operation = quantum_circuit.operation(2)
    operation.controls = [0, *operation.controls]
    operation.control_values = operation.control_values << 1 | 1
    circuit = Circuit(3).h(0).h(1)
    circuit.add(operation)
    circuit.parameters = quantum_circuit.parameters
    values = [0.3, 1.2, -0.4][: len(angles)]
    sums = ["X0 Z2 + Y0 Y1 - X2"]
    np.testing.assert_allclose(
        parameter_shift(circuit, values, sums, exact).derivatives,
        gradients(circuit, values, sums).derivatives,
        rtol=0,
        atol=1e-12,
    )


def test_expressions() -> None:
    a, b = Parameter("a"), Parameter("b")
    one = 2 * (a - b / 4) + 1 - a
    assert (one.terms, one.constant) == ({"a": 1.0, "b": -0.5}, 1.0)
    assert str(one) == "a - 0.5*b + 1"
    circuit = Circuit(1).rx(one, 0).rz(a, 0)
    assert circuit.parameters == ("a", "b")
    bound = circuit.bind({b: 1, "a": 0.25})
    assert bound.parameters == ()
    np.testing.assert_allclose(bound.operation(0).matrix(), quantum.gate("rx", [0], [0.75]).matrix())
    assert circuit.bind([0.25, 1]) == bound


A = Parameter("a")


ONE = Circuit(2, 1).rx(A, 0)


INSIDE = Circuit(2, 1).rx(A, 0).measure(0, 0).cx(0, 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: ONE.bind({}), r"operation 0 \(rx\): parameter 'a' has no value"),
        (lambda: ONE.bind({"a": 1, "b": 2}), "there is no parameter 'b'; the circuit has a"),
        (lambda: ONE.bind([1, 2]), r"expected a value for each of 1 parameters \(a\), found 2"),
        (lambda: ONE.bind([float("nan")]), r"operation 0 \(rx\): parameter 'a': expected a finite number"),
        (lambda: quantum.simulate(ONE), r"operation 0 \(rx\): parameter 'a' has no value"),
        (lambda: quantum.simulate_density(ONE), r"operation 0 \(rx\): parameter 'a' has no value"),
        (lambda: ONE.operation(0).matrix(), "depends on parameters; bind them first"),
        (lambda: gradients(ONE, [1], [PauliSum.parse("(0+1j)*Z0")]), "expected a Hermitian observable"),
        (lambda: gradients(ONE, [1], ["Z2"]), "qubit 2"),
        (lambda: gradients(ONE, [1], ["Z0"], weights=[1, 2]), "a weight for each of 1 observable, found 2"),
        (lambda: gradients(ONE, [1, 2], ["Z0"]), "a value for each of 1 parameters"),
        (
            lambda: quantum.compile(INSIDE).run([1]),
            r"operation 1 \(measure\): expected gates without conditions",
        ),
        (lambda: gradients(INSIDE, [1], ["Z0"]), r"operation 2 \(cx\): expected no operation after"),
        (lambda: quantum.compile(ONE).run_many(np.zeros((2, 3)), ["Z0"]), "bindings of shape"),
        (lambda: Circuit(1).generated([[0, 1], [0, 0]], A, [0]), "expected a Hermitian generator"),
        (lambda: Parameter(""), "expected a name of a parameter"),
        (lambda: ONE.pauli_rotation("XX", A, [0]), "one letter for each"),
    ],
)
def test_wrong_input(wrong: Callable[[], Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        wrong()


def test_a_gate_without_derivative() -> None:
    circuit = Circuit(1).rx(A, 0)
    operation = circuit.operation(0)
    operation.name = "mystery"
    strange = Circuit(1)
    strange.add(operation)
    strange.parameters = ["a"]
    for method in (lambda: quantum.compile(strange), lambda: parameter_shift(strange, [1], ["Z0"], exact)):
        with pytest.raises(
            BadInput, match=r"operation 0 \(mystery\): parameter 'a': expected a gate whose angles"
        ):
            method()


def test_qiskit_parameters() -> None:
    pytest.importorskip("qiskit")
    from qiskit import QuantumCircuit
    from qiskit.circuit import Parameter as QiskitParameter
    from qiskit.circuit.library import PauliEvolutionGate, RXGate
    from qiskit.quantum_info import SparsePauliOp, Statevector

    a, b = QiskitParameter("a"), QiskitParameter("b")
    theirs = QuantumCircuit(3)
    theirs.h(range(3))
    theirs.rx(2 * a - b / 3 + 0.1, 0)
    theirs.append(PauliEvolutionGate(SparsePauliOp(["ZZI", "IZX"], [1.0, 0.5]), time=b), [0, 1, 2])
    theirs.append(RXGate(a).control(2, annotated=False), [0, 1, 2])
    theirs.u(a, b, 0.2, 1)
    theirs.global_phase = a
    circuit = quantum.from_qiskit(theirs)
    assert circuit.parameters == ("a", "b")
    expected = Statevector(theirs.assign_parameters({a: 0.3, b: -0.8})).data
    found = quantum.compile(circuit).run({"a": 0.3, "b": -0.8}).vector()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("ranks", [1, 4])
def test_circuits_with_measurements_run_on_one_plan(ranks: int) -> None:
    """The shots are those of the bound circuit, and other values place nothing."""
    a, b = Parameter("a"), Parameter("b")
    circuit = Circuit(4, 4).ry(a, 0).cx(0, 1).rx(0.3, 2).measure(1, 1)
    with circuit.when(1):
        circuit.ry(2 * b + 0.1, 3).crx(a, 2, 0)
    circuit.reset(1).rz(b, 3).h(3).measure([0, 2, 3], [0, 2, 3])

    def look(group: Group) -> Any:
        compiled = quantum.compile(circuit, group)
        found = []
        for values in ([0.7, 1.1], [2.0, -0.4]):
            before = _core.circuit_cache_counters()[0]
            ours = compiled.simulate(values, shots=500, seed=3, observables=["Z3", "X0 X2"])
            # Ranks are threads of this process, which has one count.
            assert ranks > 1 or _core.circuit_cache_counters()[0] == before
            bound = quantum.simulate(
                circuit.bind(values), group, shots=500, seed=3, observables=["Z3", "X0 X2"]
            )
            np.testing.assert_allclose(ours.expectations, bound.expectations, rtol=0, atol=1e-10)
            assert ours.counts == bound.counts
            found.append(ours.counts)
        return found

    results = run_threads(ranks, look)
    assert results == [results[0]] * ranks
