"""Classical expressions, translated to `assign` operations on hidden bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from onehop import _core
from onehop.error import BadInput
from onehop.quantum.circuit import Circuit, Condition

if TYPE_CHECKING:
    from qiskit.circuit import Clbit
    from qiskit.circuit.classical import expr

# Constants, in place of the number of a classical bit.
FALSE, TRUE = -1, -2
# Qiskit's names of operations that have another one in pytket.
_OPERATIONS = {"EQUAL": "Eq", "NOT_EQUAL": "Neq", "LESS": "Lt", "LESS_EQUAL": "Leq", "GREATER": "Gt",
               "GREATER_EQUAL": "Geq", "SHIFT_LEFT": "Lsh", "SHIFT_RIGHT": "Rsh"}  # fmt: skip
_LARGEST_TABLE = 10  # bits of a function that is given by its values
Bits = Sequence[int]


class BitLogic(_core.BitLogic):
    """Boolean functions of a circuit's classical bits.

    The methods take and return numbers of classical bits, or `FALSE` and `TRUE`. Each result that is no constant and
    no argument goes into a new hidden bit, which an `assign` operation sets.
    """

    def __init__(self, circuit: Circuit) -> None:
        super().__init__(circuit)
        self.circuit = circuit
        self.variables: dict[Any, list[int]] = {}
        """The bits of Qiskit's variables, by `expr.Var`."""

    def declare(self, variable: Any, width: int) -> list[int]:
        """Give a variable new hidden bits, unless it has some; return them."""
        if variable not in self.variables:
            first = self.circuit.clbits + self.circuit.hidden_clbits
            self.circuit.hidden_clbits += width
            self.variables[variable] = list(range(first, first + width))
        return self.variables[variable]

    def is_variable(self, bit: int) -> bool:
        """Check whether a bit belongs to a variable, so that a `store` may change it."""
        return any(bit in bits for bits in self.variables.values())

    def store(self, targets: Bits, values: Bits, condition: Condition) -> None:
        """Store values in classical bits if a condition holds now."""
        holds = self.assign(condition) if condition else TRUE
        wanted = [self.choice(holds, value, target) for target, value in zip(targets, values, strict=True)]
        # A bit that is itself a target may change before it is read.
        kept = [self.assign(Condition([new], 1)) if new in targets else new for new in wanted]
        for target, value in zip(targets, kept, strict=True):
            self.copy(target, value)

    def equals(self, bits: Bits, value: int) -> int:
        """Compute whether the bits, read as a number with the first bit least significant, equal `value`."""
        if value >> len(bits):
            return FALSE
        return self.all_of([(bit, value >> k & 1) for k, bit in enumerate(bits)])

    def shifted(self, bits: Bits, by: Bits, *, left: bool) -> list[int]:
        """Compute a number moved by as many places as another one says; zeros follow."""
        found = list(bits)
        for k, bit in enumerate(by):
            zeros = [FALSE] * min(1 << k, len(found))
            moved = [*zeros, *found][: len(found)] if left else [*found[len(zeros) :], *zeros]
            found = [self.choice(bit, new, old) for new, old in zip(moved, found, strict=True)]
        return found

    def binary(self, name: str, a: Bits, b: Bits) -> list[int] | None:
        """Evaluate a binary operation by its name in pytket, without Bit or Reg; return None if it is not supported."""
        bitwise = {"And": self.both, "Or": self.either, "Xor": self.different}
        numbers = {"Add": self.sum, "Sub": self.difference, "Mul": self.product, "Div": self.quotient}
        answers = {
            "Eq": lambda: self.equal(a, b),
            "Neq": lambda: self.negation(self.equal(a, b)),
            "Lt": lambda: self.less(a, b),
            "Leq": lambda: self.negation(self.less(b, a)),
            "Gt": lambda: self.less(b, a),
            "Geq": lambda: self.negation(self.less(a, b)),
        }
        if name in bitwise:
            return [bitwise[name](x, y) for x, y in zip_longest(a, b, fillvalue=FALSE)]
        if name in numbers:
            return numbers[name](a, b)
        if name in ("Lsh", "Rsh"):
            return self.shifted(a, b, left=name == "Lsh")
        return [answers[name]()] if name in answers else None

    def table(self, bits: Bits, holds: Callable[[int], bool]) -> int:
        """Compute a function of the number that the bits are, given by its values."""
        if len(bits) > _LARGEST_TABLE:
            raise BadInput(
                f"expected a condition of at most {_LARGEST_TABLE} measured bits, found one of {len(bits)}"
            )
        found = [number for number in range(1 << len(bits)) if holds(number)]
        if 2 * len(found) <= 1 << len(bits):
            return self.any_of([self.equals(bits, number) for number in found])
        others = sorted(set(range(1 << len(bits))) - set(found))
        return self.negation(self.any_of([self.equals(bits, number) for number in others]))


def number_bits(value: int, width: int) -> list[int]:
    """Write a number as `width` constants."""
    return [TRUE if value >> k & 1 else FALSE for k in range(width)]


def evaluate(logic: BitLogic, clbits: Mapping[Clbit, int], node: expr.Expr) -> list[int]:
    """Return the bits of an expression of `qiskit.circuit.classical.expr`, the least significant first."""
    from qiskit.circuit import ClassicalRegister, Clbit
    from qiskit.circuit.classical import expr, types

    def width(one: expr.Expr) -> int:
        return 1 if isinstance(one.type, types.Bool) else one.type.width

    if isinstance(node, expr.Var):
        if node in logic.variables:
            return logic.variables[node]
        if isinstance(node.var, Clbit):
            return [clbits[node.var]]
        if isinstance(node.var, ClassicalRegister):
            return [clbits[bit] for bit in node.var]
        raise BadInput(f"the variable {node.name!r} of {node.type} has no value; store one before its use")
    if isinstance(node, expr.Value) and isinstance(node.type, (types.Bool, types.Uint)):
        return number_bits(int(node.value), width(node))
    if isinstance(node, expr.Cast):
        inside = evaluate(logic, clbits, node.operand)
        if isinstance(node.type, types.Bool):
            return [logic.any_of(inside)]
        if isinstance(node.type, types.Uint):
            return [*inside, *[FALSE] * width(node)][: width(node)]
    if isinstance(node, expr.Index):
        inside = evaluate(logic, clbits, node.target)
        if isinstance(node.index, expr.Value):
            return [inside[int(node.index.value)]]
        return logic.shifted(inside, evaluate(logic, clbits, node.index), left=False)[:1]
    if isinstance(node, expr.Unary) and node.op.name in ("LOGIC_NOT", "BIT_NOT"):
        inside = evaluate(logic, clbits, node.operand)
        if node.op.name == "LOGIC_NOT":
            return [logic.negation(logic.any_of(inside))]
        return [logic.negation(bit) for bit in inside]
    if isinstance(node, expr.Binary):
        name = node.op.name.removeprefix("BIT_").removeprefix("LOGIC_")
        parts = (evaluate(logic, clbits, one) for one in (node.left, node.right))
        found = logic.binary(_OPERATIONS.get(name, name.capitalize()), *parts)
        if found is not None:
            return found
    raise BadInput(f"the condition {type(node).__name__} {getattr(node, 'op', '')} cannot be simulated")


def store_expression(
    logic: BitLogic, clbits: Mapping[Clbit, int], operation: Any, condition: Condition
) -> None:
    """Convert Qiskit's `store` instruction."""
    from qiskit.circuit.classical import expr, types

    target, kind = operation.lvalue, operation.lvalue.type
    if not isinstance(kind, (types.Bool, types.Uint)):
        raise BadInput(f"store: expected bits or unsigned integers, found a variable of {kind}")
    values = evaluate(logic, clbits, operation.rvalue)
    if isinstance(target, expr.Var) and target.standalone:
        logic.declare(target, 1 if isinstance(kind, types.Bool) else kind.width)
    logic.store(evaluate(logic, clbits, target), values, condition)
