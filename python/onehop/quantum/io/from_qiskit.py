"""`from_qiskit` and `program_from_qiskit`: conversion of a Qiskit `QuantumCircuit`, including control flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from onehop.arguments import instance
from onehop.error import BadInput
from onehop.quantum.circuit import Circuit, Condition, Operation
from onehop.quantum.classical import FALSE, TRUE, BitLogic, evaluate, store_expression
from onehop.quantum.io.qasm_limits import Budget, limited
from onehop.quantum.io.qiskit_blocks import (
    Block,
    Inside,
    InstructionNoise,
    instructions_of,
    kind_of,
    plain_condition,
    registers_of,
    repetitions,
    written_bits,
)
from onehop.quantum.io.qiskit_gates import (
    CONVERSION,
    Conversion,
    angle_of,
    gate_operations,
    is_standard,
    phase_operation,
)
from onehop.quantum.io.qiskit_steps import add_step, is_step
from onehop.quantum.steps import Program

if TYPE_CHECKING:
    from qiskit import QuantumCircuit
    from qiskit.circuit import CircuitInstruction

__all__ = ["from_qiskit"]

_LEFT_EARLY = ("break_loop", "continue_loop")
_AER_MATRICES = ("unitary", "diagonal", "multiplexer")  # gates with matrices that qiskit-aer executes at once


def from_qiskit(circuit: QuantumCircuit) -> Circuit:
    """Convert a Qiskit circuit.

    Gates keep the form that moves the least data: diagonal gates become diagonals, controls stay controls, and Pauli
    evolutions become Pauli rotations in the order of their synthesis. Gates are known by their class, never by their
    name; all others are replaced by their definitions, down to gates with a matrix. A controlled gate whose definition
    is not Qiskit's own control of its base gate is replaced by its definition, too. Control flow is flattened: for
    loops are unrolled, `while`, `break` and `continue` become jumps, and a condition whose bits the body changes is
    evaluated once and stored in a hidden bit.

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
        The circuit has a variable other than a bit or an unsigned integer, an angle that is no linear expression of
        parameters, an infinite or NaN angle, an instruction with neither a matrix nor a definition, or more
        operations than `ONEHOP_QASM_OPERATIONS` allows.
    """
    from qiskit import QuantumCircuit

    program = program_from_qiskit(instance(circuit, QuantumCircuit, "circuit"))
    if program.kinds:
        other = next(one for one in program.circuit.operations if one.kind in program.kinds)
        raise BadInput(
            f"{other.name} is no operation of a circuit: run this circuit on `onehop.qiskit.OnehopBackend`"
        )
    return program.circuit


def program_from_qiskit(
    circuit: QuantumCircuit, noise: InstructionNoise | None = None, active: Sequence[int] | None = None
) -> Program:
    """Convert a Qiskit circuit with loops of any kind, and with the instructions of qiskit-aer.

    Channels of measurements come before them, all others after. `active` lists the qubits that the program has,
    ascending; no instruction may act on another one.
    """
    if circuit.num_qubits < 1:
        raise BadInput(f"circuit {circuit.name}: expected at least 1 qubit, found none")
    with limited() as budget:
        kept = list(range(circuit.num_qubits) if active is None else active)
        empty = Circuit(len(kept), circuit.num_clbits, circuit.name or "")
        return _finished(circuit, _Converter(empty, budget, noise, kept))


def _finished(circuit: QuantumCircuit, converter: _Converter) -> Program:
    clbits = {bit: index for index, bit in enumerate(circuit.clbits)}
    names = [one.name for one in circuit.parameters]
    token = CONVERSION.set(Conversion(names))
    try:
        places = {qubit: place for place, qubit in enumerate(converter.active)}
        converter.block(circuit, Block([places.get(k, 0) for k in range(circuit.num_qubits)], clbits))
        converter.flush()
    finally:
        CONVERSION.reset(token)
    converter.circuit.parameters = names
    converter.circuit.registers = registers_of(circuit)
    noise = converter.noise
    names_of = enumerate(converter.active)
    readout = [] if noise is None else [(place, *noise.readout(qubit)) for place, qubit in names_of]
    kept = [one for one in readout if one[1] > 0 or one[2] > 0]
    converter.program.readout = kept
    return converter.program


class _Converter:
    """Appends the operations of a Qiskit circuit to a `Circuit`."""

    def __init__(
        self,
        circuit: Circuit,
        budget: Budget,
        noise: InstructionNoise | None,
        active: Sequence[int],
    ) -> None:
        self.active = active
        self.fresh = set(range(len(active)))
        self.circuit = circuit
        self.budget = budget
        self.noise = noise
        self.program = Program(circuit)
        self.labels = count()
        self.logic = BitLogic(circuit)
        self._measured: tuple[list[int], list[int], Condition] | None = None

    def flush(self) -> None:
        """Append the collected measurements as one operation."""
        if self._measured is not None:
            qubits, clbits, condition = self._measured
            self._measured = None
            self.circuit.add(Operation("measure", "measure", qubits, clbits=clbits, condition=condition))

    def add(self, operation: Operation, context: Block) -> None:
        """Append an operation under the condition of its block."""
        self.flush()
        operation.condition = context.to_condition()
        if operation.kind != "barrier":
            self.fresh.difference_update(operation.targets, operation.controls)
        self.circuit.add(operation)

    def to_program(self) -> Program:
        """Return the program, to append an operation that circuits do not have."""
        self.flush()
        self.fresh.clear()
        return self.program

    def noise_of(self, name: str, qubits: Sequence[int], context: Block, *, is_gate: bool = False) -> None:
        """Append the noise of an instruction; note a gate that has none."""
        if self.noise is not None:
            places = [self.active[qubit] for qubit in qubits]
            found = self.noise.channels(name, places)
            for kraus in found:
                self.to_program().channel(kraus, qubits, f"noise of {name}", context.to_condition())
            if is_gate and not found:
                self.noise.miss(name, places)

    def measure(self, qubit: int, clbit: int, context: Block) -> None:
        """Collect a measurement. Consecutive measurements under the same condition become one operation."""
        condition = context.to_condition()
        if self._measured is not None:
            qubits, clbits, before = self._measured
            if qubit in qubits or clbit in clbits or clbit in before.clbits or before != condition:
                self.flush()
        if self._measured is None:
            self._measured = ([], [], condition)
        self.fresh.discard(qubit)
        self._measured[0].append(qubit)
        self._measured[1].append(clbit)

    def block(self, circuit: QuantumCircuit, context: Block) -> None:
        """Convert all instructions of a circuit or of a body."""
        self.budget.spend(len(circuit.data) + 1)
        phase = angle_of(circuit.global_phase, "global phase")
        if phase:
            self.add(phase_operation(phase), context)
        places = {qubit: context.qubits[index] for index, qubit in enumerate(circuit.qubits)}
        for instruction in circuit.data:
            self._instruction(instruction, [places[qubit] for qubit in instruction.qubits], context)

    def _instruction(self, instruction: CircuitInstruction, qubits: list[int], context: Block) -> None:
        operation = instruction.operation
        name, kind = operation.name, kind_of(operation)
        if kind in _LEFT_EARLY:
            if context.loop is None:
                raise BadInput(f"{name}: expected a loop around it, found none")
            self.to_program().jump(context.loop[kind == "break_loop"], context.to_condition())
        elif kind == "store":
            self.flush()
            store_expression(self.logic, context.clbits, operation, context.to_condition())
        elif kind == "measure":
            self._measurement(qubits, [context.clbits[bit] for bit in instruction.clbits], context)
        elif kind == "barrier":
            self.add(Operation(kind, name, list(dict.fromkeys(qubits))), context)
        elif kind == "reset":
            for qubit in qubits:
                if qubit not in self.fresh:  # a fresh qubit is |0>
                    self.add(Operation(kind, name, [qubit]), context)
                self.noise_of(name, [qubit], context)
        elif kind in ("if_else", "for_loop", "while_loop", "switch_case", "box"):
            self.flush()
            getattr(self, f"_{kind}")(operation, self._inside(instruction, qubits, context))
        elif is_step(operation):
            add_step(self.to_program(), operation, qubits, context.to_condition())
        else:
            is_gate = kind != "delay" and self._gate(instruction, qubits, context)
            self.noise_of(getattr(operation, "label", None) or name, qubits, context, is_gate=is_gate)

    def _measurement(self, qubits: list[int], clbits: list[int], context: Block) -> None:
        for qubit in qubits:
            self.noise_of("measure", [qubit], context)
        for qubit, clbit in zip(qubits, clbits, strict=True):
            self.measure(qubit, clbit, context)
        table = None if self.noise is None else self.noise.joint_readout([self.active[one] for one in qubits])
        if table is not None:
            self.to_program().misread(table, clbits, context.to_condition())

    def _gate(self, instruction: CircuitInstruction, qubits: list[int], context: Block) -> bool:
        """Convert a gate or its parts; return False if the parts have their own noise."""
        from qiskit.circuit import AnnotatedOperation, Gate
        from qiskit.circuit.library import Initialize

        operation = instruction.operation
        is_plain = not isinstance(operation, (Gate, AnnotatedOperation))
        definition = getattr(operation, "definition", None)
        if definition is not None and (is_plain or self._has_noise_inside(operation)):
            inner = {bit: context.clbits[instruction.clbits[k]] for k, bit in enumerate(definition.clbits)}
            noise = self.noise
            # qiskit-aer sets amplitudes at once, and makes the states of labels and of numbers with gates.
            at_once = isinstance(operation, Initialize) and len(operation.params) > 1
            at_once = at_once and isinstance(operation.params[0], complex)
            self.noise = None if at_once else noise
            self.block(definition, replace(context, qubits=qubits, clbits=inner))
            self.noise = noise
            return at_once
        for one in gate_operations(operation, qubits):
            self.add(one, context)
        return bool(qubits)

    def _has_noise_inside(self, operation: Any) -> bool:
        """Whether the definition of a gate must be converted instruction by instruction, each with its noise."""
        if self.noise is None or is_standard(operation) or operation.name in _AER_MATRICES:
            return False
        return not {operation.name, getattr(operation, "label", None)} & self.noise.names

    @staticmethod
    def _inside(instruction: CircuitInstruction, qubits: list[int], context: Block) -> Inside:
        return Inside(qubits, [context.clbits[bit] for bit in instruction.clbits], context)

    def _body(
        self,
        body: QuantumCircuit,
        inside: Inside,
        guards: tuple[tuple[int, int], ...],
        direct: Any = None,
        loop: tuple[int, int] | None = None,
    ) -> None:
        clbits = {bit: inside.clbits[k] for k, bit in enumerate(body.clbits)}
        self.block(body, Block(inside.qubits, clbits, guards, direct, loop or inside.outer.loop))
        self.flush()

    def _guards(self, context: Block) -> tuple[tuple[int, int], ...]:
        """Return the condition of a block as hidden bits with their values."""
        if context.condition is None:
            return context.guards
        return ((self.logic.assign(context.condition), 1),)

    def _box(self, operation: Any, inside: Inside) -> None:
        context = inside.outer
        self._body(operation.blocks[0], inside, context.guards, context.condition)

    def _for_loop(self, operation: Any, inside: Inside) -> None:
        values, parameter, body = operation.params
        self.budget.require(repetitions(operation))
        guards = self._guards(inside.outer)
        leaves = any(kind_of(one.operation) in _LEFT_EARLY for one in instructions_of(body))
        end = next(self.labels)
        for value in values:
            bound = body if parameter is None else body.assign_parameters({parameter: value}, strict=False)
            after = next(self.labels)
            self._body(bound, inside, guards, loop=(after, end))
            if leaves:
                self.to_program().mark(after)
        if leaves:
            self.to_program().mark(end)

    def _while_loop(self, operation: Any, inside: Inside) -> None:
        guards = self._guards(inside.outer)
        start, end = next(self.labels), next(self.labels)
        self.to_program().mark(start)
        bit = self._stored(operation.condition, inside.outer)
        if bit != FALSE:
            wanted = [*guards, *([] if bit == TRUE else [(bit, 1)])]
            if wanted:
                value = sum(one << k for k, (_, one) in enumerate(wanted))
                self.to_program().jump(end, Condition([place for place, _ in wanted], value, True))
            self._body(operation.blocks[0], inside, (), loop=(start, end))
            self.to_program().jump(start)
        self.to_program().mark(end)

    def _if_else(self, operation: Any, inside: Inside) -> None:
        context, bodies = inside.outer, operation.blocks
        direct = (
            None if context.guards or context.condition else plain_condition(operation.condition, context)
        )
        written = {bit for body in bodies for bit in written_bits(body, inside.clbits)}
        if direct is not None and not written & set(direct.clbits):
            self._body(bodies[0], inside, (), direct)
            if len(bodies) > 1:
                self._body(bodies[1], inside, (), Condition(list(direct.clbits), direct.value, True))
            return
        guards = self._guards(context)
        bit = self._stored(operation.condition, context)
        for body, value in zip(bodies, (1, 0), strict=False):
            self._guarded(body, inside, guards, bit, value)

    def _switch_case(self, operation: Any, inside: Inside) -> None:
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
        self, body: QuantumCircuit, inside: Inside, guards: tuple[tuple[int, int], ...], bit: int, value: int
    ) -> None:
        """Convert a body that is executed if a bit has a value; drop it if it can never be executed."""
        if bit in (FALSE, TRUE):
            if (bit == TRUE) == bool(value):
                self._body(body, inside, guards)
        elif (bit, 1 - value) not in guards:
            guards = tuple(dict.fromkeys((*guards, (bit, value))))
            if len(guards) > 62:  # a condition has at most 64 bits
                guards = (
                    (
                        self.logic.assign(
                            replace(inside.outer, guards=guards, condition=None).to_condition()
                        ),
                        1,
                    ),
                )
            self._body(body, inside, guards)

    def _copied(self, bit: int, used: Sequence[int]) -> int:
        """Copy a bit that a body could change, that is, one of `used` or of a variable, to a hidden bit."""
        if bit in (FALSE, TRUE) or not (bit in used or self.logic.is_variable(bit)):
            return bit
        return self.logic.assign(Condition([bit], 1))

    def _stored(self, condition: Any, context: Block) -> int:
        """Store the current truth of a condition in a bit that no body can change."""
        if isinstance(condition, tuple):
            answer = self.logic.equals(self._bits(condition[0], context), int(condition[1]))
        else:
            answer = self.logic.any_of(evaluate(self.logic, context.clbits, condition))
        return self._copied(answer, range(self.circuit.clbits))

    def _bits(self, target: Any, context: Block) -> list[int]:
        from qiskit.circuit import ClassicalRegister, Clbit

        if isinstance(target, Clbit):
            return [context.clbits[target]]
        if isinstance(target, ClassicalRegister):
            return [context.clbits[bit] for bit in target]
        return evaluate(self.logic, context.clbits, target)
