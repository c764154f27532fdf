"""Conversion of Cirq's circuits to programs, and of its observables to Pauli sums."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import cirq
import numpy as np

from onehop.error import BadInput
from onehop.quantum import Circuit, PauliSum
from onehop.quantum.circuit import Condition
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
    try:
        flat = cirq.unroll_circuit_op(circuit, deep=True, tags_to_check=None)
    except ValueError as error:  # `repeat_until`
        raise BadInput(f"expected circuits that are repeated a known number of times: {error}") from error
    clbits = sum(len(one.qubits) for one in flat.all_operations() if cirq.is_measurement(one))
    converter = _Converter(qubits, clbits, measured)
    if start is not None:
        converter.result.program.set_state(start, range(len(qubits)))
    return converter.all(flat)


class _Converter:
    def __init__(self, qubits: Sequence[cirq.Qid], clbits: int, measured: bool) -> None:
        self.places = {qubit: len(qubits) - 1 - k for k, qubit in enumerate(qubits)}
        self.circuit = Circuit(len(qubits), clbits)
        self.result = Converted(Program(self.circuit))
        self.measured = measured
        self.used = 0

    def all(self, circuit: cirq.AbstractCircuit) -> Converted:
        for operation in circuit.all_operations():
            self.operation(operation.untagged)
        return self.result

    def operation(self, operation: Any) -> None:
        if isinstance(operation, cirq.ClassicallyControlledOperation):
            self._conditional(operation)
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
        conditions = list(operation.classical_controls)
        if not all(isinstance(one, cirq.KeyCondition) for one in conditions):
            raise BadInput(
                f"{_text(operation)}: expected measurement keys as classical controls, found other conditions"
            )
        for one in conditions:
            measured = len(self.result.keys.get(str(one.key), ()))
            if not -measured <= one.index < measured:
                raise BadInput(
                    f"{_text(operation)}: expected a measurement with the key {str(one.key)!r} and the index "
                    f"{one.index} before it, found {measured or 'none'} with this key"
                )
        with ExitStack() as blocks:
            for one in conditions:
                bits, inverted = self.result.keys[str(one.key)][one.index]
                blocks.enter_context(self.circuit.when(bits, inverted, negated=True))
            self.operation(operation.without_classical_controls())

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
