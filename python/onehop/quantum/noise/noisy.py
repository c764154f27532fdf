"""Circuits with noise: on density matrices, or as many trajectories of a state vector."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum.circuit import Circuit, Operation
from onehop.quantum.noise.channel import Channel, NoiseModel
from onehop.quantum.noise.density_matrix import DensityMatrix
from onehop.quantum.noise.noisy_run import Mixed, Pure
from onehop.quantum.noise.superoperators import moved, on_rows_and_columns
from onehop.quantum.noise.trajectories import Trajectories
from onehop.quantum.observables import PauliSum
from onehop.quantum.simulator import CircuitPlan, plan_matrices
from onehop.quantum.state import State

__all__ = ["NoisyResult", "plan_density", "simulate_density", "simulate_trajectories"]


@dataclass
class NoisyResult:
    """What a simulation with noise came to; the same on every rank.

    Attributes
    ----------
    shots, seed, ranks, exchanges, bytes_moved
        As of `Result`.
    counts : dict from str to int
        As of `Result`.
    expectations : list of float or complex
        Of each observable; with trajectories the average over them.
    errors : list of float
        The standard error of each average: 0 for a density matrix without measurements inside.
    runs : int
        Number of distinct records of measurement outcomes and noise; each is run once.
    state : State or DensityMatrix
        After the last run.
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
    state: State | DensityMatrix = field(repr=False)
    resumed: bool = False


def _items(circuit: Circuit, noise: NoiseModel) -> list[Operation | tuple[Channel, list[int]]]:
    """The gates of a circuit, whatever their conditions are, each with the noise that follows it."""
    items: list[Operation | tuple[Channel, list[int]]] = []
    for operation in circuit.operations:
        if operation.is_gate:
            items += [operation, *noise.after(operation)]
    return items


def _usable(circuit: Circuit, noise: NoiseModel, group: Group, *, mixed: bool) -> Group:
    """The ranks that a circuit can be split over: fewer than there are if it is small; parts repeat what others do."""
    items = _items(circuit, noise)
    if mixed:
        largest = on_rows_and_columns(items, circuit.qubits)
    else:
        largest = Circuit(circuit.qubits)
        for item in items:
            if isinstance(item, Operation):
                largest.add(moved(item, 0, conjugate=False))
            else:  # all its qubits may have to be local
                largest.add(Operation("matrix", "channel", item[1], values=_full(item[0].qubits)))
    ranks = _core.usable_ranks(largest, group.size)
    if ranks == group.size or group.size & (group.size - 1):
        return group
    return Group(group.split(group.rank // ranks, group.rank % ranks))


def _full(qubits: int) -> NDArray[np.complex128]:
    return np.ones(4**qubits, complex)


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
    circuit.validate()
    if shots < 0 or trajectories < 1:
        raise BadInput(f"expected 0 shots or more and a trajectory, found {shots} and {trajectories}")
    sums = [PauliSum.of(one) for one in observables]
    for one in sums:
        one.require(circuit.qubits)
    if seed is None:
        seed = int.from_bytes(group.allgather(secrets.token_bytes(6))[0], "little")
    begin = time.perf_counter()
    noise = noise or NoiseModel()
    group = _usable(circuit, noise, group, mixed=mixed)
    backend = make(group)
    simulation = Trajectories(backend, circuit, noise, trajectories, shots, seed, sums)
    runs = 0
    while simulation.open:
        simulation.branch(simulation.open.pop())
        runs += 1
    expectations, errors = simulation.averages()
    sent = sum(int(one) for one in group.allgather(str(backend.state.bytes_sent).encode()))
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
        bytes_moved=sent,
        state=backend.looks,
    )


def plan_density(
    circuit: Circuit,
    ranks: int = 1,
    precision: str = "double",
    *,
    noise: NoiseModel | None = None,
    ranks_per_node: int | None = None,
) -> CircuitPlan:
    """What `simulate_density` of a circuit needs and moves: arguments and errors as for `plan`.

    A circuit that measures inside runs once for each measurement record, in pieces between the measurements; the plan
    is of one run in one piece.
    """
    circuit.validate()
    both = on_rows_and_columns(_items(circuit, noise or NoiseModel()), circuit.qubits)
    planned = plan_matrices(both, ranks, precision, ranks_per_node, 0, keep_order=True)
    return replace(planned, qubits=circuit.qubits, kind="density matrix")


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
    """Run a circuit with noise from |0...0> on a density matrix. Collective; arguments as for `simulate`.

    Expectation values are exact, but for measurements inside the circuit, whose records are drawn.
    """
    return _simulate(
        True,
        lambda group: Mixed(DensityMatrix(circuit.qubits, group, precision=precision, threads=threads)),
        circuit,
        noise,
        group or Group.alone(),
        max(shots, 1),
        shots,
        seed,
        observables,
    )


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
) -> NoisyResult:
    """Run a circuit with noise from |0...0> many times on a state vector. Collective; arguments as for `simulate`.

    In each trajectory one Kraus operator of each channel is drawn; equal trajectories run once. The same seed gives the
    same trajectories on every number of ranks.

    Parameters
    ----------
    trajectories : int
        How many; errors of averages fall as one over its square root.
    shots : int, optional
        Shot s is drawn at the end of trajectory s modulo their number; one shot for each unless given.
    """
    return _simulate(
        False,
        lambda group: Pure(State(circuit.qubits, group, precision=precision, threads=threads)),
        circuit,
        noise,
        group or Group.alone(),
        trajectories,
        trajectories if shots is None else shots,
        seed,
        observables,
    )
