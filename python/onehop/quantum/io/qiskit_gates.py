"""Conversion of Qiskit's gates to operations: named gates, matrices, Pauli evolutions and controlled gates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from onehop._core import parametrised_gate
from onehop.error import BadInput
from onehop.quantum.circuit import Operation, gate, gate_names
from onehop.quantum.io.qasm_limits import current_budget
from onehop.quantum.parameters import Expression, terms_of

if TYPE_CHECKING:
    from qiskit.circuit import ControlledGate, QuantumCircuit

__all__ = ["PARAMETERS", "angle_of", "gate_operations", "is_standard", "number_of", "with_angle"]

_OTHER_NAMES = {"global_phase": "gphase"}
_LARGEST_MATRIX = 10  # maximum number of qubits of a gate that has a matrix but no definition


@cache
def _known() -> dict[str, tuple[int, int]]:
    return {name: (qubits, parameters) for name, qubits, parameters in gate_names()}


def gate_operations(operation: Any, qubits: Sequence[int]) -> list[Operation]:
    """Convert a Qiskit gate to operations on the given qubits.

    Raises
    ------
    BadInput
        The gate has neither a matrix nor a definition.
    """
    from qiskit.circuit import AnnotatedOperation, ControlledGate

    if isinstance(operation, AnnotatedOperation):
        return _annotated(operation, qubits)
    named = _named(operation, qubits)
    if named is not None:
        return [named]
    if isinstance(operation, ControlledGate):
        return _controlled(operation, qubits)
    special = _SPECIAL.get(operation.name)
    if special is not None and _is_qiskits(operation):
        return special(operation, list(qubits))
    definition = getattr(operation, "definition", None)
    if definition is not None:
        return _defined(definition, qubits)
    if operation.name == "multiplexer":
        return _multiplexer(operation, list(qubits))
    return [_as_matrix(operation, qubits)]


def _is_qiskits(operation: Any) -> bool:
    """Check that a gate is Qiskit's own, not one that a file defines under the same name."""
    base = getattr(operation, "base_class", type(operation))
    return base.__module__.startswith("qiskit.circuit.library")


# The names of the parameters of the circuit that is being converted.
PARAMETERS: ContextVar[list[str]] = ContextVar("PARAMETERS")


def angle_of(value: Any, gate: str, qubits: Sequence[int] = ()) -> float | Expression:
    """Convert an angle of Qiskit: a number, or a linear expression of parameters.

    Errors name the gate and its qubits.

    Raises
    ------
    BadInput
        The expression is not linear, or not real.
    """
    from qiskit.exceptions import QiskitError

    parameters = getattr(value, "parameters", None) or ()
    places = ", ".join(map(str, qubits))
    where = f"{gate} on {'qubit' if len(qubits) == 1 else 'qubits'} {places}" if qubits else gate
    try:
        if not parameters:
            return float(value)
        slopes = {one.name: value.gradient(one) for one in parameters}
        if not any(getattr(slope, "parameters", None) for slope in slopes.values()):
            constant = value.bind(dict.fromkeys(parameters, 0.0))
            return Expression({name: float(slope) for name, slope in slopes.items()}, float(constant))
    except (QiskitError, ArithmeticError, RuntimeError, TypeError, ValueError) as error:
        raise BadInput(
            f"{where}: expected real numbers and linear expressions of parameters, found {value}"
        ) from error
    names = ", ".join(sorted(one.name for one in parameters))
    raise BadInput(f"{where}: expected linear expressions of parameters, found {value}; bind {names} first")


def with_angle(operation: Operation, angle: float | Expression) -> Operation:
    """Give a Pauli rotation or a global phase an angle that depends on parameters."""
    if isinstance(angle, Expression):
        operation.angles = terms_of([angle], PARAMETERS.get())
    return operation


def number_of(angle: float | Expression) -> float:
    """Return a number for an angle, arbitrary if it depends on parameters."""
    return 0.7390851332151607 if isinstance(angle, Expression) else angle


def is_standard(operation: Any) -> bool:
    """Check that a gate is one of Qiskit's standard gates."""
    base = getattr(operation, "base_class", type(operation))
    return base.__module__.startswith("qiskit.circuit.library.standard_gates")


def _named(operation: Any, qubits: Sequence[int]) -> Operation | None:
    if not is_standard(operation):
        return None
    name = re.sub(r"_o\d+$", "", operation.name)
    name = _OTHER_NAMES.get(name, name)
    number, parameters = _known().get(name, (0, -1))
    if parameters != len(operation.params) or number not in (-1, len(qubits)):
        return None
    angles = [angle_of(one, name, qubits) for one in operation.params]
    if any(isinstance(one, Expression) for one in angles):
        found = parametrised_gate(name, list(qubits), terms_of(angles, PARAMETERS.get()))
    else:
        found = gate(name, list(qubits), angles)
    state = getattr(operation, "ctrl_state", None)
    if state is not None:
        if len(found.controls) != operation.num_ctrl_qubits:
            return None
        found.control_values = state
    return found


def _controlled(operation: ControlledGate, qubits: Sequence[int]) -> list[Operation]:
    controls, rest = qubits[: operation.num_ctrl_qubits], qubits[operation.num_ctrl_qubits :]
    return _with_controls(gate_operations(operation.base_gate, rest), controls, operation.ctrl_state)


def _with_controls(inside: list[Operation], controls: Sequence[int], values: int) -> list[Operation]:
    for one in inside:
        one.control_values = values | one.control_values << len(controls)
        one.controls = [*controls, *one.controls]
    return [one for one in inside if one.is_gate]


def _annotated(operation: Any, qubits: Sequence[int]) -> list[Operation]:
    """Convert a gate with modifiers, the innermost first. Inverses and powers commute with controls."""
    from qiskit.circuit.annotated_operation import ControlModifier, InverseModifier, PowerModifier

    base, controls, values = operation.base_op, 0, 0
    for modifier in operation.modifiers:
        if isinstance(modifier, InverseModifier):
            base = base.inverse()
        elif isinstance(modifier, PowerModifier):
            base = _power(base, modifier.power)
        elif isinstance(modifier, ControlModifier):
            values = modifier.ctrl_state | values << modifier.num_ctrl_qubits
            controls += modifier.num_ctrl_qubits
        else:
            raise BadInput(
                f"{base.name}: expected a control, inverse or power modifier, found {type(modifier).__name__}"
            )
    return _with_controls(gate_operations(base, qubits[controls:]), qubits[:controls], values)


def _power(base: Any, exponent: float) -> Any:
    from qiskit.exceptions import QiskitError

    try:
        return base.power(exponent)
    except (QiskitError, TypeError, ValueError) as error:
        raise BadInput(
            f"{base.name}: expected a gate that Qiskit can raise to the power {exponent}; bind its parameters first"
        ) from error


def _defined(definition: QuantumCircuit, qubits: Sequence[int]) -> list[Operation]:
    places = {qubit: qubits[k] for k, qubit in enumerate(definition.qubits)}
    found = []
    current_budget().spend(len(definition.data))
    phase = angle_of(definition.global_phase, "global phase")
    if phase:
        found.append(with_angle(Operation("global_phase", "gphase", [], angle=number_of(phase)), phase))
    for instruction in definition.data:
        inner = [places[qubit] for qubit in instruction.qubits]
        if instruction.operation.name == "barrier":
            found.append(Operation("barrier", "barrier", inner))
        elif instruction.operation.name != "delay":
            found += gate_operations(instruction.operation, inner)
    return found


def _as_matrix(operation: Any, qubits: Sequence[int]) -> Operation:
    from qiskit.exceptions import QiskitError
    from qiskit.quantum_info import Operator

    if len(qubits) > _LARGEST_MATRIX:
        raise BadInput(
            f"{operation.name} has no definition in gates: expected a matrix on at most {_LARGEST_MATRIX} qubits, "
            f"found one on {len(qubits)}"
        )
    try:
        values = Operator(operation).data
    except (QiskitError, AttributeError, TypeError, ValueError) as error:
        raise BadInput(
            f"the instruction {operation.name!r} has neither a matrix nor a definition, and onehop does not know it"
        ) from error
    return _matrix(operation.name, qubits, values)


def _matrix(name: str, qubits: Sequence[int], values: Any) -> Operation:
    numbers = np.ascontiguousarray(values, np.complex128).reshape(-1)
    return Operation("matrix", name, list(qubits), values=numbers)


def _unitary(operation: Any, qubits: list[int]) -> list[Operation]:
    return [_matrix(operation.label or operation.name, qubits, operation.params[0])]


def _multiplexer(operation: Any, qubits: list[int]) -> list[Operation]:
    """Convert a matrix for each value of the last qubits."""
    found = []
    for value, matrix in enumerate(operation.params):
        numbers = np.ascontiguousarray(matrix, np.complex128)
        targets = qubits[: len(numbers).bit_length() - 1]
        one = _matrix(operation.name, targets, numbers)
        one.controls, one.control_values = qubits[len(targets) :], value
        found.append(one)
    return found


def _diagonal(operation: Any, qubits: list[int]) -> list[Operation]:
    values = np.array([complex(one) for one in operation.params])
    return [Operation("diagonal", operation.name, qubits, values=values)]


def _evolution(operation: Any, qubits: list[int]) -> list[Operation]:
    """Convert a Pauli evolution in the order of its synthesis; use the definition if that is no product formula."""
    expand = getattr(operation.synthesis, "expand", None)
    operators = operation.operator if isinstance(operation.operator, list) else [operation.operator]
    if expand is None or not all(hasattr(one, "to_sparse_list") for one in operators):
        return _defined(operation.definition, qubits)
    found = []
    for letters, which, angle in expand(operation):
        if not set(letters) <= set("XYZ"):
            return _defined(operation.definition, qubits)
        if letters:
            targets = [qubits[one] for one in which]
            turn = angle_of(angle, operation.name, targets)
            rotation = Operation(
                "pauli_rotation", "pauli_rotation", targets, paulis=letters, angle=number_of(turn)
            )
            found.append(with_angle(rotation, turn))
    # A multiple of the identity changes the global phase.
    weights = sum(
        float(np.real(weight))
        for one in operators
        for letters, _, weight in one.to_sparse_list()
        if not letters
    )
    if weights:
        phase = -weights * angle_of(operation.time, operation.name, qubits)
        found.append(with_angle(Operation("global_phase", "gphase", [], angle=number_of(phase)), phase))
    return found


def _pauli(operation: Any, qubits: list[int]) -> list[Operation]:
    letters = reversed(operation.params[0])
    return [
        gate(letter.lower(), [qubit]) for letter, qubit in zip(letters, qubits, strict=True) if letter != "I"
    ]


def _permutation(operation: Any, qubits: list[int]) -> list[Operation]:
    """Convert a permutation gate, whose output k is input pattern[k], to swaps."""
    wanted = [int(one) for one in operation.params[0]]
    holds = list(range(len(wanted)))
    found = []
    for k, source in enumerate(wanted):
        other = holds.index(source)
        if other != k:
            found.append(gate("swap", [qubits[k], qubits[other]]))
            holds[k], holds[other] = holds[other], holds[k]
    return found


_SPECIAL = {
    "unitary": _unitary,
    "diagonal": _diagonal,
    "PauliEvolution": _evolution,
    "pauli": _pauli,
    "permutation": _permutation,
}
