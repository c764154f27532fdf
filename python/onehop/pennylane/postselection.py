"""Postselection: projectors inside a circuit, which do not preserve the norm of the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pennylane.exceptions import DeviceError
from pennylane.ops import Projector
from pennylane.tape import QuantumScript

from onehop.quantum import Circuit, State
from onehop.quantum.circuit import Operation

__all__ = ["NEVER", "kept_shots", "postselects", "project"]

NEVER = 1e-14  # an outcome with a smaller probability does not occur


def postselects(operator: Any) -> bool:
    """Check whether an operator keeps some of the outcomes only."""
    return isinstance(operator, Projector) or getattr(operator, "postselect", None) is not None


def project(state: State, projector: Any, qubit_of: Callable[[Any], int]) -> float:
    """Apply a projector to a state and normalise it.

    Parameters
    ----------
    state : State
        State; it is changed.
    projector : Projector
        Operator of PennyLane.
    qubit_of : callable
        Function from wires to qubits.

    Returns
    -------
    float
        Probability of the outcome that the projector keeps.

    Raises
    ------
    DeviceError
        The outcome does not occur.
    """
    # PennyLane's first wire is the most significant bit of the matrix's index.
    where = [qubit_of(wire) for wire in projector.wires][::-1]
    circuit = Circuit(state.qubits).unitary(projector.matrix(), where, name=projector.name)
    state._core.apply(circuit, 0)  # `run` would refuse a matrix that is not unitary
    norm = state.norm()
    if norm**2 < NEVER:
        raise DeviceError(
            f"expected outcomes that postselection keeps, found none: their probability is {norm**2:.3g}"
        )
    scale = Circuit(state.qubits)
    scale.add(Operation("diagonal", "normalise", [0], values=np.full(2, 1 / norm, complex)))
    state._core.apply(scale, 0)
    return norm**2


def kept_shots(
    script: QuantumScript, chance: float, mode: str | None, rng: np.random.Generator
) -> QuantumScript:
    """Return the circuit with the number of shots that postselection keeps.

    Parameters
    ----------
    script : QuantumScript
        Circuit with shots.
    chance : float
        Probability that a shot is kept.
    mode : str, optional
        PennyLane's `postselect_mode`: "fill-shots" keeps all shots, "hw-like" (the default) draws their number.
    rng : numpy.random.Generator
        Random numbers.

    Raises
    ------
    DeviceError
        No shot is kept.
    """
    if mode == "fill-shots":
        return script
    kept = [int(rng.binomial(number, min(chance, 1.0))) for number in script.shots]
    if 0 in kept:
        raise DeviceError(
            f"expected outcomes that postselection keeps, found none in {script.shots.total_shots} shots, each kept "
            f"with probability {chance:.3g}; take more shots, or postselect_mode='fill-shots'"
        )
    return script.copy(shots=kept if script.shots.has_partitioned_shots else kept[0])
