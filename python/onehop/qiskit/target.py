"""The simulator's `Target`, which tells Qiskit's transpiler what it can run."""

from __future__ import annotations

import os

from qiskit.circuit import (
    Barrier,
    BreakLoopOp,
    ContinueLoopOp,
    Delay,
    ForLoopOp,
    Gate,
    IfElseOp,
    Instruction,
    Measure,
    Parameter,
    Reset,
    SwitchCaseOp,
    WhileLoopOp,
)
from qiskit.circuit.library import (
    DiagonalGate,
    Initialize,
    PauliEvolutionGate,
    PauliGate,
    PermutationGate,
    UnitaryGate,
)
from qiskit.circuit.library import standard_gates as gates
from qiskit.transpiler import Target

from onehop.quantum.io.qiskit_steps import SAVES, SETS

__all__ = ["largest_state", "make_target"]

_PLAIN = (
    *(
        "IGate",
        "XGate",
        "YGate",
        "ZGate",
        "HGate",
        "SGate",
        "SdgGate",
        "TGate",
        "TdgGate",
        "SXGate",
        "SXdgGate",
    ),
    *(
        "CXGate",
        "CYGate",
        "CZGate",
        "CHGate",
        "CSGate",
        "CSdgGate",
        "CSXGate",
        "SwapGate",
        "iSwapGate",
        "DCXGate",
    ),
    *("ECRGate", "CCXGate", "CCZGate", "CSwapGate", "RCCXGate"),
)
_WITH_ANGLES = {
    1: (
        *("PhaseGate", "U1Gate", "RXGate", "RYGate", "RZGate", "CPhaseGate", "CU1Gate", "CRXGate", "CRYGate"),
        *("CRZGate", "RXXGate", "RYYGate", "RZZGate", "RZXGate", "GlobalPhaseGate"),
    ),
    2: ("U2Gate", "RGate", "XXPlusYYGate", "XXMinusYYGate"),
    3: ("UGate", "U3Gate", "CU3Gate"),
    4: ("CUGate",),
}
# Instructions on any number of qubits, which the target takes as classes.
_ANY_WIDTH = {
    "unitary": UnitaryGate,
    "diagonal": DiagonalGate,
    "pauli": PauliGate,
    "permutation": PermutationGate,
    "PauliEvolution": PauliEvolutionGate,
    "mcx": gates.MCXGate,
    "mcphase": gates.MCPhaseGate,
    "barrier": Barrier,
    "if_else": IfElseOp,
    "for_loop": ForLoopOp,
    "switch_case": SwitchCaseOp,
    "while_loop": WhileLoopOp,
    "break_loop": BreakLoopOp,
    "continue_loop": ContinueLoopOp,
    "initialize": Initialize,
    "kraus": Instruction,
    "quantum_channel": Instruction,
    **dict.fromkeys((*SAVES, *SETS), Instruction),
}


def largest_state(bytes_per_amplitude: int) -> int:
    """Return the number of qubits whose state fits into this machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (memory // bytes_per_amplitude).bit_length() - 1


def _instructions() -> list[Instruction]:
    found: list[Instruction] = [getattr(gates, name)() for name in _PLAIN]
    for number, names in _WITH_ANGLES.items():
        angles = [Parameter(f"angle{k}") for k in range(number)]
        found += [getattr(gates, name)(*angles) for name in names]
    return [*found, Measure(), Reset(), Delay(Parameter("t"))]


def make_target(qubits: int, basis: frozenset[str] | None = None) -> Target:
    """Make a target with all gates, or those of a basis, between all qubits, and with all other instructions."""
    target = Target(description="onehop_simulator", num_qubits=qubits)
    for name, one in {**{one.name: one for one in _instructions()}, **_ANY_WIDTH}.items():
        is_gate = issubclass(one if isinstance(one, type) else type(one), Gate) and name != "global_phase"
        if basis is None or name in basis or not is_gate:
            target.add_instruction(one, name=name)
    return target
