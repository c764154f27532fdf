"""`Circuit.to_qasm`: what it writes is read back as a circuit that does the same."""

from __future__ import annotations

import numpy as np
import pytest

from onehop import BadInput
from onehop.quantum import Circuit, Condition, Parameter, Register, gate, gate_names, parse_qasm
from onehop.quantum.steps import Program
from onehop.quantum.two_qubit import haar_unitary
from reference_circuit import distribution, final_state

# Gates whose number of qubits has no limit, or which OpenQASM 2 has only with fewer controls.
_ONLY_3 = ("mcphase", "rc3x", "rcccx", "c3sqrtx", "rccx")


def _random_gate(circuit: Circuit, random: np.random.Generator, version: int) -> None:
    names = [one for one in gate_names() if version == 3 or one[0] not in _ONLY_3]
    name, width, parameters = names[random.integers(len(names))]
    count = width if width >= 0 else 3
    qubits = random.permutation(circuit.qubits)[:count].tolist()
    angles = random.choice([0.0, np.pi, -np.pi / 2, 7.5, *random.uniform(-4, 4, 4)], parameters).tolist()
    made = gate(name, qubits, angles)
    free = [qubit for qubit in range(circuit.qubits) if qubit not in qubits]
    if version == 3 and free and random.integers(3) == 0:
        made.control_values |= int(random.integers(2)) << len(made.controls)
        made.controls = [*made.controls, free[0]]
    circuit.add(made)


def _random_circuit(seed: int, version: int, *, measured: bool) -> Circuit:
    random = np.random.default_rng(seed)
    circuit = Circuit(5, 4, "c")
    circuit.registers = [Register("a", 0, 2), Register("b", 2, 2)]
    for _ in range(12):
        _random_gate(circuit, random, version)
        if version == 2 and circuit.operations[-1].kind == "global_phase":
            circuit.x(0)
        if measured:
            where = int(random.integers(4))
            kind = random.integers(6)
            if kind == 0:
                circuit.measure(where, where)
            elif kind == 1:
                circuit.reset(where)
            elif kind == 2 and version == 3:
                with circuit.when([0, 3], int(random.integers(4)), negated=bool(random.integers(2))):
                    _random_gate(circuit, random, version)
                    circuit.measure(1, 1)
            elif kind == 3:
                conditional = gate("ry", [where], [0.4])
                conditional.condition = Condition([2, 3], int(random.integers(4)))
                circuit.add(conditional)
    circuit.unitary(haar_unitary(4, random), [3, 1])
    if version == 3:
        circuit.unitary(haar_unitary(8, random), [4, 0, 2], controls=[1], control_values=0)
        circuit.pauli_rotation("XYZ", 0.7, [0, 4, 2], controls=[3])
        circuit.diagonal(np.exp(1j * random.uniform(-3, 3, 8)), [4, 0, 2], controls=[1])
    return circuit


@pytest.mark.parametrize("version", [2, 3])
def test_random_circuits_are_read_back(version: int) -> None:
    for seed in range(8 if version == 3 else 20):
        circuit = _random_circuit(seed, version, measured=False)
        found, expected = final_state(parse_qasm(circuit.to_qasm(version))), final_state(circuit)
        if version == 2:  # up to a global phase
            found *= np.vdot(found, expected) / abs(np.vdot(found, expected))
        assert np.abs(found - expected).max() < 1e-10, seed
        measured = _random_circuit(seed, version, measured=True)
        again = parse_qasm(measured.to_qasm(version))
        assert (again.clbits, [(one.name, one.first, one.size) for one in again.registers]) == (
            4,
            [("a", 0, 2), ("b", 2, 2)],
        )
        assert distribution(again) == pytest.approx(distribution(measured), abs=1e-10), seed


def _coins() -> Circuit:
    """Return coins that are thrown until one is 1, at most twice, with marks and jumps."""
    circuit = Circuit(2, 2)
    program = Program(circuit)
    program.mark(0)
    circuit.reset(0).h(0).measure(0, 0)
    program.jump(1, Condition([0], 1))
    with circuit.when(1, 0):
        circuit.x(1).measure(1, 1)
    program.jump(0, Condition([1], 0))
    program.mark(1)
    return circuit


def test_loops_are_read_back() -> None:
    loops = {
        "end": "while (c[0] == 0) { reset q[0]; h q[0]; c[0] = measure q[0]; x q[1]; } c[1] = measure q[1];",
        "leave": "while (true) { h q[0]; c[0] = measure q[0]; if (c[0]) break; x q[1]; } c[1] = measure q[1];",
        "inside": "uint[2] n = 0; bit go = 1; while (go && n < 2) { n += 1; bit in = 1; int[3] k = 0; "
        "while (in && k < 2) { k += 1; h q[0]; in = measure q[0]; } reset q[0]; h q[0]; go = measure q[0]; } c = n;",
    }
    head = 'OPENQASM 3.0; include "stdgates.inc"; qubit[2] q; bit[2] c;'
    circuits = {name: parse_qasm(head + text) for name, text in loops.items()}
    circuits["jumps"] = _coins()
    circuits["two"] = circuits["end"].compose(circuits["leave"])  # whose marks have the same numbers
    assert "jump" in str(circuits["two"].draw(width=2000))
    for name, circuit in circuits.items():
        text = circuit.to_qasm()
        assert distribution(parse_qasm(text)) == pytest.approx(distribution(circuit), abs=1e-9), name
        with pytest.raises(BadInput, match="OpenQASM 2 has no"):
            circuit.to_qasm(2)


def test_the_text() -> None:
    circuit = Circuit(3, 3)
    circuit.registers = [Register("c", 0, 2), Register("if", 2, 1)]
    circuit.h(0).cx(0, 1).ccx(0, 1, 2).rz(0.5, 1).swap(0, 2).measure([0, 1], [0, 1])
    with circuit.when(2):
        circuit.x(1)
    assert circuit.to_qasm().splitlines() == [
        "OPENQASM 3.0;",
        'include "stdgates.inc";',
        "qubit[3] q;",
        "bit[2] c;",
        "bit[1] c_if;",
        "bool h0;",
        "h q[0];",
        "cx q[0], q[1];",
        "ccx q[0], q[1], q[2];",
        "rz(0.5) q[1];",
        "swap q[0], q[2];",
        "c[0] = measure q[0];",
        "c[1] = measure q[1];",
        "h0 = c_if[0];",
        "if (h0) x q[1];",
    ]


def test_parameters_are_inputs() -> None:
    a, b = Parameter("a"), Parameter("b")
    circuit = Circuit(3).rx(2 * a - b + 0.25, 0).u(a, b, a + b, 1).cp(a, 0, 2).rzz(b, 0, 1)
    circuit.pauli_rotation("ZYX", 3 * a, [0, 1, 2]).global_phase(a, controls=[1]).gate(
        "cu", [2, 0], [a, b, a, b]
    )
    again = parse_qasm(circuit.to_qasm())
    assert list(again.parameters) == ["a", "b"]
    values = {"a": 0.3, "b": -1.1}
    assert np.abs(final_state(again.bind(values)) - final_state(circuit.bind(values))).max() < 1e-12


@pytest.mark.parametrize(
    ("circuit", "version", "message"),
    [
        (Circuit(1), 4, "version: expected a whole number from 2 to 3, found 4"),
        (Circuit(7).unitary(np.eye(64), range(6)), 3, r"operation 0 \(unitary\): expected matrices .* at most 5"),
        (Circuit(1).rx(Parameter("a"), 0), 2, "no parameters; write OpenQASM 3"),
        (Circuit(4).unitary(haar_unitary(8, np.random.default_rng(1)), [0, 1, 2]), 2, r"operation 0 .* 2 controls"),
        (_coins(), 2, "no loops|no values"),
    ],
)  # fmt: skip
def test_what_cannot_be_written(circuit: Circuit, version: int, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        circuit.to_qasm(version)
