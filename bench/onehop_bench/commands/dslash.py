"""`onehop bench dslash`: the staggered hopping term."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import JsonOption, MpiOption, RanksOption, check_plot, check_seconds, progress
from onehop.cli.lattice.common import numbers
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks_beside_mpi
from onehop_bench.bars import save_rate_plot
from onehop_bench.commands.options import (
    PlotOption,
    PrecisionsOption,
    QuickOption,
    SecondsOption,
    ThreadsOption,
    precisions_of,
)
from onehop_bench.commands.show import show
from onehop_bench.dslash import DSLASH_BLOCKS, dslash, improvements
from onehop_bench.run import Settings

BlocksOption = Annotated[
    str | None,
    typer.Option(
        "--blocks",
        metavar="12x12x12x12,...",
        help="Lattice blocks of a rank. The lattice is divided along the last direction.",
    ),
]


def blocks_of(text: str | None, default: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Parse the value of `--blocks`, or return `default` for None.

    Raises
    ------
    BadInput
        A block does not have exactly four directions.
    """
    if text is None:
        return default
    found = [numbers(block, "--blocks") for block in text.split(",")]
    chosen = tuple(block for block in found if block is not None and len(block) == 4)
    if len(chosen) != len(found):
        raise BadInput(f"expected --blocks of four directions, found {text!r}")
    return chosen


def bench_dslash(
    blocks: BlocksOption = None,
    precisions: PrecisionsOption = "single,double",
    table: Annotated[
        bool,
        typer.Option(
            "--improvements",
            help="Measure all combinations of SIMD, direct put, mapping and ordering instead.",
        ),
    ] = False,
    threads: ThreadsOption = 0,
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    seconds: SecondsOption = 16,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Apply the HISQ hopping term to the sites of one parity.

    The speed of light is the time to read as many bytes as it must move.
    """
    check_seconds(seconds)
    chosen = blocks_of(blocks, DSLASH_BLOCKS)
    names = precisions_of(precisions)
    check_plot(plot)
    # One rank sends no messages, and an mpiexec would bind it to one core.
    ensure_ranks_beside_mpi(ranks, "none" if ranks == 1 and mpi is None else mpi, default=2)
    group, settings = Group.world(), Settings(seconds, quick)
    with progress("measuring", 1 if table else len(chosen) * len(names)) as advance:
        if table:
            block = (12, 12, 12, 12) if blocks is None else chosen[0]
            result = improvements(group, settings, advance, block, names[0])
        else:
            result = dslash(group, settings, advance, chosen, names, threads)
    show(result, json_target, plot, draw=save_rate_plot)
