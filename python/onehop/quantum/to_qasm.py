"""`qasm_of`: a circuit as OpenQASM 2 or 3."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop._core import Condition, Operation
from onehop.arguments import whole_number
from onehop.error import BadInput

# The name of a gate, its angles, its targets, and controls with their values.
Call = tuple[str, list[str], list[int], list[tuple[int, int]]]

_NEAR = 1e-12
_LARGEST = 5  # qubits of a matrix or a diagonal that is written as gates
_DEFINITIONS = {
    "rxx": "gate rxx(t) a, b { h a; h b; cx a, b; rz(t) b; cx a, b; h b; h a; }",
    "ryy": "gate ryy(t) a, b { rx(pi/2) a; rx(pi/2) b; cx a, b; rz(t) b; cx a, b; rx(-pi/2) b; rx(-pi/2) a; }",
    "rzz": "gate rzz(t) a, b { cx a, b; rz(t) b; cx a, b; }",
}
_FIXED = ("x", "y", "z", "h", "s", "sdg", "t", "tdg")
# The names of gates with 1 control, 2 controls, ...
_CONTROLLED = {"x": ("cx", "ccx"), "y": ("cy",), "z": ("cz",), "h": ("ch",), "swap": ("cswap",), "p": ("cp",),
               "rx": ("crx",), "ry": ("cry",), "rz": ("crz",)}  # fmt: skip
_PHASES = {"s": "pi/2", "sdg": "-pi/2", "t": "pi/4", "tdg": "-pi/4"}
_CONTROLLED_2 = {**_CONTROLLED, "x": ("cx", "ccx", "c3x", "c4x"), "p": ("cu1",), "u3": ("cu3",)}
# The gate on the targets of a gate that may depend on parameters. `r`, `cu` and `rzx` become others.
_BASES = {"p": "p", "phase": "p", "u1": "p", "cp": "p", "cphase": "p", "cu1": "p", "mcphase": "p", "u2": "u2",
          "u3": "u3", "u": "u3", "U": "u3", "cu3": "u3", "rx": "rx", "ry": "ry", "rz": "rz", "crx": "rx",
          "cry": "ry", "crz": "rz", "rxx": "rxx", "ryy": "ryy", "rzz": "rzz"}  # fmt: skip
_WORDS = set(
    re.findall(
        "[A-Za-z]+",
        "OPENQASM include gate opaque qreg creg qubit bit bool int uint float angle complex array const "
        "input output let def extern defcal defcalgrammar cal box delay duration stretch durationof if "
        "else for while switch case default in break continue end return measure reset barrier ctrl "
        "negctrl inv pow gphase mutable readonly void true false pi tau euler sin cos tan arcsin arccos "
        "arctan exp log sqrt mod popcount rotl rotr real imag sizeof q",
    )
)


def qasm_of(circuit: _core.Circuit, version: int) -> str:
    """Write a circuit as OpenQASM; see `Circuit.to_qasm`."""
    whole_number(version, "version", 2, 3)
    circuit.validate()
    return _Writer(circuit, version).text()


@dataclass
class _Loop:
    start: int  # label of the mark where a turn begins
    first: int  # place of this mark
    last: int  # place of the jump back


@dataclass
class _Writer:
    circuit: _core.Circuit
    version: int
    lines: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)  # gates that need a definition
    indent: int = 0
    bits: dict[int, str] = field(default_factory=dict)  # names of the classical bits
    loops: dict[int, _Loop] = field(default_factory=dict)  # by their first place
    inside: _Loop | None = None

    def text(self) -> str:
        circuit, version = self.circuit, self.version
        declared = list(self._registers())
        operations = list(circuit.operations)
        if version == 2 and (circuit.parameters or circuit.hidden_clbits):
            kind = "parameters" if circuit.parameters else "values that are computed from classical bits"
            raise BadInput(f"OpenQASM 2 has no {kind}; write OpenQASM 3")
        self.loops = _loops_of(operations)
        self._all(operations, 0, len(operations))
        library = "qelib1.inc" if version == 2 else "stdgates.inc"
        known = {"rxx", "rzz"} if version == 2 else set()
        return "\n".join(
            [
                f"OPENQASM {version}.0;",
                f'include "{library}";',
                *(_DEFINITIONS[name] for name in sorted(self.used - known)),
                *(f"input float {name};" for name in circuit.parameters),
                f"qreg q[{circuit.qubits}];" if version == 2 else f"qubit[{circuit.qubits}] q;",
                *declared,
                *self.lines,
                "",
            ]
        )

    def _registers(self) -> Iterator[str]:
        """Yield the declarations of classical bits; note the name of each bit."""
        circuit, place = self.circuit, 0
        names: set[str] = {*_WORDS, *circuit.parameters, *_CONTROLLED}

        def fresh(wanted: str) -> str:
            name = wanted if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", wanted) else f"c{place}"
            while name in names or (self.version == 2 and not name[0].islower()):
                name = f"c_{name}"
            names.add(name)
            return name

        registers = sorted((one for one in circuit.registers if one.size), key=lambda one: one.first)
        if any(a.first + a.size > b.first for a, b in pairwise(registers)):
            registers = []  # they share bits
        for register in [*registers, None]:
            end = circuit.clbits if register is None else register.first
            while place < end:
                self.bits[place] = fresh(f"c{place}") + ("[0]" if self.version == 2 else "")
                yield f"creg {self.bits[place][:-3]}[1];" if self.version == 2 else f"bit {self.bits[place]};"
                place += 1
            if register is not None:
                name, size = fresh(register.name), register.size
                yield f"creg {name}[{size}];" if self.version == 2 else f"bit[{size}] {name};"
                self.bits.update({place + k: f"{name}[{k}]" for k in range(size)})
                place += size
        for k in range(circuit.hidden_clbits):
            self.bits[place + k] = fresh(f"h{k}")
            yield f"bool {self.bits[place + k]};"

    # -- operations --------------------------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def _all(self, operations: Sequence[Operation], first: int, last: int) -> None:
        """Write the operations from `first` to before `last`."""
        place = first
        while place < last:
            operation = operations[place]
            loop = self.loops.get(place)
            if loop is not None:
                place = self._loop(operations, loop, last)
            elif operation.kind == "jump":
                place = self._jump(operations, place, last)
            else:
                if operation.kind != "mark":
                    self._one(operation, place)
                place += 1

    def _loop(self, operations: Sequence[Operation], loop: _Loop, last: int) -> int:
        self._require_3(operations[loop.last], loop.last, "loops")
        if loop.last >= last:
            raise BadInput(f"operation {loop.last} (jump): OpenQASM has no jumps into a loop")
        outer, self.inside = self.inside, loop
        self._line("while (true) {")
        self.indent += 1
        self._all(operations, loop.first + 1, loop.last)
        condition = operations[loop.last].condition
        if condition:
            self._line(f"if (!({self._holds(condition)})) break;")
        self.indent -= 1
        self._line("}")
        self.inside = outer
        return loop.last + 1

    def _jump(self, operations: Sequence[Operation], place: int, last: int) -> int:
        """Write a jump as `continue`, as `break`, or as a condition of the operations that it leaves out."""
        jump, loop = operations[place], self.inside
        self._require_3(jump, place, "jumps")
        to = next(k for k, one in enumerate(operations) if one.kind == "mark" and one.index == jump.index)
        holds = self._holds(jump.condition)
        if place < to < last:
            self._line(f"if (!({holds})) {{")
            self.indent += 1
            self._all(operations, place + 1, to)
            self.indent -= 1
            self._line("}")
            return to
        if loop is not None and loop.start == jump.index:
            self._line(f"if ({holds}) continue;")
        elif loop is not None and {one.kind for one in operations[loop.last + 1 : to]} <= {"mark"}:
            self._line(f"if ({holds}) break;")
        else:
            raise BadInput(f"operation {place} (jump): OpenQASM has no jumps out of several loops")
        return place + 1

    def _require_3(self, operation: Operation, place: int, what: str) -> None:
        if self.version == 2:
            raise BadInput(
                f"operation {place} ({operation.name}): OpenQASM 2 has no {what}; write OpenQASM 3"
            )

    def _one(self, operation: Operation, place: int) -> None:
        try:
            statements = list(self._statements(operation))
            condition = operation.condition if operation.kind != "assign" else None
            if not condition or not statements:
                for one in statements:
                    self._line(one)
            elif self.version == 2:
                for one in statements:
                    self._line(f"if ({self._register_equals(condition)}) {one}")
            elif len(statements) == 1:
                self._line(f"if ({self._holds(condition)}) {statements[0]}")
            else:
                self._line(f"if ({self._holds(condition)}) {{ {' '.join(statements)} }}")
        except BadInput as error:
            raise BadInput(f"operation {place} ({operation.name}): {error}") from None

    def _statements(self, operation: Operation) -> Iterator[str]:
        qubits = [f"q[{qubit}]" for qubit in operation.targets]
        if operation.kind == "measure":
            for qubit, bit in zip(qubits, operation.clbits, strict=True):
                name = self.bits[bit]
                yield f"measure {qubit} -> {name};" if self.version == 2 else f"{name} = measure {qubit};"
        elif operation.kind == "reset":
            yield from (f"reset {qubit};" for qubit in qubits)
        elif operation.kind == "barrier":
            if qubits:
                yield f"barrier {', '.join(qubits)};"
        elif operation.kind == "assign":
            if self.version == 2:
                raise BadInput("OpenQASM 2 has no assignments; write OpenQASM 3")
            yield f"{self.bits[operation.clbits[0]]} = {self._holds(operation.condition)};"
        else:
            controls = [(q, operation.control_values >> k & 1) for k, q in enumerate(operation.controls)]
            for name, angles, targets, more in self._gates(operation):
                yield from self._call(name, angles, targets, [*controls, *more])

    def _holds(self, condition: Condition) -> str:
        bits = [self.bits[bit] for bit in condition.clbits]
        wanted = [condition.value >> k & 1 for k in range(len(bits))]
        text = " && ".join(bit if one else f"!{bit}" for bit, one in zip(bits, wanted, strict=True)) or "true"
        return f"!({text})" if condition.negated else text

    def _register_equals(self, condition: Condition) -> str:
        names = [self.bits[bit] for bit in condition.clbits]
        name = names[0].partition("[")[0]
        size = sum(one.partition("[")[0] == name for one in self.bits.values())
        if condition.negated or names != [f"{name}[{k}]" for k in range(size)]:
            raise BadInput("OpenQASM 2 compares whole registers with ==; write OpenQASM 3")
        return f"{name} == {condition.value}"

    # -- gates -------------------------------------------------------------------------------------------------------

    def _call(
        self, name: str, angles: Sequence[str], targets: Sequence[int], controls: list[tuple[int, int]]
    ) -> Iterator[str]:
        """Yield the statements of a gate with controls, each a qubit with its value."""
        if name == "gphase" and self.version == 2:  # without controls, no result depends on it
            if controls:
                flip = [] if controls[-1][1] else [f"x q[{controls[-1][0]}];"]
                yield from flip
                yield from self._call("p", angles, [controls[-1][0]], controls[:-1])
                yield from flip
            return
        if self.version == 3:
            known = (name, *_CONTROLLED.get(name, ()))
            own = [qubit for qubit, value in controls if value][: len(known) - 1]
            rest = [(qubit, value) for qubit, value in controls if qubit not in own]
            modifiers = "".join("ctrl @ " if value else "negctrl @ " for _, value in rest)
            where = [*(qubit for qubit, _ in rest), *own, *targets]
            yield modifiers + self._named(known[len(own)], angles, where)
            return
        if name == "z" and len(controls) > 1:
            yield from (flip := [self._named("h", [], targets)])
            yield from self._call("x", [], targets, controls)
            yield from flip
            return
        if name in _PHASES and controls:
            name, angles = "p", [_PHASES[name]]
        known = ("u1" if name == "p" else name, *_CONTROLLED_2.get(name, ()))
        if len(controls) >= len(known):
            raise BadInput(f"OpenQASM 2 has no gate {name} with {len(controls)} controls; write OpenQASM 3")
        flips = [f"x q[{qubit}];" for qubit, value in controls if not value]
        yield from flips
        yield self._named(known[len(controls)], angles, [*(qubit for qubit, _ in controls), *targets])
        yield from flips

    def _named(self, name: str, angles: Sequence[str], qubits: Sequence[int]) -> str:
        if name in _DEFINITIONS:
            self.used.add(name)
        given = f"({', '.join(angles)})" if angles else ""
        return f"{name}{given} {', '.join(f'q[{qubit}]' for qubit in qubits)}".rstrip() + ";"

    def _gates(self, operation: Operation) -> Iterator[Call]:
        """Yield gates whose product is the gate on the targets."""
        kind, targets = operation.kind, list(operation.targets)
        angles = [self._angle(one) for one in operation.angles]
        angle = angles[0] if angles else repr(float(operation.angle))
        if kind == "swap":
            yield "swap", [], targets, []
        elif kind == "global_phase":
            yield "gphase", [angle], [], []
        elif kind == "pauli_rotation":
            yield from _rotation(operation.paulis, angle, targets)
        elif angles:
            yield from _with_parameters(operation.name, angles, targets)
        elif len(targets) > _LARGEST:
            raise BadInput(
                f"expected matrices and diagonals of at most {_LARGEST} qubits, found one of {len(targets)}; "
                "build it from gates"
            )
        elif kind == "diagonal":
            yield from _diagonal(np.asarray(operation.values), targets)
        else:
            size = 1 << len(targets)
            yield from _matrix(np.asarray(operation.values).reshape(size, size), targets)

    def _angle(self, expression: Any) -> str:
        constant, terms = expression
        texts = [f"{factor!r}*{self.circuit.parameters[index]}" for index, factor in terms]
        return " + ".join([*texts, *([repr(constant)] if constant or not texts else [])])


def _loops_of(operations: Sequence[Operation]) -> dict[int, _Loop]:
    """Return the loops by their first place: from a mark to the last jump back to it."""
    marks = {one.index: place for place, one in enumerate(operations) if one.kind == "mark"}
    found: dict[int, _Loop] = {}
    for place, one in enumerate(operations):
        if one.kind == "jump" and (first := marks[one.index]) < place:
            found[first] = _Loop(one.index, first, place)
    return found


def _with_parameters(name: str, angles: list[str], targets: list[int]) -> Iterator[Call]:
    if name == "r":
        yield "u3", [angles[0], f"{angles[1]} - pi/2", f"pi/2 - ({angles[1]})"], targets, []
    elif name == "cu":
        yield "gphase", angles[3:], [], []
        yield "u3", angles[:3], targets, []
    elif name in _BASES:
        yield _BASES[name], angles, targets, []
    else:
        raise BadInput("OpenQASM has no such gate with parameters; bind them first")


def _rotation(paulis: str, angle: str, targets: list[int]) -> Iterator[Call]:
    """Yield exp(-i angle/2 P)."""
    if not paulis:
        yield "gphase", [f"-({angle})/2"], [], []
    elif paulis in ("X", "Y", "Z", "XX", "YY", "ZZ"):
        yield "r" + paulis.lower(), [angle], targets, []
    else:
        pairs = list(zip(paulis, targets, strict=True))
        turns = [("h", "") if letter == "X" else ("rx", "pi/2") for letter, _ in pairs]
        changed = [(turn, qubit) for turn, (letter, qubit) in zip(turns, pairs, strict=True) if letter != "Z"]
        ladder: list[Call] = [("x", [], [b], [(a, 1)]) for a, b in pairwise(targets)]
        yield from ((name, [given] * bool(given), [qubit], []) for (name, given), qubit in changed)
        yield from ladder
        yield "rz", [angle], targets[-1:], []
        yield from ladder[::-1]
        yield from ((name, [f"-{given}"] * bool(given), [qubit], []) for (name, given), qubit in changed)


@cache
def _fixed_gates(kind: str) -> list[tuple[str, NDArray[np.complex128]]]:
    gates = [_core.gate(name, [0]) for name in _FIXED]
    return [(one.name, np.asarray(one.values)) for one in gates if one.kind == kind]


def _fixed(kind: str, values: NDArray[np.complex128]) -> str | None:
    """Return the name of a gate without angles that has these values."""
    wanted = values.reshape(-1)
    return next((name for name, one in _fixed_gates(kind) if np.abs(one - wanted).max() < _NEAR), None)


def _diagonal(values: NDArray[np.complex128], targets: list[int]) -> Iterator[Call]:
    """Yield a diagonal gate: rotations about strings of Z, whose angles are the Walsh transform of the phases."""
    phases = np.angle(values)
    if len(targets) == 1:
        if (name := _fixed("diagonal", values)) is not None:
            yield name, [], targets, []
            return
        if abs(phases[0]) < _NEAR:
            yield "p", [repr(float(phases[1]))], targets, []
            return
    for string in range(len(values)):
        signs = [-1 if (string & place).bit_count() % 2 else 1 for place in range(len(values))]
        weight = float(np.dot(signs, phases)) / len(values)
        where = [qubit for k, qubit in enumerate(targets) if string >> k & 1]
        if abs(weight) > _NEAR:
            yield from _rotation("Z" * len(where), repr(-2 * weight), where)


def _matrix(matrix: NDArray[np.complex128], targets: list[int]) -> Iterator[Call]:
    """Yield a matrix: a diagonal, and matrices on one qubit that all others control.

    Those are Givens rotations between neighbours in the order of a Gray code, which differ in one bit.
    """
    if len(targets) == 1:
        yield from _one_qubit(matrix, targets)
        return
    size = len(matrix)
    order = [k ^ k >> 1 for k in range(size)]
    work = matrix[np.ix_(order, order)]
    steps = []
    for column in range(size - 1):
        for row in range(size - 1, column, -1):
            pair = work[row - 1 : row + 1, column]
            if abs(pair[1]) < _NEAR:
                continue
            a, b = pair / np.linalg.norm(pair)
            turn = np.array([[a.conj(), b.conj()], [-b, a]])
            work[row - 1 : row + 1] = turn @ work[row - 1 : row + 1]
            steps.append((row, turn.conj().T))
    diagonal = np.ones(size, complex)
    diagonal[order] = np.diag(work)
    yield from _diagonal(diagonal, targets)
    for row, turn in reversed(steps):
        low, high = order[row - 1], order[row]
        bit = (low ^ high).bit_length() - 1
        small = turn if low < high else turn[::-1, ::-1]
        controls = [(qubit, low >> k & 1) for k, qubit in enumerate(targets) if k != bit]
        for name, angles, where, _ in _one_qubit(small, [targets[bit]]):
            yield name, angles, where, controls


def _one_qubit(matrix: NDArray[np.complex128], targets: list[int]) -> Iterator[Call]:
    if (name := _fixed("matrix", matrix)) is not None:
        yield name, [], targets, []
        return
    theta = 2 * float(np.arctan2(abs(matrix[1, 0]), abs(matrix[0, 0])))
    if abs(matrix[1, 0]) < _NEAR:
        yield from _diagonal(np.diag(matrix), targets)
        return
    gamma = float(np.angle(matrix[0, 0])) if abs(matrix[0, 0]) > _NEAR else 0.0
    phi = float(np.angle(matrix[1, 0])) - gamma
    lambda_ = float(np.angle(-matrix[0, 1])) - gamma
    if abs(gamma) > _NEAR:
        yield "gphase", [repr(gamma)], [], []
    if abs(phi + np.pi / 2) < _NEAR and abs(lambda_ - np.pi / 2) < _NEAR:
        yield "rx", [repr(theta)], targets, []
    elif abs(phi) < _NEAR and abs(lambda_) < _NEAR:
        yield "ry", [repr(theta)], targets, []
    else:
        yield "u3", [repr(theta), repr(phi), repr(lambda_)], targets, []
