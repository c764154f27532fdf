"""`onehop lattice convert`: a gauge field from one format into another."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from onehop.cli.common import JsonOption, RanksOption, console, own_rank, write_json
from onehop.cli.lattice.common import GridOption, check_tolerance, numbers
from onehop.cli.lattice.measure import FileArgument, ToleranceOption, report_of
from onehop.group import Group
from onehop.lattice import read_gauge, write_gauge
from onehop.lattice.files import check_gauge_target
from onehop.launch import ensure_ranks

OutputOption = Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="Where to write it.")]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", metavar="nersc|ildg|milc", help="By default as the name ends: .lime is ILDG."),
]
PrecisionOption = Annotated[
    int | None, typer.Option(metavar="32|64", help="Bits of a number; by default 64, with MILC 32.")
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")]


def convert(
    file: FileArgument,
    output: OutputOption,
    format_name: FormatOption = None,
    precision: PrecisionOption = None,
    overwrite: OverwriteOption = False,
    reunitarise: Annotated[
        bool, typer.Option("--reunitarise", help="Bring every link back to SU(3) before writing it.")
    ] = False,
    grid: GridOption = None,
    ranks: RanksOption = None,
    tolerance: ToleranceOption = 1e-4,
    json_target: JsonOption = None,
) -> None:
    """Read a gauge field, check it, and write it in another format, with checksums of its own."""
    check_tolerance(tolerance, "--tolerance")
    check_gauge_target(output, format_name, precision, overwrite)
    ensure_ranks(ranks)
    group = Group.world()
    cut = numbers(grid, "--grid")
    gauge, _ = read_gauge(file, group, cut, tolerance=tolerance)
    if reunitarise:
        gauge.reunitarise()
    write_gauge(output, gauge, format_name, precision=precision, overwrite=overwrite)
    # How far links may be from SU(3) was asked of the file that was read; fewer bits may take them a little farther.
    _, written = read_gauge(output, group, cut, tolerance=math.inf)
    if own_rank() != 0:
        return
    console(json_target).print(
        f"{output}: {written.format}, {written.precision} bits, plaquette {written.plaquettes.all:.9g}",
        markup=False,
    )
    write_json(json_target, report_of(written))
