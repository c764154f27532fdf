"""Predicted times of whole computations on a machine: circuits, and iterations of lattice solvers.

`predict_circuit` and `predict_solver` take memory traffic at the machine's bandwidth and messages through
`onehop.machine.simulate`. No state or field is allocated and no rank is started.
"""

from __future__ import annotations

from onehop.predict.circuit import CircuitPrediction, StagePrediction, predict_circuit
from onehop.predict.lattice import SolverPrediction, predict_solver

__all__ = ["CircuitPrediction", "SolverPrediction", "StagePrediction", "predict_circuit", "predict_solver"]
