"""Conversion of pytket's classical operations."""

from __future__ import annotations

from typing import Any

from pytket.circuit import Circuit as TketCircuit
from pytket.circuit import ClBitVar, ClRegVar, OpType

from onehop.error import BadInput
from onehop.quantum import Circuit
from onehop.quantum.classical import FALSE, TRUE, BitLogic, number_bits
from onehop.quantum.steps import ALWAYS

CLASSICAL = (
    OpType.SetBits,
    OpType.CopyBits,
    OpType.RangePredicate,
    OpType.ExplicitPredicate,
    OpType.ExplicitModifier,
    OpType.ClassicalTransform,
    OpType.MultiBit,
    OpType.ClExpr,
)
_WIDTH = 64  # of numbers in expressions, which are without sign


def append_classical(result: Circuit, operation: Any, where: list[int]) -> None:
    """Append a classical operation on these bits, under the condition of the block."""
    logic = BitLogic(result)
    condition = result._conditions[-1] if result._conditions else ALWAYS
    if operation.type == OpType.ClExpr:
        wired = operation.expr
        values = _expression(logic, wired, wired.expr, where)
        size = len(wired.output_posn)
        targets = [where[place] for place in wired.output_posn]
        logic.store(targets, [*values, *[FALSE] * size][:size], condition)
        return
    # The values of an operation can be read in the dictionary of a circuit only.
    alone = TketCircuit(0, len(where)).add_gate(operation, list(range(len(where))))
    data = alone.to_dict()["commands"][0]["op"]
    parts = [(data, where)]
    if operation.type == OpType.MultiBit:
        size = len(where) // data["classical"]["n"]
        inner = data["classical"]["op"]
        parts = [(inner, where[k : k + size]) for k in range(0, len(where), size)]
    for one, bits in parts:
        targets, values = _values(logic, one["type"], one["classical"], bits)
        logic.store(targets, values, condition)


def _values(
    logic: BitLogic, kind: str, data: dict[str, Any], where: list[int]
) -> tuple[list[int], list[int]]:
    """Return the bits that an operation writes, and their values."""
    table = data.get("values", [])
    if kind == "SetBits":
        return where, [TRUE if value else FALSE for value in table]
    if kind == "CopyBits":
        return where[data["n_i"] :], where[: data["n_i"]]
    if kind == "RangePredicate":
        low, high = (number_bits(data[name], _WIDTH) for name in ("lower", "upper"))
        outside = logic.less(where[:-1], low)
        if data["upper"] < (1 << _WIDTH) - 1:  # which says that there is no upper limit
            outside = logic.either(outside, logic.less(high, where[:-1]))
        return where[-1:], [logic.negation(outside)]
    if kind == "ClassicalTransform":
        return where, [logic.table(where, lambda n, j=j: table[n] >> j & 1) for j in range(len(where))]
    read = where if kind == "ExplicitModifier" else where[:-1]
    return where[-1:], [logic.table(read, lambda n: table[n])]


def _expression(logic: BitLogic, wired: Any, node: Any, where: list[int]) -> list[int]:
    """Return the bits of an expression, the least significant first."""
    if isinstance(node, int):
        return number_bits(node, max(node.bit_length(), 1))
    if isinstance(node, ClBitVar):
        return [where[wired.bit_posn[node.index]]]
    if isinstance(node, ClRegVar):
        return [where[place] for place in wired.reg_posn[node.index]]
    name = node.op.name
    values = [_expression(logic, wired, one, where) for one in node.args]
    if name.endswith(("Zero", "One")):
        bit = FALSE if name.endswith("Zero") else TRUE
        return [bit] * (1 if name.startswith("Bit") else _WIDTH)
    if name in ("BitNot", "RegNot"):
        width = 1 if name == "BitNot" else _WIDTH
        return [logic.negation(bit) for bit in [*values[0], *[FALSE] * width][:width]]
    if name == "RegNeg":
        return logic.difference([FALSE] * _WIDTH, values[0])
    if len(values) == 2:
        kind, (a, b) = name.removeprefix("Bit").removeprefix("Reg"), values
        found = logic.binary(kind, a if kind == "Div" else [*a, *[FALSE] * (_WIDTH - len(a))], b)
        if found is not None:
            return found
    raise BadInput(f"expected expressions of bits, sums, products, quotients and comparisons, found {name}")
