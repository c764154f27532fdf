"""Outcomes as text: no bit is left out, whichever registers a circuit has."""

from __future__ import annotations

import pytest

from onehop import quantum

# Registers of three bits as name, first bit and size; the text of the outcome 0b011 and that of 0b010.
REGISTERS = {
    "none": ([], "011", "010"),
    "one": ([("a", 0, 3)], "011", "010"),
    "two": ([("a", 0, 1), ("b", 1, 2)], "01 1", "01 0"),
    "another order": ([("b", 1, 2), ("a", 0, 1)], "1 01", "0 01"),
    "common bits": ([("a", 0, 2), ("b", 1, 2)], "01 11", "01 10"),
    "first bit outside": ([("a", 1, 1), ("b", 2, 1)], "011", "010"),
    "bit outside between": ([("a", 0, 1), ("b", 2, 1)], "011", "010"),
    "last bit outside": ([("a", 0, 1), ("b", 1, 1)], "011", "010"),
}


@pytest.mark.parametrize("name", REGISTERS)
def test_texts_have_all_bits(name: str) -> None:
    registers, first, second = REGISTERS[name]
    circuit = quantum.Circuit(3, 3)
    circuit.h(0).x(1).measure([0, 1, 2], [0, 1, 2])
    circuit.registers = [quantum.Register(*one) for one in registers]
    for simulate in (quantum.simulate, quantum.simulate_density, quantum.simulate_trajectories):
        counts = simulate(circuit, shots=100, seed=1).counts
        assert counts.keys() == {first, second}
        assert sum(counts.values()) == 100


def test_bits_of_openqasm_3_that_are_in_no_register() -> None:
    pytest.importorskip("qiskit_qasm3_import")
    circuit = quantum.parse_qasm(
        'OPENQASM 3.0; include "stdgates.inc"; qubit[3] q; bit flag; bit[1] a; bit[1] b;'
        "h q[0]; x q[1]; flag = measure q[0]; a[0] = measure q[1]; b[0] = measure q[2];"
    )
    counts = quantum.simulate(circuit, shots=100, seed=1).counts
    assert counts.keys() == {"010", "011"}
    assert sum(counts.values()) == 100
