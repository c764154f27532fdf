"""Questions about classical bits: Qiskit's expressions as `assign` operations on hidden bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onehop.error import BadInput
from onehop.quantum.circuit import Circuit, Condition, Operation

if TYPE_CHECKING:
    from qiskit.circuit import Clbit
    from qiskit.circuit.classical import expr

__all__ = ["FALSE", "TRUE", "BitLogic"]

# What is known without asking, where others are numbers of bits.
FALSE, TRUE = -1, -2
Bits = Sequence[int]


class BitLogic:
    """Computes Boolean functions of a circuit's classical bits, each answer in a hidden bit of its own.

    Parameters
    ----------
    circuit : Circuit
        Gets the `assign` operations.
    """

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit

    def assign(self, condition: Condition) -> int:
        """A new hidden bit that holds whether the condition is fulfilled now."""
        bit = self.circuit.clbits + self.circuit.hidden_clbits
        self.circuit.hidden_clbits += 1
        self.circuit.add(Operation("assign", "assign", [], clbits=[bit], condition=condition))
        return bit

    def all_of(self, wanted: Sequence[tuple[int, int]], *, negated: bool = False) -> int:
        """Whether every bit of the (bit, value) pairs has its value; negated: whether one has not."""
        no, yes = (TRUE, FALSE) if negated else (FALSE, TRUE)
        asked: dict[int, int] = {}
        for bit, value in wanted:
            if bit in (FALSE, TRUE):
                if (bit == TRUE) != bool(value):
                    return no
            elif asked.setdefault(bit, value) != value:
                return no
        if not asked:
            return yes
        if not negated and list(asked.values()) == [1]:
            return next(iter(asked))
        number = sum(value << k for k, value in enumerate(asked.values()))
        return self.assign(Condition(list(asked), number, negated))

    def negation(self, a: int) -> int:
        """Not a."""
        return self.all_of([(a, 0)])

    def both(self, a: int, b: int) -> int:
        """A and b."""
        return self.all_of([(a, 1), (b, 1)])

    def any_of(self, bits: Bits) -> int:
        """Whether one of the bits is 1."""
        distinct = [bit for bit in dict.fromkeys(bits) if bit != FALSE]
        if len(distinct) == 1:
            return distinct[0]
        return self.all_of([(bit, 0) for bit in distinct], negated=True)

    def either(self, a: int, b: int) -> int:
        """A or b."""
        return self.any_of([a, b])

    def different(self, a: int, b: int) -> int:
        """A exclusive-or b."""
        return self.either(self.all_of([(a, 1), (b, 0)]), self.all_of([(a, 0), (b, 1)]))

    def equals(self, bits: Bits, value: int) -> int:
        """Whether the bits, read as a number, are `value`."""
        if value >> len(bits):
            return FALSE
        return self.all_of([(bit, value >> k & 1) for k, bit in enumerate(bits)])

    def equal(self, a: Bits, b: Bits) -> int:
        """Whether two numbers are the same."""
        return self.all_of([(self.different(x, y), 0) for x, y in zip(*_same_length(a, b), strict=True)])

    def less(self, a: Bits, b: Bits) -> int:
        """Whether a < b."""
        answer = FALSE
        for x, y in zip(*_same_length(a, b), strict=True):
            below = self.all_of([(x, 0), (y, 1)])
            above = self.all_of([(x, 1), (y, 0)])
            answer = self.either(below, self.all_of([(above, 0), (answer, 1)]))
        return answer


def _same_length(a: Bits, b: Bits) -> tuple[list[int], list[int]]:
    width = max(len(a), len(b))
    return [*a, *[FALSE] * (width - len(a))], [*b, *[FALSE] * (width - len(b))]


def _number(value: int, width: int) -> list[int]:
    return [TRUE if value >> k & 1 else FALSE for k in range(width)]


def evaluate(logic: BitLogic, clbits: Mapping[Clbit, int], node: expr.Expr) -> list[int]:
    """The bits of an expression of `qiskit.circuit.classical.expr`, the least significant first.

    Raises
    ------
    BadInput
        Arithmetic, floating-point numbers, or variables that are no classical bits.
    """
    from qiskit.circuit import ClassicalRegister, Clbit
    from qiskit.circuit.classical import expr, types

    def width(one: expr.Expr) -> int:
        return 1 if isinstance(one.type, types.Bool) else one.type.width

    if isinstance(node, expr.Var):
        if isinstance(node.var, Clbit):
            return [clbits[node.var]]
        if isinstance(node.var, ClassicalRegister):
            return [clbits[bit] for bit in node.var]
        raise BadInput(
            f"the variable {node.name!r} of {node.type} cannot be simulated: only classical bits can"
        )
    if isinstance(node, expr.Value) and isinstance(node.type, (types.Bool, types.Uint)):
        return _number(int(node.value), width(node))
    if isinstance(node, expr.Cast):
        inside = evaluate(logic, clbits, node.operand)
        if isinstance(node.type, types.Bool):
            return [logic.any_of(inside)]
        if isinstance(node.type, types.Uint):
            return [*inside, *[FALSE] * width(node)][: width(node)]
    if isinstance(node, expr.Index) and isinstance(node.index, expr.Value):
        return [evaluate(logic, clbits, node.target)[int(node.index.value)]]
    if isinstance(node, expr.Unary) and node.op.name in ("LOGIC_NOT", "BIT_NOT"):
        inside = evaluate(logic, clbits, node.operand)
        if node.op.name == "LOGIC_NOT":
            return [logic.negation(logic.any_of(inside))]
        return [logic.negation(bit) for bit in inside]
    if isinstance(node, expr.Binary):
        found = _binary(logic, node, lambda one: evaluate(logic, clbits, one))
        if found is not None:
            return found
    raise BadInput(f"the condition {type(node).__name__} {getattr(node, 'op', '')} cannot be simulated")


def _binary(logic: BitLogic, node: Any, value_of: Callable[[expr.Expr], list[int]]) -> list[int] | None:
    """A binary operation; None where it is one that bits do not know."""
    name = node.op.name
    if name.startswith("SHIFT") and hasattr(node.right, "value"):
        bits = value_of(node.left)
        by = min(int(node.right.value), len(bits))
        if name == "SHIFT_RIGHT":
            return [*bits[by:], *[FALSE] * by][: len(bits)]
        return [*[FALSE] * by, *bits][: len(bits)]
    a, b = _same_length(value_of(node.left), value_of(node.right))
    bitwise = {"BIT_AND": logic.both, "BIT_OR": logic.either, "BIT_XOR": logic.different}
    if name in bitwise:
        return [bitwise[name](x, y) for x, y in zip(a, b, strict=True)]
    answers = {
        "LOGIC_AND": lambda: logic.both(logic.any_of(a), logic.any_of(b)),
        "LOGIC_OR": lambda: logic.any_of([*a, *b]),
        "EQUAL": lambda: logic.equal(a, b),
        "NOT_EQUAL": lambda: logic.negation(logic.equal(a, b)),
        "LESS": lambda: logic.less(a, b),
        "LESS_EQUAL": lambda: logic.negation(logic.less(b, a)),
        "GREATER": lambda: logic.less(b, a),
        "GREATER_EQUAL": lambda: logic.negation(logic.less(a, b)),
    }
    return [answers[name]()] if name in answers else None
