"""The pytket backend against pytket's own matrices and states."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from onehop import BadInput

pytest.importorskip("pytket", reason="there is no pytket; pip install pytket")

from pytket.circuit import Bit, CircBox, Circuit, OpType, PauliExpBox, Qubit, Unitary2qBox, fresh_symbol
from pytket.pauli import Pauli, QubitPauliString
from pytket.utils import QubitPauliOperator

from onehop.pytket import OnehopBackend


def _deep() -> Circuit:
    inside = Circuit(2).H(0).CX(0, 1).Rz(0.3, 1)
    inside.add_phase(0.2)
    circuit = Circuit(3).Ry(0.4, 0).Ry(0.7, 1)
    circuit.add_phase(0.4)
    circuit.add_circbox(CircBox(inside), [2, 0])
    circuit.add_pauliexpbox(PauliExpBox([Pauli.X, Pauli.Y, Pauli.Z], 0.3), [2, 0, 1])
    circuit.add_unitary2qbox(
        Unitary2qBox(np.linalg.qr(np.arange(16).reshape(4, 4) ** 0.5 + np.eye(4))[0]), 1, 2
    )
    return circuit


def test_boxes_phases_and_implicit_swaps() -> None:
    circuit = _deep()
    np.testing.assert_allclose(
        OnehopBackend().run_circuit(circuit).get_state(), circuit.get_statevector(), atol=1e-12
    )
    swapped = Circuit(3).Ry(0.3, 0).SWAP(0, 1).Ry(0.2, 1).SWAP(1, 2).CX(2, 0)
    swapped.replace_SWAPs()
    assert any(one != other for one, other in swapped.implicit_qubit_permutation().items())
    np.testing.assert_allclose(
        OnehopBackend().run_circuit(swapped).get_state(), swapped.get_statevector(), atol=1e-12
    )
    compiled = OnehopBackend().get_compiled_circuit(circuit)
    found = OnehopBackend().run_circuit(compiled).get_state()
    assert abs(np.vdot(found, circuit.get_statevector())) == pytest.approx(1)


def test_shots_with_conditions_and_resets() -> None:
    circuit = Circuit(2, 3).H(0).Measure(0, 0)
    circuit.X(1, condition_bits=[0], condition_value=1)
    circuit.Measure(1, 1)
    circuit.add_gate(OpType.Reset, [0])
    circuit.Measure(0, 2)
    backend = OnehopBackend()
    handle = backend.process_circuit(circuit, 400, seed=1)
    result = backend.get_result(handle)
    counts = result.get_counts()
    assert set(counts) == {(0, 0, 0), (1, 1, 0)}
    assert abs(counts[1, 1, 0] - 200) < 5 * 10
    again = backend.run_circuit(circuit, 400, seed=1)
    assert (again.get_shots() == result.get_shots()).all()
    assert backend.circuit_status(handle).status.name == "COMPLETED"


def test_a_circuit_without_bits_has_all_qubits_measured() -> None:
    circuit = Circuit(3).X(1)
    result = OnehopBackend().run_circuit(circuit, 20)
    assert result.get_counts() == {(0, 1, 0): 20}
    assert circuit.n_bits == 0


def test_expectation_values() -> None:
    circuit = _deep()
    operator = QubitPauliOperator(
        {
            QubitPauliString({Qubit(0): Pauli.X, Qubit(2): Pauli.Y}): 0.7,
            QubitPauliString({Qubit(1): Pauli.Z}): -1.1,
            QubitPauliString(): 0.2,
        }
    )
    expected = operator.state_expectation(circuit.get_statevector(), circuit.qubits)
    assert OnehopBackend().get_operator_expectation_value(circuit, operator) == pytest.approx(expected)
    one = QubitPauliString([Qubit(1), Qubit(0)], [Pauli.Z, Pauli.Y])
    expected = one.state_expectation(circuit.get_statevector(), circuit.qubits)
    assert OnehopBackend().get_pauli_expectation_value(circuit, one) == pytest.approx(expected)


def _conditional() -> Circuit:
    return Circuit(1, 1).H(0).Measure(0, 0).X(0, condition_bits=[Bit(0)], condition_value=1)


_Z = QubitPauliString([Qubit(0)], [Pauli.Z])


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda b: b.process_circuit(Circuit(1).Rx(fresh_symbol("a"), 0), valid_check=False), "without symbols"),
        (lambda b: b.process_circuit(Circuit(0), valid_check=False), "at least 1 qubit"),
        (lambda b: b.process_circuit(_conditional()), "give a number of shots"),
        (lambda b: b.process_circuit(Circuit(1, 1).H(0).Measure(0, 0).X(0)), "give a number of shots"),
        (lambda b: b.get_operator_expectation_value(_conditional(), _Z), "give a number of shots"),
        (lambda b: b.get_operator_expectation_value(Circuit(2).H(1).CX(1, 0).Reset(1), _Z), "found reset"),
        (
            lambda b: b.get_operator_expectation_value(
                Circuit(1), QubitPauliOperator({QubitPauliString(Qubit(0), Pauli.Z): 1j})
            ),
            "Hermitian",
        ),
        (
            lambda b: b.get_pauli_expectation_value(Circuit(1), QubitPauliString(Qubit(3), Pauli.Z)),
            "qubits of the circuit",
        ),
        (lambda _: OnehopBackend(precision="half"), "precision 'single' or 'double'"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(run: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        run(OnehopBackend())


def test_copies() -> None:
    made = OnehopBackend(precision="single")
    assert copy.deepcopy(made).precision == "single"
    assert pickle.loads(pickle.dumps(made)).precision == "single"
