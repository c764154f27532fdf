"""Circuits made of circuits, compared with Qiskit's matrices, depths and counts, and copies of everything."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import brute_force
from onehop import BadInput, Group, quantum
from onehop.quantum import Circuit, NoiseModel, Parameter, from_qiskit
from onehop.quantum.circuit import Register
from threads import run_threads

qiskit = pytest.importorskip("qiskit")
from qiskit.circuit.random import random_circuit  # noqa: E402
from qiskit.quantum_info import Operator  # noqa: E402


def _matrix(circuit: Circuit) -> np.ndarray:
    columns = np.eye(1 << circuit.qubits, dtype=complex)
    return np.stack([brute_force.run(circuit, column) for column in columns], axis=1)


def _close(circuit: Circuit, expected: Any) -> None:
    np.testing.assert_allclose(_matrix(circuit), Operator(expected).data, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_random_circuits_agree_with_qiskit(seed: int) -> None:
    theirs = random_circuit(3, 4, max_operands=3, seed=seed)
    part = random_circuit(2, 3, max_operands=2, seed=100 + seed)
    ours, small = from_qiskit(theirs), from_qiskit(part)
    _close(ours.inverse(), theirs.inverse())
    _close(ours.power(3), theirs.power(3))
    _close(ours.power(-2), theirs.inverse().power(2))
    _close(ours.control(2, 1), theirs.to_gate().control(2, ctrl_state=1))
    _close(ours.compose(small, [2, 0]), theirs.compose(part, [2, 0]))
    _close(small + ours, part.compose(theirs, None) if part.num_qubits == 3 else _wide(part).compose(theirs))
    root = ours.power(1 / 3)
    np.testing.assert_allclose(np.linalg.matrix_power(_matrix(root), 3), _matrix(ours), rtol=0, atol=1e-11)
    phases = np.angle(np.linalg.eigvals(_matrix(root)))
    assert np.abs(phases).max() <= np.pi / 3 + 1e-9
    assert len(root) == 1


def _wide(part: Any) -> Any:
    wide = qiskit.QuantumCircuit(3)
    return wide.compose(part, [0, 1])


def test_random_operations_of_every_kind() -> None:
    for seed in range(12):
        circuit = brute_force.random_circuit(3, 12, seed)
        matrix = _matrix(circuit)
        np.testing.assert_allclose(_matrix(circuit.inverse()) @ matrix, np.eye(8), rtol=0, atol=1e-12)
        expected = np.kron(matrix, np.diag([1, 0])) + np.kron(np.eye(8), np.diag([0, 1]))
        np.testing.assert_allclose(_matrix(circuit.control(1, 0)), expected, rtol=0, atol=1e-12)


def test_names_of_inverses_and_powers() -> None:
    circuit = Circuit(2).s(0).tdg(0).sx(1).gate("iswap", [0, 1]).rz(0.3, 0).h(0)
    inverse = circuit.inverse()
    assert [one.name for one in inverse.operations] == ["h", "rz", "iswap_dg", "sxdg", "t", "sdg"]
    assert [one.name for one in inverse.inverse().operations] == [one.name for one in circuit.operations]
    assert quantum.Circuit(1).x(0).power(0.5).operations[0].name == "x^0.5"
    assert len(circuit.power(0)) == 0
    assert len(circuit.power(3)) == 18


def test_parameters_and_hidden_bits_of_two_circuits() -> None:
    a, b = Parameter("a"), Parameter("b")
    one = Circuit(2, 1).rx(a, 0).measure(0, 0)
    other = Circuit(2, 1).ry(b + 2 * a, 1)
    with other.when(0):
        other.x(0)
    with one.when(0):
        one.z(1)
    both = one.compose(other, [1, 0])
    assert both.parameters == ("a", "b")
    bound = both.bind({"a": 0.2, "b": 0.3})
    assert bound.operations[4].matrix()[2].real == pytest.approx(np.sin(0.35))
    assert both.hidden_clbits == 2
    assert [(one.kind, one.clbits, one.condition.clbits) for one in both.operations[5:]] == [
        ("assign", (2,), (0,)),
        ("matrix", (), (2,)),
    ]
    both.validate()
    inverse = Circuit(1).rx(a, 0).p(2 * b + 1, 0).inverse()
    expected = _matrix(Circuit(1).rx(0.2, 0).p(1.6, 0)).conj().T
    np.testing.assert_allclose(_matrix(inverse.bind([0.2, 0.3])), expected, rtol=0, atol=1e-12)


def test_depth_and_counts_agree_with_qiskit() -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        theirs = qiskit.QuantumCircuit(5, 5)
        theirs.h(range(5))  # `from_qiskit` leaves out resets of qubits that nothing has acted on
        for _ in range(25):
            a, b, c = (int(one) for one in rng.permutation(5)[:3])
            kinds = ["h", "cx", "ccx", "swap", "rz", "barrier", "measure", "reset", "if"]
            kind = str(rng.choice(kinds))
            if kind == "if":
                with theirs.if_test((theirs.clbits[c], 1)):
                    theirs.x(a)
                continue
            angles = [0.3] if kind == "rz" else []
            qubits = [a, b, c][: {"cx": 2, "swap": 2, "measure": 2, "ccx": 3, "barrier": 3}.get(kind, 1)]
            getattr(theirs, kind)(*angles, *qubits)
        ours = from_qiskit(theirs)
        assert ours.depth() == theirs.depth()
        counts = {"x" if name == "if_else" else name: one for name, one in theirs.count_ops().items()}
        assert ours.count_ops() == counts
        assert list(ours.count_ops().values()) == sorted(counts.values(), reverse=True)
    joint = Circuit(2, 2).h(0).measure([0, 1], [0, 1])
    assert (joint.depth(), Circuit(3).depth()) == (2, 0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda c: c.measure(0, 0).inverse(), r"inverse: .* found a measure in operation 0 \(measure\)"),
        (lambda c: c.reset(0).control(), "control: .* found a reset"),
        (lambda c: c.power(float("nan")), "finite"),
        (lambda c: c.control(0), "from 1 to 63"),
        (lambda c: c.control(1, 2), "from 0 to 1"),
        (lambda c: c.compose(Circuit(3)), "expected 3 different qubits out of 2"),
        (lambda c: c.compose(Circuit(2), [0, 0]), "expected 2 different qubits"),
        (lambda c: c.compose(Circuit(1, 1), clbits=[4]), "from 0 to 0"),
        (lambda c: c.rx(Parameter("a"), 0).power(0.5), "depends on"),
        (lambda c: c.draw("picture"), "found 'picture'"),
    ],
)
def test_bad_input_is_refused(make: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make(Circuit(2, 1))


def _circuit() -> Circuit:
    circuit = Circuit(3, 2, "mine").h(0).rx(2 * Parameter("a") + 1, 1).cx(0, 1).barrier()
    circuit.registers = [Register("c", 0, 2)]
    circuit.measure([0, 1], [0, 1])
    with circuit.when([0, 1], 2, negated=True):
        circuit.unitary(np.eye(4), [2, 1])
    return circuit


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies(how: Any) -> None:
    circuit = _circuit()
    assert how(circuit) == circuit
    assert type(how(circuit)) is Circuit
    for one in circuit.operations[1], circuit.operations[-1].condition, circuit.registers[0]:
        assert how(one) == one
    how(circuit).h(0)
    assert len(circuit) == 7  # a copy is another circuit

    bound = circuit.bind({"a": 0.3})
    noise = (
        NoiseModel().add("depolarizing", 0.02).add("thermal_relaxation", 50.0, 70.0, 1.0).readout(0.1, 0.2)
    )
    results = [
        quantum.simulate(bound, shots=50, seed=1, observables=["ZZI"]),
        quantum.simulate(bound, precision="single"),
        quantum.simulate_density(bound, shots=50, seed=1, noise=how(noise)),
        quantum.simulate_trajectories(bound, trajectories=5, seed=1, noise=noise),
    ]
    for result in results:
        again = how(result)
        assert repr(again) == repr(result)
        assert (again.counts, again.memory) == (result.counts, result.memory)
        assert again.expectations == result.expectations
        if result.state is not None:
            np.testing.assert_array_equal(again.state.probabilities(), result.state.probabilities())
    assert quantum.simulate_density(bound, shots=50, seed=1, noise=noise).counts == results[2].counts


def test_copies_of_split_states() -> None:
    def run(group: Group) -> None:
        result = quantum.simulate(Circuit(4).h(0).cx(0, 3), group, shots=20, seed=1)
        again = pickle.loads(pickle.dumps(result))
        assert again.counts == result.counts
        assert again.state is None
        with pytest.raises(BadInput, match="split over 2"):
            pickle.dumps(result.state)
        with pytest.raises(BadInput, match="expected a group of one rank"):
            pickle.dumps(group)

    run_threads(2, run)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_of_backends(how: Any) -> None:
    from onehop.qiskit import EstimatorV2, OnehopBackend, SamplerV2

    bell = qiskit.QuantumCircuit(2)
    bell.h(0)
    bell.cx(0, 1)
    bell.measure_all()
    noise = NoiseModel().add("depolarizing", 0.1)
    backend = OnehopBackend(seed=3, noise_model=noise)
    assert how(backend).run(bell).result().get_counts() == backend.run(bell).result().get_counts()
    several = OnehopBackend(2)
    assert how(several).executor.size == 2
    for made in SamplerV2(seed=5), EstimatorV2(several), backend.run(bell):
        assert type(how(made)) is type(made)
