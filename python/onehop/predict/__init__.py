"""Predicted times of whole computations on a machine: circuits, and iterations of lattice solvers.

`predict_circuit` takes passes over the state at the machine's memory bandwidth and exchanges through
`onehop.machine.simulate`. No state is allocated and no rank is started.
"""

from __future__ import annotations

from onehop.predict.circuit import CircuitPrediction, StagePrediction, predict_circuit

__all__ = ["CircuitPrediction", "StagePrediction", "predict_circuit"]
