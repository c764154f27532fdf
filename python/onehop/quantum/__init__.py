"""Quantum circuits on a state vector that is split over ranks."""

from onehop.quantum.circuit import Circuit, Condition, Operation, Register, gate, gate_names
from onehop.quantum.from_qiskit import from_qiskit
from onehop.quantum.observables import PauliSum, PauliTerm
from onehop.quantum.qasm import load_qasm, parse_qasm
from onehop.quantum.simulator import CircuitPlan, Result, plan, simulate
from onehop.quantum.state import State

__all__ = [
    "Circuit",
    "CircuitPlan",
    "Condition",
    "Operation",
    "PauliSum",
    "PauliTerm",
    "Register",
    "Result",
    "State",
    "from_qiskit",
    "gate",
    "gate_names",
    "load_qasm",
    "parse_qasm",
    "plan",
    "simulate",
]
