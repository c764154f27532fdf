"""`onehop lattice convert`: a gauge field from one format into another."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from onehop.cli.common import JsonOption, RanksOption, console, own_rank, write_json
from onehop.cli.lattice.common import GridOption, check_tolerance, numbers, say_unverified
from onehop.cli.lattice.measure import FileArgument, ToleranceOption, report_of
from onehop.group import Group
from onehop.lattice import read_gauge, write_gauge
from onehop.lattice.files import check_gauge_target
from onehop.launch import ensure_ranks

OutputOption = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="Write the gauge field to FILE.")
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="nersc|ildg|milc",
        help="Output format. Default: by the file name, .lime means ILDG.",
    ),
]
PrecisionOption = Annotated[
    int | None, typer.Option(metavar="32|64", help="Bits per number. Default: 64, or 32 for MILC.")
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Overwrite an existing file.")]


def convert(
    file: FileArgument,
    output: OutputOption,
    format_name: FormatOption = None,
    precision: PrecisionOption = None,
    overwrite: OverwriteOption = False,
    reunitarise: Annotated[
        bool, typer.Option("--reunitarise", help="Project every link back to SU(3) before writing.")
    ] = False,
    grid: GridOption = None,
    ranks: RanksOption = None,
    tolerance: ToleranceOption = 1e-4,
    json_target: JsonOption = None,
) -> None:
    """Read and verify a gauge field, and write it in another format with new checksums."""
    check_tolerance(tolerance, "--tolerance")
    check_gauge_target(output, format_name, precision, overwrite)
    ensure_ranks(ranks)
    group = Group.world()
    cut = numbers(grid, "--grid")
    gauge, found = read_gauge(file, group, cut, tolerance=tolerance)
    say_unverified(file, found.has_checksum, json_target)
    if reunitarise:
        gauge.reunitarise()
    write_gauge(output, gauge, format_name, precision=precision, overwrite=overwrite)
    # --tolerance applies to the input file only: with fewer bits, links may deviate slightly more.
    _, written = read_gauge(output, group, cut, tolerance=math.inf)
    if own_rank() != 0:
        return
    console(json_target).print(
        f"{output}: {written.format}, {written.precision} bits, plaquette {written.plaquettes.all:.9g}",
        markup=False,
    )
    write_json(json_target, report_of(written))
