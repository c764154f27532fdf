"""Quantum circuits on a state vector that is split over ranks."""

from onehop.quantum.circuit import Circuit, Condition, Operation, Register, gate, gate_names

__all__ = [
    "Circuit",
    "Condition",
    "Operation",
    "Register",
    "gate",
    "gate_names",
]
