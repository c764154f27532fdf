"""Conversion of pytket's circuits and operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytket.circuit import Circuit as TketCircuit
from pytket.circuit import OpType

from onehop.error import BadInput
from onehop.pytket.classical import CLASSICAL, append_classical
from onehop.quantum import Circuit, PauliSum
from onehop.quantum.foreign import LARGEST_MATRIX, append_matrix, observable_of

# pytket's gates that OpenQASM names, controls first. Their angles are in half turns.
_NAMED = {
    OpType.X: "x", OpType.Y: "y", OpType.Z: "z", OpType.H: "h", OpType.S: "s", OpType.Sdg: "sdg", OpType.T: "t",
    OpType.Tdg: "tdg", OpType.SX: "sx", OpType.Rx: "rx", OpType.Ry: "ry", OpType.Rz: "rz", OpType.U1: "p",
    OpType.CX: "cx", OpType.CY: "cy", OpType.CZ: "cz", OpType.CH: "ch", OpType.CRx: "crx", OpType.CRy: "cry",
    OpType.CRz: "crz", OpType.CU1: "cp", OpType.SWAP: "swap", OpType.CSWAP: "cswap", OpType.CCX: "ccx",
    OpType.XXPhase: "rxx", OpType.YYPhase: "ryy", OpType.ZZPhase: "rzz",
}  # fmt: skip
_CONTROLLED = {
    OpType.CnX: "x",
    OpType.CnY: "y",
    OpType.CnZ: "z",
    OpType.CnRx: "rx",
    OpType.CnRy: "ry",
    OpType.CnRz: "rz",
}
# Boxes that become their circuits. In the matrices of those that have a circuit inside, pytket leaves out its implicit
# permutation if that circuit is in another box.
_BOXES = (
    OpType.CircBox,
    OpType.ConjugationBox,
    OpType.CustomGate,
    OpType.PauliExpBox,
    OpType.PauliExpPairBox,
)


def converted(circuit: TketCircuit) -> Circuit:
    """Convert a circuit. Its qubit k becomes qubit n - 1 - k, so that indices of amplitudes are the same."""
    if circuit.n_qubits < 1:
        raise BadInput("expected a circuit with at least 1 qubit, found none")
    if circuit.is_symbolic():
        names = ", ".join(sorted(map(str, circuit.free_symbols())))
        raise BadInput(f"expected a circuit without symbols, found {names}; substitute numbers first")
    result = Circuit(circuit.n_qubits, circuit.n_bits, circuit.name or "")
    places: dict[Any, int] = {qubit: circuit.n_qubits - 1 - k for k, qubit in enumerate(circuit.qubits)}
    places.update({bit: k for k, bit in enumerate(circuit.bits)})
    _append_all(result, circuit, places)
    return result


def _append_all(result: Circuit, circuit: TketCircuit, places: dict[Any, int]) -> None:
    if circuit.phase:
        result.global_phase(np.pi * float(circuit.phase))
    for command in circuit.get_commands():
        _append(result, command.op, [places.get(unit, -1) for unit in command.args])
    # Swaps that pytket removed by naming the outputs differently.
    moves = {places[one]: places[other] for one, other in circuit.implicit_qubit_permutation().items()}
    if any(one != other for one, other in moves.items()):
        result.permutation([moves.get(k, k) for k in range(result.qubits)])


def _append(result: Circuit, operation: Any, where: list[int]) -> None:
    kind = operation.type
    if kind == OpType.Conditional:
        width = operation.width
        with result.when(where[:width], operation.value):
            _append(result, operation.op, where[width:])
    elif kind == OpType.Measure:
        result.measure(where[0], where[1])
    elif kind in CLASSICAL:
        append_classical(result, operation, where)
    elif kind == OpType.Reset:
        result.reset(where)
    elif kind in (OpType.Barrier, OpType.noop):
        return
    elif kind in _NAMED:
        result.gate(_NAMED[kind], where, [np.pi * float(one) for one in operation.params])
    elif kind in _CONTROLLED:
        inside = Circuit(result.qubits).gate(
            _CONTROLLED[kind], where[-1:], [np.pi * float(one) for one in operation.params]
        )
        _controlled(result, inside, where[:-1], [True] * (len(where) - 1))
    elif kind == OpType.QControlBox:
        count = operation.get_n_controls()
        inside = Circuit(result.qubits)
        _append(inside, operation.get_op(), where[count:])
        _controlled(result, inside, where[:count], operation.get_control_state_bits())
    elif kind == OpType.Phase:
        result.global_phase(np.pi * float(operation.params[0]))
    else:
        _general(result, operation, where)


def _controlled(result: Circuit, inside: Circuit, controls: list[int], values: list[bool]) -> None:
    """Append the gates of a circuit under controls with these values."""
    number = sum(bool(value) << k for k, value in enumerate(values))
    for one in inside.operations:
        one.control_values = number | one.control_values << len(controls)
        one.controls = [*controls, *one.controls]
        if result._conditions:
            one.condition = result._conditions[-1]
        result.add(one)


def _general(result: Circuit, operation: Any, where: list[int]) -> None:
    """Append a gate by its matrix, whose most significant bit is the first qubit, or a box by its circuit."""
    small = 0 < len(where) <= LARGEST_MATRIX
    try:
        matrix = operation.get_unitary() if small and operation.type not in _BOXES else None
    except RuntimeError:
        matrix = None
    if matrix is not None:
        append_matrix(result, matrix, where, name=operation.type.name)
        return
    if not hasattr(operation, "get_circuit"):
        raise BadInput(f"expected gates, measurements, resets and conditions, found {operation.type.name}")
    inside = operation.get_circuit()
    units = [*inside.qubits, *inside.bits]
    _append_all(result, inside, dict(zip(units, where, strict=True)))


def pauli_sum(operator: Any, qubits: Sequence[Any]) -> PauliSum:
    """Convert a `QubitPauliString` or a `QubitPauliOperator` of real weights."""
    places = {qubit: len(qubits) - 1 - k for k, qubit in enumerate(qubits)}
    weighted = operator._dict.items() if hasattr(operator, "_dict") else [(operator, 1.0)]
    strings = (
        (string, weight, {qubit: one.name for qubit, one in string.map.items() if one.name != "I"})
        for string, weight in weighted
    )
    return observable_of(strings, places)
