"""`onehop bench predict`: measured times beside those that `onehop simulate` predicts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from onehop.bench.predict import BENCHES, predictions, read_bench
from onehop.bench.table import number
from onehop.cli.common import JsonOption, check_seconds, console, progress, write_json
from onehop.error import BadInput, Error
from onehop.launch.interpreter import package_environment, python_module
from onehop.machine import load_machine


def _measure(bench: str, seconds: float, folder: str) -> dict[str, Any]:
    """Run a benchmark on two ranks of this machine, and return its result."""
    file = Path(folder) / f"{bench}.json"
    command = ["bench", bench, "-n", "2", "--mpi", "none", "--seconds", f"{seconds:g}", "--json", str(file)]
    done = subprocess.run(
        python_module("onehop", *command),
        env=package_environment(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Error(f"onehop {' '.join(command[:4])} failed: {done.stderr.strip()}")
    return read_bench(str(file))


def _results(files: list[str], seconds: float | None) -> list[dict[str, Any]]:
    if files and seconds is not None:
        raise BadInput("expected --seconds without files only, found both; leave it out")
    if files:
        return [read_bench(file) for file in files]
    seconds = 40 if seconds is None else seconds
    check_seconds(seconds)
    found = []
    with TemporaryDirectory() as folder, progress("measuring", len(BENCHES)) as advance:
        for bench in BENCHES:
            found.append(_measure(bench, seconds / len(BENCHES), folder))
            advance(1)
    return found


def bench_predict(
    machine: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE.toml", help="Machine, such as the file of onehop tune --machine-file."
        ),
    ],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help=f"JSON of onehop bench {', '.join(BENCHES)} with two ranks. Without files, the command runs them.",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Time to measure all cases together (only without files). Default: 40. Starting the ranks of "
            f"{len(BENCHES)} benchmarks takes several seconds more.",
        ),
    ] = None,
    json_target: JsonOption = None,
) -> None:
    """Compare measured times with those that onehop simulate predicts."""
    described = load_machine(machine)
    rows = [row for result in _results(files or [], seconds) for row in predictions(result, described)]
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
