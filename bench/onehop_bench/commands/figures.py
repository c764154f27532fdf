"""`onehop bench all` and `onehop bench figures`: the results of `make bench`, and the figures of the documentation."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from onehop.cli.common import print_error
from onehop.error import BadInput, Error
from onehop.launch.interpreter import python_module
from onehop.options import Options, argument, option
from onehop.output import make_folder
from onehop.text import counted
from onehop_bench.figures import FIGURES, draw_figure
from onehop_bench.recipes import RECIPES, command_text, recipe

__all__ = ["bench_all", "bench_figures"]

_RESULTS = ("results", "Folder of the results, NAME.json.", "--results")


@dataclass(kw_only=True)
class All(Options):
    """The options of `onehop bench all`."""

    names: list[str] = argument("NAME", "Results to make. All by default.", [], choices=tuple(RECIPES))
    results: str = option(*_RESULTS, metavar="FOLDER")
    quick: bool = option(False, "Measure as briefly as possible. The figures then mean little.")


def bench_all(options: All) -> None:
    """Run every benchmark of `make bench` and write its result as JSON.

    A benchmark that fails does not stop the others. On two cores all of them take about 15 minutes.
    """
    chosen = options.names or list(RECIPES)
    results = Path(options.results)
    make_folder(results, "--results")
    failed = []
    for name in chosen:
        arguments = recipe(name, results, quick=options.quick)
        print(f"\nonehop {' '.join(arguments)}", flush=True)
        if subprocess.run(python_module("onehop", *arguments), check=False).returncode != 0:
            failed.append(name)
    if failed:
        commands = "; ".join(f"`{command_text(name, results, quick=options.quick)}`" for name in failed)
        raise Error(f"{len(failed)} of {counted(len(chosen), 'benchmark')} failed: {commands}")


@dataclass(kw_only=True)
class Figures(Options):
    """The options of `onehop bench figures`."""

    names: list[str] = argument("NAME", "Figures to draw. All by default.", [], choices=tuple(FIGURES))
    results: str = option(*_RESULTS, metavar="FOLDER")
    folder: str = option("build/figures", "Folder in which NAME.svg is written.", "--to", metavar="FOLDER")


def bench_figures(options: Figures) -> None:
    """Draw the figures of the documentation from the results of `make bench`.

    A figure whose results are missing is left out, and the command that makes them is printed.
    """
    folder = Path(options.folder)
    make_folder(folder, "--to")
    missing: dict[str, BadInput] = {}
    for name in options.names or FIGURES:
        try:
            print(draw_figure(name, Path(options.results), folder), flush=True)
        except BadInput as error:
            missing[str(error)] = error
    for problem in missing.values():
        print_error(problem)
    if missing:
        raise BadInput(f"{len(missing)} of the results that figures need could not be used")
