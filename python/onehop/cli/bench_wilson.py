"""`onehop bench wilson`: the Wilson hopping term, with and without the clover term."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.bench.run import Settings
from onehop.bench.table import make_table
from onehop.bench.wilson import WILSON_LATTICES, WILSON_WAYS, wilson
from onehop.cli.bench_options import QuickOption, SecondsOption
from onehop.cli.common import JsonOption, MpiOption, RanksOption, check_seconds, console, progress, write_json
from onehop.cli.lattice.common import numbers
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks_beside_mpi


def bench_wilson(
    lattices: Annotated[
        str | None, typer.Option("--lattices", metavar="16x16x16x16,...", help="Of all ranks together.")
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="--lattices are those of one rank; the last direction is cut.")
    ] = False,
    ways: Annotated[
        str, typer.Option("--ways", metavar="double,single-12,...", help="See the docs for all of them.")
    ] = "double,double-12,single,single-12",
    threads: Annotated[int, typer.Option(min=0, max=1024, help="Of a rank; 0: as many as it has cores.")] = 0,
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    seconds: SecondsOption = 16,
    quick: QuickOption = False,
    json_target: JsonOption = None,
) -> None:
    """One application to the sites of one colour; the limit is moving as many bytes as it must."""
    check_seconds(seconds)
    chosen = WILSON_LATTICES
    if lattices is not None:
        found = [numbers(text, "--lattices") for text in lattices.split(",")]
        chosen = tuple(extents for extents in found if extents is not None and len(extents) == 4)
        if len(chosen) != len(found):
            raise BadInput(f"expected --lattices of four directions, found {lattices!r}")
    names = ways.split(",")
    unknown = [name for name in names if name not in WILSON_WAYS]
    if unknown:
        raise BadInput(f"expected --ways among {', '.join(WILSON_WAYS)}, found {unknown[0]!r}")
    # One rank has nobody to send to, and under an mpiexec it would have one core.
    ensure_ranks_beside_mpi(ranks, "none" if ranks in (None, 1) and mpi is None else mpi, default=1)
    with progress("measuring", len(chosen) * len(names)) as advance:
        result = wilson(Group.world(), Settings(seconds, quick), advance, chosen, names, local, threads)
    screen = console(json_target)
    screen.print(make_table(result))
    for note in result.notes:
        screen.print(note, markup=False)
    write_json(json_target, result.to_dict())
