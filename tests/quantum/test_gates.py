"""Every named gate against Qiskit's matrix of the same name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import brute_force
from onehop import BadInput
from onehop.quantum import Circuit, gate, gate_names

pytest.importorskip("qiskit")
from qiskit.circuit import ControlledGate, Gate
from qiskit.circuit.library import standard_gates as library
from qiskit.quantum_info import Operator

ANGLES = (0.7, -1.3, 2.1, 0.4)
QISKIT = {
    "id": library.IGate,
    "u0": lambda _: library.IGate(),
    "phase": library.PhaseGate,
    "p": library.PhaseGate,
    "U": library.UGate,
    "CX": library.CXGate,
    "cphase": library.CPhaseGate,
    "cp": library.CPhaseGate,
    "sxdg": library.SXdgGate,
    "sdg": library.SdgGate,
    "tdg": library.TdgGate,
    "csdg": library.CSdgGate,
    "c3x": library.C3XGate,
    "c4x": library.C4XGate,
    "c3sqrtx": library.C3SXGate,
    "rccx": library.RCCXGate,
    "rc3x": library.RC3XGate,
    "rcccx": library.RC3XGate,
    "iswap": library.iSwapGate,
    "mcx": lambda: library.MCXGate(5),
    "mcphase": lambda angle: library.MCPhaseGate(angle, 4),
    "gphase": library.GlobalPhaseGate,
}


def _of_qiskit(name: str, parameters: tuple[float, ...]) -> Gate | ControlledGate:
    known = QISKIT.get(name) or getattr(
        library, {"ccx": "CCX", "cswap": "CSwap"}.get(name, name.upper()) + "Gate", None
    )
    if known is None:
        known = getattr(library, name.capitalize() + "Gate")
    return known(*parameters)


@pytest.mark.parametrize(("name", "qubits", "parameters"), gate_names())
def test_matrix_is_qiskits(name: str, qubits: int, parameters: int) -> None:
    reference = _of_qiskit(name, ANGLES[:parameters])
    count = reference.num_qubits
    assert qubits in (-1, count)
    operation = gate(name, list(range(count)), list(ANGLES[:parameters]))
    assert np.abs(np.ravel(operation.matrix()) - brute_force.matrix_of(operation).ravel()).max() < 1e-15
    columns = [brute_force.apply(column, operation) for column in np.eye(1 << count, dtype=complex)]
    assert np.abs(np.array(columns).T - Operator(reference).data).max() < 1e-14


def test_qelib1_and_stdgates_are_there() -> None:
    qelib1 = """u3 u2 u1 cx id u0 u p x y z h s sdg t tdg rx ry rz sx sxdg cz cy swap ch ccx cswap crx cry crz cu1 cp
        cu3 csx cu rxx rzz rccx rc3x c3x c3sqrtx c4x"""
    stdgates = """p x y z h s sdg t tdg sx rx ry rz cx cy cz cp crx cry crz ch swap ccx cswap cu CX phase cphase id u1
        u2 u3"""
    assert {*qelib1.split(), *stdgates.split(), "U", "gphase"} <= {name for name, _, _ in gate_names()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nogate", [0]), "found 'nogate'"),
        (("cx", [0, 1, 2]), "gate cx: expected 2 qubits, found 3"),
        (("h", [0], [1.0]), "gate h: expected 0 parameters, found 1"),
        (("rz", [0]), "gate rz: expected 1 parameter, found 0"),
        (("mcx", []), "at least 1 qubit"),
    ],
)
def test_bad_input_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        gate(*arguments)


def test_a_qubit_that_is_named_twice_is_refused() -> None:
    circuit = Circuit(2)
    circuit.add(gate("cx", [1, 1]))
    with pytest.raises(BadInput, match=r"operation 0 \(cx\): qubit 1 is named twice"):
        circuit.validate()


def test_matrices_in_single_precision_become_the_nearest_unitary_ones() -> None:
    exact = brute_force.random_unitary(np.random.default_rng(5), 4)
    rounded = exact.astype(np.complex64).astype(complex)
    assert 1e-9 < abs(rounded @ rounded.conj().T - np.eye(4)).max() < 1e-6
    circuit = Circuit(2).unitary(rounded, [0, 1])
    circuit.diagonal(np.exp(1j * np.arange(4)).astype(np.complex64), [0, 1]).validate()
    np.testing.assert_allclose(circuit.operations[0].values.reshape(4, 4), exact, atol=1e-6)
    wrong = r"differs from 1 by 2e-06, more than 1e-09; pass a unitary matrix, computed in double precision"
    for turned in (Circuit(1).unitary(np.diag([1, 1 + 1e-6]), [0]), Circuit(1).diagonal([1, 1 + 1e-6], [0])):
        with pytest.raises(BadInput, match=wrong):
            turned.validate()
