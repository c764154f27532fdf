"""Blocks of Qiskit circuits: where their bits are in the whole circuit, what they may change, and their noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from onehop.quantum.circuit import Condition, Register

if TYPE_CHECKING:
    from qiskit import QuantumCircuit
    from qiskit.circuit import CircuitInstruction, Clbit


class InstructionNoise(Protocol):
    """The noise of Qiskit's instructions, which becomes steps of a program."""

    names: frozenset[str]
    """Names and labels of the instructions that have noise."""

    def channels(self, name: str, qubits: Sequence[int]) -> Sequence[tuple[Any, ...]]:
        """Return the channels on the qubits of an instruction, as Kraus operators."""

    def readout(self, qubit: int) -> tuple[float, float]:
        """Return the probabilities to read 1 for 0, and 0 for 1."""

    def miss(self, name: str, qubits: Sequence[int]) -> None:
        """Note that a gate with this name or label has no noise on these qubits."""

    def joint_readout(self, qubits: Sequence[int]) -> Any:
        """Return the table of a readout error of several qubits together, or None."""


@dataclass(frozen=True)
class Block:
    """The bits of a block of instructions in the whole circuit, and the condition under which the block is executed.

    Either `condition` is that condition, or `guards` lists hidden bits with the values that they must have.
    """

    qubits: Sequence[int]
    clbits: dict[Clbit, int]
    guards: tuple[tuple[int, int], ...] = ()
    condition: Condition | None = None
    loop: tuple[int, int] | None = None
    """Labels of the marks where the innermost loop goes on, and where it ends."""

    def to_condition(self) -> Condition:
        """Return the condition of the operations of the block."""
        if self.condition is not None:
            return self.condition
        return Condition(
            [bit for bit, _ in self.guards], sum(value << k for k, (_, value) in enumerate(self.guards))
        )


@dataclass(frozen=True)
class Inside:
    """The bits that a control flow instruction passes to its bodies, and the context of the instruction."""

    qubits: list[int]
    clbits: list[int]
    outer: Block


def plain_condition(condition: Any, context: Block) -> Condition | None:
    """Convert a comparison of bits with a number below 2^64; return None for any other condition."""
    from qiskit.circuit import Clbit

    if not isinstance(condition, tuple):
        return None
    target, value = condition
    bits = [target] if isinstance(target, Clbit) else list(target)
    if int(value) >> min(len(bits), 64):
        return None
    return Condition([context.clbits[bit] for bit in bits], int(value))


@cache
def _kinds() -> dict[type, str]:
    from qiskit import circuit

    return {
        circuit.Barrier: "barrier",
        circuit.BoxOp: "box",
        circuit.BreakLoopOp: "break_loop",
        circuit.ContinueLoopOp: "continue_loop",
        circuit.Delay: "delay",
        circuit.ForLoopOp: "for_loop",
        circuit.IfElseOp: "if_else",
        circuit.Measure: "measure",
        circuit.Reset: "reset",
        circuit.Store: "store",
        circuit.SwitchCaseOp: "switch_case",
        circuit.WhileLoopOp: "while_loop",
    }


def kind_of(operation: Any) -> str:
    """Return what an instruction is by its class, because a gate may have any name; "" for gates and all others.

    A plain `Instruction` has its kind by its name, as qiskit-aer's measurements of several qubits.
    """
    from qiskit.circuit import Gate, Instruction

    if isinstance(operation, Gate):
        return ""
    if (
        type(operation) is Instruction
        and operation.name in ("measure", "reset")
        and operation.definition is None
    ):
        return operation.name
    return next((kind for base, kind in _kinds().items() if isinstance(operation, base)), "")


def repetitions(loop: Any) -> int:
    """Count the instructions that a loop executes, including nested loops."""
    values, _, body = loop.params
    inside = sum(
        repetitions(one.operation) if kind_of(one.operation) == "for_loop" else 1 for one in body.data
    )
    times = (
        max(0, -((values.start - values.stop) // values.step)) if isinstance(values, range) else len(values)
    )
    return times * (inside + 1)


def instructions_of(body: QuantumCircuit) -> Iterator[CircuitInstruction]:
    """Yield the instructions of a body and of the blocks inside it."""
    for instruction in body.data:
        yield instruction
        for block in getattr(instruction.operation, "blocks", ()):
            yield from instructions_of(block)


def written_bits(body: QuantumCircuit, clbits: Sequence[int]) -> Iterator[int]:
    """Yield the classical bits that a body may change."""
    places = {bit: clbits[k] for k, bit in enumerate(body.clbits)}
    for instruction in body.data:
        operation = instruction.operation
        stored = _bits_of(operation.lvalue) if kind_of(operation) == "store" else ()
        for bit in (*instruction.clbits, *stored):
            yield places[bit]


def _bits_of(target: Any) -> Sequence[Clbit]:
    """List the classical bits to which a `store` may write; it does not list them itself."""
    from qiskit.circuit import ClassicalRegister, Clbit
    from qiskit.circuit.classical import expr

    while isinstance(target, expr.Index):
        target = target.target
    if isinstance(target.var, Clbit):
        return [target.var]
    return list(target.var) if isinstance(target.var, ClassicalRegister) else []


def registers_of(circuit: QuantumCircuit) -> list[Register]:
    """Return the places of the classical registers in the texts of outcomes.

    Qiskit cuts all bits in their order at the sizes of the registers, from the last one on, even if registers share
    bits or are in another order. A circuit with a bit in no register has no such places: cutting would lose bits.
    """
    left = circuit.num_clbits
    if len({bit for register in circuit.cregs for bit in register}) < left:
        return []
    places = []
    for register in reversed(circuit.cregs):
        size = min(len(register), left)
        left -= size
        places.append(Register(register.name, left, size))
    return places[::-1]
