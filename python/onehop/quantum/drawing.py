"""Drawings of circuits: a text of onehop's own, and pictures by Qiskit."""

from __future__ import annotations

import cmath
import math
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

from onehop._core import Circuit, Condition, Operation, gate_names
from onehop.error import BadInput
from onehop.quantum.parameters import Expression
from onehop.text import counted, shortened

_MOST = 1000  # operations that a text shows
_NAMES = frozenset(name for name, _, _ in gate_names())
_OUTPUTS = ("mpl", "latex", "latex_source")


class Drawing(str):
    """A text that a Python session and a notebook show as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def html(circuit: Circuit) -> str:
    """Return the drawing of a circuit for a notebook, with a bar to scroll."""
    return f'<pre style="overflow-x: auto; line-height: 1.1">{escape(text_drawing(circuit, 1 << 30))}</pre>'


def base_name(operation: Operation) -> str:
    """Return the name of a gate without its controls: "x" of "ccx"."""
    if operation.controls and operation.name in _NAMES:
        count = len(operation.controls)
        return re.sub(rf"^(mc|c\d|[cC]{{1,{count}}})", "", operation.name).lower()
    return operation.name


def angles_of(operation: Operation, parameters: tuple[str, ...] = ()) -> list[str]:
    """Return the angles of a gate as texts, if its name or kind tells them."""
    if operation.angles:
        return [
            str(Expression({parameters[one]: factor for one, factor in terms}, constant))
            for constant, terms in operation.angles
        ]
    return [f"{one:.4g}" for one in _numbers(operation)]


def _numbers(operation: Operation) -> list[float]:
    if operation.kind in ("pauli_rotation", "global_phase"):
        return [operation.angle]
    name = base_name(operation)
    m = operation.values.tolist() if name in _NAMES else []
    if name in ("rz", "rzz", "p", "phase", "u1"):
        return [cmath.phase(m[1]) * (2 if name[0] == "r" else 1)]
    if name in ("rx", "ry"):
        return [2 * math.atan2(-m[2].imag if name == "rx" else m[2].real, m[0].real)]
    if name in ("u", "U", "u3") and abs(m[0].imag) < 1e-12:
        return [2 * math.acos(max(-1.0, min(m[0].real, 1.0))), cmath.phase(m[2]), cmath.phase(-m[1])]
    return []


class Sources:
    """The bits of measurements that each hidden bit depends on, followed from operation to operation."""

    def __init__(self) -> None:
        self._sources: dict[int, list[int]] = {}

    def assign(self, operation: Operation) -> None:
        """Note an operation of the kind `assign`."""
        found = self.of(operation.condition)
        self._sources.update(dict.fromkeys(operation.clbits, found))

    def of(self, condition: Condition) -> list[int]:
        """Return the bits that a condition depends on, each once."""
        return list(dict.fromkeys(one for bit in condition.clbits for one in self._sources.get(bit, [bit])))


class _Conditions(Sources):
    """Conditions as texts: hidden bits have the text of the condition that was assigned to them."""

    def __init__(self, circuit: Circuit) -> None:
        super().__init__()
        self._hidden: dict[int, str] = {}
        self._names = {bit: f"c{bit}" for bit in range(circuit.clbits)}
        self._registers = {}
        for one in circuit.registers:
            self._registers[tuple(range(one.first, one.first + one.size))] = one.name
            self._names |= {one.first + place: f"{one.name}[{place}]" for place in range(one.size)}

    def bit(self, bit: int) -> str:
        return self._names.get(bit, f"t{bit}")

    def assign(self, operation: Operation) -> None:
        super().assign(operation)
        text = shortened(self.text(operation.condition) or "1", 60)
        self._hidden.update(dict.fromkeys(operation.clbits, text))

    def text(self, condition: Condition) -> str:
        bits, value = condition.clbits, condition.value
        sign = "≠" if condition.negated else "="
        if bits in self._registers:
            return f"{self._registers[bits]}{sign}{value}"
        parts = [
            (text if value >> place & 1 else f"not({text})")
            if (text := self._hidden.get(bit)) is not None
            else f"{self.bit(bit)}={value >> place & 1}"
            for place, bit in enumerate(bits)
        ]
        joined = " & ".join(parts)
        return f"not({joined})" if condition.negated else joined


@dataclass
class _Cell:
    """One operation of a drawing: the label of each qubit, and the qubits that a line joins."""

    labels: dict[int, str]
    joined: bool = True
    bits: list[int] = field(default_factory=list)  # classical bits that the operation reads or writes

    @property
    def rows(self) -> range:
        return range(min(self.labels), max(self.labels) + 1)


def gate_label(operation: Operation, parameters: tuple[str, ...]) -> str:
    """Return the name of a gate with its angles."""
    angles = angles_of(operation, parameters)
    name = base_name(operation)
    return (name.upper() if name in _NAMES else name) + (f"({', '.join(angles)})" if angles else "")


def _cells(circuit: Circuit, most: int) -> Iterator[_Cell]:
    conditions, parameters = _Conditions(circuit), circuit.parameters
    for operation in circuit.operations[:most]:
        suffix = " if " + conditions.text(operation.condition) if operation.condition else ""
        bits = conditions.of(operation.condition)
        if operation.kind == "assign":
            conditions.assign(operation)
        elif operation.kind in ("measure", "reset"):
            for place, qubit in enumerate(operation.targets):
                written = operation.clbits[place : place + 1]
                label = f"M→{conditions.bit(written[0])}" if written else "|0⟩"
                yield _Cell({qubit: label + suffix}, bits=[*bits, *written])
        elif operation.kind in ("mark", "jump"):
            rows = dict.fromkeys(range(circuit.qubits), "░")
            yield _Cell({**rows, 0: f"{operation.kind} {operation.index}{suffix}"}, joined=False, bits=bits)
        elif operation.kind == "barrier":
            if operation.targets:
                yield _Cell(dict.fromkeys(operation.targets, "░"), joined=False)
        else:
            label = gate_label(operation, parameters)
            several = len(operation.targets) > 1 and operation.kind == "matrix"
            labels = {
                qubit: "×" if operation.kind == "swap" else f"{label}:{place}" if several else label
                for place, qubit in enumerate(operation.targets)
            }
            for place, qubit in enumerate(operation.controls):
                labels[qubit] = "●" if operation.control_values >> place & 1 else "○"
            if not operation.targets:  # a phase, without or with controls
                labels = {qubit: f"{one} {label}" for qubit, one in labels.items()} or {0: label}
            last = max(labels)
            yield _Cell({**labels, last: labels[last] + suffix}, bits=bits)


def _columns(circuit: Circuit) -> list[list[_Cell]]:
    """Return the operations side by side: each in the first column after all on which it depends."""
    free: defaultdict[int, int] = defaultdict(int)
    columns: list[list[_Cell]] = []
    for cell in _cells(circuit, _MOST):
        wires = [*cell.rows, *(-1 - bit for bit in cell.bits)]
        place = max(free[one] for one in wires)
        free.update(dict.fromkeys(wires, place + 1))
        columns += [[] for _ in range(place + 1 - len(columns))]
        columns[place].append(cell)
    return columns


def text_drawing(circuit: Circuit, width: int | None = None) -> str:
    """Draw a circuit as text."""
    width = width or shutil.get_terminal_size().columns
    qubits = circuit.qubits
    heads = [f"q{qubit}: ".rjust(len(str(qubits)) + 3) for qubit in range(qubits)]
    blocks: list[list[str]] = [[]]
    for column in _columns(circuit) if qubits else ():
        lines = _column_lines(column, qubits)
        block = blocks[-1]
        if block and len(block[0]) + len(lines[0]) > width:
            block = []
            blocks.append(block)
        if not block:
            block += [text for head in heads for text in (head + "─", " " * (len(head) + 1))]
        block[:] = [before + after for before, after in zip(block, lines, strict=True)]
    blocks = [block or [head + "─" for head in heads] for block in blocks]
    texts = ["\n".join(line.rstrip() for line in block if line.strip()) for block in blocks]
    hidden = len(circuit) - _MOST
    if hidden > 0:
        texts.append(f"and {counted(hidden, 'more operation')}")
    return "\n\n".join(texts)


def _column_lines(column: list[_Cell], qubits: int) -> list[str]:
    """Draw a column: for each qubit its line, and the line between it and the next."""
    wide = max(len(label) for cell in column for label in cell.labels.values())
    lines = ["─" * (wide + 1), " " * (wide + 1)] * qubits
    middle = (wide - 1) // 2

    def put(line: int, mark: str) -> None:
        lines[line] = lines[line][:middle] + mark + lines[line][middle + 1 :]

    for cell in column:
        for row in cell.rows:
            if row in cell.labels:
                lines[2 * row] = cell.labels[row].center(wide, "─") + "─"
            elif cell.joined:
                put(2 * row, "┼")
            if cell.joined and row != cell.rows[-1]:
                put(2 * row + 1, "│")
    return lines


def qiskit_drawing(circuit: Circuit, output: str) -> Any:
    """Draw a circuit with Qiskit; a gate that Qiskit does not know is a box with its name."""
    if output not in _OUTPUTS:
        raise BadInput(f"draw: expected text, {', '.join(_OUTPUTS)}, found {output!r}")
    try:
        return _for_qiskit(circuit).draw(output)
    except ImportError as error:  # Qiskit's error for a package that it needs is one, too
        raise BadInput(
            f"draw: {output!r} needs Qiskit and the packages that it draws with: {error}"
        ) from error


def _for_qiskit(circuit: Circuit) -> Any:
    """Return a circuit of Qiskit that looks like this one. Its matrices are not those of this one."""
    from qiskit.circuit import ClassicalRegister, Gate, QuantumCircuit
    from qiskit.circuit.library import get_standard_gate_name_mapping

    known = get_standard_gate_name_mapping()
    drawn = QuantumCircuit(circuit.qubits, name=circuit.name or None)
    for one in circuit.registers:
        drawn.add_register(ClassicalRegister(one.size, one.name))
    if drawn.num_clbits < circuit.clbits:
        drawn.add_register(ClassicalRegister(circuit.clbits - drawn.num_clbits, "c"))
    conditions = _Conditions(circuit)
    for operation in circuit.operations:
        suffix = " if " + conditions.text(operation.condition) if operation.condition else ""
        if operation.kind == "assign":
            conditions.assign(operation)
        elif operation.kind == "barrier":
            drawn.barrier(operation.targets)
        elif operation.kind == "measure":
            drawn.measure(operation.targets, operation.clbits)
        elif operation.kind == "reset":
            drawn.reset(operation.targets)
        elif not operation.targets and not operation.controls:
            drawn.global_phase += operation.angle
        else:
            name, numbers = base_name(operation), _numbers(operation)
            standard = known.get(name)
            plain = not suffix and not operation.angles and standard is not None
            if (
                plain
                and len(numbers) == len(standard.params)
                and standard.num_qubits == len(operation.targets)
            ):
                gate = type(standard)(*numbers)
            else:
                targets = len(operation.targets)
                gate = Gate(name, targets, [], label=gate_label(operation, circuit.parameters) + suffix)
            if operation.controls:
                gate = gate.control(len(operation.controls), ctrl_state=operation.control_values)
            drawn.append(gate, [*operation.controls, *operation.targets])
    return drawn
