"""`run_program`: a program of operations and steps on a state vector or on a density matrix."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum.circuit import Operation
from onehop.quantum.noise.channel import Channel
from onehop.quantum.noise.density_matrix import DensityMatrix
from onehop.quantum.noise.histories import Histories, has_gates_only
from onehop.quantum.noise.model import NoiseModel
from onehop.quantum.noise.noisy_run import ChannelStep, Item, Mixed, Pure
from onehop.quantum.noise.saved import Saved, merge_saved
from onehop.quantum.noise.superoperators import usable_group
from onehop.quantum.noise.trajectories import Trajectories
from onehop.quantum.state import State
from onehop.quantum.steps import Apply, Misread, Program, SetState

__all__ = ["METHODS", "ProgramResult", "run_program"]

METHODS = ("statevector", "density_matrix")


@dataclass
class ProgramResult:
    """The result of a program; the same on every rank.

    Attributes
    ----------
    bits : array of uint8, shape (shots, clbits)
        Classical bits of each shot.
    saved : dict from str to Saved
        Saved data by label.
    seconds, ranks, bytes_moved
        As for `Result`.
    """

    bits: NDArray[np.uint8]
    saved: dict[str, Saved]
    seconds: float
    ranks: int
    bytes_moved: int


def run_program(
    program: Program,
    group: Group | None = None,
    *,
    method: str = "statevector",
    shots: int = 1,
    seed: int = 0,
    precision: str = "double",
) -> ProgramResult:
    """Run a program from |0...0>. Collective.

    Shots whose random choices agree share a run. On a density matrix only the outcomes of measurements inside the
    program are random.

    Parameters
    ----------
    program : Program
        Program to run.
    group : Group, optional
        As for `simulate`.
    method : str
        "statevector" or "density_matrix".
    shots : int
        Number of shots, at least 1.
    seed : int
        The same seed gives the same shots on every number of ranks.
    precision : str
        As for `simulate`.

    Raises
    ------
    BadInput
        The circuit is invalid, the method is unknown, a channel does not preserve the trace, or a step needs the other
        method.
    Error
        The memory does not suffice, or a loop makes too many turns.
    """
    if method not in METHODS:
        raise BadInput(f"expected the method {' or '.join(METHODS)}, found {method!r}")
    circuit = program.circuit
    circuit.validate()
    circuit.require_bound()
    items = _prepared(program)
    noise = NoiseModel()
    for qubit, one_for_zero, zero_for_one in program.readout:
        noise.readout(one_for_zero, zero_for_one, qubits=[qubit])
    group = group or Group.alone()
    begin = time.perf_counter()
    if method == "statevector" and program.steps and has_gates_only(circuit, items, resets=True):
        found = Histories.of(
            circuit,
            noise,
            group,
            trajectories=shots,
            shots=shots,
            seed=seed,
            precision=precision,
            sums=(),
            threads=0,
            memory=0,
            items=items,
        )
        return ProgramResult(found.bits, {}, found.core.seconds, found.core.ranks, found.core.bytes_moved)
    mixed = method == "density_matrix"
    backend = _backend(program, items, group, precision, mixed=mixed)
    simulation = Trajectories(backend, circuit, noise, shots, shots, seed, (), items)
    while simulation.open:
        simulation.branch(simulation.open.pop())
    sent = group.allgather(np.int64(backend.state.bytes_sent).tobytes())
    return ProgramResult(
        simulation.bits,
        merge_saved(simulation.saved, circuit.clbits, mixed),
        time.perf_counter() - begin,
        backend.state.ranks,
        sum(int(np.frombuffer(one, np.int64)[0]) for one in sent),
    )


def _prepared(program: Program) -> list[Item]:
    """List the items of a program with checked channels. Steps with the same Kraus operators share a channel."""
    channels: dict[int, Channel] = {}
    items: list[Item] = []
    for item in program.items():
        if isinstance(item, Apply):
            channel = channels.get(id(item.kraus)) or Channel(item.kraus, item.name)
            channels[id(item.kraus)] = channel
            if channel.qubits != len(item.qubits):
                raise BadInput(f"{item.name}: expected {channel.qubits} qubits, found {item.qubits}")
            items.append(ChannelStep(channel, item.qubits, item.condition))
        elif isinstance(item, Misread) and item.table.shape != (1 << len(item.clbits),) * 2:
            raise BadInput(f"expected a readout error of {len(item.clbits)} bits, found {item.table.shape}")
        elif isinstance(item, SetState):
            items.append(SetState(_in_order(item, program.circuit.qubits), item.qubits, item.condition))
        else:
            items.append(item)
    return items


def _in_order(step: SetState, qubits: int) -> NDArray[np.complex128]:
    """Return the values of a state with qubit 0 as the least significant bit."""
    size = 1 << qubits
    if step.values.shape not in ((size,), (size, size)) or sorted(step.qubits) != list(range(qubits)):
        raise BadInput(f"expected a state of {qubits} qubits, found an array of shape {step.values.shape}")
    index = np.arange(size)
    source = np.zeros_like(index)
    for bit, qubit in enumerate(step.qubits):
        source |= (index >> qubit & 1) << bit
    return step.values[source] if step.values.ndim == 1 else step.values[np.ix_(source, source)]


def _backend(
    program: Program, items: list[Item], group: Group, precision: str, *, mixed: bool
) -> Mixed | Pure:
    gates = [
        (item.channel, item.qubits) if isinstance(item, ChannelStep) else item
        for item in items
        if isinstance(item, ChannelStep) or (isinstance(item, Operation) and item.is_gate)
    ]
    qubits = program.circuit.qubits
    per_host = _core.ranks_per_host(group)
    part = usable_group(gates, qubits, group, mixed=mixed)
    if mixed:
        backend: Mixed | Pure = Mixed(DensityMatrix(qubits, part, precision=precision))
    else:
        backend = Pure(State(qubits, part, precision=precision))
    backend.state._core.ranks_per_host = per_host
    return backend
