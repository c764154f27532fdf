"""Conversion of Qiskit circuits, compared with Qiskit's own state vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from onehop import BadInput
from reference_circuit import branches, distribution, final_state

pytest.importorskip("qiskit")
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister
from qiskit.circuit import Parameter
from qiskit.circuit import library as lib
from qiskit.circuit.classical import expr, types
from qiskit.circuit.random import random_circuit
from qiskit.quantum_info import SparsePauliOp, Statevector
from qiskit.synthesis import SuzukiTrotter

from onehop.quantum.io.from_qiskit import from_qiskit

HAMILTONIAN = SparsePauliOp(["XYZ", "IZI", "ZII", "IXX", "III"], [0.5, 0.2, 0.3, -0.7, 0.25])
# test_qiskit_gates.py has all gates of the library; these are product formulas of terms that do not commute.
EVOLUTIONS = {
    "first order": lib.PauliEvolutionGate(HAMILTONIAN, time=0.7),
    "second order": lib.PauliEvolutionGate(HAMILTONIAN, 0.4, synthesis=SuzukiTrotter(order=2, reps=3)),
}


def _difference(circuit: QuantumCircuit) -> float:
    return float(np.abs(final_state(from_qiskit(circuit)) - Statevector(circuit).data).max())


@pytest.mark.parametrize("name", EVOLUTIONS)
def test_evolution(name: str) -> None:
    gate = EVOLUTIONS[name]
    circuit = QuantumCircuit(gate.num_qubits + 1)
    qubits = [*range(1, gate.num_qubits), 0]
    for qubit in range(circuit.num_qubits):
        circuit.u(0.3 + qubit, 0.2, -0.4 * qubit, qubit)
    circuit.append(gate, qubits)
    # Qiskit's matrix of an evolution is exact; the circuit runs its product formula.
    expected = Statevector(circuit.decompose("PauliEvolution")).data
    assert np.abs(final_state(from_qiskit(circuit)) - expected).max() < 1e-12


def test_evolutions_keep_their_rotations() -> None:
    circuit = QuantumCircuit(3)
    circuit.append(EVOLUTIONS["first order"], range(3))
    kinds = [operation.kind for operation in from_qiskit(circuit).operations]
    assert kinds == ["pauli_rotation"] * 4 + ["global_phase"]


@pytest.mark.parametrize("seed", range(10))
def test_random_circuit(seed: int) -> None:
    circuit = random_circuit(5, 8, max_operands=4, seed=seed)
    circuit.global_phase = 0.3
    assert _difference(circuit) < 1e-12


def test_definitions_nest() -> None:
    inner = QuantumCircuit(2, global_phase=0.4, name="inner")
    inner.h(0)
    inner.cx(1, 0)
    outer = QuantumCircuit(3, name="outer")
    outer.append(inner.to_gate(), [2, 0])
    outer.append(inner.to_gate().control(1), [0, 1, 2])
    circuit = QuantumCircuit(4)
    circuit.h(range(4))
    circuit.append(outer.to_gate().inverse(), [3, 1, 0])
    assert _difference(circuit) < 1e-13


def test_instructions_with_measurements_inside() -> None:
    inner = QuantumCircuit(1, 1, name="look")
    inner.measure(0, 0)
    circuit = QuantumCircuit(2, 2)
    circuit.x(1)
    circuit.append(inner.to_instruction(), [1], [0])
    assert distribution(from_qiskit(circuit)) == pytest.approx({1: 1})


def test_registers_and_merged_measurements() -> None:
    a, b = ClassicalRegister(2, "a"), ClassicalRegister(1, "b")
    circuit = QuantumCircuit(QuantumRegister(3, "q"), a, b)
    circuit.measure([0, 2], [0, 1])
    circuit.measure(1, 2)
    made = from_qiskit(circuit)
    assert [(one.name, one.first, one.size) for one in made.registers] == [("a", 0, 2), ("b", 2, 1)]
    assert [(one.kind, one.targets, one.clbits) for one in made.operations] == [
        ("measure", (0, 2, 1), (0, 1, 2))
    ]


# -- control flow: every body adds a known value to qubits that start at 0 ---------------------------------------


def _coins(qubits: int, clbits: int, coins: int) -> QuantumCircuit:
    """The first classical bits are fair coins."""
    circuit = QuantumCircuit(qubits, clbits)
    circuit.h(range(coins))
    circuit.measure(range(coins), range(coins))
    return circuit


def _expect(circuit: QuantumCircuit, outcome: Callable[[int], int], coins: int) -> None:
    """The other classical bits are a function of the coins."""
    expected = {coin | outcome(coin) << coins: 1 / 2**coins for coin in range(2**coins)}
    assert distribution(from_qiskit(circuit)) == pytest.approx(expected)


def test_if_else_asks_without_hidden_bits() -> None:
    circuit = _coins(3, 3, 2)
    with circuit.if_test((circuit.cregs[0], 2)) as otherwise:
        circuit.x(2)
    with otherwise:
        circuit.id(2)
    made = from_qiskit(circuit)
    assert made.hidden_clbits == 0
    assert [(one.condition.value, one.condition.negated) for one in made.operations[-2:]] == [
        (2, False),
        (2, True),
    ]
    circuit.measure(2, 2)
    _expect(circuit, lambda coin: int(coin == 2), 2)


def test_body_that_changes_its_condition() -> None:
    circuit = QuantumCircuit(2, 2)
    circuit.h(0)
    circuit.measure(0, 0)
    with circuit.if_test((circuit.clbits[0], 1)) as otherwise:
        circuit.reset(0)
        circuit.measure(0, 0)
        circuit.x(1)
    with otherwise:
        circuit.x(0)
        circuit.measure(0, 0)
    circuit.measure(1, 1)
    made = from_qiskit(circuit)
    assert made.hidden_clbits == 1
    assert distribution(made) == pytest.approx({2: 0.5, 1: 0.5})


def _condition(circuit: QuantumCircuit, kind: str) -> tuple[Any, Any, Any]:
    """A condition that holds for 1 in bit 0, and where to store a value for which it does not hold."""
    bit, register = circuit.clbits[0], circuit.cregs[0]
    if kind == "bit":
        return (bit, 1), bit, expr.lift(False)
    if kind == "register":
        return (register, 1), expr.lift(register), expr.lift(2, types.Uint(2))
    if kind == "bit of a register":
        return (register, 1), expr.index(expr.lift(register), 1), expr.lift(True)
    if kind == "variable":
        return (variable := circuit.add_var("v", bit)), variable, expr.lift(False)
    variable = circuit.add_var("n", register)
    return expr.index(variable, 0), variable, expr.lift(2, types.Uint(2))


@pytest.mark.parametrize("branch", ["if", "switch"])
@pytest.mark.parametrize("kind", ["bit", "register", "bit of a register", "variable", "bit of a variable"])
def test_body_that_stores_into_its_condition(kind: str, branch: str) -> None:
    """The condition is evaluated once, before the body."""
    registers = ClassicalRegister(2, "condition"), ClassicalRegister(2, "result")
    circuit = QuantumCircuit(QuantumRegister(3), *registers)
    circuit.h(0)
    circuit.measure(0, 0)
    asked, target, value = _condition(circuit, kind)
    if branch == "if":
        with circuit.if_test(asked) as otherwise:
            circuit.store(target, value)
            circuit.x(1)
        with otherwise:
            circuit.x(2)
    else:
        with circuit.switch(asked[0] if isinstance(asked, tuple) else asked) as case:
            with case(1):
                circuit.store(target, value)
                circuit.x(1)
            with case(0):
                circuit.x(2)
    circuit.measure([1, 2], [2, 3])
    results = {outcome >> 2: chance for outcome, chance in distribution(from_qiskit(circuit)).items()}
    assert results == pytest.approx({0b01: 0.5, 0b10: 0.5})


def test_nested_conditions_and_loops() -> None:
    circuit = _coins(4, 4, 3)
    angle = Parameter("angle")
    with circuit.if_test((circuit.clbits[0], 1)) as otherwise:
        with circuit.if_test((circuit.clbits[1], 0)) as inner, circuit.for_loop([1, 2], angle):
            circuit.rx(angle * math.pi / 3, 3)
        with inner, circuit.if_test((circuit.clbits[2], 1)):
            circuit.x(3)
    with otherwise, circuit.for_loop(range(2)):
        circuit.sx(3)
    circuit.measure(3, 3)

    def expected(coin: int) -> int:
        a, b, c = coin & 1, coin >> 1 & 1, coin >> 2
        return (c if b else 1) if a else 1

    _expect(circuit, expected, 3)


def test_switch() -> None:
    circuit = _coins(4, 5, 2)
    register = ClassicalRegister(bits=circuit.clbits[:2])
    circuit.add_register(register)
    with circuit.switch(register) as case:
        with case(0, 3):
            circuit.x(2)
            circuit.measure(2, 0)  # changes the bit of the condition
            circuit.measure(2, 2)
        with case(1):
            circuit.x(3)
        with case(case.DEFAULT):
            circuit.x([2, 3])
    circuit.measure([2, 3], [3, 4])
    expected = {0b01101: 0.25, 0b01111: 0.25, 0b10001: 0.25, 0b11010: 0.25}
    assert distribution(from_qiskit(circuit)) == pytest.approx(expected)


EXPRESSIONS = {
    "not": (lambda a, b: expr.logic_not(expr.lift(a[0])), lambda a, b: not a & 1),
    "and": (lambda a, b: expr.logic_and(a[0], b[1]), lambda a, b: a & 1 and b >> 1),
    "or": (lambda a, b: expr.logic_or(a[0], expr.logic_not(b[1])), lambda a, b: a & 1 or not b >> 1),
    "equal": (lambda a, b: expr.equal(a, b), lambda a, b: a == b),
    "not equal": (lambda a, b: expr.not_equal(a, 2), lambda a, b: a != 2),
    "less": (lambda a, b: expr.less(a, b), lambda a, b: a < b),
    "less equal": (lambda a, b: expr.less_equal(a, b), lambda a, b: a <= b),
    "greater": (lambda a, b: expr.greater(a, 1), lambda a, b: a > 1),
    "greater equal": (lambda a, b: expr.greater_equal(b, a), lambda a, b: b >= a),
    "bit and": (lambda a, b: expr.equal(expr.bit_and(a, b), 2), lambda a, b: a & b == 2),
    "bit xor": (lambda a, b: expr.equal(expr.bit_xor(a, b), 3), lambda a, b: a ^ b == 3),
    "bit or": (lambda a, b: expr.less(expr.bit_or(a, b), 3), lambda a, b: a | b < 3),
    "bit not": (lambda a, b: expr.equal(expr.bit_not(a), b), lambda a, b: 3 - a == b),
    "quotient": (lambda a, b: expr.equal(expr.div(a, expr.bit_or(b, 1)), 1), lambda a, b: a // (b | 1) == 1),
    "shift": (lambda a, b: expr.equal(expr.shift_right(a, 1), 1), lambda a, b: a >> 1 == 1),
    "index": (lambda a, b: expr.index(a, 1), lambda a, b: a >> 1),
    "constant": (lambda a, b: expr.lift(True), lambda a, b: True),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expression(name: str) -> None:
    question, answer = EXPRESSIONS[name]
    a, b, c = ClassicalRegister(2, "a"), ClassicalRegister(2, "b"), ClassicalRegister(1, "c")
    circuit = QuantumCircuit(QuantumRegister(5, "q"), a, b, c)
    circuit.h(range(4))
    circuit.measure(range(4), [*a, *b])
    with circuit.if_test(question(a, b)):
        circuit.x(4)
    circuit.measure(4, 4)
    _expect(circuit, lambda coin: int(bool(answer(coin & 3, coin >> 2))), 4)


def test_reset_in_the_middle() -> None:
    circuit = QuantumCircuit(2, 1)
    circuit.h(0)
    circuit.cx(0, 1)
    circuit.reset(0)
    circuit.measure(1, 0)
    made = from_qiskit(circuit)
    assert distribution(made) == pytest.approx({0: 0.5, 1: 0.5})
    assert all(abs(branch.state[1]) + abs(branch.state[3]) == 0 for branch in branches(made))


def _while() -> QuantumCircuit:
    """Flip a coin until it gives 1, at most three times; count the other results of the third bit."""
    circuit = QuantumCircuit(1, 3)
    with circuit.while_loop((circuit.clbits[0], 0)):
        circuit.reset(0)
        circuit.h(0)
        circuit.measure(0, 0)
        with circuit.if_test((circuit.clbits[0], 1)):
            circuit.continue_loop()
        with circuit.if_test((circuit.clbits[1], 1)):
            circuit.break_loop()
        circuit.x(0)
        circuit.measure(0, 1)
    return circuit


def _break() -> QuantumCircuit:
    circuit = QuantumCircuit(1, 2)
    with circuit.for_loop(range(3)):
        circuit.reset(0)
        circuit.h(0)
        circuit.measure(0, 0)
        with circuit.if_test((circuit.clbits[0], 1)):
            circuit.break_loop()
        circuit.x(0)
        circuit.measure(0, 1)
    return circuit


@pytest.mark.parametrize(
    ("make", "expected"),
    [(_while, {0b001: 0.5, 0b011: 0.25, 0b010: 0.25}), (_break, {0b01: 0.5, 0b11: 0.375, 0b10: 0.125})],
)
def test_loops_that_end_by_measurements(
    make: Callable[[], QuantumCircuit], expected: dict[int, float]
) -> None:
    assert distribution(from_qiskit(make())) == pytest.approx(expected)


def _not_linear() -> QuantumCircuit:
    circuit = QuantumCircuit(1)
    circuit.rx(Parameter("theta") ** 2, 0)
    return circuit


def _unknown() -> QuantumCircuit:
    from qiskit.circuit import Instruction

    circuit = QuantumCircuit(1)
    circuit.append(Instruction("mystery", 1, 0, []), [0])
    return circuit


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_not_linear, "expected linear expressions of parameters, found theta"),
        (_unknown, "'mystery' has neither a matrix nor a definition"),
        (QuantumCircuit, "expected at least 1 qubit, found none"),
    ],
)
def test_what_cannot_be_simulated(make: Callable[[], QuantumCircuit], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        from_qiskit(make())


@pytest.mark.parametrize("bits", [64, 65, 300])
def test_conditions_on_long_registers(bits: int) -> None:
    value = (1 << bits) - 3
    for wanted in (value, value ^ 1, value ^ 1 << bits - 1, value & (1 << 64) - 1):
        register, found = ClassicalRegister(bits, "c"), ClassicalRegister(2, "d")
        circuit = QuantumCircuit(QuantumRegister(3), register, found)
        circuit.x(0)
        circuit.measure([0] * (bits - 1), [bit for k, bit in enumerate(register) if value >> k & 1])
        with circuit.if_test((register, wanted)) as otherwise:
            circuit.x(1)
        with otherwise:
            circuit.x(2)
        circuit.measure([1, 2], found)
        assert {one >> bits for one in distribution(from_qiskit(circuit))} == {1 if wanted == value else 2}


@pytest.mark.parametrize("other", [None, 0, 69])
def test_conditions_inside_each_other(other: int | None) -> None:
    register, found = ClassicalRegister(70, "c"), ClassicalRegister(1, "d")
    circuit = QuantumCircuit(QuantumRegister(3), register, found)
    circuit.x(0)
    circuit.measure([0] * 70, register)
    if other is not None:
        circuit.measure(2, register[other])
    with ExitStack() as conditions:
        for bit in register:
            conditions.enter_context(circuit.if_test((bit, 1)))
        circuit.x(1)
    circuit.measure(1, found)
    assert {one >> 70 for one in distribution(from_qiskit(circuit))} == {int(other is None)}
