"""Quantum circuits on a state vector that is split over ranks."""

from onehop.quantum.circuit import Circuit, Condition, Operation, Register, gate, gate_names
from onehop.quantum.circuit_plan import CircuitPlan, plan
from onehop.quantum.compiled import CompiledCircuit, GradientResult, compile  # noqa: A004
from onehop.quantum.evolution import imaginary_time, lindblad
from onehop.quantum.gradients import gradients, parameter_shift
from onehop.quantum.io.from_qiskit import from_qiskit
from onehop.quantum.io.qasm import load_qasm, parse_qasm
from onehop.quantum.noise.channel import Channel, channel
from onehop.quantum.noise.density_matrix import DensityMatrix
from onehop.quantum.noise.model import NoiseModel
from onehop.quantum.noise.noisy import NoisyResult, plan_density, simulate_density, simulate_trajectories
from onehop.quantum.observables import PauliSum, PauliTerm
from onehop.quantum.parameters import Expression, Parameter
from onehop.quantum.simulator import Result, remove_checkpoint, simulate
from onehop.quantum.state import State
from onehop.refusals import make_collective

__all__ = [
    "Channel",
    "Circuit",
    "CircuitPlan",
    "CompiledCircuit",
    "Condition",
    "DensityMatrix",
    "Expression",
    "GradientResult",
    "NoiseModel",
    "NoisyResult",
    "Operation",
    "Parameter",
    "PauliSum",
    "PauliTerm",
    "Register",
    "Result",
    "State",
    "channel",
    "compile",
    "from_qiskit",
    "gate",
    "gate_names",
    "gradients",
    "imaginary_time",
    "lindblad",
    "load_qasm",
    "parameter_shift",
    "parse_qasm",
    "plan",
    "plan_density",
    "remove_checkpoint",
    "simulate",
    "simulate_density",
    "simulate_trajectories",
]

make_collective(globals(), ["State", "DensityMatrix", "CompiledCircuit"], but=["local"])
