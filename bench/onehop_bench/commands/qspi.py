"""`onehop bench qspi`: ping-pong and 5-D halo through the drop-in interface `qspi`."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import (
    JsonOption,
    MpiOption,
    RanksOption,
    check_plot,
    check_seconds,
    progress,
)
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks_beside_mpi
from onehop_bench.commands.options import PlotOption, QuickOption, SecondsOption
from onehop_bench.commands.show import show
from onehop_bench.qspi import QSPI_PATTERNS, QSPI_SIZES, qspi, save_qspi_plot
from onehop_bench.run import Settings
from onehop_bench.sizes import parse_sizes


def bench_qspi(
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", metavar="8,1K,...", help="Bytes per message; multiples of 8."),
    ] = None,
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    seconds: SecondsOption = 20,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Measure ping-pong and a 5-D halo exchange through the drop-in interface qspi.

    --plot draws the two figures of qspi's report.
    """
    check_seconds(seconds)
    if ranks not in (None, 2):
        raise BadInput(f"expected 2 ranks for this benchmark, found -n {ranks}; leave -n out")
    chosen = QSPI_SIZES if sizes is None else parse_sizes(sizes)
    if any(size < 8 or size % 8 for size in chosen):
        raise BadInput(f"expected --sizes as multiples of 8, found {sizes!r}")
    check_plot(plot)
    ensure_ranks_beside_mpi(ranks, mpi, default=2)
    with progress("measuring", len(QSPI_PATTERNS) * len(chosen)) as advance:
        result = qspi(Group.world(), Settings(seconds, quick), advance, chosen)
    show(result, json_target, plot, draw=save_qspi_plot)
