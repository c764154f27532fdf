"""Every gate of PennyLane, and gates that only look like one, against PennyLane's own matrices on random states."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from onehop import BadInput

qml = pytest.importorskip("pennylane", reason="there is no PennyLane; pip install pennylane")

from onehop.pennylane import OnehopQubit  # noqa: E402

_ANGLES = [0.3, -0.7, 1.1, 0.4]
_UNITARY = np.linalg.qr(np.arange(16).reshape(4, 4) ** 0.5 + 1j * np.eye(4))[0]
# Makers of the gates that need more than angles and wires.
_MAKERS: dict[str, Callable[[], Any]] = {
    "BlockEncode": lambda: qml.BlockEncode(np.array([[0.1, 0.2], [0.3, 0.4]]), wires=[0, 1]),
    "ControlledQubitUnitary": lambda: qml.ControlledQubitUnitary(
        _UNITARY, wires=[2, 3, 0, 1], control_values=[0, 1]
    ),
    "DiagonalQubitUnitary": lambda: qml.DiagonalQubitUnitary(np.exp(1j * np.arange(4)), wires=[0, 1]),
    "Evolution": lambda: qml.evolve(0.3 * qml.X(0) @ qml.Y(1) + 0.2 * qml.Z(0), 0.7),
    "Exp": lambda: qml.exp(qml.X(0) @ qml.Z(2), 0.3j),
    "FlipSign": lambda: qml.FlipSign([1, 0], wires=[0, 1]),
    "GlobalPhase": lambda: qml.GlobalPhase(0.3, wires=[0]),
    "GroverOperator": lambda: qml.GroverOperator(wires=[0, 1, 2]),
    "Identity": lambda: qml.Identity(wires=[0, 1]),
    "IntegerComparator": lambda: qml.IntegerComparator(2, geq=False, wires=[0, 1, 2]),
    "MultiControlledX": lambda: qml.MultiControlledX(wires=[2, 0, 1], control_values=[0, 1]),
    "MultiRZ": lambda: qml.MultiRZ(0.3, wires=[0, 2, 1]),
    "PauliRot": lambda: qml.PauliRot(0.3, "XIY", wires=[1, 0, 2]),
    "PauliRot of identities": lambda: qml.PauliRot(0.3, "II", wires=[1, 0]),
    "PCPhase": lambda: qml.PCPhase(0.3, dim=3, wires=[0, 1]),
    "Permute": lambda: qml.Permute([2, 0, 1], wires=[0, 1, 2]),
    "Prod": lambda: qml.prod(qml.S(1), qml.RX(0.3, 0), qml.CNOT([1, 0])),
    "QFT": lambda: qml.QFT(wires=[0, 1, 2]),
    "QubitUnitary": lambda: qml.QubitUnitary(_UNITARY, wires=[1, 0]),
    "Select": lambda: qml.Select([qml.X(0), qml.RY(0.3, 1), qml.S(0)], control=[2, 3]),
    "SelectPauliRot": lambda: qml.SelectPauliRot(np.array(_ANGLES), [0, 1], 2, rot_axis="Y"),
    "SpecialUnitary": lambda: qml.SpecialUnitary(np.arange(15) / 9, wires=[0, 1]),
    "SProd": lambda: qml.s_prod(1j, qml.X(0)),
}


def _automatic() -> list[str]:
    """List the gates that are made of a known number of angles and wires."""
    found = []
    for name, kind in vars(qml).items():
        if not inspect.isclass(kind) or not issubclass(kind, qml.operation.Operation) or name in _MAKERS:
            continue
        if isinstance(kind.num_params, int) and isinstance(kind.num_wires, int) and kind.num_wires > 0:
            try:
                matrix = kind(*_ANGLES[: kind.num_params], wires=range(kind.num_wires)).matrix()
            except Exception:  # continuous variables, channels, and gates of other arguments
                continue
            if len(matrix) == 1 << kind.num_wires:  # no qutrits
                found.append(name)
    return sorted(found)


def _made(name: str) -> Any:
    if name in _MAKERS:
        return _MAKERS[name]()
    kind = getattr(qml, name)
    return kind(*_ANGLES[: kind.num_params], wires=range(kind.num_wires))


def _variants(gate: Any) -> Iterator[Any]:
    used = max(gate.wires) + 1
    yield gate
    yield qml.adjoint(gate)
    yield qml.pow(gate, 2)
    yield qml.ctrl(gate, control=[used], control_values=[0])
    yield qml.ctrl(qml.ctrl(qml.adjoint(gate), control=[used]), control=[used + 1], control_values=[0])


def _state_after(gate: Any, state: Any, wires: list[int]) -> Any:
    @qml.qnode(OnehopQubit(wires=wires), diff_method=None)
    def circuit() -> Any:
        qml.StatePrep(state, wires=wires)
        qml.apply(gate)
        return qml.state()

    return circuit()


def _random_state(wires: int, seed: int) -> Any:
    random = np.random.default_rng(seed)
    state = [1, 1j] @ random.normal(size=(2, 1 << wires))
    return state / np.linalg.norm(state)


@pytest.mark.parametrize("name", [*_automatic(), *_MAKERS])
def test_every_gate_has_its_matrix(name: str) -> None:
    for seed, made in enumerate(_variants(_made(name))):
        wires = np.random.default_rng(seed).permutation(max(made.wires) + 2).tolist()
        gate = made.map_wires(dict(enumerate(wires)))
        state = _random_state(len(wires), seed)
        expected = qml.matrix(gate, wire_order=sorted(wires)) @ state
        found = _state_after(gate, state, sorted(wires))
        np.testing.assert_allclose(found, expected, atol=1e-10, err_msg=repr(gate))


class _Named(qml.RX):
    """A gate with the name of PennyLane's and another matrix."""

    @staticmethod
    def compute_matrix(theta: Any) -> Any:
        return np.diag(np.exp([0, 1j * theta]))


class _Barrier(qml.operation.Operation):
    num_wires = 1

    @staticmethod
    def compute_matrix() -> Any:
        return np.array([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("kind", "name", "angles"), [(_Named, "RX", [0.3]), (_Barrier, "Barrier", []), (_Barrier, "Identity", [])]
)
def test_a_gate_of_the_same_name_has_its_own_matrix(kind: Any, name: str, angles: list[float]) -> None:
    kind = type(name, (kind,), {})
    gate = kind(*angles, wires=[1])
    assert gate.name == name
    state = _random_state(2, 1)
    expected = np.kron(np.eye(2), kind.compute_matrix(*angles)) @ state
    np.testing.assert_allclose(_state_after(gate, state, [0, 1]), expected, atol=1e-12)


@pytest.mark.parametrize("gate", [lambda: qml.Hermitian(np.diag([1, 2]), 0), lambda: qml.X(0) + qml.Z(0)])
def test_an_operator_that_is_not_unitary_is_refused(gate: Callable[[], Any]) -> None:
    with pytest.raises(BadInput, match="not unitary"):
        _state_after(gate(), _random_state(2, 1), [0, 1])


def test_parameters_in_single_precision() -> None:
    state = _random_state(2, 1)
    found = _state_after(qml.SingleExcitation(np.float32(0.3), [0, 1]), state, [0, 1])
    np.testing.assert_allclose(found, qml.SingleExcitation(0.3, [0, 1]).matrix() @ state, atol=1e-7)
    assert abs(np.linalg.norm(found) - 1) < 1e-14
