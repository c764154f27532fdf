"""Texts of outcomes where classical registers share bits or are in another order: those of qiskit-aer."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import pytest

pytest.importorskip("qiskit")
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister
from qiskit.circuit import Clbit

from onehop.qiskit import OnehopBackend
from onehop.quantum import parse_qasm, simulate
from onehop.quantum.io.from_qiskit import from_qiskit

# The bits of each register, and how qiskit-aer 0.18 writes the outcome 101. Those with a bit in no register have all
# bits: qiskit-aer leaves some out there, and writes different outcomes alike.
TEXTS = {
    "none": ([], "101"),
    "in order": ([[0], [1, 2]], "10 1"),
    "shared": ([[0, 1], [1], [2]], "1 0 1"),
    "whole and part": ([[0, 1, 2], [1]], "1 01"),
    "part and whole": ([[1], [0, 1, 2]], "101 "),
    "the same twice": ([[0, 1, 2], [0, 1, 2]], "101 "),
    "reversed": ([[2, 1, 0]], "101"),
    "another order": ([[2], [0, 1]], "10 1"),
    "a gap": ([[0, 2], [1]], "1 01"),
    "an empty one": ([[0, 1, 2], []], " 101"),
    "first outside": ([[1, 2]], "101"),
    "last outside": ([[0], [1]], "101"),
}


def circuit(registers: Sequence[Sequence[int]]) -> QuantumCircuit:
    """Return a circuit of three bits in these registers, whose outcome is 101."""
    bits = [Clbit() for _ in range(3)]
    made = QuantumCircuit(QuantumRegister(3, "q"), bits)
    for number, places in enumerate(registers):
        made.add_register(ClassicalRegister(bits=[bits[k] for k in places], name=f"c{number}"))
    made.x([0, 2])
    made.measure(range(3), range(3))
    return made


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_those_of_aer(name: str) -> None:
    registers, text = TEXTS[name]
    made = circuit(registers)
    assert simulate(from_qiskit(made), shots=3).counts == {text: 3}
    assert OnehopBackend().run(made, shots=3).result().get_counts() == {text: 3}
    if find_spec("qiskit_aer") and not name.endswith("outside"):
        from qiskit_aer import AerSimulator

        assert AerSimulator().run(made, shots=3).result().get_counts() == {text: 3}


def test_aliases_of_openqasm_3_are_no_registers() -> None:
    made = parse_qasm(
        'OPENQASM 3.0; include "stdgates.inc"; qubit[3] q; bit[3] c; let part = c[1:2]; x q[0]; x q[2]; c = measure q;'
    )
    assert simulate(made, shots=3).counts.keys() == {"101"}
