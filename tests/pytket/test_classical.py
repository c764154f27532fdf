"""pytket's classical operations and expressions against Python's numbers and, where it has one, pytket's evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pytket", reason="there is no pytket; pip install pytket")

from pytket.circuit import Circuit
from pytket.circuit.logic_exp import (
    RegNot,
    reg_eq,
    reg_geq,
    reg_gt,
    reg_leq,
    reg_lt,
    reg_neq,
)

from onehop import BadInput
from onehop.pytket.conversion import converted
from reference_circuit import distribution

_TABLE = [
    False,
    True,
    True,
    False,
    True,
    False,
    False,
    True,
    True,
    True,
    False,
    False,
    True,
    False,
    True,
    True,
]
# Operations on seven bits, and what they do to their values.
_OPERATIONS: list[tuple[Callable[[Circuit], Any], Callable[[list[int]], dict[int, int]]]] = [
    (lambda c: c.add_c_setbits([True, False], [5, 6]), lambda v: {5: 1, 6: 0}),
    (lambda c: c.add_c_copybits([4, 0], [0, 6]), lambda v: {0: v[4], 6: v[0]}),
    (lambda c: c.add_c_and(0, 1, 5), lambda v: {5: v[0] & v[1]}),
    (lambda c: c.add_c_or(0, 1, 0), lambda v: {0: v[0] | v[1]}),
    (lambda c: c.add_c_xor(5, 2, 2), lambda v: {2: v[5] ^ v[2]}),
    (lambda c: c.add_c_not(6, 1), lambda v: {1: 1 - v[6]}),
    (lambda c: c.add_c_predicate(_TABLE, [0, 1, 2, 6], 3),
     lambda v: {3: int(_TABLE[v[0] + 2 * v[1] + 4 * v[2] + 8 * v[6]])}),
    (lambda c: c.add_c_modifier(_TABLE[:8], [3, 1], 0), lambda v: {0: int(_TABLE[v[3] + 2 * v[1] + 4 * v[0]])}),
    (lambda c: c.add_c_range_predicate(2, 5, [0, 1, 2], 4),
     lambda v: {4: int(2 <= v[0] + 2 * v[1] + 4 * v[2] <= 5)}),
    (lambda c: c.add_c_setbits([True], [1], condition_bits=[0, 3], condition_value=2),
     lambda v: {1: 1} if (v[0], v[3]) == (0, 1) else {}),
]  # fmt: skip


def _found(circuit: Circuit, number: int) -> int:
    """Return the bits of a circuit after it ran on bits of this value."""
    made = Circuit(circuit.n_qubits)
    for register in circuit.c_registers:
        made.add_c_register(register)
    made.add_c_setbits([bool(number >> k & 1) for k in range(circuit.n_bits)], circuit.bits)
    made.append(circuit)
    ((value, weight),) = distribution(converted(made)).items()
    assert weight == pytest.approx(1)
    return value


def test_operations_agree_with_numbers() -> None:
    for add, change in _OPERATIONS:
        circuit = Circuit(1, 7)
        add(circuit)
        for number in (*range(0, 128, 11), 127):
            values = [number >> k & 1 for k in range(7)]
            for bit, value in change(list(values)).items():
                values[bit] = value
            assert _found(circuit, number) == sum(value << k for k, value in enumerate(values)), circuit


def test_tables_agree_with_pytket() -> None:
    circuit = Circuit(1, 3).add_c_transform([2, 0, 7, 1, 4, 6, 5, 3], [2, 0, 1]).add_c_setbits([True], [1])
    for number in range(8):
        expected = circuit._classical_eval({bit: bool(number >> k & 1) for k, bit in enumerate(circuit.bits)})
        assert _found(circuit, number) == sum(expected[bit] << k for k, bit in enumerate(circuit.bits))


def test_operations_on_registers() -> None:
    circuit, a, b, o = _registers()
    circuit.add_c_and_to_registers(a, b, o)
    circuit.add_c_not_to_registers(o, a)
    for number in (0, 0b101110, 0b111011):
        both = (number & 7) & (number >> 3)
        assert _found(circuit, number) == 7 - both | number & 56 | both << 6


_EXPRESSIONS: list[tuple[Callable[[Any, Any], Any], Callable[[int, int], int]]] = [
    (lambda a, b: a + b, lambda a, b: a + b),
    (lambda a, b: a - b, lambda a, b: a - b),
    (lambda a, b: a * b + 1, lambda a, b: a * b + 1),
    (lambda a, b: (a & b) | (a ^ 5), lambda a, b: (a & b) | (a ^ 5)),
    (lambda a, b: a // (b | 1), lambda a, b: a // (b | 1)),
    (lambda a, b: a << 1, lambda a, b: a << 1),
    (lambda a, b: a >> b, lambda a, b: a >> b),
    (lambda a, b: RegNot(a), lambda a, b: ~a),
]
_COMPARISONS = [
    (reg_eq, lambda a, b: a == b),
    (reg_neq, lambda a, b: a != b),
    (reg_lt, lambda a, b: a < b),
    (reg_gt, lambda a, b: a > b),
    (reg_leq, lambda a, b: a <= b),
    (reg_geq, lambda a, b: a >= b),
]


def _registers() -> tuple[Circuit, Any, Any, Any]:
    circuit = Circuit(1)
    return circuit, *(circuit.add_c_register(name, 3) for name in "abo")


def test_expressions_agree_with_numbers() -> None:
    for make, number in _EXPRESSIONS:
        circuit, a, b, o = _registers()
        circuit.add_clexpr_from_logicexp(make(a, b), o.to_list())
        for value in range(0, 64, 3):
            low, high = value & 7, value >> 3
            assert _found(circuit, value) == value | (number(low, high) & 7) << 6


def test_conditions_agree_with_numbers() -> None:
    for make, number in _COMPARISONS:
        circuit, a, b, o = _registers()
        circuit.X(0, condition=make(a, 3))
        circuit.Measure(0, o[0])
        circuit.add_clexpr_from_logicexp(a + b, a.to_list(), condition=b[0] & b[1])
        for value in (0, 3, 5, 24, 27, 63):
            low, high = value & 7, value >> 3
            after = low + high & 7 if high & 3 == 3 else low
            found = _found(circuit, value)
            assert (found & 7, found >> 6 & 1) == (after, number(low, 3))


def test_what_has_no_bits() -> None:
    circuit, a, b, o = _registers()
    circuit.add_clexpr_from_logicexp(a**b, o.to_list())
    with pytest.raises(BadInput, match="found RegPow"):
        converted(circuit)


def test_a_register_of_more_than_64_bits_has_no_upper_limit() -> None:
    circuit = Circuit(1)
    register = circuit.add_c_register("c", 66)
    circuit.add_c_register("d", 1)
    circuit.X(0, condition=reg_geq(register, 5)).Measure(0, circuit.bits[-1])
    for value in (4, 5, 1 << 64, 1 << 65):
        assert _found(circuit, value) >> circuit.n_bits - 1 & 1 == (value >= 5)
