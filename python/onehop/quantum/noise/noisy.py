"""Simulation of circuits with noise, on a density matrix or as trajectories of a state vector."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onehop import _core
from onehop.arguments import instance, whole_number
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum.circuit import Circuit, Operation
from onehop.quantum.circuit_plan import CircuitPlan, MemoryPlan, plan_matrices, plan_memory
from onehop.quantum.noise.channel import Channel
from onehop.quantum.noise.density_matrix import DensityMatrix
from onehop.quantum.noise.histories import Histories, has_gates_only
from onehop.quantum.noise.model import NoiseModel, warn_without
from onehop.quantum.noise.noisy_run import Mixed, Pure
from onehop.quantum.noise.superoperators import on_rows_and_columns, usable_group
from onehop.quantum.noise.trajectories import Trajectories
from onehop.quantum.observables import PauliSum, sums_of
from onehop.quantum.random_numbers import common_seed
from onehop.quantum.state import State

__all__ = ["NoisyResult", "plan_density", "simulate_density", "simulate_trajectories"]


@dataclass
class NoisyResult:
    """The result of a simulation with noise; the same on every rank.

    Attributes
    ----------
    shots, seed, seconds, ranks, exchanges, bytes_moved, bytes_between_hosts
        As for `Result`.
    counts : dict from str to int
        As for `Result`.
    expectations : list of float or complex
        Value of each observable, averaged over the trajectories.
    errors : list of float
        Standard error of each average; 0 for a density matrix without measurements inside the circuit.
    runs : int
        Number of distinct records of measurement outcomes and noise; each is run once.
    state : State, DensityMatrix or None
        State after a run, the only one if `runs` is 1. None on a rank that computed no trajectory.
    resumed : bool
        Always False: noisy simulations have no checkpoints.
    """

    shots: int
    seed: int
    counts: dict[str, int]
    expectations: list[float | complex]
    errors: list[float]
    seconds: float
    ranks: int
    runs: int
    exchanges: int
    bytes_moved: int
    state: State | DensityMatrix | None = field(repr=False)
    resumed: bool = False
    bytes_between_hosts: int = 0


def _items(circuit: Circuit, noise: NoiseModel) -> list[Operation | tuple[Channel, list[int]]]:
    """List the gates of a circuit, ignoring conditions, each followed by its noise."""
    items: list[Operation | tuple[Channel, list[int]]] = []
    for operation in circuit.operations:
        if operation.is_gate:
            items += [operation, *noise.after(operation)]
    return items


def _checked(
    circuit: Circuit,
    group: Group,
    trajectories: int,
    shots: int,
    seed: int | None,
    observables: Sequence[Any],
) -> tuple[list[PauliSum], int]:
    """Check the arguments of a simulation; return the observables and the seed, the same on every rank."""
    circuit.validate()
    circuit.require_bound()
    whole_number(shots, "shots", 0, 1 << 31)
    whole_number(trajectories, "trajectories", 1)
    sums = sums_of(observables)
    for one in sums:
        one.require(circuit.qubits)
    return sums, common_seed(seed, group)


def _simulate(
    mixed: bool,
    make: Callable[[Group], Mixed | Pure],
    circuit: Circuit,
    noise: NoiseModel | None,
    group: Group,
    trajectories: int,
    shots: int,
    seed: int | None,
    observables: Sequence[Any],
) -> NoisyResult:
    noise = noise or NoiseModel()
    sums, seed = _checked(circuit, group, trajectories, shots, seed, observables)
    begin = time.perf_counter()
    # The hosts of the whole group, so that all parts of it place the gates alike.
    per_host = _core.ranks_per_host(group)
    group = usable_group(_items(circuit, noise), circuit.qubits, group, mixed=mixed)
    backend = make(group)
    backend.state._core.ranks_per_host = per_host
    simulation = Trajectories(backend, circuit, noise, trajectories, shots, seed, sums)
    runs = 0
    while simulation.open:
        simulation.branch(simulation.open.pop())
        runs += 1
    expectations, errors = simulation.averages()
    counters = np.array([backend.state.bytes_sent, backend.state.bytes_between_hosts], np.int64)
    sent, between = sum(np.frombuffer(one, np.int64) for one in group.allgather(counters.tobytes()))
    return NoisyResult(
        shots=shots,
        seed=seed,
        counts=simulation.counts(),
        expectations=expectations,
        errors=errors,
        seconds=time.perf_counter() - begin,
        ranks=backend.state.ranks,
        runs=runs,
        exchanges=backend.state.exchanges,
        bytes_moved=int(sent),
        bytes_between_hosts=int(between),
        state=backend.target,
    )


def _result_of(found: Histories, shots: int, seed: int) -> NoisyResult:
    expectations, errors = found.averages()
    core = found.core
    state = core.take_state()
    return NoisyResult(
        shots=shots,
        seed=seed,
        counts=found.counts(),
        expectations=expectations,
        errors=errors,
        seconds=core.seconds,
        ranks=core.ranks,
        runs=found.runs,
        exchanges=core.exchanges,
        bytes_moved=core.bytes_moved,
        bytes_between_hosts=core.bytes_between_hosts,
        state=None if state is None else State._of(state),
    )


def plan_density(
    circuit: Circuit,
    ranks: int = 1,
    precision: str = "double",
    *,
    noise: NoiseModel | None = None,
    ranks_per_node: int | None = None,
    ranks_per_host: int | None = None,
) -> CircuitPlan:
    """Plan `simulate_density`: the memory and the exchanges that it would take.

    A circuit with measurements inside runs once for each measurement record, in pieces between the measurements. The
    plan is for one run in one piece.

    Parameters
    ----------
    circuit, ranks, precision, ranks_per_node, ranks_per_host
        As for `plan`.
    noise : NoiseModel, optional
        Channels after the gates. Default: no noise.

    Raises
    ------
    BadInput
        As for `plan`.
    """
    instance(circuit, Circuit, "circuit").validate()
    both = on_rows_and_columns(_items(circuit, noise or NoiseModel()), circuit.qubits)
    planned = plan_matrices(both, ranks, precision, ranks_per_node, 0, ranks_per_host)
    return replace(planned, qubits=circuit.qubits, kind="density matrix")


def plan_density_memory(
    circuit: Circuit, ranks: int, precision: str, noise: NoiseModel, ranks_per_node: int | None
) -> MemoryPlan:
    """Compute the ranks and the memory of `simulate_density`, without a placement; arguments as for `plan_density`."""
    circuit.validate()
    both = on_rows_and_columns(_items(circuit, noise), circuit.qubits)
    needed = plan_memory(both, ranks, precision, ranks_per_node)
    return replace(needed, qubits=circuit.qubits, kind="density matrix")


def simulate_density(
    circuit: Circuit,
    group: Group | None = None,
    *,
    noise: NoiseModel | None = None,
    shots: int = 0,
    seed: int | None = None,
    precision: str = "double",
    observables: Sequence[Any] = (),
    threads: int = 0,
) -> NoisyResult:
    """Run a circuit with noise from |0...0> on a density matrix. Collective.

    Expectation values are exact unless the circuit contains measurements that other operations follow; the records of
    those are sampled, once per shot.

    Parameters
    ----------
    circuit, group, shots, seed, precision, observables, threads
        As for `simulate`.
    noise : NoiseModel, optional
        Channels after the gates, and readout errors. Default: no noise.

    Raises
    ------
    BadInput, Error
        As for `simulate`.
    """
    group = _checked_group(circuit, noise, group)
    warn_of_gates(circuit, noise, group)
    return density_result(circuit, group, noise, shots, seed, precision, observables, threads)


def density_result(
    circuit: Circuit,
    group: Group,
    noise: NoiseModel | None,
    shots: int,
    seed: int | None,
    precision: str,
    observables: Sequence[Any],
    threads: int,
) -> NoisyResult:
    """Do what `simulate_density` does, without a warning."""
    return _simulate(
        True,
        lambda part: Mixed(DensityMatrix(circuit.qubits, part, precision=precision, threads=threads)),
        circuit,
        noise,
        group,
        max(whole_number(shots, "shots", 0, 1 << 31), 1),
        shots,
        seed,
        observables,
    )


def _checked_group(circuit: Circuit, noise: NoiseModel | None, group: Group | None) -> Group:
    """Check the classes of arguments; return the group."""
    instance(circuit, Circuit, "circuit")
    if noise is not None:
        instance(noise, NoiseModel, "noise")
    return Group.alone() if group is None else instance(group, Group, "group")


def warn_of_gates(circuit: Circuit, noise: NoiseModel | None, group: Group) -> None:
    """Warn on rank 0 about the gates of a circuit without noise."""
    if noise is not None and group.rank == 0:
        warn_without(noise.without(circuit))


def simulate_trajectories(
    circuit: Circuit,
    group: Group | None = None,
    *,
    noise: NoiseModel | None = None,
    trajectories: int = 1000,
    shots: int | None = None,
    seed: int | None = None,
    precision: str = "double",
    observables: Sequence[Any] = (),
    threads: int = 0,
    memory: int = 0,
) -> NoisyResult:
    """Run a circuit with noise from |0...0> many times on a state vector. Collective.

    Each trajectory samples one Kraus operator of each channel; equal trajectories run once. The same seed gives the
    same trajectories on every number of ranks.

    Trajectories of a circuit without measurements inside share the beginning of their runs, and different ranks and
    threads compute different ones wherever a few states fit into the memory of a rank. Otherwise a state is split over
    the ranks.

    Parameters
    ----------
    circuit, group, seed, precision, observables, threads
        As for `simulate`.
    noise : NoiseModel, optional
        Channels after the gates, and readout errors. Default: no noise.
    trajectories : int
        Number of trajectories. Statistical errors fall as one over its square root.
    shots : int, optional
        Number of shots; shot s is drawn at the end of trajectory s modulo their number. Default: one per trajectory.
    memory : int
        Bytes of each rank for states. Default: half of what is available.

    Raises
    ------
    BadInput, Error
        As for `simulate`.
    """
    if memory < 0:
        raise BadInput(f"expected memory of 0 or more bytes, found {memory}")
    group = _checked_group(circuit, noise, group)
    warn_of_gates(circuit, noise, group)
    if has_gates_only(circuit, resets=True):
        shots = trajectories if shots is None else shots
        sums, seed = _checked(circuit, group, trajectories, shots, seed, observables)
        found = Histories.of(
            circuit,
            noise or NoiseModel(),
            group,
            trajectories=trajectories,
            shots=shots,
            seed=seed,
            precision=precision,
            sums=sums,
            threads=threads,
            memory=memory,
        )
        return _result_of(found, shots, seed)
    return _simulate(
        False,
        lambda group: Pure(State(circuit.qubits, group, precision=precision, threads=threads)),
        circuit,
        noise,
        group,
        trajectories,
        trajectories if shots is None else shots,
        seed,
        observables,
    )
