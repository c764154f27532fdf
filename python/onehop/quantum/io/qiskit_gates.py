"""Conversion of Qiskit's gates to operations: named gates, matrices, Pauli evolutions and controlled gates.

A gate is known by its class: any program may give a gate of its own a name, a base gate or a label of Qiskit's. Gates
that are none of the known classes become their definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from onehop._core import parametrised_gate
from onehop.arguments import nearest_unitary
from onehop.error import BadInput
from onehop.quantum.circuit import Operation, gate, gate_names, swaps_of
from onehop.quantum.io.qasm_limits import current_budget
from onehop.quantum.io.qiskit_blocks import kind_of
from onehop.quantum.parameters import Expression, placeholder, terms_of

if TYPE_CHECKING:
    from qiskit.circuit import ControlledGate, QuantumCircuit

# Qiskit's standard gates that onehop has under the same name, as of Qiskit 2. A gate of a later version is expanded.
STANDARD_NAMES = (
    "c3sx", "ccx", "ccz", "ch", "cp", "crx", "cry", "crz", "cs", "csdg", "cswap", "csx", "cu", "cu1", "cu3",
    "cx", "cy", "cz", "dcx", "ecr", "global_phase", "h", "id", "iswap", "p", "r", "rcccx", "rccx", "rx",
    "rxx", "ry", "ryy", "rz", "rzx", "rzz", "s", "sdg", "swap", "sx", "sxdg", "t", "tdg", "u", "u1", "u2",
    "u3", "x", "xx_minus_yy", "xx_plus_yy", "y", "z",
)  # fmt: skip
_OTHER_NAMES = {"global_phase": "gphase", "c3sx": "c3sqrtx"}
_LARGEST_MATRIX = 10  # maximum number of qubits of a gate that has a matrix but no definition


@cache
def _standard() -> dict[type, str]:
    """Return onehop's name of each of Qiskit's standard gates: gates are known by their class, never by their name."""
    from qiskit.circuit.library import get_standard_gate_name_mapping

    known = {name for name, _, _ in gate_names()}
    names = {name: _OTHER_NAMES.get(name, name) for name in STANDARD_NAMES}
    found = get_standard_gate_name_mapping()
    return {found[name].base_class: ours for name, ours in names.items() if name in found and ours in known}


@cache
def _owners() -> dict[str, type]:
    """Return the class that has each name among Qiskit's standard gates."""
    from qiskit.circuit.library import get_standard_gate_name_mapping

    return {name: one.base_class for name, one in get_standard_gate_name_mapping().items()}


@cache
def _plain_controls() -> frozenset[type]:
    """Return Qiskit's controlled gates whose base gate acts on all qubits that are no controls."""
    from qiskit.circuit import library

    return frozenset(
        (library.MCXGate, library.C3XGate, library.C4XGate, library.MCPhaseGate, library.MCU1Gate)
    )


@cache
def _special() -> dict[type, Callable[[Any, list[int]], list[Operation]]]:
    """Return the conversions of the gates of Qiskit's library that keep more than their definition."""
    from qiskit.circuit import library

    return {
        library.UnitaryGate: _unitary,
        library.DiagonalGate: _diagonal,
        library.PauliEvolutionGate: _evolution,
        library.PauliGate: _pauli,
        library.PermutationGate: _permutation,
    }


def gate_operations(operation: Any, qubits: Sequence[int]) -> list[Operation]:
    """Convert a Qiskit gate to operations on the given qubits."""
    from qiskit.circuit import AnnotatedOperation, ControlledGate

    if isinstance(operation, AnnotatedOperation):
        return _annotated(operation, qubits)
    operation = _as_redefined(operation)
    named = _named(operation, qubits)
    if named is not None:
        return [named]
    if isinstance(operation, ControlledGate):
        return _controlled(operation, qubits)
    special = _special().get(_class_of(operation))
    if special is not None:
        return special(operation, list(qubits))
    definition = getattr(operation, "definition", None)
    if definition is not None:
        return _defined(definition, qubits)
    if operation.name == "multiplexer":
        return _multiplexer(operation, list(qubits))
    return [_as_matrix(operation, qubits)]


def _as_redefined(operation: Any) -> Any:
    """Return what a program's own subclass of a gate of Qiskit's library defines instead of what it inherits."""
    from qiskit.circuit.library import UnitaryGate

    kinds = _class_of(operation).__mro__
    if kinds[0].__module__.startswith("qiskit.") or not any(
        one.__module__.startswith("qiskit.circuit.library") for one in kinds
    ):
        return operation
    for kind in kinds:
        if kind.__module__.startswith("qiskit."):
            break
        if {"_define", "definition"} & vars(kind).keys() and operation.definition is not None:
            return operation.definition.to_gate()
        if {"__array__", "to_matrix"} & vars(kind).keys():
            to_matrix = operation.to_matrix if "to_matrix" in vars(kind) else operation.__array__
            return UnitaryGate(to_matrix(), label=operation.name)
    return operation


def _class_of(operation: Any) -> type:
    """Return the class of an operation; gates without parameters have a hidden class for their only instance."""
    return getattr(operation, "base_class", type(operation))


@dataclass
class Conversion:
    """The circuit that is being converted."""

    parameters: list[str] = field(default_factory=list)  # names of its parameters
    _controls: dict[int, tuple[Any, bool]] = field(default_factory=dict)

    def controls_base(self, operation: ControlledGate) -> bool:
        """Check once for each object that a controlled gate is defined as the controls of its base gate."""
        # The dictionary holds the objects, so that none of their numbers is used again.
        if id(operation) not in self._controls:
            self._controls[id(operation)] = operation, _is_control_of_base(operation)
        return self._controls[id(operation)][1]


CONVERSION: ContextVar[Conversion] = ContextVar("CONVERSION")


def angle_of(value: Any, gate: str, qubits: Sequence[int] = ()) -> float | Expression:
    """Convert an angle of Qiskit: a number, or a linear expression of parameters.

    Errors name the gate and its qubits.
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
        operation.angles = terms_of([angle], CONVERSION.get().parameters)
    return operation


def phase_operation(angle: float | Expression) -> Operation:
    """Return a global phase."""
    return with_angle(Operation("global_phase", "gphase", [], angle=placeholder(angle)), angle)


def is_standard(operation: Any) -> bool:
    """Check that a gate is one of Qiskit's standard gates."""
    return _class_of(operation).__module__.startswith("qiskit.circuit.library.standard_gates")


def _named(operation: Any, qubits: Sequence[int]) -> Operation | None:
    name = _standard().get(_class_of(operation))
    if name is None:
        return None
    angles = [angle_of(one, name, qubits) for one in operation.params]
    if any(isinstance(one, Expression) for one in angles):
        found = parametrised_gate(name, list(qubits), terms_of(angles, CONVERSION.get().parameters))
    else:
        found = gate(name, list(qubits), angles)
    state = getattr(operation, "ctrl_state", None)
    if state is not None:
        found.control_values = state
    return found


def _controlled(operation: ControlledGate, qubits: Sequence[int]) -> list[Operation]:
    if _class_of(operation) in _plain_controls() or CONVERSION.get().controls_base(operation):
        controls, rest = qubits[: operation.num_ctrl_qubits], qubits[operation.num_ctrl_qubits :]
        return _with_controls(gate_operations(operation.base_gate, rest), controls, operation.ctrl_state)
    if operation.definition is None:
        return [_as_matrix(operation, qubits)]
    return _defined(operation.definition, qubits)


def _is_control_of_base(operation: ControlledGate) -> bool:
    """Check that Qiskit's own controls of the base gate have the definition of the gate, which decides what it does."""
    from qiskit.circuit import Gate

    base, count = operation.base_gate, operation.num_ctrl_qubits
    if operation.definition is None or count + base.num_qubits != operation.num_qubits or _borrows_name(base):
        return False
    own = base.control if _class_of(base).__module__.startswith("qiskit.") else partial(Gate.control, base)
    try:
        return own(count, ctrl_state=operation.ctrl_state, annotated=False).definition == operation.definition
    except Exception:  # a program's own gates may raise any
        return False


def _borrows_name(operation: Any) -> bool:
    """Check for a gate with the name of another one of Qiskit's, whose controls Qiskit's definition has instead."""
    kind, owner = _class_of(operation), _owners().get(operation.name)
    if owner is not None or kind.__module__.startswith("qiskit.circuit.library"):
        return owner is not None and owner is not kind
    inside = getattr(operation, "definition", None)
    return inside is not None and any(_borrows_name(one.operation) for one in inside.data)


def _with_controls(inside: list[Operation], controls: Sequence[int], values: int) -> list[Operation]:
    for one in inside:
        one.control_values = values | one.control_values << len(controls)
        one.controls = [*controls, *one.controls]
    return [one for one in inside if one.is_gate]


def _annotated(operation: Any, qubits: Sequence[int]) -> list[Operation]:
    """Convert a gate with modifiers, the innermost first. Inverses and powers commute with controls."""
    from qiskit.circuit.annotated_operation import ControlModifier, InverseModifier, PowerModifier

    base, controls, values = _as_redefined(operation.base_op), 0, 0
    for modifier in operation.modifiers:
        if isinstance(modifier, InverseModifier):
            base = _inverse(base)
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


def _inverse(base: Any) -> Any:
    """Invert a gate as Qiskit does; but its inverse of a controlled gate ignores the definition, which decides."""
    from qiskit.circuit import ControlledGate
    from qiskit.exceptions import QiskitError

    own = isinstance(base, ControlledGate) and _class_of(base) not in _plain_controls()
    if hasattr(base, "inverse") and (not own or CONVERSION.get().controls_base(base)):
        with suppress(QiskitError):  # of a gate that Qiskit cannot invert without its matrix
            return base.inverse()
    return _power(base, -1)


def _power(base: Any, exponent: float) -> Any:
    """Raise a gate to a power. A root is that of the matrix, as in Qiskit's matrix of the modified gate."""
    from qiskit.circuit.library import UnitaryGate
    from qiskit.exceptions import QiskitError
    from qiskit.quantum_info import Operator

    whole = _class_of(base) in _standard() and float(exponent).is_integer()
    if base.num_qubits > _LARGEST_MATRIX and not whole:
        raise BadInput(
            f"{base.name}: expected a gate on at most {_LARGEST_MATRIX} qubits to raise to the power {exponent}, found "
            f"one on {base.num_qubits}"
        )
    try:
        if whole:
            return base.power(int(exponent))
        return UnitaryGate(Operator(base).power(exponent), label=f"{base.name}^{exponent}")
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
        found.append(phase_operation(phase))
    for instruction in definition.data:
        inner = [places[qubit] for qubit in instruction.qubits]
        kind = kind_of(instruction.operation)
        if kind == "barrier":
            found.append(Operation("barrier", "barrier", inner))
        elif kind != "delay":
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
    numbers = nearest_unitary(np.ascontiguousarray(values, np.complex128)).reshape(-1)
    if not qubits:
        return Operation("global_phase", name, [], angle=float(np.angle(numbers[0])))
    return Operation("matrix", name, list(qubits), values=numbers)


def _unitary(operation: Any, qubits: list[int]) -> list[Operation]:
    return [_matrix(operation.label or operation.name, qubits, operation.params[0])]


def _multiplexer(operation: Any, qubits: list[int]) -> list[Operation]:
    """Convert a matrix for each value of the last qubits."""
    matrices = [np.ascontiguousarray(one, np.complex128) for one in operation.params]
    size = len(matrices[0]) if matrices else 0
    if any(one.shape != (size, size) for one in matrices) or size * len(matrices) != 1 << len(qubits):
        raise BadInput(
            f"multiplexer on {len(qubits)} qubits: expected a matrix for each value of the last of them, found "
            f"{len(matrices)} of shapes {sorted({one.shape for one in matrices})}"
        )
    targets = qubits[: size.bit_length() - 1]
    found = []
    for value, numbers in enumerate(matrices):
        one = _matrix(operation.name, targets, numbers)
        one.controls, one.control_values = qubits[len(targets) :], value
        found.append(one)
    return found


def _diagonal(operation: Any, qubits: list[int]) -> list[Operation]:
    values = nearest_unitary(np.array([complex(one) for one in operation.params]))
    return [Operation("diagonal", operation.name, qubits, values=values)]


def _evolution(operation: Any, qubits: list[int]) -> list[Operation]:
    """Convert a Pauli evolution in the order of its synthesis; use the definition of others, which may be random."""
    from qiskit.synthesis import LieTrotter, SuzukiTrotter

    how = operation.synthesis
    if type(how) not in (LieTrotter, SuzukiTrotter) or how.atomic_evolution is not None:
        return _defined(operation.definition, qubits)
    found = []
    for letters, which, angle in how.expand(operation):
        if not set(letters) <= set("XYZ"):
            return _defined(operation.definition, qubits)
        targets = [qubits[one] for one in which]
        turn = angle_of(angle, operation.name, targets)
        if letters:
            rotation = Operation(
                "pauli_rotation", "pauli_rotation", targets, paulis=letters, angle=placeholder(turn)
            )
            found.append(with_angle(rotation, turn))
        else:  # a multiple of the identity changes the global phase
            found.append(phase_operation(-0.5 * turn))
    return found


def _pauli(operation: Any, qubits: list[int]) -> list[Operation]:
    letters = reversed(operation.params[0])
    return [
        gate(letter.lower(), [qubit]) for letter, qubit in zip(letters, qubits, strict=True) if letter != "I"
    ]


def _permutation(operation: Any, qubits: list[int]) -> list[Operation]:
    """Convert a permutation gate, whose output k is input pattern[k], to swaps."""
    # Output k is input pattern[k], and the state of qubit i moves to qubit targets[i].
    targets = [int(one) for one in np.argsort(operation.params[0])]
    return [gate("swap", [qubits[a], qubits[b]]) for a, b in swaps_of(targets)]
