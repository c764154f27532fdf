"""Postselection: projectors inside a circuit, which do not preserve the norm of the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pennylane.exceptions import DeviceError
from pennylane.ops import Projector
from pennylane.tape import QuantumScript

from onehop.quantum import Circuit, State

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
