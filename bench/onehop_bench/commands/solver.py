"""`onehop bench solver`: solves with the staggered operator."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import JsonOption, MpiOption, RanksOption, check_plot, check_seconds, progress
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks_beside_mpi
from onehop_bench.bars import save_solver_plot
from onehop_bench.commands.dslash import BlocksOption, blocks_of
from onehop_bench.commands.options import PlotOption, QuickOption, SecondsOption, ThreadsOption
from onehop_bench.commands.show import show
from onehop_bench.lattice_solver import SOLVER_BLOCKS, lattice_solver
from onehop_bench.run import Settings


def bench_solver(
    blocks: BlocksOption = None,
    mass: Annotated[float, typer.Option(help="Quark mass of the solves for one mass; above 0.")] = 0.05,
    tolerance: Annotated[
        float, typer.Option(help="Relative residual |b - M x| / |b| at which a solve ends.")
    ] = 1e-10,
    threads: ThreadsOption = 0,
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    seconds: SecondsOption = 60,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Solve with the HISQ operator in half, single and double precision.

    Iterations are also compared with plain MPI and scalar code.
    """
    check_seconds(seconds)
    chosen = blocks_of(blocks, SOLVER_BLOCKS)
    if not (mass > 0 and tolerance > 0):
        raise BadInput(f"expected --mass and --tolerance above 0, found {mass:g} and {tolerance:g}")
    check_plot(plot)
    # One rank sends no messages, and an mpiexec would bind it to one core.
    ensure_ranks_beside_mpi(ranks, "none" if ranks == 1 and mpi is None else mpi, default=2)
    settings = Settings(seconds, quick)
    with progress("measuring", len(chosen)) as advance:
        result = lattice_solver(Group.world(), settings, advance, chosen, mass, tolerance, threads)
    show(result, json_target, plot, draw=save_solver_plot)
