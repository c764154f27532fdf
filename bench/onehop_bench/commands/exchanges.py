"""`onehop bench` of messages and exchanges: onehop, plain MPI and the speed of light, measured in turn in one run."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.codec import CODECS
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import current_launch
from onehop.text import counted
from onehop_bench import parse_sizes
from onehop_bench.allreduce import ALLREDUCE_SIZES, allreduce, make_allreduce_table
from onehop_bench.codec import CODEC_SIZES, CODEC_STEPS, codec
from onehop_bench.collective import COLLECTIVE_SIZES, COLLECTIVES, collectives, make_collective_table
from onehop_bench.commands.show import show
from onehop_bench.commands.start import Start, on_ranks
from onehop_bench.link import HOSTS, LINK_SIZES, link, make_link_table
from onehop_bench.result import Bench
from onehop_bench.run import (
    CHANNEL_SIZES,
    HALO_BLOCKS,
    HALO_CASES,
    HALO_TYPES,
    PINGPONG_SIZES,
    POISSON_ENLARGEMENTS,
    Advance,
    Settings,
    channel,
    halo_exchange,
    pingpong,
    poisson,
    ring,
)

SizesOption = Annotated[
    str | None,
    typer.Option(
        "--sizes", metavar="8,1K,...", help="Bytes per message, separated by commas; 0 is a bare flag."
    ),
]

RoundingOption = Annotated[
    str | None,
    typer.Option(
        "--codecs", metavar="fp16,q8,...", help="Codecs whose bytes, time and error are compared with raw."
    ),
]


def codecs_beside_raw(names: str | None) -> list[str]:
    """Parse the value of `RoundingOption`. Raises BadInput."""
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


@on_ranks(20, hosts=True)
def bench_pingpong(
    start: Start,
    sizes: SizesOption = None,
    get: Annotated[bool, typer.Option("--get", help="Also receive with get(), into an array.")] = False,
) -> None:
    """Send one message back and forth between two ranks; times are half a round trip."""
    chosen = PINGPONG_SIZES if sizes is None else parse_sizes(sizes)

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return pingpong(group, settings, advance, chosen, get)

    start.run(measure, len(chosen), exactly=2)


@on_ranks(15)
def bench_channel(
    start: Start,
    sizes: SizesOption = None,
    messages: Annotated[int, typer.Option(help="Messages in each direction at once.")] = 10,
) -> None:
    """Send several messages at once in each direction between two ranks."""
    chosen = CHANNEL_SIZES if sizes is None else parse_sizes(sizes)
    if messages < 1:
        raise BadInput(f"expected --messages of at least 1, found {messages}")

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return channel(group, settings, advance, chosen, messages)

    start.run(measure, len(chosen), exactly=2)


def _blocks(text: str) -> list[tuple[int, ...]]:
    try:
        blocks = [tuple(int(extent) for extent in block.split("x")) for block in text.split(",")]
    except ValueError:
        blocks = [()]
    if any(not block or min(block) < 1 for block in blocks):
        raise BadInput(f"expected --blocks such as 64x32x32,128x64x64, found {text!r}")
    return blocks


@on_ranks(10, hosts=True)
def bench_halo(
    start: Start,
    blocks: Annotated[
        str | None,
        typer.Option(
            "--blocks", metavar="AxBxC,...", help="Blocks of the array per rank, without ghost layers."
        ),
    ] = None,
    codecs: RoundingOption = None,
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="|".join(HALO_TYPES), help="Type of the array's elements.")
    ] = HALO_TYPES[0],
) -> None:
    """Exchange the ghost layers of an array, including packing and unpacking."""
    chosen = HALO_BLOCKS if blocks is None else _blocks(blocks)
    rounding = codecs_beside_raw(codecs)
    if dtype not in HALO_TYPES:
        raise BadInput(f"expected --dtype among {', '.join(HALO_TYPES)}, found {dtype!r}")

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return halo_exchange(group, settings, advance, chosen, rounding, dtype)

    start.run(measure, len(chosen) * len(HALO_CASES))


@on_ranks(12)
def bench_poisson(
    start: Start,
    enlarge: Annotated[
        str | None,
        typer.Option(
            "--enlarge",
            metavar="1,16,...",
            help="Factors by which messages are lengthened, separated by commas.",
        ),
    ] = None,
    local: Annotated[int, typer.Option(help="Sites of a rank's block in each dimension.")] = 60,
) -> None:
    """Run one iteration of the Poisson solver. The speed of light is its computation alone."""
    chosen = POISSON_ENLARGEMENTS if enlarge is None else parse_sizes(enlarge)
    if local < 1 or min(chosen) < 1:
        raise BadInput(f"expected --local and --enlarge of at least 1, found {local} and {min(chosen)}")

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return poisson(group, settings, advance, chosen, local)

    start.run(measure, len(chosen))


@on_ranks(20, hosts=True)
def bench_allreduce(
    start: Start,
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
    in_place: Annotated[
        bool,
        typer.Option("--in-place", help="One array is source and result, as in torch.distributed; raw only."),
    ] = False,
) -> None:
    """Sum float32 arrays over all ranks, with the columns of nccl-tests.

    The peers are MPI_Allreduce, the algorithm of vLLM's CPU backend (on one machine, up to 8 ranks) and, if torch is
    installed, gloo.
    """
    chosen = ALLREDUCE_SIZES if sizes is None else parse_sizes(sizes)
    if min(chosen) < 4:
        raise BadInput(f"expected --sizes of at least 4 bytes (one float32), found {min(chosen)}")
    _check_codecs(codecs)
    if in_place and (codecs != "raw" or link_rate is not None):
        raise BadInput("expected --in-place without --codecs and --link, found one of them")
    if link_rate is not None:
        if start.hosts is not None:
            raise BadInput("--link and --hosts both emulate hosts: give one of them")
        if current_launch() is not None or start.ranks not in (None, HOSTS):
            raise BadInput(
                f"--link starts its own {counted(HOSTS, 'rank')}: run it by itself, without a launch or -n"
            )
        lengths = LINK_SIZES if sizes is None else chosen
        seconds = 1.0 if start.quick else start.seconds
        result = link(link_rate, lengths, codecs.split(","), seconds, start.mpi)
        show(result, start.json_target, start.plot, make_link_table)
        return

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return allreduce(group, settings, advance, chosen, codecs.split(","), in_place)

    start.run(measure, len(chosen), table=make_allreduce_table)


@on_ranks(40, hosts=True)
def bench_collectives(
    start: Start,
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", metavar="64,1K,...", help="Bytes of the whole array, separated by commas."),
    ] = None,
    operations: Annotated[
        str,
        typer.Option("--operations", metavar="allgather,...", help="Operations, separated by commas."),
    ] = ",".join(COLLECTIVES),
) -> None:
    """Reduce-scatter, all-gather, broadcast and all-to-all of float32, beside MPI and, with torch, gloo."""
    chosen = COLLECTIVE_SIZES if sizes is None else parse_sizes(sizes)
    names = operations.split(",")
    unknown = [one for one in names if one not in COLLECTIVES]
    if unknown:
        raise BadInput(f"expected --operations among {', '.join(COLLECTIVES)}, found {unknown[0]!r}")

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return collectives(group, settings, advance, chosen, names)

    start.run(measure, len(chosen) * len(names), table=make_collective_table)


@on_ranks(10)
def bench_ring(start: Start) -> None:
    """Send 64 bytes from every rank to the next one, also with more ranks than cores."""
    start.run(ring, 2, default=4)


@on_ranks(15, ranks=False)
def bench_codec(
    start: Start,
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes", metavar="64K,64M,...", help="Bytes of the float32 arrays, separated by commas."
        ),
    ] = None,
    codecs: Annotated[
        str, typer.Option("--codecs", metavar="q8,...", help="Codecs, separated by commas.")
    ] = ",".join(CODECS[1:]),
) -> None:
    """Encode and decode on one core. The speed of light is a copy of the same numbers."""
    chosen = CODEC_SIZES if sizes is None else parse_sizes(sizes)
    _check_codecs(codecs)
    names = codecs.split(",")

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return codec(group, settings, advance, chosen, names)

    cases = len(chosen) * len(names) * len(CODEC_STEPS)
    start.run(measure, cases, default=1, peers=False)
