"""`onehop bench wilson`: the Wilson hopping term, with and without the clover term."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import (
    JsonOption,
    MpiOption,
    RanksOption,
    check_plot,
    check_seconds,
    current_value,
    progress,
    renamed_option,
)
from onehop.cli.lattice.common import numbers
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks_beside_mpi
from onehop_bench.bars import save_rate_plot
from onehop_bench.commands.options import PlotOption, QuickOption, SecondsOption, ThreadsOption
from onehop_bench.commands.show import show
from onehop_bench.run import Settings
from onehop_bench.wilson import WILSON_LATTICES, WILSON_VARIANTS, wilson

_DEFAULT_VARIANTS = "single,single-12,double,double-12"


def _lattices_of(text: str | None) -> tuple[tuple[int, ...], ...]:
    if text is None:
        return WILSON_LATTICES
    found = [numbers(lattice, "--lattices") for lattice in text.split(",")]
    chosen = tuple(extents for extents in found if extents is not None and len(extents) == 4)
    if len(chosen) != len(found):
        raise BadInput(f"expected --lattices of four directions, found {text!r}")
    return chosen


def _variants_of(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in WILSON_VARIANTS]
    if unknown:
        raise BadInput(f"expected --variants among {', '.join(WILSON_VARIANTS)}, found {unknown[0]!r}")
    return names


def bench_wilson(
    context: typer.Context,
    lattices: Annotated[
        str | None,
        typer.Option(
            "--lattices",
            metavar="16x16x16x16,...",
            help="Lattices, shared by all ranks, separated by commas.",
        ),
    ] = None,
    local: Annotated[
        bool,
        typer.Option(
            "--local",
            help="Read --lattices as those of one rank. The lattice is divided along the last direction.",
        ),
    ] = False,
    variants: Annotated[
        str,
        typer.Option(
            "--variants",
            metavar="double,single-12,...",
            help="Variants: double, single, half, clover, clover-double or clover-half, each also with -12 for 12 "
            "real numbers per link instead of 18.",
        ),
    ] = _DEFAULT_VARIANTS,
    ways: Annotated[str | None, renamed_option("--ways")] = None,
    threads: ThreadsOption = 0,
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    seconds: SecondsOption = 16,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Apply the Wilson hopping term to the sites of one parity.

    The speed of light is the time to move as many bytes as the term must move.
    """
    variants = current_value(context, "--ways", "--variants")
    check_seconds(seconds)
    chosen = _lattices_of(lattices)
    names = _variants_of(variants)
    check_plot(plot)
    # One rank sends no messages, and an mpiexec would bind it to one core.
    ensure_ranks_beside_mpi(ranks, "none" if ranks in (None, 1) and mpi is None else mpi, default=1)
    with progress("measuring", len(chosen) * len(names)) as advance:
        result = wilson(Group.world(), Settings(seconds, quick), advance, chosen, names, local, threads)
    show(result, json_target, plot, draw=save_rate_plot)
