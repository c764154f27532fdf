"""Programs on `OnehopBackend`: loops, noise, saved data and parameters, against Qiskit's own matrices.

Nothing here needs qiskit-aer: the instructions and the noise models have its names and attributes.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from onehop import BadInput, Error

pytest.importorskip("qiskit")
from qiskit import QuantumCircuit
from qiskit.circuit import Instruction, Parameter
from qiskit.circuit.classical import expr, types
from qiskit.circuit.library import IGate, Reset, XGate
from qiskit.quantum_info import DensityMatrix, Kraus, Operator, SparsePauliOp, Statevector, SuperOp

from onehop.qiskit import EstimatorV2, OnehopBackend, SamplerV2

DAMPING = Kraus([np.diag([1, np.sqrt(0.7)]), np.array([[0, np.sqrt(0.3)], [0, 0]])])


def save(
    kind: str, qubits: int, *, subtype: str = "single", label: str = "kept", params: Any = ()
) -> Instruction:
    """Make one of qiskit-aer's instructions."""
    found = Instruction(f"save_{kind}", qubits, 0, list(params))
    found._label, found._subtype = label, subtype
    return found


def error(*weighted: tuple[Any, float]) -> SimpleNamespace:
    """Make an error as qiskit-aer's: circuits with probabilities."""
    circuits = []
    for operation, _ in weighted:
        circuit = QuantumCircuit(operation.num_qubits)
        circuit.append(operation, range(operation.num_qubits))
        circuits.append(circuit)
    weights = [weight for _, weight in weighted]
    whole = sum(weight * SuperOp(one) for one, weight in zip(circuits, weights, strict=True))
    return SimpleNamespace(
        circuits=circuits,
        probabilities=weights,
        num_qubits=circuits[0].num_qubits,
        to_quantumchannel=lambda: whole,
    )


def model(everywhere: Any = None, local: Any = None, readout: Any = None) -> SimpleNamespace:
    """Make a noise model with the attributes of qiskit-aer's."""
    tables = {tuple(q): SimpleNamespace(probabilities=np.array(t)) for q, t in (readout or {}).items()}
    return SimpleNamespace(
        _default_quantum_errors=everywhere or {},
        _local_quantum_errors=local or {},
        _default_readout_error=None,
        _local_readout_errors=tables,
    )


def mixed(circuit: QuantumCircuit) -> DensityMatrix:
    """Return the density matrix of a circuit of gates, in which each `h` and `cx` is followed by damping."""
    rho = DensityMatrix.from_int(0, 2**circuit.num_qubits)
    for one in circuit.data:
        places = [circuit.find_bit(qubit).index for qubit in one.qubits]
        rho = rho.evolve(Operator(one.operation), places)
        for place in places if one.operation.name in ("h", "cx") else ():
            rho = rho.evolve(DAMPING, [place])
    return rho


def sample() -> QuantumCircuit:
    circuit = QuantumCircuit(3)
    circuit.h(0)
    circuit.cx(0, 1)
    circuit.ry(0.7, 2)
    circuit.cx(2, 1)
    circuit.h(2)
    return circuit


def damped() -> SimpleNamespace:
    both = SuperOp(DAMPING).tensor(SuperOp(DAMPING))
    two = SimpleNamespace(num_qubits=2, to_quantumchannel=lambda: both)
    return model({"h": error((DAMPING.to_instruction(), 1.0)), "cx": two})


@pytest.mark.parametrize("ranks", [1, 2])
def test_saved_data_of_a_noisy_circuit(ranks: int) -> None:
    circuit, observable = sample(), SparsePauliOp(["ZXI", "IYY", "IIZ"], [0.3, -1.2, 2])
    expected = mixed(circuit)
    params = [(text, (weight.real, 0)) for text, weight in observable.label_iter()]
    circuit.append(save("density_matrix", 2, label="part", subtype="average"), [2, 0])
    circuit.append(save("expval", 3, label="value", subtype="average", params=params), range(3))
    circuit.append(save("expval_var", 3, label="both", subtype="average", params=params), range(3))
    circuit.append(save("probabilities", 2, label="weights", subtype="average"), [1, 2])
    circuit.append(save("state", 3, label="_method_"), range(3))
    backend = OnehopBackend(ranks if ranks > 1 else None, noise_model=damped())
    data = backend.run(circuit, shots=7).result().data()
    np.testing.assert_allclose(data["density_matrix"], expected, atol=1e-12)
    swapped = data["part"].data.reshape(2, 2, 2, 2).transpose(1, 0, 3, 2).reshape(4, 4)
    from qiskit.quantum_info import partial_trace

    np.testing.assert_allclose(swapped, partial_trace(expected, [1]), atol=1e-12)
    assert data["value"] == pytest.approx(expected.expectation_value(observable).real)
    square = expected.expectation_value(observable @ observable).real
    np.testing.assert_allclose(data["both"], [data["value"], square - data["value"] ** 2], atol=1e-12)
    np.testing.assert_allclose(data["weights"], expected.probabilities([1, 2]), atol=1e-12)
    if ranks > 1:
        backend.executor.close()


def test_trajectories_and_primitives_have_the_noise() -> None:
    circuit = sample()
    expected = mixed(circuit).probabilities()
    measured = circuit.copy()
    measured.measure_all()
    backend = OnehopBackend(noise_model=damped(), method="statevector", seed=4)
    for run in (backend, OnehopBackend(noise_model=damped(), seed=5)):
        counts = run.run(measured, shots=20000).result().get_counts()
        found = np.array([counts.get(f"{value:03b}", 0) for value in range(8)]) / 20000
        assert np.abs(found - expected).max() < 5 * np.sqrt(0.25 / 20000)
    value = EstimatorV2(OnehopBackend(noise_model=damped())).run([(circuit, "ZZI")]).result()[0].data.evs
    assert value == pytest.approx(mixed(circuit).expectation_value(SparsePauliOp("ZZI")).real)
    sampled = SamplerV2(OnehopBackend(noise_model=damped()), seed=1).run([measured], shots=20000)
    bits = sampled.result()[0].data.meas.get_counts()
    assert abs(bits.get("000", 0) / 20000 - expected[0]) < 5 * np.sqrt(0.25 / 20000)


def test_noise_of_qubits_measurements_resets_and_labels() -> None:
    flip, off = error((XGate(), 1.0)), error((Reset(), 1.0))
    noise = model(
        {"measure": flip, "reset": flip, "mine": flip, "sx": off},
        {"x": {(0,): error((IGate(), 0.5), (XGate(), 0.5)), (1,): flip}},
    )
    circuit = QuantumCircuit(5, 5)
    circuit.x([0, 1, 2])  # a coin, 0, 1
    circuit.x(3)
    circuit.reset(3)  # 1
    circuit.append(XGate(label="mine"), [4])  # 0, since the label has the noise
    circuit.sx(4)  # 0
    circuit.measure(range(5), range(5))  # flips all
    for method in ("statevector", "density_matrix"):
        counts = OnehopBackend(noise_model=noise, method=method, seed=1).run(circuit, shots=400).result()
        found = counts.get_counts()
        assert set(found) == {"10010", "10011"}
        assert abs(found["10010"] - 200) < 5 * 10


def test_readout_errors_of_one_and_of_several_qubits() -> None:
    circuit = QuantumCircuit(2, 2)
    circuit.x(0)
    circuit.measure([0, 1], [0, 1])
    one = OnehopBackend(noise_model=model(readout={(0,): [[1, 0], [0.25, 0.75]]}), seed=3)
    counts = one.run(circuit, shots=4000).result().get_counts()
    assert abs(counts["00"] - 1000) < 5 * np.sqrt(750)
    table = np.roll(np.eye(4), 2, axis=1)  # the second of the qubits is misread
    both = model(readout={(0, 1): table, (0,): [[0, 1], [1, 0]]})
    assert OnehopBackend(noise_model=both).run(circuit, shots=9).result().get_counts() == {"00": 9}
    together = QuantumCircuit(2, 2)
    together.x(0)
    together.append(Instruction("measure", 2, 2, []), [0, 1], [0, 1])
    assert OnehopBackend(noise_model=both).run(together, shots=9).result().get_counts() == {"11": 9}


def test_modes_of_saved_data() -> None:
    circuit = QuantumCircuit(2, 1)
    circuit.h(0)
    circuit.cx(0, 1)
    circuit.append(save("amplitudes", 2, label="some", params=[3, 0]), range(2))
    circuit.measure(0, 0)
    circuit.append(save("statevector", 2, label="each", subtype="list"), range(2))
    circuit.append(save("statevector", 2, label="by", subtype="c_single"), range(2))
    circuit.append(save("probabilities_dict", 2, label="mean", subtype="c_average"), range(2))
    circuit.append(save("amplitudes_sq", 2, label="sum", subtype="accum", params=[0, 3]), range(2))
    result = OnehopBackend(seed=2).run(circuit, shots=20, memory=True).result()
    data, memory = result.data(), result.get_memory()
    np.testing.assert_allclose(data["some"], np.full(2, np.sqrt(0.5)))
    states = {"0": Statevector([1, 0, 0, 0]), "1": Statevector([0, 0, 0, 1])}
    assert [one == states[bit] for one, bit in zip(data["each"], memory, strict=True)] == [True] * 20
    assert data["by"] == {"0x0": states["0"], "0x1": states["1"]}
    assert data["mean"] == {"0x0": {0: 1.0}, "0x1": {3: 1.0}}
    np.testing.assert_allclose(data["sum"], [memory.count("0"), memory.count("1")])


def test_states_that_are_set() -> None:
    circuit = QuantumCircuit(2)
    circuit.h(0)
    circuit.append(Instruction("set_statevector", 2, 0, [np.array([0, 0.6, 0.8j, 0])]), [1, 0])
    circuit.append(save("statevector_dict", 2), range(2))
    found = OnehopBackend().run(circuit, shots=1).result().data()["kept"]
    assert set(found) == {"0x1", "0x2"}
    assert abs(found["0x2"] - 0.6) + abs(found["0x1"] - 0.8j) < 1e-15
    rho = np.diag([0.1, 0.2, 0.3, 0.4]).astype(complex)
    circuit = QuantumCircuit(2)
    circuit.append(Instruction("set_density_matrix", 2, 0, [rho]), [0, 1])
    circuit.x(0)
    circuit.append(save("density_matrix", 2, subtype="average"), range(2))
    kept = OnehopBackend().run(circuit, shots=1).result().data()["kept"]
    np.testing.assert_allclose(np.diag(kept.data), [0.2, 0.1, 0.4, 0.3])
    with pytest.raises(BadInput, match="simulate a density"):
        OnehopBackend(method="statevector").run(circuit)


def test_loops_that_end_by_a_measurement() -> None:
    circuit = QuantumCircuit(2, 4)
    with circuit.while_loop((circuit.clbits[0], 0)):
        circuit.h(0)
        circuit.measure(0, 0)
        with circuit.if_test((circuit.clbits[0], 1)):
            circuit.x(1)
            circuit.break_loop()
        circuit.x(1)
        circuit.x(1)
        circuit.continue_loop()
        circuit.x(1)
    circuit.measure(1, 1)
    for method in ("statevector", "density_matrix"):
        found = OnehopBackend(method=method, seed=1).run(circuit, shots=50).result().get_counts()
        assert found == {"0011": 50}
    endless = QuantumCircuit(1, 1)
    with endless.while_loop((endless.clbits[0], 0)):
        endless.x(0)
    with pytest.raises(Error, match="more than 100,000 turns"):
        OnehopBackend().run(endless, shots=1)


def test_a_for_loop_that_is_left_early_and_variables() -> None:
    circuit = QuantumCircuit(1, 4)
    number = circuit.add_var("number", expr.lift(0, types.Uint(4)))
    with circuit.for_loop(range(5)):
        with circuit.if_test(expr.equal(number, 3)):
            circuit.break_loop()
        circuit.x(0)
        circuit.store(number, expr.bit_or(expr.shift_left(number, 1), 1))
    circuit.measure(0, 0)
    with circuit.if_test(expr.equal(number, 3)):
        circuit.x(0)
    circuit.measure(0, 1)
    assert OnehopBackend().run(circuit, shots=5).result().get_counts() == {"0010": 5}


def test_parameter_binds() -> None:
    angle, other = Parameter("angle"), Parameter("other")
    circuit = QuantumCircuit(1)
    circuit.rx(angle + 2 * other, 0)
    circuit.measure_all()
    bell = QuantumCircuit(1)
    bell.measure_all()
    binds = [{angle: [0, np.pi, 0], "other": [0, 0, np.pi / 2]}, {}]
    result = OnehopBackend().run([circuit, bell], binds, shots=4).result()
    assert [result.get_counts(k) for k in range(4)] == [{"0": 4}, {"1": 4}, {"1": 4}, {"0": 4}]


def test_idle_qubits_need_no_memory() -> None:
    circuit = QuantumCircuit(60, 2)
    circuit.x(41)
    circuit.cx(41, 7)
    circuit.barrier()
    circuit.measure([7, 41], [0, 1])
    noise = model({}, {"cx": {(41, 7): error((_two_flips(), 1.0))}}, {(41,): [[1, 0], [1, 0]]})
    assert OnehopBackend().run(circuit, shots=3).result().get_counts() == {"11": 3}
    assert OnehopBackend(noise_model=noise).run(circuit, shots=3).result().get_counts() == {"00": 3}


def _two_flips() -> Any:
    both = QuantumCircuit(2)
    both.x([0, 1])
    return both.to_gate()


def _bound(*binds: Any) -> Any:
    circuit = QuantumCircuit(1, 1)
    circuit.rx(Parameter("a") + Parameter("b"), 0)
    circuit.measure(0, 0)
    return lambda: OnehopBackend().run(circuit, list(binds) or None)


def _estimated(values: Any) -> Any:
    circuit = QuantumCircuit(1)
    circuit.rx(Parameter("a") + Parameter("b"), 0)
    return lambda: EstimatorV2().run([(circuit, "Z", values)])


def _kept(kind: str, **options: Any) -> Any:
    circuit = QuantumCircuit(2, 1)
    circuit.h([0, 1])
    circuit.append(save(kind, options.pop("width", 2)), range(1) if kind == "state" else range(2))
    return lambda: OnehopBackend(**options).run(circuit)


def _noisy(noise: Any) -> Any:
    circuit = QuantumCircuit(1, 1)
    circuit.x(0)
    return lambda: OnehopBackend().run(circuit, noise_model=noise)


_LOSSY = SimpleNamespace(num_qubits=1, to_quantumchannel=lambda: SuperOp(0.5 * np.eye(4)))
_NEGATIVE = SimpleNamespace(num_qubits=1, to_quantumchannel=lambda: SuperOp(np.diag([1, 1.2, 1.2, 1])))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (_bound(), "rx on qubit 0: parameter 'a' has no value; give `parameter_binds` with values for a, b"),
        (_bound({"a": 1}), "without value: rx on qubit 0: parameter 'b'; unknown: none"),
        (_bound({"a": 1, "b": 2, "c": 3}), "unknown: c"),
        (_bound({"a": [1, 2], "b": [1, 2, 3]}), "lists of one length"),
        (_bound({"a": [1], "b": ["x"]}), "rx on qubit 0: parameter 'b': expected numbers"),
        (_bound({"a": [1], "b": [np.inf]}), "rx on qubit 0: parameter 'b': expected finite numbers"),
        (_estimated([0.1, np.nan]), "rx on qubit 0: parameter 'b': expected finite numbers, found nan"),
        (_bound({"a": 1, "b": 1}, {}), "a list of 1 mapping, found 2 mappings"),
        (_bound({"a": [10**400], "b": [1]}), "rx on qubit 0: parameter 'a': expected numbers"),
        (_bound(None), "expected a mapping from parameters to lists of values, found None"),
        (
            lambda: OnehopBackend().run(QuantumCircuit(1), seed_simulator=-1),
            "seed_simulator: expected a whole number",
        ),
        (lambda: OnehopBackend().run(QuantumCircuit(1), seed_simulator="x"), "seed_simulator: .* found 'x'"),
        (_kept("statevector", method="density_matrix"), "save_statevector: expected a state vector"),
        (_kept("state", width=1), "save_state: expected all 2 qubits"),
        (_kept("unitary"), "save_unitary: expected data of a state vector"),
        (_noisy(3), "or of onehop.quantum, found builtins.int"),
        (_noisy(model({"x": _LOSSY})), "noise of x: the Kraus operators do not preserve the trace"),
        (_noisy(model({"x": _NEGATIVE})), "completely positive"),
        (
            _noisy(model({"x": error((_two_flips(), 1.0))})),
            "noise of x: expected an error on 1 qubit, found one on 2",
        ),
        (lambda: OnehopBackend(method="stabilizer"), "expected method automatic"),
    ],
)
def test_bad_input_is_refused(run: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        run()
