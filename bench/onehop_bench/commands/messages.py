"""`onehop bench` of messages and exchanges: onehop, plain MPI and the speed of light, measured in turn in one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onehop.codec import CODECS
from onehop.error import BadInput
from onehop.launch import current_launch
from onehop.options import option
from onehop.text import counted
from onehop_bench import run as cases
from onehop_bench.allreduce import ALLREDUCE_SIZES, allreduce, make_allreduce_table
from onehop_bench.codec import CODEC_SIZES, CODEC_STEPS, codec
from onehop_bench.collective import COLLECTIVE_SIZES, COLLECTIVES, collectives, make_collective_table
from onehop_bench.commands.options import (
    BenchOptions,
    Block,
    HostsOptions,
    PlotOptions,
    RanksBenchOptions,
    names_option,
    numbers_option,
    seconds_option,
    sizes_option,
)
from onehop_bench.commands.start import check, run, show
from onehop_bench.link import HOSTS, LINK_SIZES, link, make_link_table
from onehop_bench.permutation import QUBITS, TRANSPORTS, permutation, permutation_cases
from onehop_bench.qspi import QSPI_PATTERNS, QSPI_SIZES, qspi, save_qspi_plot

_SIZES = "Bytes per message; 0 is a bare flag."
_ROUNDING = "Codecs whose bytes, time and error are compared with raw."


@dataclass(kw_only=True)
class RoundingOptions(PlotOptions, RanksBenchOptions):
    """Codecs beside raw."""

    codecs: list[str] = names_option([], _ROUNDING, metavar="fp16,q8,...", choices=CODECS[1:])


@dataclass(kw_only=True)
class PingPong(HostsOptions, PlotOptions, RanksBenchOptions):
    """The options of `onehop bench pingpong`."""

    sizes: list[int] | None = sizes_option(_SIZES, "8,1K,...")
    get: bool = option(False, "Also receive with get(), into an array.")


def bench_pingpong(options: PingPong) -> None:
    """Send one message back and forth between two ranks; times are half a round trip."""
    sizes = options.sizes or cases.PINGPONG_SIZES
    run(options, lambda *on: cases.pingpong(*on, sizes, options.get), len(sizes), exactly=2, flag=True)


@dataclass(kw_only=True)
class Channel(PlotOptions, RanksBenchOptions):
    """The options of `onehop bench channel`."""

    seconds: float = seconds_option(15)
    sizes: list[int] | None = sizes_option(_SIZES, "8,1K,...")
    messages: int = option(10, "Messages in each direction at once.", low=1, high=10000)


def bench_channel(options: Channel) -> None:
    """Send several messages at once in each direction between two ranks."""
    sizes = options.sizes or cases.CHANNEL_SIZES
    run(options, lambda *on: cases.channel(*on, sizes, options.messages), len(sizes), exactly=2, flag=True)


@dataclass(kw_only=True)
class Halo(HostsOptions, RoundingOptions):
    """The options of `onehop bench halo`."""

    seconds: float = seconds_option(10)
    blocks: list[str] | None = option(
        None,
        "Blocks of the array per rank, without ghost layers.",
        metavar="AxBxC,...",
        separator=",",
        kind=list[Block],
    )
    dtype: str = option(cases.HALO_TYPES[0], "Type of the array's elements.", choices=cases.HALO_TYPES)


def bench_halo(options: Halo) -> None:
    """Exchange the ghost layers of an array, including packing and unpacking."""
    blocks = cases.HALO_BLOCKS if options.blocks is None else [block.extents for block in options.blocks]  # type: ignore[attr-defined]
    run(
        options,
        lambda *on: cases.halo_exchange(*on, blocks, options.codecs, options.dtype),
        len(blocks) * len(cases.HALO_CASES),
        flag=True,
    )


@dataclass(kw_only=True)
class PoissonBench(PlotOptions, RanksBenchOptions):
    """The options of `onehop bench poisson`."""

    seconds: float = seconds_option(12)
    enlarge: list[int] | None = sizes_option("Factors by which messages are lengthened.", "1,16,...")
    local: int = option(60, "Sites of a rank's block in each dimension.", low=1, high=1 << 20)


def bench_poisson(options: PoissonBench) -> None:
    """Run one iteration of the Poisson solver. The speed of light is its computation alone."""
    factors = options.enlarge or cases.POISSON_ENLARGEMENTS
    if min(factors) < 1:
        raise BadInput(f"expected --enlarge of at least 1, found {min(factors)}")
    run(options, lambda *on: cases.poisson(*on, factors, options.local), len(factors), flag=True)


@dataclass(kw_only=True)
class AllReduce(HostsOptions, PlotOptions, RanksBenchOptions):
    """The options of `onehop bench allreduce`."""

    sizes: list[int] | None = sizes_option("Bytes of the array.", "8,1K,...")
    codecs: list[str] = names_option(
        ["raw"],
        "Codecs. The first one is compared with the peers.",
        metavar="raw,q8,...",
        choices=CODECS,
    )
    link: str | None = option(
        None,
        "Measure between two emulated hosts, joined by a link of this rate (needs root).",
        metavar="1Gbit",
    )
    in_place: bool = option(False, "One array is source and result, as in torch.distributed; raw only.")


def _over_a_link(options: AllReduce, rate: str) -> None:
    if options.hosts is not None:
        raise BadInput("--link and --hosts both emulate hosts: give one of them")
    if current_launch() is not None or options.ranks not in (None, HOSTS):
        raise BadInput(
            f"--link starts its own {counted(HOSTS, 'rank')}: run it by itself, without a launch or -n"
        )
    seconds = 1.0 if options.quick else options.seconds
    result = link(rate, options.sizes or LINK_SIZES, options.codecs, seconds, options.mpi)
    show(options, result, make_link_table)


def bench_allreduce(options: AllReduce) -> None:
    """Sum float32 arrays over all ranks, with the columns of nccl-tests.

    The peers are MPI_Allreduce, the algorithm of vLLM's CPU backend (on one machine, up to 8 ranks) and, if torch is
    installed, gloo.
    """
    sizes = options.sizes or ALLREDUCE_SIZES
    if min(sizes) < 4:
        raise BadInput(f"expected --sizes of at least 4 bytes (one float32), found {min(sizes)}")
    if options.in_place and (options.codecs != ["raw"] or options.link is not None):
        raise BadInput("expected --in-place without --codecs and --link, found one of them")
    if options.link is not None:
        check(options)
        _over_a_link(options, options.link)
        return
    run(
        options,
        lambda *on: allreduce(*on, sizes, options.codecs, options.in_place),
        len(sizes),
        flag=True,
        table=make_allreduce_table,
    )


@dataclass(kw_only=True)
class CollectivesBench(HostsOptions, PlotOptions, RanksBenchOptions):
    """The options of `onehop bench collectives`."""

    seconds: float = seconds_option(40)
    sizes: list[int] | None = sizes_option("Bytes of the whole array.", "64,1K,...")
    operations: list[str] = names_option(list(COLLECTIVES), "Operations.", choices=COLLECTIVES)


def bench_collectives(options: CollectivesBench) -> None:
    """Reduce-scatter, all-gather, broadcast and all-to-all of float32, beside MPI and, with torch, gloo."""
    sizes = options.sizes or COLLECTIVE_SIZES
    run(
        options,
        lambda *on: collectives(*on, sizes, options.operations),
        len(sizes) * len(options.operations),
        flag=True,
        table=make_collective_table,
    )


@dataclass(kw_only=True)
class Ring(PlotOptions, RanksBenchOptions):
    """The options of `onehop bench ring`."""

    seconds: float = seconds_option(10)


def bench_ring(options: Ring) -> None:
    """Send 64 bytes from every rank to the next one, also with more ranks than cores."""
    run(options, cases.ring, 2, default=4, flag=True)


@dataclass(kw_only=True)
class CodecBench(PlotOptions, BenchOptions):
    """The options of `onehop bench codec`."""

    seconds: float = seconds_option(15)
    sizes: list[int] | None = sizes_option("Bytes of the float32 arrays.", "64K,64M,...")
    codecs: list[str] = names_option(list(CODECS[1:]), "Codecs.", choices=CODECS[1:])


def bench_codec(options: CodecBench) -> None:
    """Encode and decode on one core. The speed of light is a copy of the same numbers."""
    sizes = options.sizes or CODEC_SIZES
    count = len(sizes) * len(options.codecs) * len(CODEC_STEPS)
    run(options, lambda *on: codec(*on, sizes, options.codecs), count, default=1)


@dataclass(kw_only=True)
class Permutation(HostsOptions, RoundingOptions):
    """The options of `onehop bench permutation`."""

    qubits: list[int] | None = numbers_option("Numbers of qubits of the state.", "22,24,...", high=62)
    transports: list[str] = names_option(
        ["auto"],
        "Transport: auto (in place in shared memory) or mpi (staged through MPI).",
        choices=tuple(TRANSPORTS),
    )


def bench_permutation(options: Permutation) -> None:
    """Exchange up to three qubits of the rank number with local qubits."""
    qubits: Sequence[int] = options.qubits or ([12] if options.quick else QUBITS)
    ranks = options.ranks if options.hosts is None else options.hosts * (options.per_host or 1)
    run(
        options,
        lambda *on: permutation(*on, qubits, options.transports, options.codecs),
        len(list(permutation_cases(ranks or 2, qubits, options.transports))),
        flag=True,
    )


@dataclass(kw_only=True)
class Qspi(PlotOptions, RanksBenchOptions):
    """The options of `onehop bench qspi`."""

    sizes: list[int] | None = sizes_option("Bytes per message; multiples of 8.", "8,1K,...")


def bench_qspi(options: Qspi) -> None:
    """Measure ping-pong and a 5-D halo exchange through the drop-in interface qspi.

    --plot draws the two figures of qspi's report.
    """
    sizes = options.sizes or QSPI_SIZES
    if any(size < 8 or size % 8 for size in sizes):
        raise BadInput(f"expected --sizes as multiples of 8, found {','.join(map(str, sizes))}")
    count = len(QSPI_PATTERNS) * len(sizes)
    run(options, lambda *on: qspi(*on, sizes), count, exactly=2, draw=save_qspi_plot)
