"""The simulator's `Target`, which tells Qiskit's transpiler what it can run."""

from __future__ import annotations

import os

from qiskit import circuit
from qiskit.circuit import Gate, Instruction, library
from qiskit.circuit.library import get_standard_gate_name_mapping
from qiskit.transpiler import Target

from onehop.quantum.io.qiskit_gates import STANDARD_NAMES
from onehop.quantum.io.qiskit_steps import SAVES, SETS

# Instructions on any number of qubits, which the target takes as classes.
_ANY_WIDTH = {
    "unitary": library.UnitaryGate,
    "diagonal": library.DiagonalGate,
    "pauli": library.PauliGate,
    "permutation": library.PermutationGate,
    "PauliEvolution": library.PauliEvolutionGate,
    "mcx": library.MCXGate,
    "mcphase": library.MCPhaseGate,
    "barrier": circuit.Barrier,
    "if_else": circuit.IfElseOp,
    "for_loop": circuit.ForLoopOp,
    "switch_case": circuit.SwitchCaseOp,
    "while_loop": circuit.WhileLoopOp,
    "break_loop": circuit.BreakLoopOp,
    "continue_loop": circuit.ContinueLoopOp,
    "initialize": library.Initialize,
    "kraus": Instruction,
    "quantum_channel": Instruction,
    **dict.fromkeys((*SAVES, *SETS), Instruction),
}


def largest_state(bytes_per_amplitude: int) -> int:
    """Return the number of qubits whose state fits into this machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (memory // bytes_per_amplitude).bit_length() - 1


def make_target(qubits: int, basis: frozenset[str] | None = None) -> Target:
    """Make a target with all gates, or those of a basis, between all qubits, and with all other instructions."""
    target = Target(description="onehop_simulator", num_qubits=qubits)
    standard = get_standard_gate_name_mapping()
    known = {
        name: standard[name] for name in (*STANDARD_NAMES, "measure", "reset", "delay") if name in standard
    }
    for name, one in {**known, **_ANY_WIDTH}.items():
        is_gate = issubclass(one if isinstance(one, type) else type(one), Gate) and name != "global_phase"
        if basis is None or name in basis or not is_gate:
            target.add_instruction(one, name=name)
    return target
