"""Circuits made of circuits, their size, their drawing, their text, and their copies."""

from __future__ import annotations

import copyreg
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from onehop import _core
from onehop._core import Condition, Operation, Register
from onehop.arguments import instance, real_number, whole_number, whole_numbers
from onehop.error import BadInput
from onehop.output import write_file
from onehop.quantum.drawing import Drawing, Sources, html, qiskit_drawing, text_drawing

Self = TypeVar("Self", bound="Composition")

_ATTRIBUTES = ("hidden_clbits", "registers", "parameters")
_MOST_REPETITIONS = 4096  # operations of a power that is written out; beyond, it becomes a matrix


class Composition(_core.Circuit):
    """The part of `Circuit` that makes new circuits of circuits and describes them."""

    @classmethod
    def _like(cls: type[Self], core: _core.Circuit, operations: Iterable[Operation] | None = None) -> Self:
        """Copy a circuit of the library, with other operations if there are any."""
        more = {name: getattr(core, name) for name in _ATTRIBUTES}
        listed = core.operations if operations is None else operations
        return _made(cls, (core.qubits, core.clbits, core.name), more, listed)

    def compose(
        self: Self,
        other: Composition,
        qubits: Sequence[int] | None = None,
        clbits: Sequence[int] | None = None,
    ) -> Self:
        """Return the operations of this circuit, followed by those of another one, as a new circuit.

        Parameters
        ----------
        other : Circuit
            Circuit with at most as many qubits and classical bits. Parameters of one name are the same.
        qubits, clbits : sequence of int, optional
            Qubit of this circuit for each qubit of the other one, and the same for classical bits. Default: the first
            ones.

        Raises
        ------
        BadInput
            The numbers do not fit, are repeated or do not exist.
        """
        instance(other, _core.Circuit, "other")
        where = _places("qubits", qubits, other.qubits, self.qubits)
        bits = _places("classical bits", clbits, other.clbits, self.clbits)
        result = self._like(self)
        _append_moved(result, other, where, bits)
        return result

    def __add__(self: Self, other: Composition) -> Self:
        """Return the operations of two circuits, one after the other, on the qubits and bits of the larger one."""
        if not isinstance(other, Composition):
            return NotImplemented
        result = type(self)(max(self.qubits, other.qubits), max(self.clbits, other.clbits), self.name)
        result.registers = (self if self.clbits >= other.clbits else other).registers
        for one in (self, other):
            _append_moved(result, one, range(one.qubits), range(one.clbits))
        return result

    def inverse(self: Self) -> Self:
        """Return the circuit of the inverse gates in reverse order.

        Raises
        ------
        BadInput
            The circuit has operations other than gates and barriers, or conditions, or a gate with parameters that are
            no angles of rotations or phases.
        """
        return self._like(_core.inverted(self._gates("inverse")))

    def power(self: Self, exponent: float) -> Self:
        """Return the circuit repeated, or inverted and repeated, or as the matrix of another power.

        Parameters
        ----------
        exponent : float
            Exponent. A whole one repeats the operations (up to 4,096 of them). Otherwise, the result is one gate on at
            most 10 qubits: the power of the unitary matrix whose eigenvalues have phases above -pi and up to pi.

        Raises
        ------
        BadInput
            As for `inverse`; the exponent is not finite; a power that needs a matrix is on more than 10 qubits or
            depends on parameters.
        """
        number, gates = real_number(exponent, "exponent"), self._gates("power")
        if number.is_integer() and abs(number) * len(self) <= _MOST_REPETITIONS:
            once = gates if number >= 0 else _core.inverted(gates)
            return self._like(self, list(once.operations) * abs(int(number)))
        return self._like(_core.raised(gates, number))

    def control(self: Self, number: int = 1, values: int | None = None) -> Self:
        """Return the circuit with controls, which are its first qubits; the others follow them, as in Qiskit.

        Parameters
        ----------
        number : int
            Number of controls.
        values : int, optional
            Values of the controls as a number, of which qubit 0 is the least significant bit. Default: all 1.

        Raises
        ------
        BadInput
            The circuit has operations other than gates and barriers, or conditions; a number is out of range.
        """
        number = whole_number(number, "number", 1, 63)
        most = (1 << number) - 1
        asked = most if values is None else whole_number(values, "values", 0, most)
        moved = type(self)(self.qubits + number, self.clbits, self.name)
        moved.registers = self.registers
        _append_moved(moved, self._gates("control"), range(number, number + self.qubits), range(self.clbits))
        return self._like(_core.controlled(moved, list(range(number)), asked))

    def depth(self) -> int:
        """Return the largest number of operations that follow each other on shared qubits or classical bits.

        A barrier orders operations and counts for none of them, as in Qiskit.
        """
        levels: Counter[tuple[str, int]] = Counter()
        sources = Sources()
        for operation in self.operations:
            if operation.kind == "assign":
                sources.assign(operation)
                continue
            for wires in _wires(operation, sources.of(operation.condition)):
                level = max((levels[one] for one in wires), default=0) + (operation.kind != "barrier")
                levels.update({one: level - levels[one] for one in wires})
        return max(levels.values(), default=0)

    def count_ops(self) -> dict[str, int]:
        """Return the number of operations of each name, the most frequent name first.

        As in Qiskit, each measured or reset qubit counts.
        """
        counts: Counter[str] = Counter()
        for one in self.operations:
            if one.kind != "assign":
                counts[one.name] += len(one.targets) if one.kind in ("measure", "reset") else 1
        return dict(counts.most_common())

    def draw(self, output: str = "text", *, width: int | None = None) -> Any:
        """Draw the circuit.

        Parameters
        ----------
        output : str
            "text"; or "mpl", "latex" or "latex_source", which Qiskit draws.
        width : int, optional
            Columns after which a text continues below. Default: those of the terminal.

        Returns
        -------
        Drawing, or what Qiskit returns
            A text that prints as it is, with the first 1,000 operations.

        Raises
        ------
        BadInput
            There is no such output, or Qiskit, or what it needs, is not installed.
        """
        if instance(output, str, "output") != "text":
            return qiskit_drawing(self, output)
        return Drawing(text_drawing(self, None if width is None else whole_number(width, "width", 20)))

    def to_qasm(self, version: int = 3) -> str:
        """Write the circuit as OpenQASM, which `parse_qasm` reads again.

        Matrices and diagonals of up to 5 qubits become gates. The text has the form that this library chooses, not that
        of the text from which the circuit was read.

        Parameters
        ----------
        version : int
            3 or 2. OpenQASM 2 has no global phase, which is left out.

        Raises
        ------
        BadInput
            OpenQASM has no such operation in this version; the message names it.

        Examples
        --------
        >>> from onehop import quantum
        >>> print(quantum.Circuit(2, 1).h(0).cx(0, 1).measure(1, 0).to_qasm().splitlines()[-3])
        h q[0];
        """
        from onehop.quantum.to_qasm import qasm_of

        return qasm_of(self, version)

    def save(self, file: str | Path, version: int = 3) -> None:
        """Write the circuit to an OpenQASM file; see `to_qasm`.

        Raises
        ------
        BadInput
            The file cannot be written, or OpenQASM has no such operation in this version.
        """
        write_file(file, self.to_qasm(version), "the circuit")

    def _repr_html_(self) -> str:
        return html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        more = {name: getattr(self, name) for name in _ATTRIBUTES}
        return _made, (type(self), (self.qubits, self.clbits, self.name), more, self.operations)

    def _gates(self, what: str) -> Composition:
        """Return this circuit if it consists of gates without conditions, and of barriers."""
        for index, one in enumerate(self.operations):
            if one.condition or not (one.is_gate or one.kind == "barrier"):
                found = "a condition" if one.condition else f"a {one.kind}"
                raise BadInput(
                    f"{what}: expected a circuit of gates without conditions, found {found} in operation {index} "
                    f"({one.name})"
                )
        return self


def _made(
    kind: Any, sizes: tuple[int, int, str], more: dict[str, Any], operations: Iterable[Operation]
) -> Any:
    """Make a circuit of its sizes with its name, its other attributes and its operations."""
    circuit = kind(*sizes)
    for name, value in more.items():
        setattr(circuit, name, value)
    for operation in operations:
        circuit.add(operation)
    return circuit


def _places(what: str, given: Sequence[int] | None, number: int, available: int) -> Sequence[int]:
    places = range(number) if given is None else whole_numbers(given, what, 0, available - 1)
    if len(places) != number or len(set(places)) != number or number > available:
        raise BadInput(
            f"compose: expected {number} different {what} out of {available}, found "
            f"{number if given is None else list(places)}"
        )
    return places


def _append_moved(
    circuit: Composition, other: _core.Circuit, where: Sequence[int], bits: Sequence[int]
) -> None:
    """Append the operations of another circuit, with its qubits and classical bits at other places."""
    first = circuit.clbits + circuit.hidden_clbits
    places = [*bits, *range(first, first + other.hidden_clbits)]
    circuit.hidden_clbits += other.hidden_clbits
    names = list(dict.fromkeys([*circuit.parameters, *other.parameters]))
    circuit.parameters = names
    labels = 1 + max((one.index for one in circuit.operations if one.kind == "mark"), default=-1)
    for operation in other.operations:
        if operation.kind in ("mark", "jump"):
            number = operation.index + labels
            operation = Operation(
                operation.kind, operation.name, [], condition=operation.condition, index=number
            )
        operation.targets = [where[one] for one in operation.targets]
        operation.controls = [where[one] for one in operation.controls]
        operation.clbits = [places[one] for one in operation.clbits]
        old = operation.condition
        operation.condition = Condition([places[one] for one in old.clbits], old.value, old.negated)
        operation.angles = [
            (constant, [(names.index(other.parameters[one]), factor) for one, factor in terms])
            for constant, terms in operation.angles
        ]
        circuit.add(operation)


def _wires(operation: Operation, bits: Sequence[int]) -> Iterator[list[tuple[str, int]]]:
    """Yield the qubits and bits of an operation whose condition depends on `bits`; of a measurement one by one."""
    condition = [("bit", one) for one in bits]
    if operation.kind in ("measure", "reset"):
        for place, qubit in enumerate(operation.targets):
            bit = [("bit", one) for one in operation.clbits[place : place + 1]]
            yield [("qubit", qubit), *bit, *condition]
        return
    yield [*(("qubit", one) for one in (*operation.controls, *operation.targets)), *condition]


_FIELDS = ("controls", "control_values", "values", "paulis", "angle", "clbits", "condition", "index")


def _operation(
    kind: str, name: str, targets: Sequence[int], fields: dict[str, Any], angles: Any
) -> Operation:
    operation = Operation(kind, name, targets, **fields)
    operation.angles = angles
    return operation


def _parts(one: Operation) -> tuple[Any, ...]:
    fields = {name: getattr(one, name) for name in _FIELDS}
    return _operation, (one.kind, one.name, one.targets, fields, one.angles)


# Copies and pickles of what a circuit consists of.
copyreg.pickle(Operation, _parts)
copyreg.pickle(Condition, lambda one: (Condition, (one.clbits, one.value, one.negated)))
copyreg.pickle(Register, lambda one: (Register, (one.name, one.first, one.size)))
