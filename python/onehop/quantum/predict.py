"""Prediction of the time that a circuit would take, from a short trial of its own gates."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from onehop.cores import usable_cores
from onehop.group import Group
from onehop.quantum.circuit import Circuit, Condition, Operation
from onehop.quantum.circuit_plan import CircuitPlan
from onehop.quantum.state import State

_MAX_QUBITS = 21  # of the trial: larger than the caches, but fast
_FEWER_QUBITS = 2  # so many fewer than a rank's share has
_TRIAL_SECONDS = 0.08  # the trial takes more gates until it lasts this long
_FIRST_GATES = 64  # number of gates of the first trial


def predict(circuit_plan: CircuitPlan, group: Group | None = None, *, sweeps: int = 1) -> float:
    """Predict the time of a run, without sampling and observables.

    Gates from the middle of the circuit run on a small state on this machine, more and more of them until their time
    is measurable. The prediction scales this time by the number of gates and the size of a rank's share, and adds the
    scaled time to allocate the state and the time to copy the bytes of the exchanges. With a group, the result is that
    of its slowest rank; otherwise the ranks of this machine share its cores.
    """
    local = circuit_plan.placement.local_bits
    gates = [one for one in circuit_plan.circuit.operations if one.is_gate]
    for one in gates:
        one.condition = Condition([], 0)
    widest = max((len(one.targets) for one in gates if one.kind != "pauli_rotation"), default=1)
    qubits = max(1, min(_MAX_QUBITS, local - _FEWER_QUBITS), min(widest, local))
    if group is not None:
        group.barrier()
        threads = _share_of_cores(len(group.local_ranks))
    else:
        threads = 0
    begin = time.perf_counter()
    state = State(qubits, precision=circuit_plan.precision, threads=threads)
    state.set_basis_state(0)
    allocation_seconds = time.perf_counter() - begin
    gate_seconds = _time(state, gates)
    exchange_seconds = circuit_plan.bytes_per_rank * _seconds_per_byte_swapped()
    scale = sweeps * 2.0 ** (local - qubits)
    if group is None:
        # The trial used all cores, but each rank allocates and exchanges on one core.
        turns = circuit_plan.ranks_per_node / min(circuit_plan.ranks_per_node, usable_cores())
        others = (allocation_seconds * scale + exchange_seconds) * turns
        return gate_seconds * scale * circuit_plan.ranks_per_node + others
    mine = (gate_seconds + allocation_seconds) * scale + exchange_seconds
    return max(float(one) for one in group.allgather(repr(mine).encode()))


def _share_of_cores(ranks: int) -> int:
    return max(1, usable_cores() // ranks)


def _time(state: State, gates: Sequence[Operation]) -> float:
    """Return the seconds that all the gates would take on this state, measured with some of them."""
    if not gates:
        return 0.0
    number = min(_FIRST_GATES, len(gates))
    while True:
        first = (len(gates) - number) // 2
        circuit = Circuit(state.qubits)
        for gate in gates[first : first + number]:
            _add_folded(circuit, gate)
        begin = time.perf_counter()
        state._core.apply(circuit, 0)
        seconds = time.perf_counter() - begin
        if number == len(gates) or seconds > _TRIAL_SECONDS:
            return seconds * len(gates) / number
        number = min(len(gates), 2 * number)


def _add_folded(circuit: Circuit, gate: Operation) -> None:
    """Add a gate to a smaller circuit. Qubit numbers wrap around, and targets or controls in excess are dropped."""
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
    """Measure the time to copy a byte in both directions, as an exchange between two ranks does."""
    block = np.ones(1 << 21)
    other = np.empty_like(block)
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        np.copyto(other, block)
        times.append(time.perf_counter() - begin)
    return 2 * min(times) / block.nbytes
