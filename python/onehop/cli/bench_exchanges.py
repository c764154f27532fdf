"""`onehop bench` of messages and exchanges: onehop, plain MPI and the speed of light, measured in turn in one run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from onehop.bench import parse_sizes
from onehop.bench.allreduce import ALLREDUCE_SIZES, allreduce, make_allreduce_table
from onehop.bench.codec import CODEC_SIZES, CODEC_STEPS, codec
from onehop.bench.collective import COLLECTIVE_SIZES, COLLECTIVES, collectives, make_collective_table
from onehop.bench.link import HOSTS, LINK_SIZES, link, make_link_table
from onehop.bench.result import Bench
from onehop.bench.run import (
    CHANNEL_SIZES,
    HALO_BLOCKS,
    HALO_CASES,
    PINGPONG_SIZES,
    POISSON_ENLARGEMENTS,
    Advance,
    Settings,
    channel,
    flag_us,
    halo_exchange,
    pingpong,
    poisson,
    ring,
)
from onehop.bench.table import make_table
from onehop.cli.bench_hosts import (
    NO_HOSTS,
    HostsOption,
    LinksOption,
    OnHosts,
    PerHostOption,
    RateOption,
    ensure_hosts,
)
from onehop.cli.bench_options import PlotOption, QuickOption, SecondsOption
from onehop.cli.bench_show import show
from onehop.cli.common import (
    JsonOption,
    MpiOption,
    RanksOption,
    check_plot,
    check_seconds,
    progress,
)
from onehop.codec import CODECS
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import current_launch, ensure_ranks_beside_mpi
from onehop.text import counted

SizesOption = Annotated[
    str | None,
    typer.Option(
        "--sizes", metavar="8,1K,...", help="Bytes per message, separated by commas; 0 is a bare flag."
    ),
]

Measure = Callable[[Group, Settings, Advance], Bench]


def _run(
    measure: Measure,
    cases: int,
    ranks: int | None,
    default: int,
    mpi: str | None,
    settings: Settings,
    json_target: str | None,
    plot: str | None,
    exactly: int | None = None,
    on: OnHosts = NO_HOSTS,
) -> None:
    check_seconds(settings.seconds)
    on.check(ranks, mpi)
    if on.hosts is not None and exactly is not None and on.hosts * (on.per_host or 1) != exactly:
        raise BadInput(
            f"expected {counted(exactly, 'rank')} for this benchmark, found --hosts {on.hosts} "
            f"--per-host {on.per_host or 1}"
        )
    # Arguments are checked before the ranks start.
    if exactly is not None and ranks not in (None, exactly):
        raise BadInput(
            f"expected {counted(exactly, 'rank')} for this benchmark, found -n {ranks}; leave -n out"
        )
    check_plot(plot)
    if not ensure_hosts(on, mpi):
        ensure_ranks_beside_mpi(ranks, mpi, default=default)
    group = Group.world()
    with progress("measuring", cases) as advance:
        before = flag_us(group)
        result = measure(group, settings, advance)
        after = flag_us(group)
    if before is not None and after is not None:
        result.host["flag_us"] = [before, after]
    show(result, json_target, plot, _TABLES.get(result.bench, make_table))


_TABLES = {"allreduce": make_allreduce_table, "collectives": make_collective_table}


RoundingOption = Annotated[
    str | None,
    typer.Option(
        "--codecs", metavar="fp16,q8,...", help="Codecs whose bytes, time and error are compared with raw."
    ),
]


def _rounding(names: str | None) -> list[str]:
    if names is None:
        return []
    _check_codecs(names)
    chosen = names.split(",")
    if "raw" in chosen:
        raise BadInput("expected --codecs other than raw, which is always measured; leave raw out")
    return chosen


def _check_codecs(names: str) -> None:
    unknown = [name for name in names.split(",") if name not in CODECS]
    if unknown:
        raise BadInput(f"expected --codecs among {', '.join(CODECS)}, found {unknown[0]!r}")


def bench_pingpong(
    sizes: SizesOption = None,
    get: Annotated[bool, typer.Option("--get", help="Also receive with get(), into an array.")] = False,
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    hosts: HostsOption = None,
    per_host: PerHostOption = None,
    rate: RateOption = None,
    links: LinksOption = None,
    seconds: SecondsOption = 20,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Send one message back and forth between two ranks; times are half a round trip."""
    on = OnHosts(hosts, per_host, rate, links)
    chosen = PINGPONG_SIZES if sizes is None else parse_sizes(sizes)

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return pingpong(group, settings, advance, chosen, get)

    _run(
        measure,
        len(chosen),
        ranks,
        2,
        mpi,
        Settings(seconds, quick),
        json_target,
        plot,
        exactly=2,
        on=on,
    )


def bench_channel(
    sizes: SizesOption = None,
    messages: Annotated[int, typer.Option(help="Messages in each direction at once.")] = 10,
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    seconds: SecondsOption = 15,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Send several messages at once in each direction between two ranks."""
    chosen = CHANNEL_SIZES if sizes is None else parse_sizes(sizes)
    if messages < 1:
        raise BadInput(f"expected --messages of at least 1, found {messages}")

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return channel(group, settings, advance, chosen, messages)

    _run(measure, len(chosen), ranks, 2, mpi, Settings(seconds, quick), json_target, plot, exactly=2)


def _blocks(text: str) -> list[tuple[int, ...]]:
    try:
        blocks = [tuple(int(extent) for extent in block.split("x")) for block in text.split(",")]
    except ValueError:
        blocks = [()]
    if any(not block or min(block) < 1 for block in blocks):
        raise BadInput(f"expected --blocks such as 64x32x32,128x64x64, found {text!r}")
    return blocks


def bench_halo(
    blocks: Annotated[
        str | None,
        typer.Option(
            "--blocks", metavar="AxBxC,...", help="Blocks of the array per rank, without ghost layers."
        ),
    ] = None,
    codecs: RoundingOption = None,
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    hosts: HostsOption = None,
    per_host: PerHostOption = None,
    rate: RateOption = None,
    links: LinksOption = None,
    seconds: SecondsOption = 10,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Exchange the ghost layers of a float64 array, including packing and unpacking."""
    on = OnHosts(hosts, per_host, rate, links)
    chosen = HALO_BLOCKS if blocks is None else _blocks(blocks)
    rounding = _rounding(codecs)

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return halo_exchange(group, settings, advance, chosen, rounding)

    _run(
        measure,
        len(chosen) * len(HALO_CASES),
        ranks,
        2,
        mpi,
        Settings(seconds, quick),
        json_target,
        plot,
        on=on,
    )


def bench_poisson(
    enlarge: Annotated[
        str | None,
        typer.Option(
            "--enlarge",
            metavar="1,16,...",
            help="Factors by which messages are lengthened, separated by commas.",
        ),
    ] = None,
    local: Annotated[int, typer.Option(help="Sites of a rank's block in each dimension.")] = 60,
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    seconds: SecondsOption = 12,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Run one iteration of the Poisson solver. The speed of light is its computation alone."""
    chosen = POISSON_ENLARGEMENTS if enlarge is None else parse_sizes(enlarge)
    if local < 1 or min(chosen) < 1:
        raise BadInput(f"expected --local and --enlarge of at least 1, found {local} and {min(chosen)}")

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return poisson(group, settings, advance, chosen, local)

    _run(measure, len(chosen), ranks, 2, mpi, Settings(seconds, quick), json_target, plot)


def bench_allreduce(
    sizes: SizesOption = None,
    codecs: Annotated[
        str,
        typer.Option(
            "--codecs",
            metavar="raw,q8,...",
            help="Codecs, separated by commas. The first one is compared with the peers.",
        ),
    ] = "raw",
    link_rate: Annotated[
        str | None,
        typer.Option(
            "--link",
            metavar="1Gbit",
            help="Measure between two emulated hosts, joined by a link of this rate (needs root).",
        ),
    ] = None,
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    hosts: HostsOption = None,
    per_host: PerHostOption = None,
    rate: RateOption = None,
    links: LinksOption = None,
    seconds: SecondsOption = 20,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Sum float32 arrays over all ranks, with the columns of nccl-tests.

    The peers are MPI_Allreduce, the algorithm of vLLM's CPU backend (on one machine, up to 8 ranks) and, if torch is
    installed, gloo.
    """
    on = OnHosts(hosts, per_host, rate, links)
    chosen = ALLREDUCE_SIZES if sizes is None else parse_sizes(sizes)
    if min(chosen) < 4:
        raise BadInput(f"expected --sizes of at least 4 bytes (one float32), found {min(chosen)}")
    _check_codecs(codecs)
    if link_rate is not None:
        if on.hosts is not None:
            raise BadInput("--link and --hosts both emulate hosts: give one of them")
        if current_launch() is not None or ranks not in (None, HOSTS):
            raise BadInput(
                f"--link starts its own {counted(HOSTS, 'rank')}: run it by itself, without a launch or -n"
            )
        lengths = LINK_SIZES if sizes is None else chosen
        seconds = 1.0 if quick else seconds
        result = link(link_rate, lengths, codecs.split(","), seconds, mpi)
        show(result, json_target, plot, make_link_table)
        return

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return allreduce(group, settings, advance, chosen, codecs.split(","))

    _run(
        measure,
        len(chosen),
        ranks,
        2,
        mpi,
        Settings(seconds, quick),
        json_target,
        plot,
        on=on,
    )


def bench_collectives(
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", metavar="64,1K,...", help="Bytes of the whole array, separated by commas."),
    ] = None,
    operations: Annotated[
        str,
        typer.Option("--operations", metavar="allgather,...", help="Operations, separated by commas."),
    ] = ",".join(COLLECTIVES),
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    seconds: SecondsOption = 40,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Reduce-scatter, all-gather, broadcast and all-to-all of float32, beside MPI and, with torch, gloo."""
    chosen = COLLECTIVE_SIZES if sizes is None else parse_sizes(sizes)
    names = operations.split(",")
    unknown = [one for one in names if one not in COLLECTIVES]
    if unknown:
        raise BadInput(f"expected --operations among {', '.join(COLLECTIVES)}, found {unknown[0]!r}")

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return collectives(group, settings, advance, chosen, names)

    _run(measure, len(chosen) * len(names), ranks, 2, mpi, Settings(seconds, quick), json_target, plot)


def bench_ring(
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    seconds: SecondsOption = 10,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Send 64 bytes from every rank to the next one, also with more ranks than cores."""
    _run(ring, 2, ranks, 4, mpi, Settings(seconds, quick), json_target, plot)


def bench_codec(
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes", metavar="64K,64M,...", help="Bytes of the float32 arrays, separated by commas."
        ),
    ] = None,
    codecs: Annotated[
        str, typer.Option("--codecs", metavar="q8,...", help="Codecs, separated by commas.")
    ] = ",".join(CODECS[1:]),
    seconds: SecondsOption = 15,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Encode and decode on one core. The speed of light is a copy of the same numbers."""
    chosen = CODEC_SIZES if sizes is None else parse_sizes(sizes)
    _check_codecs(codecs)
    names = codecs.split(",")

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return codec(group, settings, advance, chosen, names)

    cases = len(chosen) * len(names) * len(CODEC_STEPS)
    _run(measure, cases, None, 1, "none", Settings(seconds, quick, peers=False), json_target, plot)
