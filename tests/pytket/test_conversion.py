"""Every type of operation of pytket against pytket's own matrices on random states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pytket", reason="there is no pytket; pip install pytket")

from pytket import circuit as tket
from pytket.circuit import Circuit, Op, OpType
from pytket.passes import DecomposeBoxes
from pytket.pauli import Pauli
from sympy import Symbol

from onehop import BadInput
from onehop.pytket.conversion import converted
from onehop.quantum import State

_ANGLES = [0.3, 1.4, 0.9, 0.55, 1.1, 0.7]
_TWO = np.linalg.qr(np.arange(16).reshape(4, 4) ** 0.5 + 1j * np.eye(4))[0]
_WORD = [Pauli.X, Pauli.I, Pauli.Y]


def _inside() -> Circuit:
    """A circuit with a phase and swaps that are names of outputs only."""
    circuit = Circuit(2).H(0).SWAP(0, 1).CX(0, 1).Rz(0.3, 1)
    circuit.add_phase(0.2)
    circuit.replace_SWAPs()
    return circuit


BOXES: dict[str, Callable[[], Any]] = {
    "CircBox": lambda: tket.CircBox(_inside()),
    "ConjugationBox": lambda: tket.ConjugationBox(
        tket.CircBox(_inside()), tket.CircBox(Circuit(2).Rx(0.3, 1).CZ(0, 1))
    ),
    "DiagonalBox": lambda: tket.DiagonalBox(np.exp(1j * np.arange(8))),
    "ExpBox": lambda: tket.ExpBox(np.array(_TWO + _TWO.conj().T), 0.3),
    "MultiplexedRotationBox": lambda: tket.MultiplexedRotationBox(
        [([False, True], Op.create(OpType.Ry, 0.3)), ([True, True], Op.create(OpType.Ry, 0.7))]
    ),
    "MultiplexorBox": lambda: tket.MultiplexorBox(
        [([False, True], Op.create(OpType.H)), ([True, True], Op.create(OpType.T))]
    ),
    "PauliExpBox": lambda: tket.PauliExpBox(_WORD, 0.3),
    "PauliExpCommutingSetBox": lambda: tket.PauliExpCommutingSetBox(
        [([Pauli.X, Pauli.X], 0.3), ([Pauli.Z, Pauli.Z], 0.4)]
    ),
    "PauliExpPairBox": lambda: tket.PauliExpPairBox(_WORD, 0.3, [Pauli.Z, Pauli.Z, Pauli.X], 0.4),
    "QControlBox": lambda: tket.QControlBox(Op.create(OpType.Ry, 0.3), 2, [False, True]),
    "controlled circuit": lambda: tket.QControlBox(tket.CircBox(_inside()), 1, 0),
    "controlled control": lambda: tket.QControlBox(
        tket.QControlBox(Op.create(OpType.TK1, [0.3, 0.4, 0.5]), 1, 0), 1, 1
    ),
    "StatePreparationBox": lambda: tket.StatePreparationBox(np.array([0.6, 0, 0, 0.8j])),
    "TermSequenceBox": lambda: tket.TermSequenceBox([([Pauli.X, Pauli.Y], 0.3), ([Pauli.Z, Pauli.I], 0.4)]),
    "ToffoliBox": lambda: tket.ToffoliBox([([False, False], [True, True]), ([True, True], [False, False])]),
    "Unitary2qBox": lambda: tket.Unitary2qBox(_TWO),
}


def _gate(kind: OpType) -> Op | None:
    """Make a gate of a type with as many angles and qubits as it takes; None if it is no gate."""
    for angles in range(len(_ANGLES) + 1):
        for qubits in (3, 1, 2, 4):
            try:
                circuit = Circuit(qubits).add_gate(kind, _ANGLES[:angles], list(range(qubits)))
                made = circuit.get_commands()[0].op
                made.get_unitary()
            except Exception:  # pytket has many kinds of errors
                continue
            return made
    return None


GATES = {kind.name: made for kind in OpType.__members__.values() if (made := _gate(kind)) is not None}


def test_all_gates_are_found() -> None:
    expected = "X CX CnX CnRz TK1 TK2 FSim PhasedX NPhasedX ZZPhase CSXdg BRIDGE"
    assert set(expected.split()) <= set(GATES)


def _assert_equal(operation: Any, seed: int) -> None:
    """Compare an operation on permuted qubits of a random state with its matrix."""
    random = np.random.default_rng(seed)
    count = operation.n_qubits
    where = random.permutation(count + 1)[:count].tolist()
    circuit = Circuit(count + 1)
    circuit.add_gate(operation, where)
    state = [1, 1j] @ random.normal(size=(2, 2 << count))
    state /= np.linalg.norm(state)
    ours = State(count + 1).set_amplitudes(state)
    ours.run(converted(circuit))
    # The first qubit is the most significant bit. pytket's matrices of boxes may leave out swaps that are names only.
    alone = Circuit(count).add_gate(operation, list(range(count)))
    DecomposeBoxes().apply(alone)
    matrix = alone.get_unitary().reshape((2,) * (2 * count))
    expected = np.tensordot(matrix, state.reshape((2,) * (count + 1)), (range(count, 2 * count), where))
    expected = np.moveaxis(expected, range(count), where).reshape(-1)
    np.testing.assert_allclose(ours.vector(), expected, atol=1e-9, err_msg=repr(operation))


@pytest.mark.parametrize("name", [*GATES, *BOXES])
def test_every_gate_has_its_matrix(name: str) -> None:
    operation = GATES[name] if name in GATES else BOXES[name]()
    _assert_equal(operation, 1)
    try:
        inverse = operation.dagger
    except RuntimeError:
        inverse = operation
    _assert_equal(inverse, 2)
    if operation.n_qubits:
        _assert_equal(tket.QControlBox(operation, 2, [False, True]), 3)


@pytest.mark.parametrize("value", [0, 1])
def test_swaps_that_are_names_only_hold_under_a_condition(value: int) -> None:
    start = Circuit(3, 1).Ry(0.3, 0).Ry(0.7, 1)
    if value:
        start.X(2)
    circuit = start.copy().Measure(2, 0)
    circuit.add_circbox(tket.CircBox(_inside()), [0, 1], condition_bits=[0], condition_value=1)
    state = State(3)
    state.run(converted(circuit))
    matrix = np.kron(_inside().get_unitary() if value else np.eye(4), np.eye(2))
    np.testing.assert_allclose(state.vector(), matrix @ start.get_statevector(), atol=1e-12)


def _custom(inside: tket.CircBox) -> Op:
    angle = Symbol("angle")
    definition = Circuit(2).Rx(angle, 0).add_circbox(inside, [1, 0])
    return tket.CustomGate(tket.CustomGateDef.define("custom", definition, [angle]), [0.3])


AROUND: dict[str, Callable[[tket.CircBox], Any]] = {
    "circuit": lambda inside: tket.CircBox(Circuit(2).add_circbox(inside, [1, 0]).H(0)),
    "compute": lambda inside: tket.ConjugationBox(inside, tket.CircBox(Circuit(2).CX(0, 1))),
    "action": lambda inside: tket.ConjugationBox(tket.CircBox(Circuit(2).CX(0, 1)), inside),
    "control": lambda inside: tket.QControlBox(
        tket.ConjugationBox(tket.CircBox(Circuit(2).CY(1, 0)), inside), 1, [False]
    ),
    "multiplexor": lambda inside: tket.MultiplexorBox({(True,): inside}),
    "custom": _custom,
}


@pytest.mark.parametrize("name", AROUND)
def test_swaps_that_are_names_only_hold_in_boxes_in_boxes(name: str) -> None:
    _assert_equal(AROUND[name](tket.CircBox(_inside())), 1)


def test_a_type_that_is_no_gate_is_refused() -> None:
    circuit = Circuit(1)
    circuit.set_rng_seed(circuit.add_c_register("seed", 64))
    with pytest.raises(BadInput, match="expected gates, measurements, resets and conditions, found"):
        converted(circuit)
