"""`plan` computes the memory and the exchanges that a circuit would take, `predict` its time; neither runs it."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from onehop import _core
from onehop._core import Placement
from onehop.arguments import instance, whole_number
from onehop.cores import usable_cores
from onehop.error import BadInput, Error
from onehop.output import write_file
from onehop.quantum import notebook
from onehop.quantum.circuit import Circuit
from onehop.quantum.observables import PauliSum, core_sum

__all__ = ["CircuitPlan", "plan"]

LARGEST_STATE = 62  # qubits
LARGEST_RANKS = 2**30  # the largest power of two that an `int` of C++ holds


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
    largest_state_qubits: int


@dataclass(frozen=True, kw_only=True, repr=False)
class CircuitPlan(MemoryPlan):
    """The memory and the exchanges that a circuit would take.

    As long as the plan lives, a simulation of the same circuit in this process uses its placement and makes no other.

    Attributes
    ----------
    qubits : int
        Number of qubits of the circuit.
    largest_state_qubits : int
        Number of qubits of the largest state. Idle qubits are in no state, and qubits that no operation joins are in
        separate ones, which run one after the other. Memory, ranks and placement are those of the largest one.
    ranks : int
        Number of ranks over which the state is split; fewer than asked for if the circuit is too small.
    precision : str
        Precision of the amplitudes, as for `simulate`.
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
    parts : tuple of CircuitPlan
        Plans of the states if there are several.
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
    circuit: _core.Circuit = field(repr=False, compare=False)
    parts: tuple[CircuitPlan, ...] = field(default=(), repr=False, compare=False)

    @property
    def states(self) -> tuple[CircuitPlan, ...]:
        """Plans of the states."""
        return self.parts or (self,)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {notebook.plan_text(self)}>"

    def _repr_html_(self) -> str:
        return notebook.plan_html(self)


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
        Precision of the amplitudes, as for `simulate`.
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
    hosts = (ranks_per_node, ranks_per_host)
    return plan_states(circuit, ranks, precision, hosts, search_seconds=search_seconds)


def plan_states(
    circuit: Circuit,
    ranks: int,
    precision: str,
    hosts: tuple[int | None, int | None],
    *,
    search_seconds: float = 1,
    **storage: Any,
) -> CircuitPlan:
    """Plan as `plan` does; `hosts` are `ranks_per_node` and `ranks_per_host`, `storage` as for `stored_circuits`."""
    instance(circuit, Circuit, "circuit").validate()
    parts = stored_circuits(circuit, (ranks, precision, hosts[0]), **storage)
    if (most := max(one.qubits for one in parts)) > LARGEST_STATE:
        raise BadInput(f"expected a circuit whose largest state has at most 62 qubits, found one of {most}")
    found = _plan_parts(parts, ranks, precision, hosts, search_seconds)
    measured = sum(one.kind == "measure" for one in circuit.operations)
    return replace(found, qubits=circuit.qubits, operations=found.operations + measured)


def in_precision(
    circuit_plan: CircuitPlan, precision: str, hosts: tuple[int | None, int | None]
) -> CircuitPlan:
    """Plan the states of a plan in another precision; `hosts` as for `plan_states`."""
    parts = [one.circuit for one in circuit_plan.states]
    found = _plan_parts(parts, circuit_plan.ranks, precision, hosts, 1)
    return replace(found, qubits=circuit_plan.qubits, operations=circuit_plan.operations)


def _plan_parts(
    parts: list[_core.Circuit],
    ranks: int,
    precision: str,
    hosts: tuple[int | None, int | None],
    search_seconds: float,
) -> CircuitPlan:
    def planned(part: _core.Circuit) -> CircuitPlan:
        def place(ranks: int, amplitude_bytes: float, per_host: int) -> Placement:
            return _core.place_simulation(part, ranks, amplitude_bytes, search_seconds, per_host)

        return _planned(part, plan_memory(part, ranks, precision, hosts[0]), hosts[1], place)

    plans = [planned(part) for part in parts]
    largest = max(plans, key=lambda one: one.qubits)
    sums = ("exchanges", "bytes_per_rank", "baseline_bytes_per_rank", "one_swap_at_a_time_bytes_per_rank")
    return replace(
        largest,
        parts=tuple(plans) if len(plans) > 1 else (),
        operations=sum(one.operations for one in plans),
        passes=sum(one.passes for one in plans),
        bytes_per_exchange=[moved for one in plans for moved in one.bytes_per_exchange],
        bytes_by_level={
            level: sum(one.bytes_by_level.get(level, 0) for one in plans) for level in largest.bytes_by_level
        },
        **{name: sum(getattr(one, name) for one in plans) for name in sums},
    )


def stored_circuits(
    circuit: Circuit,
    where: tuple[int, str, int | None],
    *,
    divide: bool = True,
    observables: Sequence[PauliSum] = (),
    largest: int | None = None,
) -> list[_core.Circuit]:
    """Return the parts of a valid circuit that have states of their own, without final measurements.

    `where` is the number of ranks, the precision and the number of ranks on this machine (None: all). Without
    `divide`, qubits that are not idle are in one state. Qubits of `observables` stay in the state. `largest` is the
    number of qubits of the largest state that fits. Default: into the memory of this machine.
    """
    ranks, precision, here = where
    ranks = _number_of_ranks(ranks)
    here = ranks if here is None else whole_number(here, "ranks_per_node", 1)
    if largest is None:
        largest = _core.largest_state(ranks, precision, min(here, ranks))
    return _core.stored_circuits(circuit, divide, largest, [core_sum(one) for one in observables])


def plan_largest(
    circuit: Circuit, ranks: int, precision: str, ranks_per_node: int | None, **storage: Any
) -> MemoryPlan:
    """Compute the ranks and the memory of the largest state of a valid circuit, without placing it."""
    parts = stored_circuits(circuit, (ranks, precision, ranks_per_node), **storage)
    largest = max(parts, key=lambda one: one.qubits)
    return replace(plan_memory(largest, ranks, precision, ranks_per_node), qubits=circuit.qubits)


def plan_matrices(
    circuit: Circuit, ranks: int, precision: str, ranks_per_node: int | None, ranks_per_host: int | None
) -> CircuitPlan:
    """Plan, as `plan` does, gates whose matrices need not be unitary on a state with qubit i at bit i."""
    bits = list(range(circuit.qubits))

    def place(ranks: int, amplitude_bytes: float, per_host: int) -> Placement:
        return _core.place_applied(circuit, ranks, amplitude_bytes, 0, bits, per_host)

    return _planned(circuit, plan_memory(circuit, ranks, precision, ranks_per_node), ranks_per_host, place)


def lower_bounds(circuit_plan: CircuitPlan, sweeps: int = 1) -> dict[str, float]:
    """Return lower bounds on exchanges and passes, by a search that takes up to a few seconds.

    No placement has fewer exchanges. With the stages of this one, no choice of tiles has fewer passes.
    """
    placements = [one.placement for one in circuit_plan.states]
    return {
        "exchanges_at_least": sweeps * sum(one.exchanges_at_least() for one in placements),
        "passes_at_least": sweeps * sum(one.passes_at_least() for one in placements),
    }


def _number_of_ranks(ranks: int) -> int:
    ranks = whole_number(ranks, "ranks")
    if ranks > LARGEST_RANKS:
        raise BadInput(f"expected at most {LARGEST_RANKS} ranks (2^30), found {ranks}")
    if ranks < 1 or ranks & (ranks - 1):
        fewer = 1 << max(ranks, 1).bit_length() - 1
        raise BadInput(
            f"expected a number of ranks that is a power of two, found {ranks}; take {fewer} or {2 * fewer}"
        )
    return ranks


def plan_memory(circuit: _core.Circuit, ranks: int, precision: str, ranks_per_node: int | None) -> MemoryPlan:
    """Compute the ranks and the memory that a circuit would take, without placing it; arguments as for `plan`."""
    ranks = _number_of_ranks(ranks)
    usable = _core.usable_ranks(circuit, ranks)
    local_ranks = (
        usable if ranks_per_node is None else min(whole_number(ranks_per_node, "ranks_per_node", 1), usable)
    )
    need = _core.memory_need(circuit.qubits, usable, precision, local_ranks)
    return MemoryPlan(
        qubits=circuit.qubits,
        largest_state_qubits=circuit.qubits,
        ranks=usable,
        precision=precision,
        fits=need.fits,
        memory_per_rank=need.per_rank,
        memory_in_all=need.in_all,
        memory_available=need.available,
        ranks_per_node=local_ranks,
    )


def levels_of(inside: int, between: int) -> dict[str, int]:
    """Name the bytes that stay inside hosts and those that leave one."""
    return {"inside hosts": inside, "between hosts": between}


def _planned(
    circuit: _core.Circuit,
    memory: MemoryPlan,
    asked: int | None,
    place: Callable[[int, float, int], Placement],
) -> CircuitPlan:
    """Place a circuit; `asked`: the ranks on each host."""
    if asked is None:
        asked = memory.ranks_per_node if memory.ranks_per_node.bit_count() == 1 else 0
    if whole_number(asked, "ranks_per_host") < 0 or asked & (asked - 1):
        raise BadInput(f"expected a number of ranks per host that is a power of two, or 0, found {asked}")
    ranks_per_host = min(asked, memory.ranks)
    amplitude_bytes = _core.bytes_per_amplitude(memory.precision)
    placement = place(memory.ranks, amplitude_bytes, ranks_per_host)
    share = amplitude_bytes * 2**placement.local_bits
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


def _operations(circuit: _core.Circuit, placement: Placement) -> int:
    """Count the operations of a placement other than measurements."""
    operations = circuit.operations
    return sum(
        operations[index].kind != "measure" for stage in placement.stages for index in stage.operations
    )


# Bytes per second that the ranks of a machine together read and write, before a run has shown how many they are.
BUILT_IN_RATE = 10e9
# Seconds that a core takes to decode and encode an amplitude, measured with AVX-512.
_CODEC_SECONDS = 5e-9
# Shorter and smaller runs show the time to start them, or a busy machine, rather than the speed of memory.
_SHORTEST_RUN, _LEAST_TRAFFIC = 0.1, 1e8


def _file() -> Path:
    return (
        Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "onehop" / "circuits.json"
    )


def kept_rate() -> float | None:
    """Return the rate that `keep_rate` has kept; None without one."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, RuntimeError):
        rate = float(json.loads(_file().read_bytes()[:4096])["bytes_per_second"])
        return rate if 1e7 < rate < math.inf else None  # slower: a small run, which older versions kept
    return None


def keep_rate(circuit_plan: CircuitPlan, seconds: float, *, replace: bool = False) -> None:
    """Keep the rate of a run in the user's cache folder, unless one is kept already or the run was short or small."""
    traffic = _traffic(circuit_plan)
    if seconds >= _SHORTEST_RUN and traffic >= _LEAST_TRAFFIC and (replace or kept_rate() is None):
        text = json.dumps({"bytes_per_second": traffic / seconds})
        # Without a place for it, the next run tries again; RuntimeError: the user has no home.
        with contextlib.suppress(Error, OSError, RuntimeError):
            write_file(_file(), text + "\n", "the speed of circuits", make_parents=True)


def predict(circuit_plan: CircuitPlan) -> float:
    """Predict the seconds of a run, without sampling and observables. Nothing is run."""
    seconds = _traffic(circuit_plan) / (kept_rate() or BUILT_IN_RATE)
    if circuit_plan.precision not in ("double", "single"):
        amplitudes = circuit_plan.passes * 2**circuit_plan.placement.local_bits * circuit_plan.ranks_per_node
        seconds += _CODEC_SECONDS * amplitudes / usable_cores()
    return seconds


def _traffic(circuit_plan: CircuitPlan) -> float:
    """Return the bytes of memory that the ranks of one machine read and write together."""
    if circuit_plan.parts:
        return sum(map(_traffic, circuit_plan.parts))
    share = _core.bytes_per_amplitude(circuit_plan.precision) * 2**circuit_plan.placement.local_bits
    each = share * (1 + 2 * circuit_plan.passes) + 2 * circuit_plan.bytes_per_rank
    return each * circuit_plan.ranks_per_node
