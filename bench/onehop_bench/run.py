"""The cases of the message benchmarks, measured on all ranks of a group."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onehop import _core
from onehop.cores import machine_cores
from onehop.doctor import host
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.plan import Plan
from onehop.schedule import ArraySpec, Place, Round, Schedule, Slice, Transfer, halo, halo_block
from onehop.text import bytes_text, counted
from onehop_bench import native
from onehop_bench.ghex import ghex_halo, ghex_version
from onehop_bench.hosts.launch import DESCRIPTION
from onehop_bench.result import Bench, Row, extended, make_row, samples_of
from onehop_bench.rounding import halo_rounding, rounded_row
from onehop_bench.wire import between_hosts, host_numbers, schedule_bytes

PINGPONG_SIZES = (0, 8, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)
CHANNEL_SIZES = (64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10)
HALO_BLOCKS = ((64, 32, 32), (128, 64, 64))
HALO_TYPES = ("float64", "complex128")
POISSON_ENLARGEMENTS = (1, 16, 256, 1024)
RING_BYTES = 64


@dataclass(frozen=True)
class Settings:
    """How long to measure, and against what.

    Attributes
    ----------
    seconds : float
        The time for all cases together.
    quick : bool
        Measure as briefly as possible. This shows that everything works; the figures mean little.
    peers : bool
        Compare with MPI, if there is one.
    """

    seconds: float = 15
    quick: bool = False
    peers: bool = True

    def effort(self, cases: int, block_us: float = 400.0) -> _core.MeasureEffort:
        """The effort for one of `cases` cases."""
        if self.quick:
            return _core.MeasureEffort(seconds=0.02, block_us=min(block_us, 50.0), min_rounds=3)
        return _core.MeasureEffort(seconds=self.seconds / max(cases, 1), block_us=block_us)


def _begin(bench: str, group: Group, ranks: int | None, across: bool = False) -> Bench:
    """An empty result, after checks. `across`: whether the benchmark can also measure between hosts."""
    if ranks is not None and group.size != ranks:
        raise BadInput(
            f"onehop bench {bench} measures {counted(ranks, 'rank')}, but this launch has {group.size}: use -n {ranks}"
        )
    far = len(group.local_ranks) != group.size
    if far and not across:
        raise BadInput(f"onehop bench {bench} measures shared memory: start all ranks on one machine")
    why_not = _core.why_no_mpi_peers(group)
    version = None
    if not why_not:
        try:
            version = native.mpi_version()
        except Error as error:
            why_not = str(error)
    about = host(version)
    about["cores"] = machine_cores()
    result = Bench(bench, about)
    if far:
        result.notes.append(f"between {counted(max(host_numbers(group)) + 1, 'host')}")
        if DESCRIPTION in os.environ:
            about["emulated_hosts"] = os.environ[DESCRIPTION]
            result.notes.append(f"the hosts are emulated: {os.environ[DESCRIPTION]}")
    if why_not:
        result.notes.append(f"no MPI to compare with: {why_not}")
    return result


def flag_us(group: Group) -> float | None:
    """The time of a bare flag between two ranks, µs; None unless there are two, on one machine.

    It shows the state of a machine on which the distance between cores changes.
    """
    if group.size != 2 or len(group.local_ranks) != 2:
        return None
    effort = _core.MeasureEffort(seconds=0.05, block_us=100.0, min_rounds=3)
    measured = native.ping_pong(group, 0, effort, False, False)
    times = next(us for _, role, us in measured if role == "speed_of_light")
    return float(np.median(times))


Advance = Callable[[float], None]


def pingpong(
    group: Group,
    settings: Settings,
    advance: Advance,
    sizes: Sequence[int] = PINGPONG_SIZES,
    get: bool = False,
) -> Bench:
    """Measure a ping-pong of one message; the time is half a round trip."""
    result = _begin("pingpong", group, 2, across=True)
    effort = settings.effort(len(sizes))
    for size in sizes:
        measured = native.ping_pong(group, size, effort, get, settings.peers)
        case = bytes_text(size, exact=True) if size else "flag"
        row = make_row(case, size, 2, samples_of(measured))
        result.rows.append(between_hosts(row, group, _round_trip(group, size), [size, size]))
        advance(1)
    return result


def _round_trip(group: Group, size: int) -> Callable[[], None]:
    """A function that sends a message of `size` bytes from rank 0 to rank 1 and one back."""
    message = np.zeros(size, np.uint8)
    peer = 1 - group.rank
    channels = group.channels(send={peer: size}, receive={peer: size})
    sender, receiver = channels.send[peer], channels.receive[peer]

    def step() -> None:
        for turn in range(2):
            if group.rank == turn:
                sender.put(message)
            else:
                receiver.get(message)

    return step


def channel(
    group: Group,
    settings: Settings,
    advance: Advance,
    sizes: Sequence[int] = CHANNEL_SIZES,
    messages: int = 10,
) -> Bench:
    """Measure several messages at once in each direction between two ranks."""
    result = _begin("channel", group, 2)
    effort = settings.effort(len(sizes))
    for size in sizes:
        measured = native.exchange(group, size, messages, effort, settings.peers)
        result.rows.append(
            make_row(f"{messages} x {bytes_text(size, exact=True)}", size * messages, 2, samples_of(measured))
        )
        advance(1)
    return result


def bytes_out(schedule: Schedule, rank: int) -> int:
    """The bytes that a rank sends to others, after encoding."""
    return sum(
        schedule.bytes(transfer)
        for one in schedule.rounds
        for transfer in one.transfers
        if transfer.from_.rank == rank != transfer.to.rank
    )


@dataclass(frozen=True)
class HaloRow(Row):
    """One arrangement and size of blocks.

    Attributes
    ----------
    extents, grid : list of int
        Extents of the whole array, and ranks per dimension.
    periodic : list of bool
        The dimensions that close.
    dtype : str
        The type of an element, one of HALO_TYPES.
    """

    extents: list[int]
    grid: list[int]
    periodic: list[bool]
    dtype: str = field(default="float64", kw_only=True)


@dataclass(frozen=True)
class HaloCase:
    """One arrangement of the ranks' blocks.

    Attributes
    ----------
    name : str
        The text that follows the block's extents in the case's name.
    dimension : int
        The dimension that is divided among the ranks.
    closed : bool
        Whether the other dimensions are periodic, so that each rank also copies faces inside its block.
    """

    name: str
    dimension: int
    closed: bool


HALO_CASES = (
    HaloCase("", 0, True),
    HaloCase(", crossing only", 0, False),
    HaloCase(", last dimension, crossing only", -1, False),
)


def _halo_rows(
    group: Group,
    block: tuple[int, ...],
    case: HaloCase,
    effort: _core.MeasureEffort,
    peers: bool,
    ghex: bool,
    codecs: Sequence[str],
    dtype: str,
) -> list[Row]:
    extents, grid = list(block), [1] * len(block)
    extents[case.dimension] *= group.size
    grid[case.dimension] = group.size
    periodic = [case.closed] * len(block)
    periodic[case.dimension] = True
    layout: dict[str, Any] = {"extents": extents, "grid": grid, "width": 1, "periodic": periodic}
    schedule = halo(**layout, dtype=dtype)
    array = np.zeros(halo_block(**layout, rank=group.rank).shape, dtype)
    plain = "onehop from Python"
    others: list[tuple[str, str, Callable[[], Any], bool]] = [
        (plain, "variant", Plan(schedule, group, [array]).run, True)
    ]
    encoded = {codec: halo(**layout, dtype=dtype, codec=codec) for codec in codecs}
    for codec, rounding in encoded.items():
        others.append((f"{plain}, {codec}", "variant", Plan(rounding, group, [array]).run, False))
    if ghex:
        others.append(("GHEX from Python", "peer", ghex_halo(group, layout, array), True))
    memory = [_core.Memory(array, True, "array")]
    samples = samples_of(
        native.halo_exchange(group, schedule, memory, effort, peers, True, 0.0, others, shared_arrays=True)
    )
    name = "x".join(map(str, block)) + ("" if dtype == "float64" else f" {dtype}") + case.name
    rounded = {f"{plain}, {codec}" for codec in codecs}
    exact = [one for one in samples if one.name not in rounded]
    row = make_row(name, bytes_out(schedule, group.rank), group.size, exact)
    row = between_hosts(row, group, others[0][2], schedule_bytes(schedule, host_numbers(group)))
    rows: list[Row] = [extended(row, HaloRow, extents=extents, grid=grid, periodic=periodic, dtype=dtype)]
    for codec, rounding in encoded.items():
        names = (f"{plain}, {codec}", plain)
        error = halo_rounding(group, {**layout, "dtype": dtype}, codec)
        rows.append(rounded_row(row, samples, names, codec, bytes_out(rounding, group.rank), error))
    return rows


def halo_exchange(
    group: Group,
    settings: Settings,
    advance: Advance,
    blocks: Sequence[tuple[int, ...]] = HALO_BLOCKS,
    codecs: Sequence[str] = (),
    dtype: str = "float64",
) -> Bench:
    """Measure halo exchanges of an array that is divided along one dimension, one ghost layer wide.

    `blocks` are those of one rank. The divided dimension is periodic. In the first case the others are periodic as
    well, and most copies stay inside a rank. Each of `codecs` is measured from Python, too.
    """
    result = _begin("halo", group, None, across=True)
    # GHEX has no complex numbers.
    ghex = dtype == "float64" and settings.peers and ghex_version() is not None
    ghex = ghex and not _core.why_no_mpi_peers(group)
    if ghex:
        result.notes.append(f"GHEX {ghex_version()}, called from Python; edges and corners included")
    effort = settings.effort(len(blocks) * len(HALO_CASES), _block_us(group))
    for block in blocks:
        for case in HALO_CASES:
            result.rows += _halo_rows(group, block, case, effort, settings.peers, ghex, codecs, dtype)
            advance(1)
    return result


def _block_us(group: Group) -> float:
    """How long a block takes: with more ranks than cores, several time slices of the scheduler."""
    return 400.0 if group.size <= machine_cores() else 20000.0


def poisson(
    group: Group,
    settings: Settings,
    advance: Advance,
    enlargements: Sequence[int] = POISSON_ENLARGEMENTS,
    local: int = 60,
) -> Bench:
    """Measure one iteration of the Poisson solver on `local` x `local` sites per rank.

    `enlargements` are the factors by which messages are lengthened.
    """
    result = _begin("poisson", group, None)
    effort = settings.effort(len(enlargements))
    for enlargement in enlargements:
        measured = _core.measure_poisson(group, local, enlargement, effort, settings.peers)
        # On two ranks two faces cross; the others stay inside.
        size = 2 * local * 8 * enlargement
        result.rows.append(make_row(f"x{enlargement}", size, group.size, samples_of(measured)))
        advance(1)
    return result


def _ring_schedule(ranks: int, size: int) -> Schedule:
    numbers = size // 8
    arrays = [ArraySpec("out", numbers, 8), ArraySpec("in", numbers, 8)]
    everything = Slice.range(0, numbers)
    transfers = [
        Transfer(Place(rank, 0, everything), Place((rank + 1) % ranks, 1, everything))
        for rank in range(ranks)
    ]
    return Schedule("ring", ranks, arrays, [Round(transfers)])


def ring(
    group: Group, settings: Settings, advance: Advance, computing: Sequence[float] = (0.0, 10.0)
) -> Bench:
    """Measure a ring: every rank sends 64 bytes to the next one, after `computing` µs of computation."""
    result = _begin("ring", group, None)
    effort = settings.effort(len(computing), _block_us(group))
    schedule = _ring_schedule(group.size, RING_BYTES)
    for microseconds in computing:
        arrays = [np.zeros(RING_BYTES // 8, np.int64) for _ in range(2)]
        memory = [_core.Memory(array, True, "array") for array in arrays]
        measured = native.halo_exchange(
            group, schedule, memory, effort, settings.peers, False, microseconds, []
        )
        name = f"{group.size} ranks" + (f", each computing {microseconds:g} µs" if microseconds else "")
        result.rows.append(make_row(name, RING_BYTES, group.size, samples_of(measured)))
        advance(1)
    return result


__all__ = [
    "Advance",
    "Row",
    "Settings",
    "bytes_out",
    "channel",
    "halo_exchange",
    "pingpong",
    "poisson",
    "ring",
]
