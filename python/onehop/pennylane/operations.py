"""Conversion of PennyLane's operators to gates and observables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pennylane as qml
from pennylane.exceptions import DeviceError
from pennylane.operation import Channel
from pennylane.ops import Projector
from pennylane.tape import QuantumScript

from onehop.error import BadInput
from onehop.quantum import Circuit, PauliSum, State, gate_names
from onehop.quantum.foreign import LARGEST_MATRIX, observable_of
from onehop.quantum.parameters import Angle
from onehop.quantum.steps import Program

# PennyLane's names of gates that OpenQASM names, with the same parameters, controls first.
_NAMED = {
    "Hadamard": "h", "PauliX": "x", "PauliY": "y", "PauliZ": "z", "S": "s", "T": "t", "SX": "sx",
    "CNOT": "cx", "CY": "cy", "CZ": "cz", "CH": "ch", "SWAP": "swap", "CSWAP": "cswap", "Toffoli": "ccx", "CCZ": "ccz",
    "RX": "rx", "RY": "ry", "RZ": "rz", "PhaseShift": "p", "U1": "p", "U2": "u2", "U3": "u",
    "CRX": "crx", "CRY": "cry", "CRZ": "crz", "ControlledPhaseShift": "cp",
    "IsingXX": "rxx", "IsingYY": "ryy", "IsingZZ": "rzz",
}  # fmt: skip
_SPECIAL = frozenset(("Rot", "MultiRZ", "PauliRot", "GlobalPhase"))
_WITH_ANGLES = {name for name, _, angles in gate_names() if angles}
_DIFFERENTIABLE = _SPECIAL.union(name for name, ours in _NAMED.items() if ours in _WITH_ANGLES)


def _name_of(operator: Any) -> str:
    """Return the name of an operator of PennyLane's own class; "" for all others, which may have any name."""
    name = type(operator).__name__
    return name if getattr(qml, name, None) is type(operator) else ""


def is_differentiable(operator: Any) -> bool:
    """Check that an operator has a derivative by the adjoint method, and angles as parameters."""
    return _name_of(operator) in _DIFFERENTIABLE


def is_channel(operator: Any) -> bool:
    """Check whether an operator is a noise channel."""
    return isinstance(operator, Channel)


def is_known(operator: Any) -> bool:
    """Check that an operator can be converted."""
    name = _name_of(operator)
    if name in _NAMED or name in _SPECIAL or name in ("Identity", "Barrier") or is_channel(operator):
        return True
    return operator.has_matrix and 0 < len(operator.wires) <= LARGEST_MATRIX


def named(index: int, operator: Any) -> str:
    """Name an operator of a circuit in a message."""
    return f"operation {index} ({operator.name} on wires {', '.join(map(str, operator.wires))})"


def require_valid(script: Any) -> None:
    """Check a circuit's parameters and observables."""
    for index, operator in enumerate(script.operations):
        for number, one in enumerate(operator.data):
            values = np.asarray(one)
            is_angle = is_differentiable(operator)
            if values.dtype.kind not in "biufc" or (is_angle and np.any(np.imag(values))):
                what = "real number" if is_angle else "number"
                raise BadInput(
                    f"{named(index, operator)}: expected a {what} as parameter {number}, found {one!r}"
                )
            if not np.isfinite(values).all():
                found = values[~np.isfinite(values)].flat[0]
                raise BadInput(
                    f"{named(index, operator)}: expected a finite parameter {number}, found {found}"
                )
    for measurement in script.measurements:
        _require_hermitian(measurement.obs)
        sentence = measurement.obs.pauli_rep if measurement.obs is not None else None
        for weight in (sentence or {}).values():
            if abs(np.imag(weight)) > 1e-14:
                raise BadInput(
                    f"expected a Hermitian observable, found {measurement.obs} with the weight {weight}"
                )


def _require_hermitian(observable: Any) -> None:
    """Check the matrices of `qml.Hermitian` in an observable, which PennyLane takes as they are."""
    if observable is None:
        return
    if observable.name == "Hermitian":
        matrix = np.asarray(observable.matrix())
        if not np.allclose(matrix, matrix.conj().T, rtol=0, atol=1e-8):
            wires = ", ".join(map(str, observable.wires))
            raise BadInput(
                f"expected a Hermitian observable, found Hermitian on wires {wires} with a matrix that is not"
            )
    for part in (*getattr(observable, "operands", ()), getattr(observable, "base", None)):
        _require_hermitian(part)


def append(circuit: Circuit, operator: Any, qubit_of: Callable[[Any], int], angles: Sequence[Angle]) -> None:
    """Append an operator with these parameters to a circuit."""
    where = [qubit_of(wire) for wire in operator.wires]
    name = _name_of(operator)
    if name in ("Identity", "Barrier"):
        return
    if name in _NAMED:
        circuit.gate(_NAMED[name], where, angles)
    elif name == "Rot":
        for one, angle in zip(("rz", "ry", "rz"), angles, strict=True):
            circuit.gate(one, where, [angle])
    elif name == "MultiRZ":
        circuit.pauli_rotation("Z" * len(where), angles[0], where)
    elif name == "PauliRot":
        circuit.pauli_rotation(operator.hyperparameters["pauli_word"], angles[0], where)
    elif name == "GlobalPhase":
        circuit.global_phase(-1 * angles[0])
    else:
        # PennyLane's first wire is the most significant bit of the matrix's index.
        circuit.unitary(np.asarray(operator.matrix(), complex), where[::-1], name=operator.name)


def append_channel(program: Program, operator: Any, qubit_of: Callable[[Any], int]) -> None:
    """Append a channel to a program."""
    kraus = tuple(np.asarray(one, complex) for one in operator.kraus_matrices())
    # PennyLane's first wire is the most significant bit of a matrix's index.
    program.channel(kraus, [qubit_of(wire) for wire in operator.wires][::-1], operator.name)


def pauli_sum(observable: Any, qubit_of: Callable[[Any], int]) -> PauliSum:
    """Convert a Hermitian observable with a representation by Pauli strings."""
    sentence = observable.pauli_rep
    if sentence is None:
        raise BadInput(f"expected an observable made of Pauli strings, found {observable.name}")
    places = {wire: qubit_of(wire) for wire in sentence.wires}
    return observable_of(((word, weight, word) for word, weight in sentence.items()), places)


NEVER = 1e-14  # an outcome with a smaller probability does not occur


def postselects(operator: Any) -> bool:
    """Check whether an operator keeps some of the outcomes only."""
    return isinstance(operator, Projector) or getattr(operator, "postselect", None) is not None


def project(state: State, projector: Any, qubit_of: Callable[[Any], int]) -> float:
    """Apply a projector to a state and normalise it; return the probability of the outcome that it keeps."""
    # PennyLane's first wire is the most significant bit of the matrix's index.
    where = [qubit_of(wire) for wire in projector.wires][::-1]
    circuit = Circuit(state.qubits).unitary(projector.matrix(), where, name=projector.name)
    state._core.apply(circuit, 0)  # `run` would refuse a matrix that is not unitary
    norm = state.norm()
    probability = norm**2
    if probability < NEVER:
        raise DeviceError(
            f"expected outcomes that postselection keeps, found none: their probability is {probability:.3g}"
        )
    state._scale(1 / norm)
    return probability


def kept_shots(
    script: QuantumScript, chance: float, mode: str | None, rng: np.random.Generator
) -> QuantumScript:
    """Return the circuit with the number of shots that postselection keeps, each with probability `chance`."""
    if mode == "fill-shots":
        return script
    kept = [int(rng.binomial(number, min(chance, 1.0))) for number in script.shots]
    if 0 in kept:
        raise DeviceError(
            f"expected outcomes that postselection keeps, found none in {script.shots.total_shots} shots, each kept "
            f"with probability {chance:.3g}; take more shots, or postselect_mode='fill-shots'"
        )
    return script.copy(shots=kept if script.shots.has_partitioned_shots else kept[0])
