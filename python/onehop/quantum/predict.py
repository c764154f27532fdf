"""Predict how long a circuit would take, from a short trial of its own gates."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from onehop.cores import usable_cores
from onehop.group import Group
from onehop.quantum.circuit import Circuit, Operation
from onehop.quantum.noise.superoperators import moved
from onehop.quantum.simulator import CircuitPlan
from onehop.quantum.state import State

__all__ = ["predict"]

_QUBITS = 21  # of a trial, at most: more than the caches hold, soon done
_FEWER = 2  # than a rank's share has
_BUDGET = 0.08  # seconds of gates
_FIRST = 64  # gates


def predict(circuit_plan: CircuitPlan, group: Group | None = None) -> float:
    """About how many seconds a run takes, without drawing shots and without observables.

    Some gates from the middle of the circuit, more and more until their time can be read, run on a small state of this
    machine. Their time, the time to get that state's memory, and the time of a copy of it for each exchange are taken
    larger by as much as the circuit and a rank's share are.

    Parameters
    ----------
    circuit_plan : CircuitPlan
    group : Group, optional
        The ranks that will run it, of which all call this at once: collective then, and the answer is that of the
        slowest. Without it all cores of this machine are taken to work for the ranks that share it.
    """
    local = circuit_plan.placement.local_bits
    gates = [moved(one, 0, conjugate=False) for one in circuit_plan.circuit.operations if one.is_gate]
    widest = max((len(one.targets) for one in gates if one.kind != "pauli_rotation"), default=1)
    qubits = max(1, min(_QUBITS, local - _FEWER), min(widest, local))
    if group is not None:
        group.barrier()
        threads = _share_of_cores(len(group.local_ranks))
    else:
        threads = 0
    begin = time.perf_counter()
    state = State(qubits, precision=circuit_plan.precision, threads=threads)
    state.set_basis_state(0)
    beginning = time.perf_counter() - begin
    of_gates = _time(state, gates)
    exchanging = circuit_plan.bytes_per_rank * _seconds_per_byte_swapped()
    larger = 2.0 ** (local - qubits)
    if group is None:
        # The trial had all cores; memory is given and bytes are moved by each rank on one of them.
        turns = circuit_plan.ranks_per_node / min(circuit_plan.ranks_per_node, usable_cores())
        return of_gates * larger * circuit_plan.ranks_per_node + (beginning * larger + exchanging) * turns
    mine = (of_gates + beginning) * larger + exchanging
    return max(float(one) for one in group.allgather(repr(mine).encode()))


def _share_of_cores(ranks: int) -> int:
    return max(1, usable_cores() // ranks)


def _time(state: State, gates: Sequence[Operation]) -> float:
    """Seconds that all the gates would take on this state."""
    if not gates:
        return 0.0
    number = min(_FIRST, len(gates))
    while True:
        first = (len(gates) - number) // 2
        circuit = Circuit(state.qubits)
        for gate in gates[first : first + number]:
            _add_folded(circuit, gate)
        begin = time.perf_counter()
        state._core.apply(circuit, 0)
        seconds = time.perf_counter() - begin
        if number == len(gates) or seconds > _BUDGET:
            return seconds * len(gates) / number
        number = min(len(gates), 2 * number)


def _add_folded(circuit: Circuit, gate: Operation) -> None:
    """Add a gate to a smaller circuit: qubits that do not exist begin again at 0, and what has no place is left out."""
    targets, paulis = list(gate.targets), gate.paulis
    if gate.kind == "pauli_rotation":
        targets, paulis = targets[: circuit.qubits], paulis[: circuit.qubits]
    if len(targets) > circuit.qubits:
        return
    controls = gate.controls[: circuit.qubits - len(targets)]
    taken: list[int] = []
    for qubit in [*targets, *controls]:
        place = qubit % circuit.qubits
        while place in taken:
            place = (place + 1) % circuit.qubits
        taken.append(place)
    folded = Operation(
        gate.kind,
        gate.name,
        taken[: len(targets)],
        controls=taken[len(targets) :],
        control_values=gate.control_values & ((1 << len(controls)) - 1),
        values=np.array(gate.values) if len(gate.values) else None,
        paulis=paulis,
        angle=gate.angle,
    )
    circuit.add(folded)


def _seconds_per_byte_swapped() -> float:
    """To read and write a byte here and another one there."""
    block = np.ones(1 << 21)
    other = np.empty_like(block)
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        np.copyto(other, block)
        times.append(time.perf_counter() - begin)
    return 2 * min(times) / block.nbytes
