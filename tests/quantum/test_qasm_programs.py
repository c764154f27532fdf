"""Programs in OpenQASM 2 and 3: random ones against Qiskit's readers, and classical values against Python's."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest

from onehop import BadInput
from onehop.quantum import from_qiskit, parse_qasm, simulate
from reference_circuit import distribution, final_state

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "qasm3"
HEAD_3 = 'OPENQASM 3.0;\ninclude "stdgates.inc";\nqubit[4] q;\nbit[4] c;\n'
GATES = {"h": (1, 0), "x": (1, 0), "t": (1, 0), "sdg": (1, 0), "sx": (1, 0), "rx": (1, 1), "ry": (1, 1), "p": (1, 1),
         "rz": (1, 1), "cx": (2, 0), "cz": (2, 0), "ch": (2, 0), "cp": (2, 1), "crx": (2, 1), "crz": (2, 1),
         "swap": (2, 0), "ccx": (3, 0), "cswap": (3, 0), "u3": (1, 3), "u2": (1, 2), "cu": (2, 4)}  # fmt: skip


def _angle(draw: random.Random, names: tuple[str, ...] = ()) -> str:
    one = draw.choice(
        [f"{draw.uniform(-4, 4):.3f}", "pi/3", "-pi/4", "2*pi/5 - 0.25", "sin(0.5)", *names, *names]
    )
    return draw.choice([one, f"({one} + 0.5)/2", f"-({one})"])


def _gates(
    draw: random.Random, count: int, qubits: list[str], names: tuple[str, ...] = (), *, own: bool = True
) -> str:
    """Return gate calls on random ones of the qubits."""
    known = {**GATES, **({"mine": (2, 1)} if own else {})}
    lines = []
    for _ in range(count):
        name = draw.choice(list(known))
        size, angles = known[name]
        if size > len(qubits):
            continue
        given = f"({', '.join(_angle(draw, names) for _ in range(angles))})" if angles else ""
        lines.append(f"{name}{given} {', '.join(draw.sample(qubits, size))};")
    return "\n".join(lines)


def _program(version: int, seed: int) -> str:
    draw = random.Random(seed)
    qubits = [f"q[{k}]" for k in range(4)]
    inside = _gates(draw, 4, ["a", "b"], ("theta",), own=False)
    define = f"gate mine(theta) a, b {{ {inside} }}\n"
    if version == 2:
        head = f'OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[4];\n{define}h q;\n'
        return head + _gates(draw, 12, qubits) + f"\nrx({_angle(draw)}^2) q;\n"
    lines = [f'OPENQASM 3.0;\ninclude "stdgates.inc";\n{define}qubit[4] q;\nh q;', _gates(draw, 6, qubits)]
    for _ in range(5):
        one, two, three = draw.sample(qubits, 3)
        lines.append(
            draw.choice([
                f"ctrl @ rx({_angle(draw)}) {one}, {two};",
                f"negctrl @ inv @ mine({_angle(draw)}) {one}, {two}, {three};",
                f"inv @ cu(0.1, 0.2, 0.3, {_angle(draw)}) {one}, {two};",
                f"pow(2) @ sx {one};",
                f"pow({draw.choice(['0.5', '-1', '1/4.0'])}) @ h {one};",
                f"ctrl(2) @ p({_angle(draw)}) {one}, {two}, {three};",
                f"for int i in [0:{draw.randrange(3)}] {{ rx(i * 0.3) {one}; cx {one}, {two}; }}",
                "cx q[0:1], q[2:3];",
                f"gphase({_angle(draw)});",
            ])
        )  # fmt: skip
    return "\n".join(lines)


@pytest.mark.parametrize("version", [2, 3])
def test_random_programs_agree_with_qiskit(version: int) -> None:
    pytest.importorskip("qiskit")
    from qiskit import qasm2, qasm3
    from qiskit.quantum_info import Statevector

    if version == 3:
        pytest.importorskip("qiskit_qasm3_import")
    for seed in range(25):
        text = _program(version, seed)
        if version == 3:
            text = text.replace("sin(0.5)", "0.479425538604203")  # Qiskit's reader has no functions
            parsed = qasm3.loads(text)
            while any(one.operation.name == "for_loop" for one in parsed.data):
                parsed = _unrolled(parsed)
        else:
            parsed = qasm2.loads(text, custom_instructions=qasm2.LEGACY_CUSTOM_INSTRUCTIONS)
        difference = np.abs(final_state(parse_qasm(text)) - Statevector(parsed).data).max()
        assert difference < 1e-11, f"seed {seed}\n{text}"


def _dynamic(version: int, seed: int) -> str:
    """Return a program with measurements, resets, conditions and loops."""
    draw = random.Random(seed)
    qubits = [f"q[{k}]" for k in range(3)]
    if version == 2:
        lines = ['OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[3];\ncreg c[2];\ncreg d[1];\nh q;']
    else:
        lines = ['OPENQASM 3.0;\ninclude "stdgates.inc";\nqubit[3] q;\nbit[2] c;\nbit[1] d;\nh q;']
    for _ in range(8):
        one, bit = draw.choice(qubits), draw.choice(["c[0]", "c[1]", "d[0]"])
        gates = _gates(draw, 1, qubits, own=False).replace("sin(0.5)", "0.5") or f"x {one};"
        lines.append(gates)
        if version == 2:
            name, size = draw.choice([("c", 4), ("d", 2)])
            condition = f"if({name}=={draw.randrange(size)}) "
            lines += [
                draw.choice([f"measure {one} -> {bit};", f"reset {one};", condition + gates,
                             f"{condition}measure {one} -> {bit};", f"{condition}reset {one};", "barrier q;"])
            ]  # fmt: skip
            continue
        condition = draw.choice([f"c == {draw.randrange(4)}", bit, f"!{bit}", f"c == {draw.randrange(4)}"])
        measured = f"{bit} = measure {one};"
        lines.append(
            draw.choice([
                measured,
                f"reset {one};",
                f"if ({condition}) {{ {gates} {measured} }} else {{ x {one}; }}",
                f"while (!d[0]) {{ reset {one}; h {one}; d[0] = measure {one}; {gates} }}",
                f"for int i in [1:2] {{ if (c == 1) {{ {measured} continue; }} x {one}; }}",
            ])
        )  # fmt: skip
    return "\n".join(lines)


def dynamic_programs_agree(version: int, seeds: range) -> None:
    """Compare programs with what Qiskit's reader makes of them, over all outcomes."""
    from qiskit import qasm2, qasm3

    for seed in seeds:
        text = _dynamic(version, seed)
        if version == 2:
            theirs = qasm2.loads(text, custom_instructions=qasm2.LEGACY_CUSTOM_INSTRUCTIONS)
        else:
            theirs = qasm3.loads(text)
        found = distribution(parse_qasm(text), 1e-4)
        assert found == pytest.approx(distribution(from_qiskit(theirs), 1e-4), abs=2e-2), f"{seed}\n{text}"


@pytest.mark.parametrize("version", [2, 3])
def test_dynamic_programs_agree_with_qiskit(version: int) -> None:
    pytest.importorskip("qiskit_qasm3_import")
    dynamic_programs_agree(version, range(4))


def _unrolled(circuit: object) -> object:
    unrolled = circuit.copy_empty_like()
    for one in circuit.data:
        if one.operation.name != "for_loop":
            unrolled.append(one)
            continue
        values, parameter, body = one.operation.params
        for value in values:
            bound = body if parameter is None else body.assign_parameters({parameter: value})
            unrolled.compose(bound, one.qubits, inplace=True)
    return unrolled


@pytest.mark.parametrize("file", sorted(CASES.glob("*.qasm")), ids=lambda file: file.stem)
def test_small_programs_are_read(file: Path) -> None:
    found = distribution(parse_qasm(file.read_text()))
    expected = {
        "and_and": {0: 0.5, 3: 0.5},
        "bit_assign": {0: 1.0},
        "bom": {0: 0.5, 3: 0.5},
        "for_uint_index": dict.fromkeys(range(16), 1 / 16),
        "if_bit": {3: 1.0},
    }
    if file.stem in expected:
        assert found == pytest.approx(expected[file.stem])


# Statements on the bits c, which hold a random number n, and what is in c afterwards.
CLASSICAL = [
    ("c = ~c;", lambda n: 15 - n),
    ("c = c << 1;", lambda n: n << 1 & 15),
    ("c >>= 2;", lambda n: n >> 2),
    ("c = rotl(c, 1);", lambda n: (n << 1 | n >> 3) & 15),
    ("c ^= \"0110\";", lambda n: n ^ 6),
    ("c[0] = c[3] | c[2];", lambda n: n & 14 | (n >> 3 | n >> 2) & 1),
    ("c[0:1] = c[2:3];", lambda n: n & 12 | n >> 2),
    ("let d = c[2:3] ++ c[0:1]; d = c;", lambda n: (n & 3) << 2 | n >> 2),
    ("uint[4] u = c; u += 3; c = u;", lambda n: n + 3 & 15),
    ("uint[4] u = c; u = u * u - 1; c = u;", lambda n: n * n - 1 & 15),
    ("uint[4] u = c; c = u / 4 + u % 4;", lambda n: n // 4 + n % 4),
    ("uint[4] u = c; c = u / 3 + u % 5;", lambda n: n // 3 + n % 5),
    ("int[4] i = int[4](c); c = bit[4](int[4](i / -3 + i % 3));",
     lambda n: (lambda i: int(i / -3) + int(math.fmod(i, 3)) & 15)(n - 16 if n > 7 else n)),
    ("uint[4] u = c; c = u / (u[1:2] | 1);", lambda n: n // (n >> 1 & 3 | 1)),
    ("uint[2] u = c[1:2]; c = c << u;", lambda n: n << (n >> 1 & 3) & 15),
    ("int[4] i = int[4](c) >> c[0:1]; c = bit[4](i);", lambda n: (n - 16 if n > 7 else n) >> (n & 3) & 15),
    ("int[4] i = int[4](c); if (i < -2) { c = 1; } else { c = 2; }", lambda n: 1 if n in range(8, 14) else 2),
    ("uint[4] u = c; c = 0; if (u > 5 && u <= 9 || u == 15) c[2] = 1;", lambda n: 4 if n in (6, 7, 8, 9, 15) else 0),
    ("c = uint[4](popcount(c));", lambda n: n.bit_count()),
    ("switch (c) { case 1, 2 { c = 7; } case 3 { c = 1; } default { c[0] = 0; } }",
     lambda n: 7 if n in (1, 2) else 1 if n == 3 else n & 14),
    ("if (c == 3) { c = 1; } else if (c == 1) { c = 3; }", lambda n: {3: 1, 1: 3}.get(n, n)),
    ("if (c[0]) { c[0] = 0; c[1] = 1; } else { c[0] = 1; }", lambda n: n & 12 | 2 if n & 1 else n | 1),
    ("for uint i in [0:3] { if (c[i]) { c = 0; c[i] = 1; break; } }", lambda n: n & -n),
    ("uint[4] s = 0; for uint i in [0:3] { if (c[i]) continue; s += i; } c = s;",
     lambda n: sum(i for i in range(4) if not n >> i & 1) & 15),
    ("while (true) { if (c[0]) { c = 1; break; } c = 2; break; }", lambda n: 1 if n & 1 else 2),
    ("if (c[3]) { end; } c = 5;", lambda n: n if n & 8 else 5),
    ("int k = 0; if (c[0]) k = 2; if (c[1]) k += 1; c = uint[4](k);", lambda n: 2 * (n & 1) + (n >> 1 & 1)),
    ("array[bool, 2] a = {c[0] == c[1], false}; a[1] = a[0] != c[2]; c[3] = a[1];",
     lambda n: n & 7 | (((n & 1) == (n >> 1 & 1)) != (n >> 2 & 1)) << 3),
    ("for bit b in c { if (b) c[3] = 0; }", lambda n: n & 7),
    ("bool b = c[0] && !c[1]; c[0] = 1; c[1] = b;", lambda n: n & 12 | 1 | (n & 3 == 1) << 1),
    ("c = f(c[0], 2);", lambda n: 9 if n & 1 else 2),
    ("angle[4] a = angle[4](c); a = a + angle[4](pi/2); c = bit[4](a);", lambda n: n + 4 & 15),
    ("array[uint[4], 2] a = {c, 3}; g(a); c = a[1];", lambda n: n + 1 & 15),
]  # fmt: skip
DEFINED = (
    "def f(bit b, int k) -> uint[4] { if (b) { return 9; } return k; }\n"
    "def g(mutable array[uint[4], 2] a) { a[1] = a[0] + 1; }\n"
)


@pytest.mark.parametrize(("text", "expected"), CLASSICAL, ids=[text[:40] for text, _ in CLASSICAL])
def test_classical_values(text: str, expected: object) -> None:
    found = distribution(parse_qasm(f"{HEAD_3}{DEFINED}h q;\nc = measure q;\n{text}\n"))
    wanted: dict[int, float] = {}
    for n in range(16):
        wanted[expected(n)] = wanted.get(expected(n), 0) + 1 / 16
    assert found == pytest.approx(wanted)


def test_angles_that_depend_on_measurements() -> None:
    """Phase estimation bit by bit: a phase of 11/16 is measured with certainty."""
    text = (
        HEAD_3 + "angle[4] phase = 0;\nx q[1];\nfor uint i in [0:3] {\n reset q[0]; h q[0];\n"
        "ctrl @ pow(2 ** (3 - i)) @ p(2 * pi * 11 / 16) q[0], q[1];\n phase >>= 1; inv @ p(phase) q[0]; h q[0];\n"
        " phase[3] = measure q[0]; }\nc = bit[4](phase);"
    )
    assert distribution(parse_qasm(text)) == pytest.approx({11: 1})
    text = (
        HEAD_3
        + "float x = 0.25;\nh q[0];\nc[0] = measure q[0];\nif (c[0]) { x += 1; }\nrx(x) q[1]; c[1] = measure q[1];"
    )
    for low, angle in enumerate((0.25, 1.25)):
        found = distribution(parse_qasm(text))
        assert found[low | 2] == pytest.approx(math.sin(angle / 2) ** 2 / 2)


def test_outputs_are_registers() -> None:
    circuit = parse_qasm('OPENQASM 3; include "stdgates.inc"; output uint[3] u; qubit q; x q; bit b; b = measure q;'
                         "u = 5; if (b) u = u + 1;")  # fmt: skip
    assert [(one.name, one.size) for one in circuit.registers] == [("u", 3)]
    assert distribution(circuit) == pytest.approx({0b1101: 1.0})


@pytest.mark.parametrize("bits", [64, 65, 300])
def test_values_of_long_registers(bits: int) -> None:
    top = bits - 1
    head = f'OPENQASM 2.0; include "qelib1.inc"; qreg q[{bits + 2}]; creg c[{bits}]; creg d[2]; '
    text = head + f"x q[{top}]; x q[0]; measure q[{top}] -> c[{top}]; measure q[0] -> c[0]; "
    for k, value in enumerate((f"{2**top}", f"{2**top + 1:_}")):
        text += f"if (c == {value}) x q[{bits + k}]; measure q[{bits + k}] -> d[{k}]; "
    assert simulate(parse_qasm(text), shots=3).counts == {f"10 1{'0' * (bits - 2)}1": 3}
    with pytest.raises(BadInput, match="expected an integer below 2"):
        parse_qasm(head + f"rx({2**63}) q[0];")


def test_honeywell_library() -> None:
    head = 'OPENQASM 2.0; include "hqslib1.inc"; qreg q[2]; '
    text = head + "U1q(0.5*pi, 0.25*pi) q[0]; ZZ q[0], q[1]; RZZ(0.3) q[0], q[1];"
    assert [one.name for one in parse_qasm(text).operations] == ["U", "rzz", "rzz"]


def test_gates_of_braket() -> None:
    """The matrices of Braket's documentation, whose first qubit is the most significant."""
    a, b, c = 0.3, 1.1, 0.7
    i2, x, y = np.eye(2), np.array([[0, 1], [1, 0]]), np.array([[0, -1j], [1j, 0]])
    z, zero, one = np.diag([1, -1]), np.diag([1, 0]), np.diag([0, 1])

    def turn(p: float) -> np.ndarray:
        return np.array([[0, np.exp(-1j * p)], [np.exp(1j * p), 0]])

    def exponential(angle: float, generator: np.ndarray) -> np.ndarray:
        return math.cos(angle / 2) * np.eye(len(generator)) - 1j * math.sin(angle / 2) * generator

    def phase(place: int, angle: float) -> np.ndarray:
        return np.diag(np.exp(1j * angle * (np.arange(4) == place)))

    root = np.array([[1 + 1j, 1 - 1j], [1 - 1j, 1 + 1j]]) / 2
    even = np.kron(i2, i2) + np.kron(z, z)
    hop = np.kron(x, x) + np.kron(y, y)
    middle = np.diag([0, 1, 1, 0])
    gates = {
        "i": i2, "v": root, "vi": root.conj(), "si": np.diag([1, -1j]), "ti": np.diag([1, np.exp(-0.25j * np.pi)]),
        f"phaseshift({a})": np.diag([1, np.exp(1j * a)]), f"prx({a}, {b})": exponential(a, turn(b)),
        f"gpi({a})": turn(a), f"gpi2({a})": exponential(np.pi / 2, turn(a)),
        "cnot": np.kron(zero, i2) + np.kron(one, x), "cv": np.kron(zero, i2) + np.kron(one, root),
        f"cphaseshift({a})": phase(3, a), f"cphaseshift00({a})": phase(0, a), f"cphaseshift01({a})": phase(1, a),
        f"cphaseshift10({a})": phase(2, a), f"xx({a})": exponential(a, np.kron(x, x)),
        f"yy({a})": exponential(a, np.kron(y, y)), f"zz({a})": exponential(a, np.kron(z, z)),
        f"xy({a})": even / 2 + math.cos(a / 2) * middle + 0.5j * math.sin(a / 2) * hop,
        f"pswap({a})": even / 2 + np.exp(1j * a) * hop / 2, "iswap": even / 2 + 0.5j * hop,
        "ecr": (np.kron(x, i2) - np.kron(y, x)) / math.sqrt(2),
        f"ms({a}, {b}, {c})": exponential(c, np.kron(turn(a), turn(b))),
    }  # fmt: skip
    for call, matrix in gates.items():
        size = int(math.log2(len(matrix)))
        names = [f"q[{k}]" for k in range(size)]
        start = "".join(f"U({0.4 + k}, {0.2 - k}, 0.3) q[{k}]; " for k in range(size))
        before = final_state(parse_qasm(f"OPENQASM 3.0; qubit[{size}] q; {start}"))
        after = final_state(parse_qasm(f"OPENQASM 3.0; qubit[{size}] q; {start} {call} {', '.join(names)};"))
        order = [int(f"{k:0{size}b}"[::-1], 2) for k in range(1 << size)]
        assert np.abs(matrix @ before[order] - after[order]).max() < 1e-12, call
    text = "OPENQASM 3.0;\n#pragma braket verbatim\nqubit[3] q;\nx q[0:1];\nccnot q[0], q[1], q[2];\n"
    assert abs(final_state(parse_qasm(text))[7]) == pytest.approx(1)
    with pytest.raises(
        BadInput, match=r"2:\d+: expected pragmas that may be left out, found 'braket unitary'"
    ):
        parse_qasm("OPENQASM 3.0;\n#pragma braket unitary([[0, 1], [1, 0]]) q[0]\nqubit q;")
