"""The PennyLane device against PennyLane's own state vector."""

from __future__ import annotations

from typing import Any

import pytest

qml = pytest.importorskip("pennylane", reason="there is no PennyLane; pip install pennylane")

from pennylane import numpy as np  # noqa: E402

from onehop.pennylane import OnehopQubit  # noqa: E402


def _circuit(x: Any, y: Any) -> Any:
    qml.RX(x, 0)
    qml.Rot(x, y, 0.3, wires=1)
    qml.CNOT([0, 1])
    qml.IsingXY(y, wires=[1, 2])
    qml.QFT(wires=[0, 2])
    qml.PauliRot(2 * x, "XYZ", wires=[2, 0, 1])
    qml.CRY(y, [2, 0])
    qml.PhaseShift(y, 2)
    return qml.expval(qml.Z(0) @ qml.X(1)), qml.expval(qml.Hamiltonian([0.5, 2.0], [qml.Y(2), qml.Z(1)]))


@pytest.mark.parametrize("method", ["adjoint", "best", "parameter-shift"])
def test_values_and_derivatives(method: str) -> None:
    x, y = np.array(0.4, requires_grad=True), np.array(0.7, requires_grad=True)
    ours = qml.QNode(_circuit, OnehopQubit(wires=3), diff_method=method)
    theirs = qml.QNode(_circuit, qml.device("default.qubit", wires=3))
    assert np.allclose(ours(x, y), theirs(x, y), rtol=0, atol=1e-12)
    for expected, found in zip(
        *(qml.jacobian(lambda *z, node=node: qml.math.stack(node(*z)))(x, y) for node in (theirs, ours)),
        strict=True,
    ):
        assert np.allclose(expected, found, rtol=0, atol=1e-10)


def test_other_measurements() -> None:
    def circuit() -> Any:
        qml.StatePrep(np.array([0.6, 0, 0, 0.8]), wires=[0, 1])
        qml.Hadamard(1)
        return (
            qml.state(),
            qml.var(qml.Z(1)),
            qml.purity(wires=0),
            qml.probs(wires=[1]),
            qml.expval(qml.Projector([1], [0])),
        )

    ours = qml.QNode(circuit, OnehopQubit(wires=2))()
    theirs = qml.QNode(circuit, qml.device("default.qubit", wires=2))()
    for one, other in zip(ours, theirs, strict=True):
        assert np.allclose(one, other, rtol=0, atol=1e-12)


def test_shots_and_measurements_inside() -> None:
    @qml.set_shots(2000)
    @qml.qnode(OnehopQubit(wires=3, seed=3))
    def circuit() -> Any:
        qml.Hadamard(0)
        bit = qml.measure(0)
        qml.cond(bit, qml.X)(1)
        return qml.counts(wires=[0, 1])

    counts = circuit()
    assert set(counts) == {"00", "11"}
    assert abs(counts["00"] - 1000) < 5 * np.sqrt(500)


def test_refuses_other_methods() -> None:
    @qml.qnode(OnehopQubit(wires=1), mcm_method="one-shot")
    def circuit() -> Any:
        return qml.expval(qml.Z(0))

    with pytest.raises(qml.exceptions.DeviceError, match="expected 'deferred'"):
        circuit()
