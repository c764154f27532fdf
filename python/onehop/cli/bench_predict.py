"""`onehop bench predict`: measured times beside those that `onehop simulate` predicts."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from onehop.bench.predict import BENCHES, predictions, read_bench
from onehop.bench.table import number
from onehop.cli.common import JsonOption, console, write_json
from onehop.machine import load_machine


def bench_predict(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help=f"JSON of onehop bench {', '.join(BENCHES)} with two ranks."),
    ],
    machine: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE.toml", help="Machine, such as the file of onehop tune --machine-file."
        ),
    ],
    json_target: JsonOption = None,
) -> None:
    """Compare measured times with those that onehop simulate predicts."""
    described = load_machine(machine)
    rows = [row for file in files for row in predictions(read_bench(file), described)]
    table = Table("bench", "case", "measured, µs", "predicted, µs", "factor", title=f"on {described.name}")
    for row in rows:
        table.add_row(
            row.bench, row.case, number(row.measured_us), number(row.predicted_us), f"{row.factor:.2f}"
        )
    screen = console(json_target)
    screen.print(table)
    summary = {}
    for bench in dict.fromkeys(row.bench for row in rows):
        factors = [row.factor for row in rows if row.bench == bench]
        summary[bench] = {"median_factor": float(np.median(factors)), "largest_factor": max(factors)}
        screen.print(f"{bench}: median factor {np.median(factors):.2f}, largest {max(factors):.2f}")
    write_json(
        json_target, {"machine": described.name, "rows": [row.to_dict() for row in rows], "summary": summary}
    )
