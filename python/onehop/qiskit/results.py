"""Results of Qiskit: counts, memory, and saved data as objects of Qiskit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qiskit import QuantumCircuit
from qiskit.quantum_info import DensityMatrix, Statevector
from qiskit.result import ProbDistribution
from qiskit.result.models import ExperimentResult, ExperimentResultData

from onehop import _core
from onehop.qiskit.active import active_qubits
from onehop.quantum.noise.core_program import Saved
from onehop.quantum.run.task import Outcome, Task
from onehop.quantum.steps import Program

_SMALLEST = 1e-10  # numbers below this are left out of dictionaries


def experiment_result(
    circuit: QuantumCircuit, outcome: Outcome, task: Task, *, keep_memory: bool
) -> ExperimentResult:
    """Make the result of one circuit."""
    names = [hex(value) for value in outcome.values]
    data = {label: saved_data(one) for label, one in outcome.saved.items()}
    if circuit.num_clbits:
        data["counts"] = {name: int(number) for name, number in zip(names, outcome.counts, strict=True)}
        data["memory"] = [names[place] for place in outcome.of_shot] if keep_memory else None
    return ExperimentResult(
        shots=task.shots,
        success=True,
        data=ExperimentResultData(**data),
        status="DONE",
        seed=task.seed,
        seed_simulator=task.seed,
        header={
            "name": circuit.name,
            "n_qubits": circuit.num_qubits,
            "memory_slots": circuit.num_clbits,
            "creg_sizes": _register_sizes(circuit),
            "qreg_sizes": [[register.name, register.size] for register in circuit.qregs],
            "global_phase": float(circuit.global_phase),
            "metadata": circuit.metadata or {},
        },
        metadata={
            "method": task.method,
            "device": "CPU",
            "precision": task.precision,
            "num_qubits": task.circuit.qubits,
            "active_input_qubits": active_qubits(circuit) or list(range(circuit.num_qubits)),
            "measure_sampling": _is_sampled(task),
        },
        time_taken=max(outcome.seconds, 1e-9),
        ranks=outcome.ranks,
        bytes_moved=outcome.bytes_moved,
    )


def _register_sizes(circuit: QuantumCircuit) -> list[list[Any]]:
    """List the classical registers, at whose sizes Qiskit cuts outcomes; none if a bit is in no register."""
    if {bit for register in circuit.cregs for bit in register} != set(circuit.clbits):
        return []
    return [[register.name, register.size] for register in circuit.cregs]


def _is_sampled(task: Task) -> bool:
    """Whether all shots are samples of one final state."""
    program = task.program or Program(task.circuit)
    if task.method == "statevector" and "channel" in program.kinds:
        return False
    return _core.Program(program.circuit).has_gates_only


def saved_data(saved: Saved) -> Any:
    """Convert saved data to the form that qiskit-aer gives: states, arrays, numbers, or dictionaries of them."""
    make = _MAKERS.get(saved.kind, np.asarray)
    groups: dict[str, Any] = {}
    for key, values in saved.groups.items():
        made = [make(value) for value in values]
        groups[key] = made if saved.mode == "list" else made[0]
    return groups if saved.conditional else groups.get("", [])


def _ket(values: NDArray[np.complex128]) -> dict[str, complex]:
    return {hex(place): complex(values[place]) for place in np.flatnonzero(np.abs(values) > _SMALLEST)}


def _distribution(values: NDArray[np.float64]) -> ProbDistribution:
    return ProbDistribution(
        {hex(place): float(values[place]) for place in np.flatnonzero(values > _SMALLEST)}
    )


_MAKERS: dict[str, Callable[[NDArray[Any]], Any]] = {
    "statevector": Statevector,
    "statevector_dict": _ket,
    "density_matrix": DensityMatrix,
    "probabilities_dict": _distribution,
    "expval": float,
}
