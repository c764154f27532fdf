"""PennyLane's noise channels on the device, compared with PennyLane's own density matrices."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

qml = pytest.importorskip("pennylane", reason="there is no PennyLane; pip install pennylane")

from pennylane import numpy as np  # noqa: E402
from pennylane.exceptions import DeviceError, QuantumFunctionError  # noqa: E402

from onehop.pennylane import OnehopQubit  # noqa: E402

# Every channel of qubits that PennyLane has.
CHANNELS = {
    "AmplitudeDamping": lambda: qml.AmplitudeDamping(0.3, wires=1),
    "GeneralizedAmplitudeDamping": lambda: qml.GeneralizedAmplitudeDamping(0.3, 0.6, wires=0),
    "PhaseDamping": lambda: qml.PhaseDamping(0.4, wires=1),
    "DepolarizingChannel": lambda: qml.DepolarizingChannel(0.2, wires=0),
    "BitFlip": lambda: qml.BitFlip(0.3, wires=1),
    "PhaseFlip": lambda: qml.PhaseFlip(0.3, wires=0),
    "ResetError": lambda: qml.ResetError(0.2, 0.3, wires=1),
    "PauliError": lambda: qml.PauliError("XYZ", 0.25, wires=[2, 0, 1]),
    "ThermalRelaxationError": lambda: qml.ThermalRelaxationError(0.1, 1.2, 1.4, 0.5, wires=1),
    "QubitChannel": lambda: qml.QubitChannel(
        [np.sqrt(0.7) * np.eye(4), np.sqrt(0.3) * np.kron([[1, 1], [1, -1]], [[0, 1], [1, 0]]) / np.sqrt(2)],
        wires=[2, 1],
    ),
}


def _circuit(x: Any, channels: Any) -> None:
    qml.StatePrep(np.array([0.6, 0, 0, 0.8j]), wires=[0, 2])
    for make in channels:
        qml.RX(x, 0)
        qml.CRY(0.7, [0, 1])
        qml.Hadamard(2)
        make()


def _results(device: Any, channels: Any) -> Any:
    @qml.qnode(device)
    def circuit() -> Any:
        _circuit(0.4, channels)
        return (
            qml.density_matrix([0, 1, 2]),
            qml.expval(qml.Z(0) @ qml.X(1)),
            qml.var(qml.Y(2)),
            qml.probs(wires=[2, 0]),
            qml.purity(wires=[1]),
        )

    return circuit()


def test_every_channel() -> None:
    assert set(CHANNELS) == set(qml.ops.channel.__qubit_channels__)
    for name, make in CHANNELS.items():
        found = _results(OnehopQubit(wires=3), [make])
        for one, other in zip(found, _results(qml.device("default.mixed", wires=3), [make]), strict=True):
            assert np.allclose(one, other, rtol=0, atol=1e-12), name
    both = [
        _results(device, CHANNELS.values())
        for device in (OnehopQubit(wires=3), qml.device("default.mixed", wires=3))
    ]
    for one, other in zip(*both, strict=True):
        assert np.allclose(one, other, rtol=0, atol=1e-12)


def _energy(device: Any, method: str) -> Any:
    @qml.qnode(device, diff_method=method)
    def energy(x: Any) -> Any:
        _circuit(x, list(CHANNELS.values())[:4])
        return qml.expval(qml.Z(0) + 0.5 * qml.X(1) @ qml.Z(2))

    return energy


def test_derivatives_and_shots() -> None:
    x = np.array(0.4, requires_grad=True)
    expected = qml.grad(_energy(qml.device("default.mixed", wires=3), "backprop"))(x)
    for method in "best", "parameter-shift":
        assert np.allclose(qml.grad(_energy(OnehopQubit(wires=3), method))(x), expected, rtol=0, atol=1e-9)
    with pytest.raises(
        QuantumFunctionError, match=r"found the channel operation 4 \(AmplitudeDamping on wires 1\)"
    ):
        qml.grad(_energy(OnehopQubit(wires=3), "adjoint"))(x)

    @qml.set_shots(4000)
    @qml.qnode(OnehopQubit(wires=2, seed=3))
    def circuit() -> Any:
        qml.Hadamard(0)
        bit = qml.measure(0)
        qml.cond(bit, qml.X)(1)
        qml.BitFlip(0.1, 1)
        return qml.counts(wires=[1])

    assert abs(circuit()["1"] - 2000) < 5 * np.sqrt(1000)


def test_what_has_no_channels() -> None:
    @qml.qnode(OnehopQubit(wires=2), mcm_method="tree-traversal")
    def tree() -> Any:
        qml.measure(0)
        qml.BitFlip(0.1, 1)
        return qml.expval(qml.Z(1))

    with pytest.raises(DeviceError, match="channels need mcm_method 'deferred'"):
        tree()

    @qml.qnode(OnehopQubit(wires=2))
    def kept() -> Any:
        qml.Hadamard(0)
        qml.measure(0, postselect=1)
        qml.BitFlip(0.1, 1)
        return qml.expval(qml.Z(1))

    with pytest.raises(DeviceError, match="without postselection"):
        kept()


def test_copies() -> None:
    device = OnehopQubit(wires=3)
    assert len(copy.deepcopy(device).wires) == len(pickle.loads(pickle.dumps(device)).wires) == 3
