"""Every gate of Cirq, and gates that only look like one, against Cirq's own matrices on random states."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from onehop import BadInput

cirq = pytest.importorskip("cirq", reason="there is no Cirq; pip install cirq-core")

from onehop.cirq import OnehopSimulator  # noqa: E402

_MATRIX = cirq.testing.random_unitary(4, random_state=1)
# All arguments of the classes that need some; other classes are made without, powers with a phase, too.
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "BooleanHamiltonianGate": {"parameter_names": ["a", "b"], "boolean_strs": ["a & ~b"], "theta": 0.3},
    "CliffordGate": {"_clifford_tableau": cirq.CliffordTableau(2, 2)},
    "ControlledGate": {"sub_gate": cirq.rz(0.3), "num_controls": 2, "control_values": [0, 1]},
    "DensePauliString": {"pauli_mask": "XIYZ", "coefficient": 1j},
    "DiagonalGate": {"diag_angles_radians": [0.1, 0.5, -0.3, 1.2, 0.7, 0.2, 0.4, 0.9]},
    "FSimGate": {"theta": 0.3, "phi": 0.7},
    "GlobalPhaseGate": {"coefficient": np.exp(0.3j)},
    "IdentityGate": {"num_qubits": 2},
    "MSGate": {"rads": 0.3},
    "MatrixGate": {"matrix": _MATRIX},
    "MutableDensePauliString": {"pauli_mask": "XIYZ"},
    "ParallelGate": {"sub_gate": cirq.ry(0.3), "num_copies": 3},
    "PauliInteractionGate": dict(zip(("pauli0", "invert0", "pauli1"), (cirq.X, True, cirq.Y), strict=True))
    | {"invert1": False, "exponent": 0.3},
    "PauliStringPhasorGate": {"dense_pauli_string": cirq.DensePauliString("XZY"), "exponent_neg": 0.3},
    "PhaseGradientGate": {"num_qubits": 3, "exponent": 0.4},
    "PhasedFSimGate": {"theta": 0.3, "zeta": 0.1, "chi": 0.2, "gamma": 0.4, "phi": 0.7},
    "PhasedISwapPowGate": {"phase_exponent": 0.2, "exponent": 0.6},
    "PhasedXPowGate": {"phase_exponent": 0.2, "exponent": 0.6, "global_shift": 0.3},
    "PhasedXZGate": {"x_exponent": 0.1, "z_exponent": 0.2, "axis_phase_exponent": 0.3},
    "QuantumFourierTransformGate": {"num_qubits": 3},
    "QubitPermutationGate": {"permutation": [2, 0, 1]},
    "Rx": {"rads": 0.3},
    "Ry": {"rads": 0.3},
    "Rz": {"rads": 0.3},
    "SingleQubitCliffordGate": {"_clifford_tableau": cirq.SingleQubitCliffordGate.X_sqrt.clifford_tableau},
    "ThreeQubitDiagonalGate": {"diag_angles_radians": [0.1, 0.5, -0.3, 1.2, 0.7, 0.2, 0.4, 0.9]},
    "TwoQubitDiagonalGate": {"diag_angles_radians": [0.1, 0.5, -0.3, 1.2]},
    "UniformSuperpositionGate": {"m_value": 3, "num_qubits": 2},
    "WaitGate": {"duration": cirq.Duration(nanos=3), "num_qubits": 2},
}
# Channels and measurements have no matrix.
_CLASSES = sorted(
    name
    for name, one in vars(cirq).items()
    if inspect.isclass(one)
    and issubclass(one, cirq.Gate)
    and not inspect.isabstract(one)
    and not name.endswith(("Channel", "MeasurementGate"))
    and one is not cirq.Pauli
)
_CONSTANTS = sorted(name for name, one in vars(cirq).items() if isinstance(one, cirq.Gate))


def _instances(name: str) -> Iterator[Any]:
    if name in _CONSTANTS:
        yield getattr(cirq, name)
        return
    kind = getattr(cirq, name)
    arguments = inspect.signature(kind).parameters
    if name in _ARGUMENTS or {"exponent", "global_shift"} != set(arguments):
        try:
            yield kind(**_ARGUMENTS.get(name, {}))
        except TypeError as error:
            pytest.skip(f"{name} is new: add its arguments to this test ({error})")
        return
    for exponent, shift in ((1, 0), (1, 0.3), (-1, 0.4), (0.37, 0.2)):
        yield kind(exponent=exponent, global_shift=shift)


def _variants(gate: Any) -> Iterator[Any]:
    yield gate
    for exponent in (-1, 0.5):
        power = cirq.pow(gate, exponent, None)
        if power is not None:
            yield power
    yield gate.controlled(control_values=[0])
    yield gate.controlled().controlled(2, control_values=[1, 0])
    yield gate.controlled(2, control_values=cirq.SumOfProducts([[0, 1], [1, 0]]))


def _assert_equal(gate: Any, seed: int) -> None:
    """Compare a gate on permuted qubits of a random state with its matrix."""
    random = np.random.default_rng(seed)
    qubits = cirq.LineQubit.range(cirq.num_qubits(gate) + 1)
    circuit = cirq.Circuit(gate.on(*(qubits[k] for k in random.permutation(len(qubits))[: len(qubits) - 1])))
    state = [1, 1j] @ random.normal(size=(2, 1 << len(qubits)))
    state /= np.linalg.norm(state)
    found = OnehopSimulator().simulate(circuit, qubit_order=qubits, initial_state=state).final_state_vector
    expected = circuit.unitary(qubit_order=qubits, qubits_that_should_be_present=qubits) @ state
    np.testing.assert_allclose(found, expected, atol=1e-7, err_msg=repr(gate))


@pytest.mark.parametrize("name", [*_CLASSES, *_CONSTANTS])
def test_every_gate_has_its_matrix(name: str) -> None:
    seed = 0
    for made in _instances(name):
        if not cirq.has_unitary(made):
            pytest.skip(f"{name} has no unitary matrix")
        for gate in _variants(made):
            seed += 1
            _assert_equal(gate, seed)


class _LikeX(cirq.CXPowGate):
    def _unitary_(self) -> Any:
        return np.diag([1, 1, 1, -1])

    def _apply_unitary_(self, args: Any) -> Any:
        return NotImplemented


class _LikeZZ(cirq.ZZPowGate):
    def _unitary_(self) -> Any:
        return np.diag([1, 1j, 1, -1])

    def _apply_unitary_(self, args: Any) -> Any:
        return NotImplemented


@pytest.mark.parametrize("make", [_LikeX, _LikeZZ])
def test_a_subclass_has_its_own_matrix(make: Callable[..., Any]) -> None:
    random = np.random.default_rng(1)
    state = [1, 1j] @ random.normal(size=(2, 8))
    state /= np.linalg.norm(state)
    gate, qubits = make(), cirq.LineQubit.range(3)
    circuit = cirq.Circuit(gate.on(qubits[2], qubits[0]))
    matrix = gate._unitary_().reshape(2, 2, 2, 2)
    expected = np.einsum("xyca,abc->ybx", matrix, state.reshape(2, 2, 2)).reshape(-1)
    found = OnehopSimulator().simulate(circuit, qubit_order=qubits, initial_state=state).final_state_vector
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_measurements_of_pauli_products() -> None:
    a, b, c = cirq.LineQubit.range(3)
    circuit = cirq.Circuit(
        cirq.H(a),
        cirq.CNOT(a, b),
        cirq.PauliMeasurementGate([cirq.X, cirq.X], key="xx").on(a, b),
        cirq.PauliMeasurementGate(cirq.DensePauliString("ZZ", coefficient=-1), key="zz").on(b, a),
        cirq.X(c).with_classical_controls("zz"),
        cirq.measure(c, key="c"),
    )
    result = OnehopSimulator(seed=1).run(circuit, repetitions=20)
    theirs = cirq.Simulator(seed=1).run(circuit, repetitions=20)
    for key, expected in (("xx", 0), ("zz", 1), ("c", 1)):
        assert (theirs.measurements[key] == expected).all()
        assert (result.measurements[key] == expected).all()


def test_a_channel_that_records_its_outcome_is_refused() -> None:
    a = cirq.LineQubit(0)
    channel = cirq.KrausChannel(cirq.kraus(cirq.amplitude_damp(0.5)), key="k")
    with pytest.raises(BadInput, match="expected an operation with a matrix"):
        OnehopSimulator().run(cirq.Circuit(cirq.X(a), channel(a), cirq.measure(a, key="m")), repetitions=5)


def test_a_measurement_inside_of_a_gate_is_not_lost() -> None:
    class Look(cirq.Gate):
        def _num_qubits_(self) -> int:
            return 1

        def _decompose_(self, qubits: Any) -> Any:
            return [cirq.H(*qubits), cirq.measure(*qubits, key="inside")]

    a = cirq.LineQubit(0)
    with pytest.raises(BadInput, match="classical bit 1 does not exist"):
        OnehopSimulator().run(cirq.Circuit(Look()(a), cirq.measure(a, key="m")), repetitions=5)


def test_parameters_in_single_precision() -> None:
    qubit, angle = cirq.LineQubit(0), np.float32(0.3)
    found = OnehopSimulator().simulate(cirq.Circuit(cirq.rx(angle)(qubit))).final_state_vector
    np.testing.assert_allclose(found, cirq.unitary(cirq.rx(0.3))[:, 0], atol=1e-7)
    assert abs(np.linalg.norm(found) - 1) < 1e-14
