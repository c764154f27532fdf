"""Conversion of Cirq's circuits to programs, and of its observables to Pauli sums."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import cirq
import numpy as np
import sympy

from onehop.error import BadInput
from onehop.quantum import Circuit, PauliSum
from onehop.quantum.circuit import Condition
from onehop.quantum.classical import FALSE, TRUE, BitLogic
from onehop.quantum.foreign import LARGEST_MATRIX, append_matrix, observable_of
from onehop.quantum.steps import ALWAYS, Program

_PRODUCTS = ((cirq.XXPowGate, "XX"), (cirq.YYPowGate, "YY"), (cirq.ZZPowGate, "ZZ"))


@dataclass
class Converted:
    """A circuit as a program."""

    # the program. Cirq's first qubit is the last one of the program, so that indices of amplitudes are the same
    program: Program
    # for each measurement of a key its classical bits, and which of them are inverted, as bits of a number
    keys: dict[str, list[tuple[list[int], int]]] = field(default_factory=dict)


def convert(
    circuit: cirq.AbstractCircuit, qubits: Sequence[cirq.Qid], *, measured: bool = True, start: Any = None
) -> Converted:
    """Convert a circuit; without `measured`, leave out measurements at its end and refuse channels."""
    names = sorted(cirq.parameter_names(circuit))
    if names:
        raise BadInput(f"expected a circuit without parameters, found {', '.join(names)}")
    if any(qubit.dimension != 2 for qubit in qubits) or not qubits:
        raise BadInput("expected one or more qubits of two levels each")
    if not measured and not circuit.are_all_measurements_terminal():
        raise BadInput("expected measurements at the end of the circuit only")
    converter = _Converter(qubits, _measured_bits(circuit), measured)
    if start is not None:
        converter.result.program.set_state(start, range(len(qubits)))
    return converter.all(circuit)


def _measured_bits(circuit: cirq.AbstractCircuit) -> int:
    """Count the bits that a circuit measures. A loop writes to the same ones in each turn."""
    found = 0
    for one in circuit.all_operations():
        operation = one.without_classical_controls().untagged
        if isinstance(operation, cirq.CircuitOperation):
            found += _measured_bits(_inside(operation))
        elif cirq.is_measurement(operation):
            found += len(operation.qubits)
    return found


def _inside(operation: cirq.CircuitOperation) -> cirq.Circuit:
    """Return the repetitions of a circuit, or one turn of a loop."""
    return (operation.replace(repeat_until=None) if operation.repeat_until else operation).mapped_circuit()


class _Converter:
    def __init__(self, qubits: Sequence[cirq.Qid], clbits: int, measured: bool) -> None:
        self.places = {qubit: len(qubits) - 1 - k for k, qubit in enumerate(qubits)}
        self.circuit = Circuit(len(qubits), clbits)
        self.result = Converted(Program(self.circuit))
        self.measured = measured
        self.used = 0
        self.logic = BitLogic(self.circuit)
        self.labels = count()

    def all(self, circuit: cirq.AbstractCircuit) -> Converted:
        for operation in circuit.all_operations():
            self.operation(operation.untagged)
        return self.result

    def operation(self, operation: Any) -> None:
        if isinstance(operation, cirq.ClassicallyControlledOperation):
            self._conditional(operation)
        elif isinstance(operation, cirq.CircuitOperation):
            self._repeated(operation)
        elif isinstance(operation.gate, cirq.MeasurementGate):
            if self.measured:
                self._measurement(operation)
        elif isinstance(operation.gate, cirq.ResetChannel):
            self._require_pure(operation)
            self.circuit.reset([self.places[one] for one in operation.qubits])
        elif cirq.is_measurement(operation):
            for one in self._parts(operation) if self.measured else ():
                self.operation(one.untagged)
        else:
            self.gate(operation, [], [])

    def _require_pure(self, operation: Any) -> None:
        if not self.measured:
            raise BadInput(
                f"{_text(operation)}: expected gates for exact amplitudes and expectation values, found a channel"
            )

    def _conditional(self, operation: Any) -> None:
        bits = [self._truth(one, operation) for one in operation.classical_controls]
        if FALSE in bits:
            return
        with ExitStack() as blocks:
            for bit in bits:
                if bit != TRUE:
                    blocks.enter_context(self.circuit.when(bit))
            self.operation(operation.without_classical_controls())

    def _repeated(self, operation: cirq.CircuitOperation) -> None:
        until = operation._mapped_repeat_until
        if until is None:
            self.all(_inside(operation))
            return
        program, start = self.result.program, next(self.labels)
        program.mark(start)  # Cirq has no conditions on operations that measure
        self.all(_inside(operation))
        bit = self._truth(until, operation)
        if bit != TRUE:
            program.jump(start, ALWAYS if bit == FALSE else Condition([bit], 0))

    def _truth(self, condition: cirq.Condition, operation: Any) -> int:
        """Return the bit that says whether a condition holds."""
        if isinstance(condition, cirq.SympyCondition):
            return self._sympy_truth(condition, operation)
        if not isinstance(condition, (cirq.KeyCondition, cirq.BitMaskKeyCondition)):
            raise BadInput(
                f"{_text(operation)}: expected conditions on measurement keys, found {type(condition).__name__}"
            )
        bits = self._read(condition.key, condition.index, operation)
        if isinstance(condition, cirq.KeyCondition):
            return self.logic.any_of(bits)
        if condition.bitmask is not None:
            bits = [bit if condition.bitmask >> k & 1 else FALSE for k, bit in enumerate(bits)]
        equal = FALSE if condition.target_value < 0 else self.logic.equals(bits, condition.target_value)
        return equal if condition.equal_target else self.logic.negation(equal)

    def _sympy_truth(self, condition: cirq.SympyCondition, operation: Any) -> int:
        bits = {str(key): self._read(key, -1, operation) for key in condition.keys}
        whole = {one.base.name for one in condition.expr.free_symbols if isinstance(one, sympy.Indexed)}

        def holds(number: int) -> bool:
            values: dict[str, Any] = {}
            for key, read in bits.items():
                value = number & (1 << len(read)) - 1
                number >>= len(read)
                digits = tuple(value >> k & 1 for k in reversed(range(len(read))))
                values[key] = digits if key in whole else value
            return bool(condition.expr.subs(values))

        return self.logic.table([bit for read in bits.values() for bit in read], holds)

    def _read(self, key: cirq.MeasurementKey, index: int, operation: Any) -> list[int]:
        """Return the bits that a key measured, the least significant first."""
        instances = self.result.keys.get(str(key), [])
        if not -len(instances) <= index < len(instances):
            raise BadInput(
                f"{_text(operation)}: expected a measurement with the key {str(key)!r} and the index {index} before "
                f"it, found {len(instances) or 'none'} with this key"
            )
        bits, inverted = instances[index]
        read = [self.logic.negation(bit) if inverted >> k & 1 else bit for k, bit in enumerate(bits)]
        return read[::-1]  # Cirq's first bit is the most significant

    def _measurement(self, operation: Any) -> None:
        gate = operation.gate
        bits = list(range(self.used, self.used + len(operation.qubits)))
        self.used += len(bits)
        self.circuit.measure([self.places[one] for one in operation.qubits], bits)
        for which, table in gate.confusion_map.items():
            read = [bits[k] for k in reversed(which)]  # Cirq's first bit is the most significant
            self.result.program.misread(np.asarray(table, float), read, self._condition())
        inverted = sum(int(flip) << k for k, flip in enumerate(gate.full_invert_mask()))
        self.result.keys.setdefault(cirq.measurement_key_name(operation), []).append((bits, inverted))

    def _condition(self) -> Condition:
        found = self.circuit._conditions
        return found[-1] if found else ALWAYS

    def gate(self, operation: Any, controls: list[int], values: list[int]) -> None:
        """Append a gate or a channel under controls."""
        gate, where = operation.gate, [self.places[one] for one in operation.qubits]
        wanted = getattr(operation, "control_values", None)
        # Controls with one value each; others are in the matrix.
        if isinstance(wanted, cirq.ProductOfSums) and all(one in ((0,), (1,)) for one in wanted):
            added = [self.places[one] for one in operation.controls]
            more = [*values, *(int(one) for (one,) in wanted)]
            self.gate(operation.sub_operation.untagged, [*controls, *added], more)
            return
        exponent = getattr(gate, "exponent", None)
        is_whole = exponent == 1 and getattr(gate, "global_shift", None) == 0
        # Of exactly these classes: a subclass may have another matrix.
        if is_whole and type(gate) in (cirq.CXPowGate, cirq.CCXPowGate):
            ones = [1] * (len(where) - 1)
            self._matrix(cirq.unitary(cirq.X), where[-1:], [*controls, *where[:-1]], [*values, *ones])
        elif is_whole and type(gate) is cirq.SwapPowGate and not controls:
            self.circuit.swap(*where)
        elif (letters := _product(gate)) is not None:
            self.circuit.pauli_rotation(
                letters, np.pi * exponent, where, controls=controls, control_values=values or None
            )
            phase = np.exp(1j * np.pi * exponent * (0.5 + gate.global_shift))
            self._matrix(phase * np.eye(2), where[:1], controls, values)
        else:
            self._general(operation, where, controls, values)

    def _general(self, operation: Any, where: list[int], controls: list[int], values: list[int]) -> None:
        small = len(where) <= LARGEST_MATRIX
        matrix = cirq.unitary(operation, None) if small else None
        if matrix is not None:
            self._matrix(matrix, where, controls, values)
            return
        kraus = cirq.kraus(operation, None) if small and not controls else None
        if kraus is not None:
            self._require_pure(operation)
            found = tuple(map(np.asarray, kraus))
            self.result.program.channel(found, where[::-1], str(operation.gate), self._condition())
            return
        for one in self._parts(operation):
            if controls:
                self.gate(one.untagged, controls, values)
            else:
                self.operation(one.untagged)

    def _parts(self, operation: Any) -> list[Any]:
        parts = cirq.decompose_once(operation, None)
        if parts is None or any(qubit not in self.places for one in parts for qubit in one.qubits):
            raise BadInput(
                f"{_text(operation)}: expected an operation with a matrix, Kraus operators or a decomposition on "
                "its own qubits, found none"
            )
        return parts

    def _matrix(self, matrix: Any, where: list[int], controls: list[int], values: list[int]) -> None:
        """Append a matrix, of which Cirq's first qubit is the most significant bit."""
        if not where:  # a global phase
            matrix, where = matrix[0, 0] * np.eye(2), [0 if not controls else controls[-1]]
            controls, values, matrix = _phase(matrix, controls, values)
        append_matrix(self.circuit, matrix, where, controls=controls, control_values=values or None)


def _text(operation: Any) -> str:
    """Return an operation as an error quotes it: on one line."""
    return " ".join(str(operation).split())


def _phase(matrix: Any, controls: list[int], values: list[int]) -> tuple[list[int], list[int], Any]:
    """Return the controls and the diagonal for a phase on the last of the controls."""
    if not controls:
        return controls, values, matrix
    kept = np.diag([1, matrix[1, 1]]) if values[-1] else np.diag([matrix[0, 0], 1])
    return controls[:-1], values[:-1], kept


def _product(gate: Any) -> str | None:
    return next((letters for kind, letters in _PRODUCTS if type(gate) is kind), None)


def pauli_sum(observable: Any, qubits: Sequence[cirq.Qid]) -> PauliSum:
    """Convert an observable."""
    places = {qubit: len(qubits) - 1 - k for k, qubit in enumerate(qubits)}
    try:
        total = cirq.PauliSum.wrap(observable)
    except (TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"expected a sum of Pauli strings, found {observable!r}") from error
    strings = ((one, one.coefficient, {qubit: str(pauli) for qubit, pauli in one.items()}) for one in total)
    return observable_of(strings, places)
