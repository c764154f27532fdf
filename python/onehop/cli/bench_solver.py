"""`onehop bench solver`: solves with the staggered operator."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.bench.lattice_solver import SOLVER_BLOCKS, lattice_solver
from onehop.bench.run import Settings
from onehop.bench.table import make_table
from onehop.cli.bench_dslash import BlocksOption, blocks_of
from onehop.cli.bench_options import QuickOption
from onehop.cli.common import JsonOption, MpiOption, RanksOption, console, progress, write_json
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks_beside_mpi


def bench_solver(
    blocks: BlocksOption = None,
    mass: Annotated[float, typer.Option(help="Of the single solves, above 0.")] = 0.05,
    tolerance: Annotated[float, typer.Option(help="Of |b - M x| / |b|.")] = 1e-10,
    ranks: RanksOption = None,
    mpi: MpiOption = "none",
    quick: QuickOption = False,
    json_target: JsonOption = None,
) -> None:
    """HISQ: solves with half, single and double precision inside, and iterations of a multi-mass solve."""
    chosen = blocks_of(blocks, SOLVER_BLOCKS)
    if not (mass > 0 and tolerance > 0):
        raise BadInput(f"expected --mass and --tolerance above 0, found {mass:g} and {tolerance:g}")
    ensure_ranks_beside_mpi(ranks, mpi, default=2)
    with progress("measuring", len(chosen)) as advance:
        result = lattice_solver(Group.world(), Settings(quick=quick), advance, chosen, mass, tolerance)
    screen = console(json_target)
    screen.print(make_table(result))
    for note in result.notes:
        screen.print(note, markup=False)
    write_json(json_target, result.to_dict())
