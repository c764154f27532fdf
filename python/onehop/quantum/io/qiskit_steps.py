"""Conversion of Qiskit instructions that are no gates: channels, and qiskit-aer's instructions for data and states.

The instructions are recognised by their names, so that qiskit-aer need not be installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.quantum.circuit import Condition
from onehop.quantum.observables import PauliSum, PauliTerm
from onehop.quantum.steps import STATE_KINDS, Program, Save

SAVES = tuple(f"save_{kind}" for kind in STATE_KINDS)
SETS = ("set_statevector", "set_density_matrix")
_OTHER_METHODS = ("unitary", "superop", "stabilizer", "clifford", "matrix_product_state")
_CHANNELS = ("kraus", "superop", "quantum_channel")
_WHOLE_STATE = ("state", "statevector", "statevector_dict", "amplitudes", "amplitudes_sq")
_ENOUGH = 1e-12  # eigenvalues of a Choi matrix below this count as 0


def is_step(operation: Any) -> bool:
    """Whether an instruction is none of a circuit, but a channel, or one that saves data or sets the state."""
    from qiskit.circuit import Gate

    name = operation.name
    if isinstance(operation, Gate):  # of any name
        return False
    if name in (*_CHANNELS, *SETS) or (name in SAVES and hasattr(operation, "_subtype")):
        return True
    verb, _, method = name.partition("_")
    if verb in ("save", "set") and method in _OTHER_METHODS:
        raise BadInput(
            f"{name}: expected data of a state vector or a density matrix, found that of another method"
        )
    return False


def add_step(program: Program, operation: Any, qubits: list[int], condition: Condition) -> None:
    """Append an instruction for which `is_step` holds to a program."""
    name = operation.name
    if name in _CHANNELS:
        program.channel(kraus_of(operation), qubits, name, condition)
    elif name in SETS:
        _require_all(name, qubits, program.circuit.qubits)
        program.set_state(np.asarray(operation.params[0], np.complex128), qubits, condition)
    else:
        if name.removeprefix("save_") in _WHOLE_STATE:
            _require_all(name, qubits, program.circuit.qubits)
        program.save(_save(operation, qubits), qubits, condition)


def _require_all(name: str, qubits: Sequence[int], width: int) -> None:
    if sorted(qubits) != list(range(width)):
        raise BadInput(f"{name}: expected all {width} qubits of the circuit, found {len(qubits)}")


def _save(operation: Any, qubits: list[int]) -> Save:
    kind, subtype = operation.name.removeprefix("save_"), operation._subtype
    indices, observable = np.zeros(0, np.int64), None
    if kind.startswith("amplitudes"):
        indices = np.array([int(one) for one in operation.params], np.int64)
    elif kind.startswith("expval"):
        observable = _observable(operation.params, qubits)
    mode = subtype.removeprefix("c_")
    return Save(kind, operation._label, mode, subtype.startswith("c_"), indices, observable)


def _observable(params: Sequence[Any], qubits: Sequence[int]) -> PauliSum:
    """Convert pairs of a Pauli string, whose last letter is that of the first qubit, and its weight."""
    terms = []
    for letters, weights in params:
        pairs = sorted((qubits[k], letter) for k, letter in enumerate(reversed(letters)) if letter != "I")
        terms.append(PauliTerm(complex(np.atleast_1d(weights)[0]), tuple(pairs)))
    return PauliSum(tuple(terms))


def kraus_of(operation: Any) -> tuple[NDArray[np.complex128], ...]:
    """Return the Kraus operators of a channel: a Kraus instruction, a superoperator, or an error of qiskit-aer.

    A mixture of unitary circuits becomes a multiple of a unitary matrix for each of them, so that its weights do not
    depend on the state.
    """
    if hasattr(operation, "_quantum_error"):
        return kraus_of(operation._quantum_error)
    if hasattr(operation, "circuits") and hasattr(operation, "probabilities"):
        found = []
        for circuit, weight in zip(operation.circuits, operation.probabilities, strict=True):
            found += [np.sqrt(weight) * one for one in _of_circuit(circuit) if weight > 0]
        if len(found) <= 4**operation.num_qubits:
            return tuple(found)
        return _of_superoperator(operation.to_quantumchannel(), "error")
    if hasattr(operation, "to_quantumchannel"):
        return _of_superoperator(operation.to_quantumchannel(), type(operation).__name__)
    if operation.name == "kraus":
        return tuple(np.asarray(one, np.complex128) for one in operation.params)
    return _of_superoperator(operation.params[0], operation.name)


def _of_circuit(circuit: Any) -> list[NDArray[np.complex128]]:
    from qiskit.circuit import Gate
    from qiskit.quantum_info import Operator, SuperOp

    if all(isinstance(one.operation, Gate) for one in circuit.data):
        return [Operator(circuit).data]
    return list(_of_superoperator(SuperOp(circuit), circuit.name))


def _of_superoperator(channel: Any, name: str) -> tuple[NDArray[np.complex128], ...]:
    from qiskit.quantum_info import Choi, SuperOp

    choi = Choi(SuperOp(channel)).data
    values, vectors = np.linalg.eigh((choi + choi.conj().T) / 2)
    if values[0] < -1e-9:
        raise BadInput(
            f"{name}: expected a completely positive channel, found one whose Choi matrix has the eigenvalue "
            f"{values[0]:.3g}"
        )
    size = round(np.sqrt(len(choi)))
    return tuple(
        np.sqrt(value) * vector.reshape(size, size).T
        for value, vector in zip(values, vectors.T, strict=True)
        if value > _ENOUGH
    )
