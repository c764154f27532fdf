"""Hostile OpenQASM files are refused with their line and column, on the command line too."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from commands import refused
from onehop import BadInput
from ranks import Ranks
from reference_circuit import final_state

pytest.importorskip("qiskit")
from qiskit import QuantumCircuit

from onehop.quantum import Circuit, Operation, gate
from onehop.quantum.io.from_qiskit import from_qiskit
from onehop.quantum.io.qasm import load_qasm, parse_qasm
from onehop.quantum.noise.channel import depolarizing
from onehop.quantum.noise.model import NoiseModel
from onehop.quantum.observables import PauliSum, PauliTerm

pytestmark = pytest.mark.timeout(100)

HEAD_2 = 'OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[2];\n'
HEAD_3 = 'OPENQASM 3.0;\ninclude "stdgates.inc";\nqubit[2] q;\n'
DOUBLING = "gate g0 a { x a; }\n" + "".join(
    f"gate g{i} a {{ g{i - 1} a; g{i - 1} a; }}\n" for i in range(1, 60)
)
MANY = 'OPENQASM 3.0;\ninclude "stdgates.inc";\nqubit[40] q;\n'

# Texts, and where and why they are refused.
ATTACKS = {
    "digits_2": (HEAD_2 + f"rz({'9' * 5000}) q[0];", "4:4: expected a number of fewer than 300 digits"),
    "digits_3": (HEAD_3 + f"rz({'9' * 5000}) q[0];", "4:4: expected a number of fewer than 300 digits"),
    "index": (HEAD_2 + f"x q[{'9' * 25}];", "4:5: expected an integer below 2^63"),
    "version": (f"OPENQASM {'9' * 5000}.0;", "1:10: expected a number of fewer"),
    "condition": (HEAD_2 + f"creg c[2];\nif(c=={'9' * 20001}) x q[0];", "5:7: expected a number of fewer"),
    "register_2": (
        "OPENQASM 2.0;\nqreg q[999999999999];",
        "2:1: expected registers of at most 10000 qubits together, found 999999999999",
    ),
    "register_3": (
        "OPENQASM 3.0;\nqubit[1000000 * 1000000] q;",
        "2:1: expected registers of at most 10000 qubits",
    ),
    "bits": ("OPENQASM 3.0;\nbit[100000000] b;", "2:1: expected registers of at most 6"),
    "hexadecimal": (
        f"OPENQASM 3.0;\nqubit[0x{'f' * 5000}] q;",
        "2:7: expected a number of fewer than 300 digits",
    ),
    "registers_2": (
        "OPENQASM 2.0;\n" + "".join(f"creg c{i}[40000];\n" for i in range(3000)) + "qreg q[2];",
        "3:1: expected registers of at most 65536 bits together, found 80000",
    ),
    "registers_3": (
        "OPENQASM 3.0;\n" + "".join(f"bit[0x{40000:x}] c{i};\n" for i in range(3000)) + "qubit[2] q;",
        "3:1: expected registers of at most 65536 bits together, found 80000",
    ),
    "recursion_2": (HEAD_2 + "gate a x { a x; }\na q[0];", "4:12: 'a' is not defined"),
    "recursion_3": (HEAD_3 + "gate a x { a x; }\na q[0];", "4:12: gate 'a' is not defined"),
    "doubling_2": (HEAD_2 + DOUBLING + "g59 q[0];", "64:1: expected at most 10000000 operations"),
    "doubling_3": (HEAD_3 + DOUBLING + "g59 q[0];", "64:1: expected at most 10000000 operations"),
    "loop": (HEAD_3 + "for int i in [0:100000000] { x q[0]; }", "4:15: expected at most 10000000 operations"),
    "empty_loop": (HEAD_3 + "for int i in [0:100000000] { }", "4:15: expected at most 10000000 operations"),
    "loops": (
        HEAD_3 + "for int i in [0:999] { for int j in [0:999] { } }",
        "expected at most 100000 operations",
    ),
    "endless": (
        HEAD_3 + "int i; while (true) { i += 1; }",
        "4:8: expected a while loop of at most 6250 operations",
    ),
    "comment": (HEAD_2 + "/* " * 300_000, "4:1: the comment that begins here has no end"),
    "signs_2": (HEAD_2 + f"rz({'-' * 100_000}1) q[0];", "4:1: expected at most 2000 operators"),
    "powers": (HEAD_2 + f"rz(1{'^1' * 100_000}) q[0];", "4:1: expected at most 2000 operators"),
    "inverses": (HEAD_3 + "inv @ " * 3000 + "x q[0];", "4:1: expected at most 2000 operators"),
    "controls": (HEAD_3 + "ctrl(1000000) @ x q[0], q[1];", "expected 1 to 61 controls, found 1000000"),
    "infinite_2": (HEAD_2 + "rz(1e400) q[0];", "4:1: gate 'rz': expected finite angles, found inf"),
    "infinite_3": (HEAD_3 + "rz(1e400) q[0];", "4:1: gate 'rz': expected finite angles, found inf"),
    "infinite_product": (HEAD_2 + "u1(1e308*10) q[0];", "expected finite angles, found inf"),
    "infinite_power": (HEAD_3 + "pow(1e400) @ x q[0];", "expected a finite power"),
    "not_a_number": (HEAD_2 + "rz(1e400-1e400) q[0];", "4:1: gate 'rz': expected finite angles, found"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, message = ATTACKS[name]
    if "100000 " in message or name == "endless":
        monkeypatch.setenv("ONEHOP_QASM_OPERATIONS", "1e5")
    with pytest.raises(BadInput) as error:
        parse_qasm(text, name="f.qasm")
    assert (f"f.qasm:{message}" if message[0].isdigit() else message) in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_endless_includes(tmp_path: Path) -> None:
    (tmp_path / "self.inc").write_text('// nothing\ninclude "self.inc";\n')
    with pytest.raises(BadInput, match=r"self\.inc:2:9: self\.inc includes itself"):
        parse_qasm('OPENQASM 2.0;\ninclude "self.inc";\nqreg q[1];', folder=tmp_path)
    (tmp_path / "main.qasm").write_text('OPENQASM 2.0;\ninclude "main.qasm";\nqreg q[1];\n')
    with pytest.raises(BadInput, match="includes itself"):
        load_qasm(tmp_path / "main.qasm")
    (tmp_path / "a0.inc").write_text("")
    for i in range(1, 30):
        (tmp_path / f"a{i}.inc").write_text(f'include "a{i - 1}.inc";\n' * 2)
    with pytest.raises(BadInput, match="at most 1000 included files"):
        parse_qasm('OPENQASM 2.0;\ninclude "a29.inc";\nqreg q[1];', folder=tmp_path)


@pytest.mark.parametrize(
    "modifier",
    [
        "ctrl(20)",
        "negctrl(20)",
        "negctrl @ " * 19 + "negctrl",
        "ctrl(20) @ inv",
        "ctrl(17) @ ctrl @ negctrl(2)",
        "ctrl(18) @ inv @ negctrl @ ctrl @ inv",
    ],
)
def test_many_controls_are_not_written_out(modifier: str) -> None:
    qubits = ", ".join(f"q[{i}]" for i in range(21))
    circuit = parse_qasm(f"{MANY}gate own a {{ h a; t a; h a; }}\n{modifier} @ own {qubits};")
    assert len(circuit) == 3
    assert all(len(one.controls) == 20 for one in circuit.operations)


def test_modifiers_match_their_matrix() -> None:
    """A gate with five modifiers on six qubits, against its matrix."""
    text = (
        'OPENQASM 3.0;\ninclude "stdgates.inc";\nqubit[6] q;\n'
        "h q[0]; h q[1]; h q[2]; h q[3]; ry(0.3) q[4]; ry(0.4) q[5];\n"
        "negctrl @ ctrl(2) @ negctrl(2) @ pow(0.5) @ x q[0], q[1], q[2], q[3], q[4], q[5];\n"
    )
    before = final_state(parse_qasm(text.replace("negctrl @ ctrl", "//")))
    found = final_state(parse_qasm(text))
    expected = before.reshape((2,) * 6).copy()
    root = np.array([[1 + 1j, 1 - 1j], [1 - 1j, 1 + 1j]]) / 2
    # q0 = 0, q1 = q2 = 1, q3 = q4 = 0; axes are from q5 to q0.
    expected[:, 0, 0, 1, 1, 0] = root @ expected[:, 0, 0, 1, 1, 0]
    assert np.abs(found - expected.reshape(-1)).max() < 1e-12


@pytest.mark.parametrize(
    "modifier",
    [
        "ctrl @ negctrl @",
        "ctrl(2) @",
        "negctrl @ inv @ ctrl @",
        "pow(2) @ ctrl @ negctrl @",
        "inv @ ctrl(2) @",
    ],
)
@pytest.mark.parametrize("gate", ["own", "h", "rx(0.7)"])
def test_modified_small_gates_stay_controlled(gate: str, modifier: str) -> None:
    """Controls of small gates, whether or not Qiskit has the controlled gate, against the matrix."""
    state = "ry(0.3) r[0]; ry(0.8) r[1]; ry(0.4) r[2]; t r[2];"
    text = 'OPENQASM 3.0;\ninclude "stdgates.inc";\ngate own a { h a; t a; sx a; }\nqubit[3] r;\n' + state
    matrix = np.array(
        [
            final_state(parse_qasm(f"{text.replace(state, '')}{flip}{gate} r[0];"))[:2]
            for flip in ("", "x r[0];")
        ]
    ).T
    if "inv" in modifier:
        matrix = matrix.conj().T
    if "pow(2)" in modifier:
        matrix = matrix @ matrix
    expected = final_state(parse_qasm(text)).reshape(2, 2, 2).copy()  # axes r[2], r[1], r[0]
    values = [0 if one == "negctrl" else 1 for one in modifier.replace("(2)", "").split() if "ctrl" in one]
    values = [1, 1] if "ctrl(2)" in modifier else values
    expected[:, values[1], values[0]] = matrix @ expected[:, values[1], values[0]]
    circuit = parse_qasm(f"{text}{modifier} {gate} r[0], r[1], r[2];")
    np.testing.assert_allclose(final_state(circuit), expected.reshape(-1), atol=1e-12)
    if "pow" not in modifier:  # a power is that of the whole matrix
        assert all(len(one.controls) == 2 for one in circuit.operations[4:])


def test_definitions_of_qiskit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEHOP_QASM_OPERATIONS", "1000")
    inner = QuantumCircuit(1)
    inner.h(0)
    for _ in range(11):
        outer = QuantumCircuit(1)
        made = inner.to_gate()
        outer.append(made, [0])
        outer.append(made, [0])
        inner = outer
    with pytest.raises(BadInput, match=r"at most 1000 operations.*ONEHOP_QASM_OPERATIONS"):
        from_qiskit(inner)


def test_budgets_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD_3 + "for int i in [0:99] { x q[0]; }"
    assert len(parse_qasm(text)) == 100
    monkeypatch.setenv("ONEHOP_QASM_OPERATIONS", "50")
    with pytest.raises(BadInput, match="ONEHOP_QASM_OPERATIONS"):
        parse_qasm(text)
    monkeypatch.setenv("ONEHOP_QASM_OPERATIONS", "-3")
    with pytest.raises(BadInput, match="ONEHOP_QASM_OPERATIONS: expected a whole number above 0, found '-3'"):
        parse_qasm(text)
    monkeypatch.delenv("ONEHOP_QASM_OPERATIONS")
    monkeypatch.setenv("ONEHOP_QASM_SECONDS", "1e-9")
    with pytest.raises(BadInput, match="set ONEHOP_QASM_SECONDS to raise the limit"):
        parse_qasm(text)


@pytest.mark.parametrize("angle", [math.inf, -math.inf, math.nan])
def test_angles_are_finite(angle: float) -> None:
    with pytest.raises(BadInput, match="finite"):
        gate("rz", [0], [angle])
    circuit = Circuit(1)
    circuit.add(Operation("diagonal", "d", [0], values=np.array([1, complex(angle)])))
    with pytest.raises(BadInput, match="finite"):
        circuit.validate()
    circuit = Circuit(1)
    circuit.add(Operation("global_phase", "gphase", [], angle=angle))
    with pytest.raises(BadInput, match="finite"):
        circuit.validate()
    theirs = QuantumCircuit(1)
    theirs.rx(angle, 0)
    with pytest.raises(BadInput, match="finite"):
        from_qiskit(theirs)
    with pytest.raises(BadInput, match="finite"):
        PauliSum((PauliTerm(complex(angle), ((0, "Z"),)),))
    with pytest.raises(BadInput):
        PauliSum.parse("1e400*Z0")
    with pytest.raises(BadInput, match="probability"):
        depolarizing(angle)
    with pytest.raises(BadInput):
        NoiseModel.parse(f"depolarizing={angle}")
    with pytest.raises(BadInput):
        NoiseModel.parse(f"readout={angle}")


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command ends with exit code 2 and one line."""
    file = tmp_path / "f.qasm"
    for command, name in (("run", "index"), ("plan", "doubling_2"), ("plan", "infinite_3")):
        file.write_text(ATTACKS[name][0])
        assert ATTACKS[name][1] in refused([command, str(file)], capsys)


def test_memory_and_time_of_the_reader_are_limited(ranks: Ranks) -> None:
    """A file without end, a circuit that takes more memory than it may, and one that takes too long."""
    file = ranks.folder / "f.qasm"
    file.symlink_to("/dev/zero")
    ranks.environment["ONEHOP_QASM_MEMORY_MIB"] = "4"

    def told() -> str:
        (line,) = ranks.onehop("plan", file, status=2).stderr.strip().splitlines()
        return line

    assert "at most 4194304 bytes, found more" in told()
    file.unlink()
    file.write_text(HEAD_3 + "for int i in [0:100000] { x q[0]; }")
    assert "4:27: there is not enough memory to read the circuit" in told()
    file.write_text(HEAD_2)
    ranks.environment["ONEHOP_QASM_MEMORY_MIB"] = "40000"
    ranks.environment["ONEHOP_QASM_SECONDS"] = "1e-9"
    told()
