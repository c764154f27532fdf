"""`onehop bench smearing`: fat and long links."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import JsonOption, RanksOption, check_plot, check_seconds, progress
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks
from onehop_bench.bars import save_rate_plot
from onehop_bench.commands.dslash import BlocksOption, blocks_of
from onehop_bench.commands.options import (
    PlotOption,
    PrecisionsOption,
    QuickOption,
    SecondsOption,
    precisions_of,
)
from onehop_bench.commands.show import show
from onehop_bench.run import Settings
from onehop_bench.smearing import SMEARING_BLOCKS, SMEARING_KINDS, smearing


def bench_smearing(
    blocks: BlocksOption = None,
    kinds: Annotated[
        str, typer.Option("--kinds", metavar="fat7,asqtad,hisq", help="Kinds of links, separated by commas.")
    ] = "fat7,asqtad,hisq",
    precisions: PrecisionsOption = "single,double",
    ranks: RanksOption = None,
    seconds: SecondsOption = 16,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Compute the fat and long links of staggered quarks.

    The speed of light is the time to read and write all links once.
    """
    check_seconds(seconds)
    chosen = blocks_of(blocks, SMEARING_BLOCKS)
    names = kinds.split(",")
    unknown = [name for name in names if name not in SMEARING_KINDS]
    if unknown:
        raise BadInput(f"expected --kinds among {', '.join(SMEARING_KINDS)}, found {unknown[0]!r}")
    arithmetic = precisions_of(precisions)
    if any(extent < 2 or extent % 2 for block in chosen for extent in block):
        raise BadInput(f"expected --blocks of even extents, found {blocks!r}")
    check_plot(plot)
    ensure_ranks(ranks)
    with progress("measuring", len(chosen) * len(names) * len(arithmetic)) as advance:
        result = smearing(Group.world(), Settings(seconds, quick), advance, chosen, names, arithmetic)
    show(result, json_target, plot, draw=save_rate_plot)
