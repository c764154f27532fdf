"""OpenQASM files: the circuits that they give, and the errors for broken files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onehop import BadInput, _core
from reference_circuit import distribution, final_state

pytest.importorskip("qiskit")
from qiskit.quantum_info import Statevector

from onehop.quantum import Circuit
from onehop.quantum.io.qasm import load_qasm, parse_qasm
from qiskit_reader import load_qiskit

DATA = Path(__file__).resolve().parents[1] / "data" / "qasm"
# The circuits of QASMBench, if they are next to the repository.
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "qasm"


def test_teleportation() -> None:
    circuit = load_qasm(DATA / "teleport.qasm")
    assert [one.name for one in circuit.registers] == ["c0", "c1", "c2"]
    assert distribution(circuit) == pytest.approx({0: 0.25, 1: 0.25, 2: 0.25, 3: 0.25})


def test_gates_that_the_file_defines() -> None:
    expected = Statevector(load_qiskit(DATA / "own_gates.qasm")).data
    assert np.abs(final_state(load_qasm(DATA / "own_gates.qasm")) - expected).max() < 1e-13


def test_openqasm_3() -> None:
    pytest.importorskip("qiskit_qasm3_import")
    found = distribution(load_qasm(DATA / "three.qasm"))
    # Qiskit simulates the part before the measurements.
    unitary = load_qiskit(DATA / "three.qasm")
    while unitary.data[-1].operation.name in ("measure", "if_else"):
        unitary.data.pop()
    loop = next(k for k, one in enumerate(unitary.data) if one.operation.name == "for_loop")
    unrolled = unitary.copy_empty_like()
    for k, one in enumerate(unitary.data):
        if k != loop:
            unrolled.append(one)
            continue
        for angle in (0.2, 0.4, 0.6):
            unrolled.rx(angle, 3)
            unrolled.ry(0.1, 0)
    state = Statevector(unrolled).data.reshape(2, 2, 4)  # q3, q2, low
    weight = (np.abs(state) ** 2).sum(axis=1)
    expected: dict[int, float] = {}
    for low in range(4):
        for high in range(2):
            key = (low & 2) | (high ^ 1 if low == 2 else high)
            expected[key] = expected.get(key, 0) + weight[high, low]
    assert found == pytest.approx(expected)


# This file measures a register that it does not declare.
BROKEN = {"vqe_uccsd_n8": ":10813:9: 'q' is not defined"}


@pytest.mark.parametrize("file", sorted(SHARED.glob("*.qasm")), ids=lambda file: file.stem)
def test_files_of_qasmbench(file: Path) -> None:
    """All files are read; small circuits without mid-circuit measurements are compared as whole states."""
    if file.stem in BROKEN:
        with pytest.raises(BadInput, match=BROKEN[file.stem]):
            load_qasm(file)
        return
    circuit, parsed = load_qasm(file), load_qiskit(file)
    assert (circuit.qubits, circuit.clbits) == (parsed.num_qubits, parsed.num_clbits)
    unmeasured = parsed.remove_final_measurements(inplace=False)
    if (
        circuit.qubits > 10
        or any(one.clbits for one in unmeasured.data)
        or unmeasured.get_instructions("reset")
    ):
        return
    only_gates = Circuit(circuit.qubits)
    for operation in circuit.operations:
        if operation.is_gate:
            only_gates.add(operation)
    assert np.abs(final_state(only_gates) - Statevector(unmeasured).data).max() < 1e-11


HEAD_2 = 'OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[2];\n'
HEAD_3 = 'OPENQASM 3.0;\ninclude "stdgates.inc";\nqubit[2] q;\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD_2 + "cx q[0], q[0];", "f.qasm:4:1: duplicate qubits"),
        (HEAD_2 + "  foo q[0];", "f.qasm:4:3: 'foo' is not defined"),
        (HEAD_2 + "x q[7];", "f.qasm:4:5: index 7 is out of range"),
        (HEAD_2 + "x q[0]", "f.qasm:4:7: expected ';', found the end of the file (in: x q[0])"),
        (HEAD_2 + "opaque foo a;\nfoo q[0];", "f.qasm:5:1: the instruction 'foo' has neither"),
        ('OPENQASM 2.0;\ninclude "none.inc";', "f.qasm:2:9: expected a file 'none.inc' in the folder"),
        (HEAD_3 + "cx q[0], q[0];", "f.qasm:4:1: duplicate"),
        (HEAD_3 + "foo q[0];", "f.qasm:4:1: gate 'foo' is not defined"),
        (
            HEAD_3 + "x q[7];",
            "f.qasm:4:5: index 7 is out of range; the register or array has 2 (in: x q[7];)",
        ),
        (HEAD_3 + "  x q[0] q[1];", "f.qasm:4:10: expected ';', found 'q'"),
        ("OPENQASM 4.0;\n", "f.qasm:1:10: expected OpenQASM 2 or 3, found version 4"),
        (
            f"OPENQASM 2.{'6' * 30};\n",
            ":1:12: expected OpenQASM 2.0 or 3.0, found a minor version of 30 digits",
        ),
        ("// nothing\n", "f.qasm:1:1: expected an OpenQASM program"),
        (
            HEAD_3 + "// ((\nrz(" + 300_000 * "(",
            "f.qasm:5:203: expected at most 200 nested brackets, found 201",
        ),
        ("OPENQASM 2.0;\n" + 300_000 * "(", "f.qasm:2:1: expected a statement, found '('"),
        (HEAD_3 + "end", "f.qasm:4:4: expected ';'"),
    ],
)
def test_broken_files(text: str, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_qasm(text, name="f.qasm")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_text_that_is_no_utf_8() -> None:
    with pytest.raises(
        BadInput, match=r"^text: expected text, found bytes that are no UTF-8, at character 9"
    ):
        parse_qasm("qubit q; \udcff")
    with pytest.raises(BadInput, match=r"^name: expected text, found bytes that are no UTF-8"):
        parse_qasm("qubit q;", name="\udcff.qasm")


def test_brackets_in_brackets() -> None:
    deep = 150 * "(" + "0.5" + 150 * ")"
    assert len(parse_qasm(HEAD_3 + f"rz({deep}) q[0]; // (((").operations) == 1


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read the circuit .*none\.qasm: No such file"):
        load_qasm(tmp_path / "none.qasm")
    (tmp_path / "binary.qasm").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="expected text in UTF-8"):
        load_qasm(tmp_path / "binary.qasm")


def test_included_files_are_looked_for_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "own.inc").write_text("gate flip a { U(pi, 0, pi) a; }\n")
    for text in (
        'OPENQASM 2.0;\ninclude "own.inc";\nqreg q[1];',
        'OPENQASM 3;\ninclude "own.inc";\nqubit[1] q;',
    ):
        (tmp_path / "f.qasm").write_text(f"{text}\nflip q[0];\n")
        assert np.abs(final_state(load_qasm(tmp_path / "f.qasm"))).round(12).tolist() == [0, 1]


def test_included_files_outside_the_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "own.inc").write_text("gate flip a { U(pi, 0, pi) a; }\n")
    (tmp_path / "inside" / "link.inc").symlink_to(tmp_path / "own.inc")
    for name in "../own.inc", str(tmp_path / "own.inc"), "link.inc":
        with pytest.raises(BadInput, match="2:9: expected an included file inside the folder of the program"):
            parse_qasm(f'OPENQASM 2.0;\ninclude "{name}";\nqreg q[1];', folder=tmp_path / "inside")


BITS_2, BITS_3 = HEAD_2 + "creg c[2];\n", HEAD_3 + "bit[2] c;\n"
PLAIN = "expected gates, measurements and classical values, found "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # Gates with a wrong number of parameters, wherever they are.
        (HEAD_2 + "x q[0];\n rx q[0];", "5:2: expected 1 parameter of the gate 'rx', found none; write rx(angle)"),
        (HEAD_2 + "crx q[0], q[1];", "4:1: expected 1 parameter of the gate 'crx', found none"),
        (HEAD_2 + "gate g a { h a;\n  cu1 a, a; }\ng q[0];", "5:3: "),
        (HEAD_2 + "gate g a { h a;\n  p a; }\nx q[1];\ng q[0];", "5:3: expected 1 parameter of the gate 'p'"),
        (BITS_2 + "if (c == 1) u3 q[0];", "5:13: expected 3 parameters of the gate 'u3', found none"),
        (HEAD_3 + "rx q[0];", "4:1: expected 1 parameter of the gate 'rx', found none; write rx(angle)"),
        (HEAD_3 + "ctrl @ ry q[0], q[1];", "4:8: expected 1 parameter of the gate 'ry', found none"),
        (HEAD_3 + "rz(1, (2)) q[0];", "4:1: expected 1 parameter of the gate 'rz', found 2"),
        (HEAD_3 + "U(pi) q[0];", "4:1: expected 3 parameters of the gate 'U', found 1; write U(angle, angle, angle)"),
        (HEAD_3 + "u(1) q[0];", "4:1: gate 'u' is not defined; write U(theta, phi, lambda)"),
        (HEAD_3 + "cx q[0];", "4:1: expected 2 qubits of the gate 'cx', found 1"),
        # Numbers and matrices.
        (HEAD_3 + "x q[0];\ngphase(1e308 * 10);", "5:1: gate 'gphase': expected finite angles, found inf"),
        (HEAD_3 + "gphase(1);\n  gphase(1e308 * 10);\ngphase(2);", "5:3: gate 'gphase': expected finite angle"),
        (HEAD_3 + "x q[1];\nx q[0]; U(1e308 * 10, 0, 0) q[0];", "5:9: gate 'U': expected finite angles"),
        (HEAD_3 + "  pow(1e300) @ sx q[0];", "4:3: expected a power between -1e15 and 1e15"),
        (HEAD_3 + "rx(1 / 0) q[0];", "4:6: expected a number, found a division by zero"),
        # What onehop does not read, and what is no OpenQASM.
        (HEAD_3 + "extern f(int) -> int;", "4:1: " + PLAIN + "an extern function"),
        (HEAD_3 + "defcal x $0 { }", "4:1: " + PLAIN + "a calibration (defcal)"),
        (HEAD_3 + "cal { }", "4:1: " + PLAIN + "a calibration (cal)"),
        (HEAD_3 + "stretch s;", "4:1: " + PLAIN + "a stretch; write a duration"),
        (HEAD_3 + "input int[8] k;", "4:1: expected an input of the type float or angle, found one of int[8]"),
        (HEAD_3 + "output float f;", "4:1: expected an output of bits"),
        (HEAD_3 + "for uint i in [0:2] {\n x q[i]; }", "5:6: index 2 is out of range"),
        (HEAD_3 + 'include "mine.inc";', "4:9: expected a file 'mine.inc' in the folder of the program, found none"),
        (HEAD_3 + "x q[0];\nOPENQASM 3;", "5:1: expected the version line at the beginning"),
        ("OPENQASM 4.0;", "1:10: expected OpenQASM 2 or 3, found version 4"),
        (HEAD_3 + "const uint n = 2;\nn = 3;", "5:1: expected a variable, found a constant"),
        (HEAD_3 + "int n = 2;\nint n = 3;", "5:5: 'n' is declared already"),
        (HEAD_3 + "int n = m;", "4:9: 'm' is not defined"),
        (HEAD_3 + "x r;", "4:3: 'r' is not defined"),
        (BITS_3 + "c = measure q[0];", "5:1: expected as many classical bits as qubits to measure, 1, found 2"),
        (HEAD_3 + "bit[2] b;\nb = measure q;\nlet r = q[int[2](b)];", "6:11: expected a number that is known before"),
        (HEAD_3 + "qubit[2] r; cx q, $0;", "4:19: expected either declared qubits or physical qubits"),
        (HEAD_3 + "break;", "4:1: expected a loop around break or continue"),
        (HEAD_3 + "gate g a { measure a; }", "4:12: expected gates in the body of a gate"),
        (HEAD_3 + "if (true) { gate g a { } }", "4:13: expected definitions outside of braces"),
        (HEAD_3 + "def f(int n) -> int { return f(n); }\nint k = f(1);", "4:30: expected at most 64 subroutines"),
    ],
)  # fmt: skip
def test_refusals_say_where_and_what_to_do(
    text: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for begin in "", "\ufeff":  # a byte-order mark takes no column
        with pytest.raises(BadInput) as error:
            parse_qasm(begin + text, name="f.qasm")
        assert str(error.value).startswith(f"f.qasm:{message}")
        assert " (in: " in str(error.value)
    assert capfd.readouterr().err == ""


def test_too_little_memory_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_qasm(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(_core, "read_qasm", read_qasm)
    with pytest.raises(BadInput, match=r"c\.qasm: there is not enough memory to read the circuit"):
        parse_qasm("qubit q;", name="c.qasm")


def test_byte_order_marks(tmp_path: Path) -> None:
    (tmp_path / "own.inc").write_text("\ufeffgate flip a { x a; }\n", encoding="utf-8")
    for text in HEAD_2 + 'include "own.inc";\nflip q[0];', HEAD_3 + "x q[0];":
        (tmp_path / "f.qasm").write_text(f"\ufeff{text}", encoding="utf-8")
        assert len(load_qasm(tmp_path / "f.qasm")) == 1


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ("gate foo a { h a;\n zz a; }", "mine.inc:2:2: 'zz' is not defined"),
        ("// one\n/* two\n*/ gate foo a { rx a; }", "mine.inc:3:17: expected 1 parameter of the gate 'rx'"),
        ('\ninclude "deep.inc"; gate foo a { x a; }', "deep.inc:3:3: 'bar' is not defined"),
        ("gate foo a {\n rz(((((1)))) a; }", "mine.inc:2:"),
        ("gate foo a { h a; }\ngate big a {" + 300 * "(", "mine.inc:2:13: expected a statement"),
        ("gate foo a { h a; }\n/* ", "mine.inc:2:1: the comment that begins here has no end"),
        ("gate foo a { h a; }\nqreg r[99999];", "mine.inc:2:1: expected registers of at most 10000 qubits"),
        ("gate foo a { h a; }\nopaque op a;\nop\n q[0];", "mine.inc:3:1: the instruction 'op' has neither"),
        ('include "mine.inc";', "mine.inc:1:9: mine.inc includes itself"),
        ("gate foo a {\n h a;\n }\n\n", "f.qasm:6:1: 'after' is not defined"),
    ],
)
def test_errors_in_included_files_name_file_and_line(inner: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.inc").write_text(inner)
    (tmp_path / "deep.inc").write_text("\ngate baz a { h a; }\n  bar q[0];")
    (tmp_path / "f.qasm").write_text(
        HEAD_2 + 'include "mine.inc";\nfoo q[0];\n' + "after q[1];" * ("after" in message)
    )
    with pytest.raises(BadInput) as error:
        load_qasm(tmp_path / "f.qasm")
    assert str(error.value).startswith(f"{tmp_path}/{message}")
