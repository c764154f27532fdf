"""`onehop lattice convert`: a gauge field from one format into another."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onehop.cli.common import console, own_rank, write_json
from onehop.cli.lattice.common import FileOptions, GaugeOptions, note_of, report_of, say_about
from onehop.group import Group
from onehop.lattice import read_gauge, write_gauge
from onehop.lattice.files import check_gauge_target
from onehop.launch import ensure_ranks
from onehop.options import option


@dataclass(kw_only=True)
class Convert(FileOptions, GaugeOptions):
    output: str = option(
        ...,
        "Write the gauge field to FILE.",
        *("-o", "--output"),
        metavar="FILE",
        writes="the gauge field",
    )
    reunitarise: bool = option(False, "Project every link back to SU(3) before writing.")


def convert(options: Convert) -> None:
    """Read and verify a gauge field, and write it in another format with new checksums."""
    check_gauge_target(options.output, **options.how())
    ensure_ranks(options.ranks)
    group = Group.world()
    gauge, found = read_gauge(
        options.file, group, options.grid, tolerance=options.tolerance, accept_open=True, **options.reading()
    )
    say_about(found, options.json)
    if options.reunitarise:
        gauge.reunitarise()
    write_gauge(options.output, gauge, **options.how(), note=note_of(found))
    # --tolerance applies to the input file only: with fewer bits, links may deviate slightly more.
    _, written = read_gauge(options.output, group, options.grid, tolerance=math.inf, accept_open=True)
    if own_rank() != 0:
        return
    console(options.json).print(
        f"{written.format}, {written.precision} bits, plaquette {written.plaquettes.all:.9g}"
    )
    write_json(options.json, report_of(written))
