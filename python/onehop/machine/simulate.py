"""Predicts how long a schedule takes on a machine, and exports schedules for LogGOPSim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onehop import _core
from onehop._core import Machine, RailAssignment, RankMap, Schedule, Simulation, Traffic
from onehop.arguments import is_sequence, listed_rails, whole_numbers, yes_or_no
from onehop.codec import element_type
from onehop.error import BadInput
from onehop.machine.reader import machine_of
from onehop.machine.traffic_rails import hosts_of_ranks, machine_rails, placed, traffic_of
from onehop.options import LARGEST_INT, LARGEST_SIZE, Options, filled, option
from onehop.schedule import halo

if TYPE_CHECKING:
    from onehop._keywords import SimulateKeywords, Unpack


@dataclass(kw_only=True)
class SimulateOptions(Options):
    """The options of a simulation; `simulate` documents them."""

    title = "Model"

    compute: float | Sequence[float] | None = option(
        None,
        "Time that every rank computes between start and finish of a round.",
        kind=float,
        metavar="SECONDS",
        low=0,
        high=1e6,
        default="0",
    )
    chunk_bytes: int = option(
        0,
        "Pack and unpack messages in chunks of this size; 0: do not model packing.",
        "--chunk",
        metavar="BYTES",
        low=0,
        high=LARGEST_SIZE,
    )
    slot_bytes: int = option(
        0,
        "Size of a slot, through which longer messages move; 0: no limit.",
        "--slot",
        metavar="BYTES",
        low=0,
        high=LARGEST_SIZE,
    )
    slots: int = option(2, "Number of slots of a channel.", low=1, high=LARGEST_INT)
    contention: bool = option(
        True,
        "Let messages share links, or let each flow by itself.",
        "--contention",
        off="--no-contention",
    )
    accuracy: float = option(
        0.01,
        "Largest relative time step between updates of the rates when thousands of messages are in flight; 0: update "
        "at every change.",
        low=0,
        high=0.5,
    )
    ranks: Sequence[int] | RankMap | None = None
    rails: str | Sequence[Sequence[RailAssignment]] | None = None
    progress: Callable[[float], object] | None = None


def message_traffic(ranks: int, rounds: Sequence[Sequence[tuple[int, int, int]]]) -> Traffic:
    """Return traffic from lists of messages.

    Parameters
    ----------
    ranks : int
        Number of ranks.
    rounds : sequence of sequence of (int, int, int)
        Sender, receiver and bytes of the messages of each round.

    Raises
    ------
    BadInput
        This is something else, or a rank is not below `ranks`.
    """
    return _core.message_traffic(ranks, rounds)


def halo_traffic(**parameters: Any) -> Traffic:
    """Return the messages of a halo exchange. Parameters and errors are those of `onehop.halo`."""
    return _core.traffic_of(halo(**parameters))


def allreduce_traffic(
    ranks: int,
    elements: int,
    *,
    dtype: Any = "float32",
    algorithm: str = "two_shot",
    hosts: Sequence[int] | None = None,
) -> Traffic:
    """Return the messages of an all-reduce without building its schedule, so that ranks may be many.

    Parameters
    ----------
    ranks : int
        Number of ranks.
    elements : int
        Length of the array.
    dtype : dtype
        Type of an element.
    algorithm : {"two_shot", "one_shot", "by_host", "auto"}
        Whether every rank reduces one segment and sends it to all others, or receives and reduces everything; whether
        ranks of a host reduce first; or the algorithm that onehop takes between these hosts.
    hosts : sequence of int, optional
        The host of every rank. By default all are on one.

    Raises
    ------
    BadInput
        A number is out of range, or the algorithm unknown.
    """
    if algorithm in ("auto", "by_host"):
        places = [0] * ranks if hosts is None else whole_numbers(hosts, "expected the host of every rank")
        if len(places) != ranks:
            raise BadInput(f"expected the host of each of {ranks} ranks, found {len(places)}")
        kind = element_type(dtype)
        if algorithm == "auto":
            algorithm = _core.predicted_algorithm(places, elements, kind)
        if algorithm == "by_host":
            return _core.by_host_traffic(places, elements, kind)
    return _core.allreduce_traffic(ranks, elements, element_type(dtype), algorithm)


def broadcast_traffic(elements: int, *, hosts: Sequence[int], dtype: Any = "float32") -> Traffic:
    """Return the messages of a broadcast of rank 0, as onehop sends them between these hosts.

    Parameters
    ----------
    elements : int
        Length of the array.
    hosts : sequence of int
        The host of every rank.
    dtype : dtype
        Type of an element.

    Raises
    ------
    BadInput
        A number is out of range.
    """
    places = whole_numbers(hosts, "expected the host of every rank")
    return _core.broadcast_traffic(places, elements * np.dtype(dtype).itemsize)


def permutation_traffic(
    bits: int,
    *,
    local: int,
    permutation: Sequence[int],
    dtype: Any = "complex128",
    codec: str = "raw",
    shared: bool = False,
) -> Traffic:
    """Return the messages of a permutation of index bits without building its schedule.

    Parameters
    ----------
    bits, local : int
        Bits of the index, and those that number an element within its rank.
    permutation : sequence of int
        Bit i of the index goes to bit permutation[i].
    dtype : dtype
        Type of an element.
    codec : str
        Format of the bytes on the wire.
    shared : bool
        Whether the array lies in memory that all ranks share. Then nobody sends: every rank reads and writes its share
        of the cache lines in which elements move. A codec is not used.

    Raises
    ------
    BadInput
        This is no permutation of the bits, or the traffic is neither symmetric nor short enough to list.
    """
    kind, size = element_type(dtype), np.dtype(dtype).itemsize
    return _core.permutation_traffic(bits, local, permutation, size, codec, kind, yes_or_no(shared, "shared"))


def _listed(value: Any) -> Any:
    """Return one number for all rounds, or one for each, as a sequence; an empty one for None."""
    return [] if value is None else value if is_sequence(value) else [value]


def _on_rails(
    traffic: Traffic,
    machine: Machine,
    ranks: Sequence[int] | RankMap | None,
    rails: str | Sequence[Sequence[RailAssignment]],
) -> Traffic:
    """Return the traffic with every message that leaves a host on the rails of a rule or of a list."""
    if isinstance(rails, str):
        return traffic.on_rails(machine_rails(traffic, machine, ranks=ranks, rule=rails))
    listed = listed_rails(rails, "a rule or one list of RailAssignment for each round")
    job, places = placed(machine, traffic.ranks, ranks)
    return traffic.on_rails(listed, hosts_of_ranks(job, places))


def simulate(
    schedule: Schedule | Traffic, machine: Machine | str | Path, **keywords: Unpack[SimulateKeywords]
) -> Simulation:
    """Predict how long a schedule takes on a machine.

    Messages cost overheads and latencies as in the LogGP model, and those that are under way together share the links
    on their routes max-min fairly. docs/reference/simulate.md describes the model.

    Parameters
    ----------
    schedule : Schedule or Traffic
        What moves.
    machine : Machine, str or path
        The machine, the name of an installed one, or the path of a TOML file.

    Other Parameters
    ----------------
    ranks : sequence of int or RankMap, optional
        The place of every rank on the machine. By default rank r has place r on the part of the machine that a job of
        this size gets (`Machine.job`). A `RankMap` (onehop.topology) places the ranks on that part: the schedule's rank
        at position p, which is p, has place `rank_at[p]`.
    rails : str or sequence of sequence of RailAssignment, optional
        The interface or link of a host that each message leaves through: a rule of `machine_rails`, or one list of
        assignments for each round of the traffic or the schedule, which `machine_rails` and `schedule_rails` make.
        A piece of a cut message is a message of its own. By default messages take the links of a host in turn.
    compute : float or sequence of float, optional
        Seconds that every rank computes between the start and the end of each round, one number or one per round.
    chunk_bytes : int
        If above 0, messages are packed and unpacked in chunks of this size at the processor's memory bandwidth, which
        overlaps with the flow except for the first and last chunk. 0: the bandwidth of the levels includes packing.
    slot_bytes, slots : int
        Size and number of the slots of a channel, through which a longer message moves. 0: slots limit nothing.
    contention : bool
        Whether messages share links.
    accuracy : float
        With thousands of messages under way, rates are computed again when the time since the round began has grown by
        this fraction; 0: at every change.
    progress : callable, optional
        Called now and then with the fraction that is done.

    Returns
    -------
    Simulation
        Seconds of every round and in all, loads of the links, and a time line of each rank.

    Raises
    ------
    BadInput
        The machine has too few processors, `ranks` is no map of ranks to places of their own, `rails` are not those of
        the schedule or lack one of a message that leaves its host, or a round has too many messages.

    Examples
    --------
    >>> schedule = onehop.halo(extents=(64, 64), grid=(8, 8))
    >>> onehop.machine.simulate(schedule, "fugaku").seconds < 1e-4
    True
    """
    options = SimulateOptions.of("simulate", keywords)
    ranks: Any = options.ranks
    described = machine_of(machine)
    traffic = traffic_of(schedule)
    if options.rails is not None:
        traffic = _on_rails(traffic, described, ranks, options.rails)
    if isinstance(ranks, RankMap):
        described = described.job(len(ranks.position_of))
        ranks = ranks.rank_at
    places = [] if ranks is None else whole_numbers(ranks, "the map of ranks: expected one place per rank")
    if ranks is not None and not places:
        raise BadInput("the map of ranks: expected one place per rank, found none")
    core = filled(
        _core.SimulateOptions(),
        places=places,
        compute=_listed(options.compute),
        contention=yes_or_no(options.contention, "contention"),
        **{name: getattr(options, name) for name in ("chunk_bytes", "slot_bytes", "slots", "accuracy")},
    )
    return _core.simulate_traffic(traffic, described, core, options.progress)


def goal(
    schedule: Schedule | Traffic,
    *,
    compute_ns: int | Sequence[int] | None = None,
    copy_ns_per_byte: float = 0,
) -> str:
    """Return a schedule as GOAL, the text format of the simulators LogGOPSim and ATLAHS.

    Parameters
    ----------
    schedule : Schedule or Traffic
        What moves.
    compute_ns : int or sequence of int, optional
        Nanoseconds that every rank computes in each round after it has started its messages.
    copy_ns_per_byte : float
        Nanoseconds per byte of copies inside a rank; 0 leaves them out.

    Raises
    ------
    BadInput
        A time is negative, or the schedule has too many messages to list.
    """
    return _core.to_goal(traffic_of(schedule), _listed(compute_ns), copy_ns_per_byte)


def loggops(
    schedule: Schedule | Traffic,
    *,
    latency: int = 2500,
    overhead: int = 1500,
    gap: int = 1000,
    gap_per_byte: int = 6,
    overhead_per_byte: int = 0,
    compute_ns: int | Sequence[int] | None = None,
    copy_ns_per_byte: float = 0,
) -> list[int]:
    """Return the nanosecond at which each rank ends in the model LogGOPS, as LogGOPSim computes it.

    Parameters
    ----------
    schedule : Schedule or Traffic
        What moves.
    latency, overhead, gap, gap_per_byte, overhead_per_byte : int
        L, o, g, G and O, in nanoseconds. All messages are eager.
    compute_ns, copy_ns_per_byte
        As for `goal`.

    Raises
    ------
    BadInput
        A number is negative, or the schedule has too many messages to list.
    """
    return _core.loggops(
        traffic_of(schedule),
        latency,
        overhead,
        gap,
        gap_per_byte,
        overhead_per_byte,
        _listed(compute_ns),
        copy_ns_per_byte,
    )
