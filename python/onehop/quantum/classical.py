"""Classical expressions, translated to `assign` operations on hidden bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onehop.error import BadInput
from onehop.quantum.circuit import Circuit, Condition, Operation

if TYPE_CHECKING:
    from qiskit.circuit import Clbit
    from qiskit.circuit.classical import expr

# Constants, in place of the number of a classical bit.
FALSE, TRUE = -1, -2
_LARGEST_TABLE = 10  # bits of a function that is given by its values
Bits = Sequence[int]


class BitLogic:
    """Boolean functions of a circuit's classical bits.

    The methods take and return numbers of classical bits, or `FALSE` and `TRUE`. Each result that is no constant and
    no argument goes into a new hidden bit, which an `assign` operation sets.
    """

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.variables: dict[Any, list[int]] = {}
        """The bits of Qiskit's variables, by `expr.Var`."""
        self._zero: int | None = None

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
        if self._zero is None:
            self._zero = self.declare(None, 1)[0]
        wanted = []
        for target, value in zip(targets, values, strict=True):
            changed = self.all_of([(holds, 1), (value, 1)])
            kept = self.all_of([(holds, 0), (target, 1)])
            new = self.either(changed, kept)
            # A bit that is itself a target may change before it is read.
            wanted.append(self.assign(Condition([new], 1)) if new in targets else new)
        for target, value in zip(targets, wanted, strict=True):
            source = Condition([self._zero], int(value == FALSE)) if value < 0 else Condition([value], 1)
            self.circuit.add(Operation("assign", "assign", [], clbits=[target], condition=source))

    def assign(self, condition: Condition) -> int:
        """Store the current truth of a condition in a new hidden bit; return the bit."""
        return self.circuit._assign(condition)

    def all_of(self, wanted: Sequence[tuple[int, int]], *, negated: bool = False) -> int:
        """Compute whether every bit of the (bit, value) pairs has its value; if negated, whether one has not."""
        no, yes = (TRUE, FALSE) if negated else (FALSE, TRUE)
        required: dict[int, int] = {}
        for bit, value in wanted:
            if bit in (FALSE, TRUE):
                if (bit == TRUE) != bool(value):
                    return no
            elif required.setdefault(bit, value) != value:
                return no
        if not required:
            return yes
        if not negated and list(required.values()) == [1]:
            return next(iter(required))
        number = sum(value << k for k, value in enumerate(required.values()))
        return self.assign(Condition(list(required), number, negated))

    def negation(self, a: int) -> int:
        """Compute not a."""
        return self.all_of([(a, 0)])

    def both(self, a: int, b: int) -> int:
        """Compute a and b."""
        return self.all_of([(a, 1), (b, 1)])

    def any_of(self, bits: Bits) -> int:
        """Compute whether at least one of the bits is 1."""
        distinct = [bit for bit in dict.fromkeys(bits) if bit != FALSE]
        if len(distinct) == 1:
            return distinct[0]
        return self.all_of([(bit, 0) for bit in distinct], negated=True)

    def either(self, a: int, b: int) -> int:
        """Compute a or b."""
        return self.any_of([a, b])

    def different(self, a: int, b: int) -> int:
        """Compute the exclusive or of a and b."""
        return self.either(self.all_of([(a, 1), (b, 0)]), self.all_of([(a, 0), (b, 1)]))

    def equals(self, bits: Bits, value: int) -> int:
        """Compute whether the bits, read as a number with the first bit least significant, equal `value`."""
        if value >> len(bits):
            return FALSE
        return self.all_of([(bit, value >> k & 1) for k, bit in enumerate(bits)])

    def equal(self, a: Bits, b: Bits) -> int:
        """Compute whether two numbers are equal."""
        return self.all_of([(self.different(x, y), 0) for x, y in zip(*_same_length(a, b), strict=True)])

    def less(self, a: Bits, b: Bits) -> int:
        """Compute whether a < b."""
        answer = FALSE
        for x, y in zip(*_same_length(a, b), strict=True):
            below = self.all_of([(x, 0), (y, 1)])
            above = self.all_of([(x, 1), (y, 0)])
            answer = self.either(below, self.all_of([(above, 0), (answer, 1)]))
        return answer

    def sum(self, a: Bits, b: Bits, carry: int = FALSE) -> list[int]:
        """Compute a + b + carry, as wide as the longer number."""
        found = []
        for x, y in zip(*_same_length(a, b), strict=True):
            half = self.different(x, y)
            found.append(self.different(half, carry))
            carry = self.either(self.both(x, y), self.both(half, carry))
        return found

    def difference(self, a: Bits, b: Bits) -> list[int]:
        """Compute a - b modulo 2^n, as wide as the longer number."""
        a, b = _same_length(a, b)
        return self.sum(a, [self.negation(bit) for bit in b], TRUE)

    def product(self, a: Bits, b: Bits, width: int) -> list[int]:
        """Compute a b modulo 2^width."""
        found = [FALSE] * width
        for k, bit in enumerate(b[:width]):
            row = [*[FALSE] * k, *(self.both(one, bit) for one in a)][:width]
            found = self.sum(found, row)
        return found

    def quotient(self, a: Bits, b: Bits) -> list[int]:
        """Compute the quotient of two numbers, as wide as the longer one; all ones if b is 0."""
        a, b = _same_length(a, b)
        divisor, rest, found = [*b, FALSE], [FALSE] * (len(b) + 1), []
        for bit in reversed(a):
            rest = [bit, *rest[:-1]]
            fits = self.negation(self.less(rest, divisor))
            rest = self.difference(rest, [self.both(one, fits) for one in divisor])
            found.insert(0, fits)
        return found

    def select(self, number: Bits, options: Sequence[Bits]) -> list[int]:
        """Compute the option with this number; zeros if there is none."""
        hits = [self.equals(number, k) for k in range(len(options))]
        columns = zip(*options, strict=True)
        return [self.any_of([self.both(hit, bit) for hit, bit in zip(hits, column, strict=True)])
                for column in columns]  # fmt: skip

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


def _same_length(a: Bits, b: Bits) -> tuple[list[int], list[int]]:
    """Pad the shorter number with zeros."""
    width = max(len(a), len(b))
    return [*a, *[FALSE] * (width - len(a))], [*b, *[FALSE] * (width - len(b))]


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
        return logic.select(evaluate(logic, clbits, node.index), [[bit] for bit in inside])
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


def _binary(logic: BitLogic, node: Any, value_of: Callable[[expr.Expr], list[int]]) -> list[int] | None:
    """Evaluate a binary operation; return None if it is not supported."""
    name = node.op.name
    if name.startswith("SHIFT"):
        bits, by = value_of(node.left), value_of(node.right)
        zeros = [FALSE] * len(bits)
        if name == "SHIFT_RIGHT":
            return logic.select(by, [[*bits[k:], *zeros[:k]] for k in range(len(bits))])
        return logic.select(by, [[*zeros[:k], *bits[: len(bits) - k]] for k in range(len(bits))])
    a, b = _same_length(value_of(node.left), value_of(node.right))
    bitwise = {"BIT_AND": logic.both, "BIT_OR": logic.either, "BIT_XOR": logic.different}
    numbers = {
        "ADD": logic.sum,
        "SUB": logic.difference,
        "MUL": lambda x, y: logic.product(x, y, len(x)),
        "DIV": logic.quotient,
    }
    if name in numbers and hasattr(node.type, "width"):
        return numbers[name](a, b)
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
