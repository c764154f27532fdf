"""`simulate` runs a circuit; `plan` computes the memory and the exchanges of a run beforehand."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop._core import Placement
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum.circuit import Circuit
from onehop.quantum.observables import PauliSum
from onehop.quantum.profile import Profile
from onehop.quantum.run.checkpoint import Checkpoints
from onehop.quantum.state import State, core_sum, real_where_real

__all__ = ["CircuitPlan", "Result", "plan", "result_of", "simulate"]

LARGEST_RANKS = 2**30  # the largest power of two that an `int` of C++ holds


@dataclass
class Result:
    """The result of a simulation; the same on every rank.

    Attributes
    ----------
    shots, seed : int
        Number of shots, and their seed.
    expectations : list of float or complex
        Expectation value of each observable, in their order; a float if the observable's coefficients are real.
    seconds : float
        Time for everything after the placement.
    ranks : int
        Number of ranks over which the state was split; fewer than the group has if the circuit is too small.
    runs : int
        Number of times the circuit ran: once, or once per measurement record if it contains measurements that other
        operations follow.
    exchanges : int
        Number of exchanges between ranks.
    bytes_moved : int
        Bytes that all ranks together have sent in the exchanges.
    bytes_between_hosts : int
        Part of these bytes that was sent from one host to another. Ranks that share memory are on one host.
    passes : float
        Number of passes over a rank's amplitudes.
    outcomes : Outcomes
        The distinct outcomes, their counts, and the outcome of each shot.
    """

    shots: int
    seed: int
    expectations: list[float | complex]
    seconds: float
    ranks: int
    runs: int
    exchanges: int
    bytes_moved: int
    passes: float
    state: State
    """The state after the last run, before the final measurements."""
    outcomes: _core.Outcomes = field(repr=False)
    _registers: tuple[_core.Register, ...] = field(repr=False, default=())
    resumed: bool = False
    """Whether the simulation resumed from a checkpoint; seconds, exchanges, bytes and passes count from there."""
    profile: Profile | None = field(repr=False, default=None)
    """The times of passes and exchanges, if `profile=True` was given."""
    bytes_between_hosts: int = 0

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of shots with each outcome.

        Outcomes are written as in Qiskit: classical bit 0 is the last character, and registers are separated by
        blanks, the first one last.
        """
        counts = self.outcomes.counts.tolist()
        return dict(zip(self._texts(), counts, strict=True))

    @cached_property
    def hex_counts(self) -> dict[str, int]:
        """Number of shots with each outcome, by hexadecimal numbers as in Qiskit's results."""
        return {hex(v): c for v, c in zip(self.outcomes.values, self.outcomes.counts.tolist(), strict=True)}

    @property
    def memory(self) -> list[str]:
        """Outcome of each shot as a hexadecimal number."""
        values = [hex(v) for v in self.outcomes.values]
        return [values[i] for i in self.outcomes.of_shot.tolist()]

    def shot_values(self) -> NDArray[Any]:
        """Return the outcome of each shot as a number.

        Returns
        -------
        array of uint64, or of Python integers for more than 64 classical bits, shape (shots,)
            Bit i is classical bit i.
        """
        values = self.outcomes.values
        kind: Any = np.uint64 if self.outcomes.clbits <= 64 else object
        return np.array(values, kind)[self.outcomes.of_shot] if values else np.array([], kind)

    def _texts(self) -> list[str]:
        """Format the distinct outcomes for `counts`. NumPy does the work, because there may be millions."""
        width = self.outcomes.clbits
        values = self.outcomes.values
        registers = self._registers if len(self._registers) > 1 else ()
        if width == 0 or not values:
            return [" " * max(len(registers) - 1, 0)] * len(values)
        octets = b"".join(value.to_bytes((width + 7) // 8, "little") for value in values)
        bits = np.frombuffer(octets, np.uint8).reshape(len(values), -1)
        bits = np.unpackbits(bits, axis=1, count=width, bitorder="little") + ord("0")
        columns: list[NDArray[Any]] = []
        if registers:
            blank = np.full((len(values), 1), ord(" "), np.uint8)
            for register in reversed(registers):
                columns += [blank, bits[:, register.first : register.first + register.size][:, ::-1]]
            bits = np.concatenate(columns[1:], axis=1)
        else:
            bits = bits[:, ::-1]
        text = np.ascontiguousarray(bits).tobytes().decode("ascii")
        length = bits.shape[1]
        return [text[i : i + length] for i in range(0, len(text), length)]


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """The ranks and the memory that a circuit would take; the attributes are those of `CircuitPlan`."""

    qubits: int
    ranks: int
    precision: str
    fits: bool
    memory_per_rank: int
    memory_in_all: int
    memory_available: int
    ranks_per_node: int
    kind: str = "state vector"


@dataclass(frozen=True, kw_only=True)
class CircuitPlan(MemoryPlan):
    """The memory and the exchanges that a circuit would take.

    As long as the plan lives, a simulation of the same circuit in this process uses its placement and makes no other.

    Attributes
    ----------
    qubits : int
        Number of qubits of the circuit.
    ranks : int
        Number of ranks over which the state is split; fewer than asked for if the circuit is too small.
    precision : str
        "double" or "single".
    operations : int
        Number of operations without swaps and without gates on fresh qubits, which cost nothing.
    fits : bool
        Whether the memory of this machine suffices for `ranks_per_node` of the ranks.
    memory_per_rank, memory_in_all : int
        Bytes of amplitudes and staging, per rank and for all ranks.
    memory_available : int
        Bytes that are available to the ranks of this machine together.
    exchanges : int
        Number of exchanges between ranks.
    bytes_per_rank : int
        Bytes that each rank sends in all exchanges.
    bytes_per_exchange : list of int
        Bytes that each rank sends in each exchange.
    baseline_bytes_per_rank : int
        Bytes that each rank would send if every gate on a bit of the rank number made its own exchange.
    one_swap_at_a_time_bytes_per_rank : int
        Bytes that each rank would send if every such qubit were swapped with a local one and back after the gate.
    passes : float
        Number of passes over a rank's amplitudes.
    ranks_per_host : int
        Number of ranks on each host for which the placement was made; 0: hosts have different numbers of ranks.
    bytes_by_level : dict of str to int
        Bytes that all ranks together send "inside hosts" and "between hosts"; empty if hosts have different numbers of
        ranks.
    placement : Placement
        Stages of the execution: exchanges, and the operations between them.
    circuit : Circuit
        Circuit that acts on the stored vector: the given one, or one on the rows and columns of a density matrix.
    ranks_per_node : int
        Number of ranks that share this machine.
    kind : str
        "state vector" or "density matrix".
    """

    operations: int
    exchanges: int
    bytes_per_rank: int
    bytes_per_exchange: list[int]
    baseline_bytes_per_rank: int
    one_swap_at_a_time_bytes_per_rank: int
    passes: float
    ranks_per_host: int
    bytes_by_level: dict[str, int]
    placement: Placement = field(repr=False, compare=False)
    circuit: Circuit = field(repr=False, compare=False)


def plan(
    circuit: Circuit,
    ranks: int = 1,
    precision: str = "double",
    *,
    ranks_per_node: int | None = None,
    ranks_per_host: int | None = None,
    search_seconds: float = 1,
) -> CircuitPlan:
    """Compute the memory and the exchanges that a circuit would take, without running it.

    Parameters
    ----------
    circuit : Circuit
        Circuit to plan.
    ranks : int
        Number of ranks, a power of two. The ranks need not exist.
    precision : str
        "double" or "single".
    ranks_per_node : int, optional
        Number of ranks that share this machine's memory. Default: all.
    ranks_per_host : int, optional
        Number of ranks on each host, a power of two. The placement prefers exchanges that stay inside a host, as a
        simulation on such hosts does. 0: hosts have different numbers of ranks. Default: `ranks_per_node`.
    search_seconds : float
        Approximate time in seconds to search for a placement that moves fewer bytes; 0 uses the heuristic alone.

    Raises
    ------
    BadInput
        The circuit is invalid, or the number of ranks or of ranks on each host is no power of two.
    """
    circuit.validate()
    memory = plan_memory(circuit, ranks, precision, ranks_per_node)
    per_host = _ranks_per_host(ranks, memory, ranks_per_node, ranks_per_host)
    placement = _core.place_simulation(
        circuit, memory.ranks, _amplitude_bytes(precision), search_seconds, per_host
    )
    return _with_placement(memory, circuit, placement, per_host)


def plan_matrices(
    circuit: Circuit,
    ranks: int,
    precision: str,
    ranks_per_node: int | None,
    search_seconds: float,
    ranks_per_host: int | None = None,
) -> CircuitPlan:
    """Plan to apply gates, whose matrices need not be unitary, to a state with qubit i at bit i.

    Arguments are as for `plan`.
    """
    memory = plan_memory(circuit, ranks, precision, ranks_per_node)
    per_host = _ranks_per_host(ranks, memory, ranks_per_node, ranks_per_host)
    placement = _core.place_applied(
        circuit,
        memory.ranks,
        _amplitude_bytes(precision),
        search_seconds,
        list(range(circuit.qubits)),
        per_host,
    )
    return _with_placement(memory, circuit, placement, per_host)


def _ranks_per_host(ranks: int, memory: MemoryPlan, ranks_per_node: int | None, asked: int | None) -> int:
    """Return the ranks on each host among those that the circuit uses; 0: hosts have different numbers of them."""
    if asked is None:
        asked = ranks if ranks_per_node is None else min(ranks_per_node, ranks)
        asked = asked if asked & (asked - 1) == 0 else 0
    if asked < 0 or asked & (asked - 1):
        raise BadInput(f"expected a number of ranks per host that is a power of two, or 0, found {asked}")
    return min(asked, memory.ranks)


def plan_memory(circuit: Circuit, ranks: int, precision: str, ranks_per_node: int | None) -> MemoryPlan:
    """Compute the ranks and the memory that a circuit would take, without placing it; arguments as for `plan`."""
    if ranks > LARGEST_RANKS:
        raise BadInput(f"expected at most {LARGEST_RANKS} ranks (2^30), found {ranks}")
    if ranks < 1 or ranks & (ranks - 1):
        fewer = 1 << max(ranks, 1).bit_length() - 1
        raise BadInput(
            f"expected a number of ranks that is a power of two, found {ranks}; take {fewer} or {2 * fewer}"
        )
    usable = _core.usable_ranks(circuit, ranks)
    local_ranks = usable if ranks_per_node is None else min(ranks_per_node, usable)
    need = _core.memory_need(circuit.qubits, usable, precision, local_ranks)
    return MemoryPlan(
        qubits=circuit.qubits,
        ranks=usable,
        precision=precision,
        fits=need.fits,
        memory_per_rank=need.per_rank,
        memory_in_all=need.in_all,
        memory_available=need.available,
        ranks_per_node=local_ranks,
    )


def _amplitude_bytes(precision: str) -> int:
    return 8 if precision == "single" else 16


def levels_of(inside: int, between: int) -> dict[str, int]:
    """Name the bytes that stay inside hosts and those that leave one."""
    return {"inside hosts": inside, "between hosts": between}


def _with_placement(
    memory: MemoryPlan, circuit: Circuit, placement: Placement, ranks_per_host: int
) -> CircuitPlan:
    share = _amplitude_bytes(memory.precision) << placement.local_bits
    baselines = placement.baselines
    levels = [one * placement.ranks for one in placement.bytes_by_level([max(ranks_per_host, 1)])]
    return CircuitPlan(
        **vars(memory),
        operations=_operations(circuit, placement),
        exchanges=placement.exchanges,
        bytes_per_rank=placement.bytes_per_rank,
        bytes_per_exchange=[round(s.fraction_moved * share) for s in placement.stages if s.swaps],
        baseline_bytes_per_rank=round(baselines["gate_by_gate"] * share),
        one_swap_at_a_time_bytes_per_rank=round(baselines["one_swap_at_a_time"] * share),
        passes=placement.passes(),
        ranks_per_host=ranks_per_host,
        bytes_by_level=levels_of(*levels) if ranks_per_host else {},
        placement=placement,
        circuit=circuit,
    )


def _operations(circuit: Circuit, placement: Placement) -> int:
    """Count the operations of a run with its final measurements, which the placement leaves out."""
    placed = {index for stage in placement.stages for index in stage.operations}
    measurements = (index for index, one in enumerate(circuit.operations) if one.kind == "measure")
    return len(placed.union(measurements))


def _simulate(
    circuit: Circuit, group: Group, options: dict[str, Any], checkpoints: Checkpoints | None
) -> Any:
    """Run the circuit, and keep and resume its checkpoints if there are any."""
    if checkpoints is None:
        return _core.simulate(circuit, group, **options)
    checkpoints.settings["seed"] = options["seed"]
    with checkpoints.signals():
        return _core.simulate(
            circuit,
            group,
            **options,
            due=checkpoints.due,
            keep=checkpoints.keep,
            resume=checkpoints.state(),
            restore=checkpoints.restore,
        )


def simulate(
    circuit: Circuit,
    group: Group | None = None,
    *,
    shots: int = 0,
    seed: int | None = None,
    precision: str = "double",
    observables: Sequence[Any] = (),
    threads: int = 0,
    staging: int = 0,
    search_seconds: float = 1,
    progress: Callable[[int, int, int, int], None] | None = None,
    checkpoint: str | Path | None = None,
    every: float = 600,
    profile: bool = False,
) -> Result:
    """Run a circuit from |0...0>. Collective; every rank gets the same result.

    Parameters
    ----------
    circuit : Circuit
        Circuit to run.
    group : Group, optional
        Ranks that hold the state, a power of two of them. Default: this process alone.
    shots : int
        Number of samples of the measurement outcomes. Millions cost little if no operation follows a measurement.
    seed : int, optional
        The same seed gives the same shots on every number of ranks. Default: a random seed.
    precision : str
        "double" or "single".
    observables : sequence of PauliSum or str
        Observables whose expectation values to compute, before the final measurements.
    threads : int
        Threads per rank; 0: the rank's share of the cores.
    staging : int
        Maximum number of bytes that an exchange buffers per partner; 0: 8 MiB.
    search_seconds : float
        Approximate time in seconds to search for a placement that moves fewer bytes; 0 uses the heuristic alone.
    progress : callable, optional
        Function `progress(done, total, run, shots_done)`, called on every rank: operations done and operations in
        all of the current run, the number of the run, and the number of finished shots. It may raise an exception to
        end the simulation.
    checkpoint : path, optional
        Save progress to this file (HDF5, needs h5py) periodically, on SIGUSR1, and on SIGTERM before the program ends.
        If the file exists, resume from it, on any number of ranks; the shots are the same. The caller removes the file
        after the run.
    every : float
        Time between checkpoints in seconds.
    profile : bool
        Record the time of each pass and exchange in `Result.profile`.

    Raises
    ------
    BadInput
        The circuit is invalid, the number of ranks is no power of two, an observable names a qubit that the circuit
        does not have, or the checkpoint is damaged or belongs to another simulation.
    Error
        The memory does not suffice. This is found out before anything runs.
    """
    group = group or Group.alone()
    sums = [PauliSum.of(o) for o in observables]
    checkpoints = None
    if checkpoint is not None:
        settings = {
            "seed": seed,
            "shots": shots,
            "precision": precision,
            "observables": [repr(s.terms) for s in sums],
        }
        checkpoints = Checkpoints(checkpoint, group, circuit, settings, every)
        seed = checkpoints.settings["seed"]
    if seed is None:
        # All ranks take the seed of rank 0.
        seed = int.from_bytes(group.allgather(secrets.token_bytes(6))[0], "little")
    options: dict[str, Any] = {
        "shots": shots,
        "seed": seed,
        "precision": precision,
        "observables": [core_sum(s) for s in sums],
        "threads": threads,
        "staging": staging,
        "search_seconds": search_seconds,
        "profile": profile,
        "progress": progress,
    }
    core = _simulate(circuit, group, options, checkpoints)
    time_profile = None
    if profile:
        pass_bytes = 2 * (8 if precision == "single" else 16) * 2**circuit.qubits // core.ranks
        time_profile = Profile.gather(
            group, core.ranks, core.profile, core.seconds, core.pass_seconds, pass_bytes
        )
    result = result_of(core, circuit, sums, shots, seed)
    result.resumed = checkpoints is not None and checkpoints.resumes
    result.profile = time_profile
    return result


def result_of(
    core: _core.SimulationResult, circuit: Circuit, sums: Sequence[PauliSum], shots: int, seed: int
) -> Result:
    """Convert the result of the library; `circuit` gives the classical registers."""
    return Result(
        shots=shots,
        seed=seed,
        expectations=real_where_real(sums, core.expectations),
        seconds=core.seconds,
        ranks=core.ranks,
        runs=core.runs,
        exchanges=core.exchanges,
        bytes_moved=core.bytes_moved,
        bytes_between_hosts=core.bytes_between_hosts,
        passes=core.passes,
        state=State._of(core.take_state()),
        outcomes=core.outcomes,
        _registers=circuit.registers,
    )
