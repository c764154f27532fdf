"""`onehop lattice measure`: what a gauge field in a file is like."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from onehop.cli.common import JsonOption, RanksOption, console, own_rank, write_json
from onehop.cli.lattice.common import GridOption, numbers
from onehop.group import Group
from onehop.lattice import GaugeFile, read_gauge
from onehop.launch import ensure_ranks

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="A gauge field: MILC 5, NERSC, ILDG, SciDAC or openQCD.")
]
ToleranceOption = Annotated[float, typer.Option(help="How far from SU(3) a link may be.")]


def report_of(file: GaugeFile) -> dict[str, object]:
    """What `--json` gets."""
    return {
        "file": file.path,
        "format": file.format,
        "extent": list(file.extents),
        "precision": file.precision,
        "plaquette": file.plaquettes.all,
        "plaquette_space": file.plaquettes.space,
        "plaquette_time": file.plaquettes.time,
        "link_trace": file.link_trace,
        "checksums": {name: f"{value:08x}" for name, value in file.checksums.items()},
    }


def measure(
    file: FileArgument,
    grid: GridOption = None,
    ranks: RanksOption = None,
    tolerance: ToleranceOption = 1e-4,
    json_target: JsonOption = None,
) -> None:
    """Read a gauge field, check it against what its file says, and measure plaquettes and link trace.

    All are averages of Re tr / 3, so 1 for unit links.
    """
    ensure_ranks(ranks)
    _, found = read_gauge(file, Group.world(), numbers(grid, "--grid"), tolerance=tolerance)
    if own_rank() != 0:
        return
    report = report_of(found)
    extents = "x".join(map(str, found.extents))
    table = Table("", "", title=f"{extents}, {found.format}, {found.precision} bits", show_header=False)
    for name in ("plaquette", "plaquette_space", "plaquette_time", "link_trace"):
        table.add_row(name.replace("_", " "), f"{report[name]:.9g}")
    for name, value in found.checksums.items():
        table.add_row(name, f"{value:08x}")
    console(json_target).print(table)
    write_json(json_target, report)
