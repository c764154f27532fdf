"""`from_qiskit`: conversion of a Qiskit `QuantumCircuit`, including control flow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from onehop.error import BadInput
from onehop.quantum.circuit import Circuit, Condition, Operation, Register
from onehop.quantum.classical import FALSE, TRUE, BitLogic, evaluate
from onehop.quantum.io.qasm_limits import Budget, limited
from onehop.quantum.io.qiskit_gates import PARAMETERS, angle_of, gate_operations, number_of, with_angle

if TYPE_CHECKING:
    from qiskit import QuantumCircuit
    from qiskit.circuit import CircuitInstruction, Clbit

__all__ = ["from_qiskit"]

_IGNORED = frozenset({"delay"})
_IMPOSSIBLE = {
    "while_loop": "a while loop has no known end; write the repetitions as a for loop",
    "break_loop": "a loop cannot be left early; put the rest of its body under a condition",
    "continue_loop": "the body of a loop cannot be left early; put the rest of it under a condition",
    "store": "classical variables other than bits are not supported; use classical bits",
}


@dataclass(frozen=True)
class _Context:
    """The bits of a block of instructions in the whole circuit, and the condition under which the block is executed.

    Either `condition` is that condition, or `guards` lists hidden bits with the values that they must have.
    """

    qubits: Sequence[int]
    clbits: dict[Clbit, int]
    guards: tuple[tuple[int, int], ...] = ()
    condition: Condition | None = None

    def to_condition(self) -> Condition:
        """Return the condition of the operations of the block."""
        if self.condition is not None:
            return self.condition
        return Condition(
            [bit for bit, _ in self.guards], sum(value << k for k, (_, value) in enumerate(self.guards))
        )


def from_qiskit(circuit: QuantumCircuit) -> Circuit:
    """Convert a Qiskit circuit.

    Gates keep the form that moves the least data: diagonal gates become diagonals, controls stay controls, and Pauli
    evolutions become Pauli rotations in the order of their synthesis. Other gates are replaced by their definitions,
    down to gates with a matrix. Control flow is flattened: loops are unrolled, and a condition whose bits the body
    changes is evaluated once and stored in a hidden bit.

    Parameters
    ----------
    circuit : QuantumCircuit
        Circuit. Angles of its gates may be linear expressions of parameters; `Circuit.parameters` lists them in
        Qiskit's order.

    Returns
    -------
    Circuit
        Circuit with the same order of qubits and classical bits.

    Raises
    ------
    BadInput
        The circuit has a while loop, a `break`, a variable other than a bit, an angle that is no linear expression of
        parameters, an infinite or NaN angle, an instruction with neither a matrix nor a definition, or more
        operations than `ONEHOP_QASM_OPERATIONS` allows.
    """
    if circuit.num_qubits < 1:
        raise BadInput(f"circuit {circuit.name}: expected at least 1 qubit, found none")
    with limited() as budget:
        return _converted(circuit, budget)


def _converted(circuit: QuantumCircuit, budget: Budget) -> Circuit:
    converter = _Converter(Circuit(circuit.num_qubits, circuit.num_clbits, circuit.name or ""), budget)
    clbits = {bit: index for index, bit in enumerate(circuit.clbits)}
    names = [one.name for one in circuit.parameters]
    token = PARAMETERS.set(names)
    try:
        converter.block(circuit, _Context(range(circuit.num_qubits), clbits))
        converter.flush()
    finally:
        PARAMETERS.reset(token)
    converter.circuit.parameters = names
    converter.circuit.registers = list(_registers(circuit, clbits))
    return converter.circuit


def _registers(circuit: QuantumCircuit, clbits: dict[Clbit, int]) -> Iterator[Register]:
    """Yield the classical registers whose bits are consecutive."""
    for register in circuit.cregs:
        first = clbits[register[0]] if len(register) else 0
        if [clbits[bit] for bit in register] == list(range(first, first + len(register))):
            yield Register(register.name, first, len(register))


class _Converter:
    """Appends the operations of a Qiskit circuit to a `Circuit`."""

    def __init__(self, circuit: Circuit, budget: Budget) -> None:
        self.circuit = circuit
        self.budget = budget
        self.logic = BitLogic(circuit)
        self._measured: tuple[list[int], list[int], Condition] | None = None

    def flush(self) -> None:
        """Append the collected measurements as one operation."""
        if self._measured is not None:
            qubits, clbits, condition = self._measured
            self._measured = None
            self.circuit.add(Operation("measure", "measure", qubits, clbits=clbits, condition=condition))

    def add(self, operation: Operation, context: _Context) -> None:
        """Append an operation under the condition of its block."""
        self.flush()
        operation.condition = context.to_condition()
        self.circuit.add(operation)

    def measure(self, qubit: int, clbit: int, context: _Context) -> None:
        """Collect a measurement. Consecutive measurements under the same condition become one operation."""
        condition = context.to_condition()
        if self._measured is not None:
            qubits, clbits, before = self._measured
            if qubit in qubits or clbit in clbits or clbit in before.clbits or before != condition:
                self.flush()
        if self._measured is None:
            self._measured = ([], [], condition)
        self._measured[0].append(qubit)
        self._measured[1].append(clbit)

    def block(self, circuit: QuantumCircuit, context: _Context) -> None:
        """Convert all instructions of a circuit or of a body."""
        self.budget.spend(len(circuit.data) + 1)
        phase = angle_of(circuit.global_phase)
        if phase:
            operation = Operation("global_phase", "gphase", [], angle=number_of(phase))
            self.add(with_angle(operation, phase), context)
        places = {qubit: context.qubits[index] for index, qubit in enumerate(circuit.qubits)}
        for instruction in circuit.data:
            self._instruction(instruction, [places[qubit] for qubit in instruction.qubits], context)

    def _instruction(self, instruction: CircuitInstruction, qubits: list[int], context: _Context) -> None:
        operation = instruction.operation
        name = operation.name
        if name in _IMPOSSIBLE:
            raise BadInput(f"{name} cannot be simulated: {_IMPOSSIBLE[name]}")
        if name == "measure":
            self.measure(qubits[0], context.clbits[instruction.clbits[0]], context)
        elif name in ("reset", "barrier"):
            self.add(Operation(name, name, qubits), context)
        elif name in ("if_else", "for_loop", "switch_case", "box"):
            self.flush()
            getattr(self, f"_{name}")(operation, self._inside(instruction, qubits, context))
        elif name not in _IGNORED:
            self._gate(instruction, qubits, context)

    def _gate(self, instruction: CircuitInstruction, qubits: list[int], context: _Context) -> None:
        from qiskit.circuit import Gate

        operation = instruction.operation
        is_plain = not isinstance(operation, Gate) and operation.name != "annotated"
        definition = getattr(operation, "definition", None)
        if is_plain and definition is not None:
            inner = {bit: context.clbits[instruction.clbits[k]] for k, bit in enumerate(definition.clbits)}
            self.block(definition, replace(context, qubits=qubits, clbits=inner))
            return
        for one in gate_operations(operation, qubits):
            self.add(one, context)

    @staticmethod
    def _inside(instruction: CircuitInstruction, qubits: list[int], context: _Context) -> _Inside:
        return _Inside(qubits, [context.clbits[bit] for bit in instruction.clbits], context)

    def _body(
        self, body: QuantumCircuit, inside: _Inside, guards: tuple[tuple[int, int], ...], direct: Any = None
    ) -> None:
        clbits = {bit: inside.clbits[k] for k, bit in enumerate(body.clbits)}
        self.block(body, _Context(inside.qubits, clbits, guards, direct))
        self.flush()

    def _guards(self, context: _Context) -> tuple[tuple[int, int], ...]:
        """Return the condition of a block as hidden bits with their values."""
        if context.condition is None:
            return context.guards
        return ((self.logic.assign(context.condition), 1),)

    def _box(self, operation: Any, inside: _Inside) -> None:
        context = inside.outer
        self._body(operation.blocks[0], inside, context.guards, context.condition)

    def _for_loop(self, operation: Any, inside: _Inside) -> None:
        values, parameter, body = operation.params
        self.budget.require(_repeated(operation))
        guards = self._guards(inside.outer)
        for value in values:
            bound = body if parameter is None else body.assign_parameters({parameter: value}, strict=False)
            self._body(bound, inside, guards)

    def _if_else(self, operation: Any, inside: _Inside) -> None:
        context, bodies = inside.outer, operation.blocks
        direct = None if context.guards or context.condition else _plain(operation.condition, context)
        written = {bit for body in bodies for bit in _written(body, inside.clbits)}
        if direct is not None and not written & set(direct.clbits):
            self._body(bodies[0], inside, (), direct)
            if len(bodies) > 1:
                self._body(bodies[1], inside, (), Condition(list(direct.clbits), direct.value, True))
            return
        guards = self._guards(context)
        bit = self._stored(operation.condition, context)
        for body, value in zip(bodies, (1, 0), strict=False):
            self._guarded(body, inside, guards, bit, value)

    def _switch_case(self, operation: Any, inside: _Inside) -> None:
        from qiskit.circuit import CASE_DEFAULT

        context = inside.outer
        guards = self._guards(context)
        bits = self._bits(operation.target, context)
        # Evaluate all cases before the first body, which may change the bits.
        chosen, earlier = [], []
        for labels, body in operation.cases_specifier():
            hits = [self.logic.equals(bits, int(label)) for label in labels if label is not CASE_DEFAULT]
            hit = self.logic.any_of(hits)
            if CASE_DEFAULT in labels:
                hit = self.logic.either(hit, self.logic.negation(self.logic.any_of(earlier)))
            earlier.append(hit)
            chosen.append((body, self._copied(hit, bits)))
        for body, hit in chosen:
            self._guarded(body, inside, guards, hit, 1)

    def _guarded(
        self, body: QuantumCircuit, inside: _Inside, guards: tuple[tuple[int, int], ...], bit: int, value: int
    ) -> None:
        """Convert a body that is executed if a bit has a value; drop it if it can never be executed."""
        if bit in (FALSE, TRUE):
            if (bit == TRUE) == bool(value):
                self._body(body, inside, guards)
        elif (bit, 1 - value) not in guards:
            self._body(body, inside, tuple(dict.fromkeys((*guards, (bit, value)))))

    def _copied(self, bit: int, used: Sequence[int]) -> int:
        """Copy a bit that a body could change, that is, one of `used`, to a hidden bit."""
        if bit in (FALSE, TRUE) or bit >= self.circuit.clbits or bit not in used:
            return bit
        return self.logic.assign(Condition([bit], 1))

    def _stored(self, condition: Any, context: _Context) -> int:
        """Store the current truth of a condition in a bit that no body can change."""
        if isinstance(condition, tuple):
            answer = self.logic.equals(self._bits(condition[0], context), int(condition[1]))
        else:
            answer = self.logic.any_of(evaluate(self.logic, context.clbits, condition))
        return self._copied(answer, range(self.circuit.clbits))

    def _bits(self, target: Any, context: _Context) -> list[int]:
        from qiskit.circuit import ClassicalRegister, Clbit

        if isinstance(target, Clbit):
            return [context.clbits[target]]
        if isinstance(target, ClassicalRegister):
            return [context.clbits[bit] for bit in target]
        return evaluate(self.logic, context.clbits, target)


@dataclass(frozen=True)
class _Inside:
    """The bits that a control flow instruction passes to its bodies, and the context of the instruction."""

    qubits: list[int]
    clbits: list[int]
    outer: _Context


def _plain(condition: Any, context: _Context) -> Condition | None:
    """Convert a comparison of bits with a number; return None for any other condition."""
    from qiskit.circuit import Clbit

    if not isinstance(condition, tuple):
        return None
    target, value = condition
    bits = [target] if isinstance(target, Clbit) else list(target)
    if int(value) >> len(bits):
        return None
    return Condition([context.clbits[bit] for bit in bits], int(value))


def _repeated(loop: Any) -> int:
    """Count the instructions that a loop executes, including nested loops."""
    values, _, body = loop.params
    inside = sum(_repeated(one.operation) if one.operation.name == "for_loop" else 1 for one in body.data)
    times = (
        max(0, -((values.start - values.stop) // values.step)) if isinstance(values, range) else len(values)
    )
    return times * (inside + 1)


def _written(body: QuantumCircuit, clbits: Sequence[int]) -> Iterator[int]:
    """Yield the classical bits that a body may change."""
    places = {bit: clbits[k] for k, bit in enumerate(body.clbits)}
    for instruction in body.data:
        for bit in instruction.clbits:
            yield places[bit]
