"""`onehop bench all` and `onehop bench figures`: the results of `make bench`, and the figures of the documentation."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Annotated

import typer

from onehop.cli.common import print_error
from onehop.error import BadInput, Error
from onehop.launch.interpreter import python_module
from onehop.output import make_folder
from onehop.text import counted
from onehop_bench.commands.options import QuickOption
from onehop_bench.figures import FIGURES, draw_figure
from onehop_bench.recipes import RECIPES, command_text, recipe

__all__ = ["bench_all", "bench_figures"]

ResultsOption = Annotated[
    Path, typer.Option("--results", metavar="FOLDER", help="Folder of the results, NAME.json.")
]


def _chosen(names: list[str] | None, known: dict[str, object]) -> list[str]:
    """The names that were asked for, or all."""
    for name in names or []:
        if name not in known:
            raise BadInput(f"expected names among {', '.join(known)}, found {name!r}")
    return names or list(known)


def bench_all(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Results to make. All by default.")
    ] = None,
    results: ResultsOption = Path("results"),
    quick: QuickOption = False,
) -> None:
    """Run every benchmark of `make bench` and write its result as JSON.

    A benchmark that fails does not stop the others. On two cores all of them take about 15 minutes.
    """
    chosen = _chosen(names, dict(RECIPES))
    make_folder(results, "--results")
    failed = []
    for name in chosen:
        arguments = recipe(name, results, quick=quick)
        print(f"\nonehop {' '.join(arguments)}", flush=True)
        if subprocess.run(python_module("onehop", *arguments), check=False).returncode != 0:
            failed.append(name)
    if failed:
        commands = "; ".join(f"`{command_text(name, results, quick=quick)}`" for name in failed)
        raise Error(f"{len(failed)} of {counted(len(chosen), 'benchmark')} failed: {commands}")


def bench_figures(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Figures to draw. All by default.")
    ] = None,
    results: ResultsOption = Path("results"),
    folder: Annotated[
        Path, typer.Option("--to", metavar="FOLDER", help="Folder in which NAME.svg is written.")
    ] = Path("build/figures"),
) -> None:
    """Draw the figures of the documentation from the results of `make bench`.

    A figure whose results are missing is left out, and the command that makes them is printed.
    """
    chosen = _chosen(names, dict(FIGURES))
    make_folder(folder, "--to")
    missing: dict[str, BadInput] = {}
    for name in chosen:
        try:
            print(draw_figure(name, results, folder), flush=True)
        except BadInput as error:
            missing[str(error)] = error
    for problem in missing.values():
        print_error(problem)
    if missing:
        raise BadInput(f"{len(missing)} of the results that figures need could not be used")
