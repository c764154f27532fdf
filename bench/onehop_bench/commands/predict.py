"""`onehop bench predict`: measured times beside those that `onehop simulate` predicts."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onehop.cli.common import JsonOptions, console, progress, write_json
from onehop.cli.screen import Table
from onehop.cores import usable_cores
from onehop.error import BadInput, Error
from onehop.launch import current_launch
from onehop.launch.interpreter import package_environment, python_module
from onehop.machine import Machine, load_machine, parse_machine
from onehop.options import argument, option
from onehop.output import check_file_target, write_file
from onehop.place import private_folder
from onehop.text import number
from onehop.tune.machine_file import machine_text
from onehop.tune.machine_times import joined, times_from
from onehop_bench.predict import BENCHES, joined_benches, predictions, read_bench, turn_on_ranks

_DEFAULT_SECONDS = 40
_TURNS = 7


def _measure(bench: str, seconds: float, folder: Path) -> dict[str, Any]:
    """Run a benchmark on two ranks of this machine, and return its result."""
    file = folder / f"{bench}.json"
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
    seconds = _DEFAULT_SECONDS if seconds is None else seconds
    found = []
    with private_folder("onehop-predict-") as folder, progress("measuring", len(BENCHES)) as advance:
        for bench in BENCHES:
            found.append(_measure(bench, seconds / len(BENCHES), folder))
            advance(1)
    return found


def _measure_in_turns(seconds: float | None) -> tuple[str, list[dict[str, Any]]]:
    """Measure the machine and the benchmarks in turns, so that both meet the same states of the machine.

    Returns
    -------
    (str, list of dict)
        The text of the machine file, and the results.
    """
    seconds = _DEFAULT_SECONDS if seconds is None else seconds
    cores = usable_cores()
    if cores < 2:
        raise Error(
            "expected two cores for two ranks that run at the same time, found one; run this on more cores"
        )
    turns: list[dict[str, Any]] = []
    with progress("measuring", _TURNS) as advance:
        for _ in range(_TURNS):
            turns.append(turn_on_ranks(seconds / _TURNS))
            advance(1)
    samples = joined(turn["samples"] for turn in turns)
    text = machine_text(times_from(samples), cores, "onehop bench predict --tune")
    return text, [joined_benches([turn["benches"][bench] for turn in turns]) for bench in BENCHES]


@dataclass(kw_only=True)
class Predict(JsonOptions):
    """The options of `onehop bench predict`."""

    files: list[str] = argument(
        "FILE",
        f"JSON of onehop bench {', '.join(BENCHES)} with two ranks. Without files, the command runs them.",
        [],
    )
    machine: str | None = option(
        None, "Machine, such as the file of onehop tune --machine-file.", metavar="NAME|FILE.toml"
    )
    tune: bool = option(
        False,
        "Instead of --machine: measure this machine in turns with the benchmarks, because times of memory change "
        "within seconds.",
    )
    machine_file: str | None = option(
        None,
        "With --tune: also write this machine's file.",
        metavar="FILE.toml",
        writes="the machine",
    )
    seconds: float | None = option(
        None,
        f"Time to measure all cases together (only without files). Default: {_DEFAULT_SECONDS}. Starting the ranks of "
        f"{len(BENCHES)} benchmarks takes several seconds more, and --tune about 90 s more for large arrays.",
        metavar="SECONDS",
        above=0,
    )


def _compared(options: Predict) -> tuple[Machine, list[dict[str, Any]]]:
    """Return the machine, and the results to compare with it."""
    machine, tune, machine_file = options.machine, options.tune, options.machine_file
    files, seconds = options.files, options.seconds
    if (machine is None) == (not tune):
        found = "neither" if machine is None else "both"
        raise BadInput(f"expected either --machine or --tune, found {found}")
    if machine_file is not None:
        if not tune:
            raise BadInput("expected --machine-file with --tune only, found it with --machine")
        check_file_target(machine_file, "--machine-file")
    if machine is not None:
        return load_machine(machine), _results(files, seconds)
    if files:
        raise BadInput("expected --tune without files, found both: --tune runs the benchmarks itself")
    if current_launch() is not None:
        raise BadInput("expected no launch, because --tune starts its own ranks, found one; run it by itself")
    text, results = _measure_in_turns(seconds)
    if machine_file is not None:
        write_file(machine_file, text, "the machine")
    return parse_machine(text, "this-machine"), results


def bench_predict(options: Predict) -> None:
    """Compare measured times with those that onehop simulate predicts."""
    described, results = _compared(options)
    rows = [row for result in results for row in predictions(result, described)]
    table = Table("bench", "case", "measured, µs", "predicted, µs", "factor", title=f"on {described.name}")
    for row in rows:
        table.add_row(
            row.bench, row.case, number(row.measured_us), number(row.predicted_us), f"{row.factor:.2f}"
        )
    screen = console(options.json)
    screen.print(table)
    summary = {}
    for bench in dict.fromkeys(row.bench for row in rows):
        factors = [row.factor for row in rows if row.bench == bench]
        summary[bench] = {"median_factor": float(np.median(factors)), "largest_factor": max(factors)}
        screen.print(f"{bench}: median factor {np.median(factors):.2f}, largest {max(factors):.2f}")
    write_json(
        options.json, {"machine": described.name, "rows": [row.to_dict() for row in rows], "summary": summary}
    )
