"""`onehop bench su3`: the algebra of SU(3) for arrays of sites."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import JsonOption, RanksOption, check_plot, check_seconds, progress
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks
from onehop_bench.bars import save_rate_plot
from onehop_bench.commands.options import PlotOption, QuickOption, SecondsOption
from onehop_bench.commands.show import show
from onehop_bench.run import Settings
from onehop_bench.sizes import parse_sizes
from onehop_bench.su3 import SU3_OPERATIONS, SU3_SITES, su3


def bench_su3(
    sites: Annotated[
        str | None,
        typer.Option("--sites", metavar="64,1K,...", help="Numbers of sites of the arrays; multiples of 16."),
    ] = None,
    operations: Annotated[
        str,
        typer.Option(
            "--operations",
            metavar="vectors,matrices,...",
            help="Operations, separated by commas: vectors, matrices, exponentials, reunitarise.",
        ),
    ] = "vectors,matrices",
    ranks: RanksOption = None,
    seconds: SecondsOption = 12,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Multiply 3x3 matrices by vectors and matrices.

    The peer is code for one site; the speed of light is the processor's.
    """
    check_seconds(seconds)
    chosen = SU3_SITES if sites is None else parse_sizes(sites)
    names = operations.split(",")
    unknown = [name for name in names if name not in SU3_OPERATIONS]
    if unknown:
        raise BadInput(f"expected --operations among {', '.join(SU3_OPERATIONS)}, found {unknown[0]!r}")
    if any(count < 16 or count % 16 for count in chosen):
        raise BadInput(f"expected --sites as multiples of 16, found {sites!r}")
    check_plot(plot)
    ensure_ranks(ranks)
    with progress("measuring", len(chosen) * len(names) * 2) as advance:
        result = su3(Group.world(), Settings(seconds, quick), advance, chosen, names)
    show(result, json_target, plot, draw=save_rate_plot)
