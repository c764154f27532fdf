"""The Cirq simulator against Cirq's own."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from onehop import BadInput, Group
from threads import same_on

cirq = pytest.importorskip("cirq", reason="there is no Cirq; pip install cirq-core")

import sympy  # noqa: E402

from onehop.cirq import OnehopSimulator  # noqa: E402

QUBITS = cirq.LineQubit.range(4)


def _random(seed: int) -> Any:
    circuit = cirq.testing.random_circuit(QUBITS, 12, 0.7, random_state=seed)
    more = [
        cirq.XX(QUBITS[0], QUBITS[2]) ** 0.3,
        cirq.ZZ(QUBITS[1], QUBITS[3]) ** 0.4,
        cirq.ZZPowGate(exponent=0.2, global_shift=0.4).on(QUBITS[3], QUBITS[0]),
        cirq.X(QUBITS[1]).controlled_by(QUBITS[0], QUBITS[3], control_values=[0, 1]),
        cirq.YY(QUBITS[1], QUBITS[2]).controlled_by(QUBITS[0]) ** 0.7,
        cirq.CNOT(QUBITS[2], QUBITS[0]) ** 0.5,
        cirq.global_phase_operation(1j).controlled_by(QUBITS[1], QUBITS[2]),
        cirq.global_phase_operation(np.exp(0.3j)),
        cirq.PhasedXZGate(x_exponent=0.1, z_exponent=0.2, axis_phase_exponent=0.3).on(QUBITS[3]),
        cirq.PauliStringPhasor(cirq.X(QUBITS[0]) * cirq.Y(QUBITS[2]) * cirq.Z(QUBITS[3]), exponent_neg=0.3),
        cirq.qft(*QUBITS),
        cirq.CircuitOperation(cirq.FrozenCircuit(cirq.H(QUBITS[0]), cirq.CCX(*QUBITS[:3])), repetitions=3),
    ]
    return circuit + cirq.Circuit(more)


@pytest.mark.parametrize("seed", range(4))
def test_states_amplitudes_and_expectation_values(seed: int) -> None:
    circuit = _random(seed)
    order = [QUBITS[k] for k in (2, 0, 3, 1)]
    expected = cirq.Simulator(dtype=np.complex128).simulate(circuit, qubit_order=order).final_state_vector
    ours = OnehopSimulator()
    np.testing.assert_allclose(
        ours.simulate(circuit, qubit_order=order).final_state_vector, expected, atol=1e-12
    )
    found = ours.compute_amplitudes(circuit, [3, 0, 9], qubit_order=order)
    np.testing.assert_allclose(found, expected[[3, 0, 9]], atol=1e-12)
    observables = [cirq.X(QUBITS[0]) * cirq.Y(QUBITS[3]) + 0.5 * cirq.Z(QUBITS[1]), 2 * cirq.Z(QUBITS[2])]
    start = np.arange(16) / np.linalg.norm(np.arange(16))
    for initial in (None, 5, start):
        theirs = cirq.Simulator(dtype=np.complex128).simulate_expectation_values(
            circuit, observables, qubit_order=order, initial_state=initial
        )
        values = ours.simulate_expectation_values(
            circuit, observables, qubit_order=order, initial_state=initial
        )
        np.testing.assert_allclose(values, np.real(theirs), atol=1e-10)


def test_sweeps_of_parameters() -> None:
    a, b = QUBITS[:2]
    angle = sympy.Symbol("angle")
    circuit = cirq.Circuit(cirq.X(a) ** angle, cirq.CZ(a, b) ** (2 * angle), cirq.ry(angle).on(b))
    sweep = cirq.Linspace("angle", 0, 1, 3)
    theirs = cirq.Simulator(dtype=np.complex128).simulate_sweep(circuit, sweep)
    for one, other in zip(OnehopSimulator().simulate_sweep(circuit, sweep), theirs, strict=True):
        assert one.params == other.params
        np.testing.assert_allclose(one.final_state_vector, other.final_state_vector, atol=1e-12)
    with pytest.raises(BadInput, match="without parameters, found angle"):
        OnehopSimulator().simulate(circuit)


def test_samples_with_masks_conditions_and_repeated_keys() -> None:
    a, b, c = QUBITS[:3]
    circuit = cirq.Circuit(
        cirq.H(a),
        cirq.measure(a, key="coin", invert_mask=(True,)),
        cirq.X(b).with_classical_controls("coin"),
        cirq.measure(a, b, key="pair"),
        cirq.reset(b),
        cirq.X(c),
        cirq.measure(c, b, key="pair"),
    )
    result = OnehopSimulator(seed=1).run(circuit, repetitions=500)
    coin, pair = result.records["coin"][:, 0, 0], result.records["pair"]
    assert pair.shape == (500, 2, 2)
    assert abs(coin.sum() - 250) < 5 * np.sqrt(125)
    assert (pair[:, 0, 0] == 1 - coin).all()
    assert (pair[:, 0, 1] == coin).all()
    assert (pair[:, 1] == [1, 0]).all()
    again = OnehopSimulator(seed=1).run(circuit, repetitions=500)
    assert (again.records["pair"] == pair).all()


def test_channels_and_misread_bits() -> None:
    a, b = QUBITS[:2]
    table = np.array([[0.9, 0.1], [0.3, 0.7]])
    circuit = cirq.Circuit(
        cirq.X.on_each(a, b),
        cirq.amplitude_damp(0.3).on(a),
        cirq.depolarize(0.2, n_qubits=2).on(a, b),
        cirq.measure(a, b, key="m", confusion_map={(1,): table}),
    )
    shots = 20000
    theirs = cirq.DensityMatrixSimulator(seed=1).run(circuit, repetitions=shots).histogram(key="m")
    ours = OnehopSimulator(seed=2).run(circuit, repetitions=shots).histogram(key="m")
    for value in range(4):
        assert abs(theirs[value] - ours[value]) < 5 * np.sqrt(theirs[value] + ours[value] + 1)


def test_final_states_are_measured() -> None:
    a, b = QUBITS[:2]
    circuit = cirq.Circuit(cirq.H(a), cirq.CNOT(a, b), cirq.measure(a, key="m"))
    result = OnehopSimulator(seed=3).simulate(circuit)
    index = 3 * int(result.measurements["m"][0])
    assert abs(result.final_state_vector[index]) == pytest.approx(1)


def test_on_two_ranks() -> None:
    qubits = cirq.LineQubit.range(6)
    circuit = cirq.Circuit(cirq.ry(0.3 + k).on(q) for k, q in enumerate(qubits))
    circuit += [cirq.CZ(qubits[k], qubits[k - 1]) ** 0.4 for k in range(6)]
    circuit += [cirq.H(q) for q in qubits]

    def results(group: Group) -> tuple[Any, ...]:
        ours = OnehopSimulator(group, seed=2)
        values = ours.simulate_expectation_values(circuit, cirq.X(qubits[0]) * cirq.Z(qubits[5]))
        vector = ours.simulate(circuit).final_state_vector
        counts = ours.run(circuit + cirq.measure(*qubits, key="m"), repetitions=20).histogram(key="m")
        return [round(v, 10) for v in values], abs(vector[7]).round(10), sorted(counts.items())

    assert same_on(2, results) == results(Group.alone())


_M, _BITS = sympy.Symbol("m"), sympy.IndexedBase("m")
# Conditions on a number m of three bits, of which the first one is the most significant, and when they hold.
_CONDITIONS = [
    (cirq.KeyCondition(cirq.MeasurementKey("m")), lambda m: m != 0),
    (cirq.BitMaskKeyCondition("m", bitmask=6), lambda m: m & 6 != 0),
    (cirq.BitMaskKeyCondition("m", bitmask=6, target_value=4), lambda m: m & 6 != 4),
    (cirq.BitMaskKeyCondition.create_equal_mask("m", 5), lambda m: m & 5 == 5),
    (cirq.BitMaskKeyCondition("m", target_value=9, equal_target=True), lambda m: False),
    (cirq.SympyCondition(_M > 4), lambda m: m > 4),
    (cirq.SympyCondition(sympy.Eq(_M % 3, 1)), lambda m: m % 3 == 1),
    (cirq.SympyCondition(sympy.Xor(_BITS[0], _BITS[2])), lambda m: (m >> 2) ^ (m & 1) == 1),
]


def test_conditions_on_numbers() -> None:
    qubits = cirq.LineQubit.range(4)
    for flip in (False, True):
        for condition, holds in _CONDITIONS:
            circuit = cirq.Circuit(
                cirq.H.on_each(qubits[:3]),
                cirq.measure(*qubits[:3], key="m", invert_mask=(flip,)),
                cirq.X(qubits[3]).with_classical_controls(condition),
                cirq.measure(qubits[3], key="n"),
            )
            records = OnehopSimulator(seed=4).run(circuit, repetitions=60).records
            numbers = records["m"][:, 0] @ [4, 2, 1]
            assert len(set(numbers)) == 8
            assert records["n"][:, 0, 0].tolist() == [int(holds(one)) for one in numbers], condition


def _repeated(condition: Any = None) -> cirq.CircuitOperation:
    """Return coins that are thrown until there is a 1, and a counter of the turns."""
    a, b = QUBITS[:2]
    return cirq.CircuitOperation(
        cirq.FrozenCircuit(cirq.reset(a), cirq.H(a), cirq.measure(a, key="m"), cirq.X(b)),
        repeat_until=condition or cirq.KeyCondition(cirq.MeasurementKey("m")),
        use_repetition_ids=False,
    )


def test_repetitions_until_a_measurement() -> None:
    a, b, c = QUBITS[:3]
    inner = cirq.CircuitOperation(
        cirq.FrozenCircuit(_repeated(), cirq.H(c), cirq.measure(c, key="go")),
        repeat_until=cirq.SympyCondition(sympy.Eq(sympy.Symbol("go"), 1)),
        use_repetition_ids=False,
    )
    for operation in (_repeated(), inner):
        circuit = cirq.Circuit(operation, cirq.measure(b, key="odd"), cirq.measure(a, key="last"))
        ours = OnehopSimulator(seed=5).run(circuit, repetitions=1000).records
        theirs = [cirq.Simulator(seed=k).simulate(circuit).measurements["odd"][0] for k in range(60)]
        assert (ours["m"][:, 0] == 1).all()
        assert (ours["last"][:, 0] == 1).all()
        odd = float(ours["odd"].mean())
        if operation is not inner:
            assert abs(odd - 2 / 3) < 5 / np.sqrt(1000 * 4)
        assert abs(odd - np.mean(theirs)) < 5 / np.sqrt(60 * 4)


A = QUBITS[0]
X, CIRCUIT = cirq.X(A), cirq.Circuit(cirq.X(A))


def after(measured: Any, condition: Any) -> Any:
    """Return a circuit that measures and does X under a condition."""
    return cirq.Circuit(measured, X.with_classical_controls(condition))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda s: s.simulate(cirq.Circuit(cirq.IdentityGate(qid_shape=(3,)).on(cirq.LineQid(0, 3)))), "two levels"),
        (lambda s: s.compute_amplitudes(cirq.Circuit(cirq.depolarize(0.1).on(A)), [0]), "found a channel"),
        (lambda s: s.compute_amplitudes(CIRCUIT, [2]), "indices from 0 to 1"),
        (lambda s: s.simulate(CIRCUIT, initial_state=[1, 1]), "norm 1"),
        (lambda s: s.simulate(CIRCUIT, initial_state=[1, 0, 0]), "2 amplitudes"),
        (lambda s: s.simulate_expectation_values(CIRCUIT, 1j * cirq.Z(A)), "Hermitian"),
        (lambda s: s.simulate_expectation_values(CIRCUIT, cirq.Z(QUBITS[1])), "of the circuit"),
        (lambda s: s.simulate_expectation_values(cirq.Circuit(cirq.measure(A)), cirq.Z(A)), "without measurements"),
        (lambda s: s.simulate(after([], "z")), "a measurement with the key 'z' and the index -1 before it, found none"),
        (lambda s: s.run(after(cirq.measure(A, key="m"), cirq.KeyCondition(cirq.MeasurementKey("m"), 1))),
         "expected a measurement with the key 'm' and the index 1 before it, found 1 with this key"),
        (lambda s: s.run(after(cirq.measure(*cirq.LineQubit.range(11), key="m"), sympy.Symbol("m") > 3)),
         "a condition of at most 10 measured bits, found one of 11"),
        (lambda s: s.simulate(cirq.Circuit(cirq.KrausChannel([np.eye(2)], key="k")(A))), "an operation with a matrix"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(run: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        run(OnehopSimulator())
    assert "\n" not in str(caught.value)


def test_copies() -> None:
    made = OnehopSimulator(precision="single")
    assert copy.deepcopy(made).precision == "single"
    assert pickle.loads(pickle.dumps(made)).precision == "single"
