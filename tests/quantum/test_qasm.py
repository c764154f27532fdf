"""OpenQASM files: the circuits that they give, and the errors for broken files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onehop import BadInput
from reference_circuit import distribution, final_state

pytest.importorskip("qiskit")
from qiskit.quantum_info import Statevector

from onehop.quantum import Circuit
from onehop.quantum.io.qasm import load_qasm, load_qiskit, parse_qasm

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
BROKEN = {"vqe_uccsd_n8": ":10813:9: 'q' is not defined in this scope"}


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
        (HEAD_2 + "x q[7];", "f.qasm:4:5: index 7 is out-of-range"),
        (HEAD_2 + "x q[0]", "f.qasm:4:"),
        (HEAD_2 + "opaque foo a;\nfoo q[0];", "f.qasm:5:1: the instruction 'foo' has neither"),
        ('OPENQASM 2.0;\ninclude "none.inc";', "f.qasm:2:9: unable to find 'none.inc'"),
        (HEAD_3 + "cx q[0], q[0];", "f.qasm:4:1: duplicate"),
        (HEAD_3 + "foo q[0];", "f.qasm:4:1: gate 'foo' is not defined"),
        (HEAD_3 + "x q[7];", "f.qasm:4:1: "),
        (HEAD_3 + "  x q[0] q[1];", "f.qasm:4:10: syntax error: did not expect 'q'"),
        (HEAD_3 + "bit b;\nwhile (b) { b = measure q[0]; }", "f.qasm:5:1: while_loop cannot"),
        ("OPENQASM 4.0;\n", "expected OpenQASM 2 or 3, found version 4"),
        (
            f"OPENQASM 2.{'6' * 30};\n",
            ":1:12: expected OpenQASM 2.0 or 3.0, found a minor version of 30 digits",
        ),
        ("// nothing\n", "f.qasm:1:1: expected an OpenQASM program"),
        (
            HEAD_3 + "// ((\nrz(" + 300_000 * "(",
            "f.qasm:5:203: expected at most 200 nested brackets, found 201",
        ),
        ("OPENQASM 2.0;\n" + 300_000 * "(", "f.qasm:2:201: expected at most 200 nested brackets, found 201"),
    ],
)
def test_broken_files(text: str, message: str) -> None:
    pytest.importorskip("qiskit_qasm3_import")
    with pytest.raises(BadInput) as error:
        parse_qasm(text, name="f.qasm")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_brackets_in_brackets() -> None:
    pytest.importorskip("qiskit_qasm3_import")
    deep = 150 * "(" + "0.5" + 150 * ")"
    assert len(parse_qasm(HEAD_3 + f"rz({deep}) q[0]; // (((").operations) == 1


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read the circuit .*none\.qasm: No such file"):
        load_qasm(tmp_path / "none.qasm")
    (tmp_path / "binary.qasm").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="it is not text"):
        load_qasm(tmp_path / "binary.qasm")


def test_included_files_are_looked_for_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "own.inc").write_text("gate flip a { U(pi, 0, pi) a; }\n")
    (tmp_path / "f.qasm").write_text('OPENQASM 2.0;\ninclude "own.inc";\nqreg q[1];\nflip q[0];\n')
    assert np.abs(final_state(load_qasm(tmp_path / "f.qasm"))).round(12).tolist() == [0, 1]
