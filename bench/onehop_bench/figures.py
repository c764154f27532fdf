"""The figures of the README and of the pages on performance, drawn from the results of `make bench`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from onehop.cli.common import print_error
from onehop.error import BadInput, Error
from onehop.figure import empty_figure, save_figure
from onehop.input_file import read_json
from onehop.launch.interpreter import end_with_parent, python_module
from onehop.options import Options, argument, option
from onehop.output import make_folder
from onehop.text import counted
from onehop_bench.bars import Bar, draw_bars, draw_rates, save_circuit_plot, save_rate_plot, save_solver_plot
from onehop_bench.plot import (
    BEST_PEER,
    RAW,
    SPEED_OF_LIGHT,
    draw_known,
    draw_ours,
    limit_name,
    log_scale,
    row_axis,
    save_plot,
    shared_legend,
)
from onehop_bench.recipes import RECIPES, command_text, recipe
from onehop_bench.result import Bench, Row, machine_text
from onehop_bench.scaling import save_scaling_plot

WIDTH = 8.3  # inches; an SVG of this width is 800 pixels wide on a page
_RESULTS = ("results", "Folder of the results, NAME.json.", "--results")


@dataclass(frozen=True)
class Figure:
    """One figure: the names of the results that it shows, as in `recipes`, and what draws them into a file."""

    sources: tuple[str, ...]
    draw: Callable[[Sequence[Bench], str], None]


def read_result(name: str, folder: Path) -> Bench:
    """Read a result of `make bench`.

    Raise BadInput, which names the command that makes it, if it is missing or no result of this version.
    """
    file = folder / f"{name}.json"
    if not file.is_file():
        raise BadInput(f"cannot read {file} (it is no file): {_remedy(name, folder)}")
    try:
        return Bench.from_dict(read_json(file, "a result of a benchmark"))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadInput(
            f"{file} is no result of a benchmark of this version: {_remedy(name, folder)}"
        ) from error


def _remedy(name: str, folder: Path) -> str:
    return f"run `{command_text(name, folder)}`, or `make bench` for all results"


def draw_figure(name: str, results: Path, folder: Path) -> Path:
    """Draw a figure of `FIGURES` into `folder`, and return its file.

    Raise BadInput if a result is missing, or the file cannot be written.
    """
    figure = FIGURES[name]
    file = folder / f"{name}.svg"
    found = [read_result(source, results) for source in figure.sources]
    try:
        figure.draw(found, str(file))
    except Error:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        names = ", ".join(f"{source}.json" for source in figure.sources)
        raise BadInput(
            f"the values in {names} cannot be drawn ({error}): {_remedy(figure.sources[0], results)}"
        ) from error
    return file


def _draw_best(axes: Any, rows: Sequence[Row], label: str) -> None:
    """Draw lines over the size: onehop, the best peer of each size, and bare code."""
    rows = [row for row in rows if row.bytes]
    sizes = [row.bytes for row in rows]
    draw_known(axes, sizes, [row.best_peer_us for row in rows], label="best MPI call", **BEST_PEER)
    draw_known(axes, sizes, [row.limit_us for row in rows], label=limit_name(rows), **SPEED_OF_LIGHT)
    draw_ours(axes, rows, sizes, "onehop")
    row_axis(axes, rows, label)
    log_scale(axes)
    axes.set_ylabel("time in µs (median)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _side_by_side(results: Sequence[Bench], file: str, titles: Sequence[str], labels: Sequence[str]) -> None:
    figure = empty_figure(WIDTH, 4.2)
    for axes, result, title, label in zip(figure.subplots(1, 2), results, titles, labels, strict=True):
        _draw_best(axes, result.rows, label)
        axes.set_title(title.format(ranks=result.rows[0].ranks), fontsize=10)
    figure.suptitle(machine_text(results[0].host), fontsize=9, wrap=True)
    save_figure(figure, file)


def _quarks(results: Sequence[Bench], file: str) -> None:
    """Bars of the rates of the staggered and the Wilson operator."""
    figure = empty_figure(WIDTH, 7.5)
    titles = ("staggered (HISQ) hopping term", "Wilson hopping term")
    for axes, result, title in zip(figure.subplots(2, 1), results, titles, strict=True):
        draw_rates(axes, result.rows)
        axes.set_title(f"{title}, {result.rows[0].ranks} ranks", fontsize=10)
        per_rank = " per rank" in result.rows[0].case
        axes.set_xlabel(f"sites {'per rank' if per_rank else 'of all ranks'}, precision")
    figure.suptitle(machine_text(results[0].host), fontsize=9, wrap=True)
    save_figure(figure, file)


def _halo(results: Sequence[Bench], file: str) -> None:
    """Bars of onehop, of the best MPI call and of a bare copy, with a panel for each block.

    The copy is no limit: onehop takes less time where each element of a face has a cache line of its own.
    """
    blocks: dict[str, list[Row]] = {}
    for row in results[0].rows:
        blocks.setdefault(row.case.split(",")[0], []).append(row)
    figure = empty_figure(WIDTH, 4.2)
    panels = figure.subplots(1, len(blocks), squeeze=False)[0]
    for axes, (block, rows) in zip(panels, blocks.items(), strict=True):
        bars = [
            Bar("onehop", [row.ours_us for row in rows], "tab:red"),
            Bar("best MPI call", [row.best_peer_us for row in rows], "tab:blue"),
            Bar("bare copy into a slot, and a flag", [row.limit_us for row in rows], "tab:gray"),
        ]
        draw_bars(axes, bars, [row.case[len(block) + 2 :] or "all faces" for row in rows], legend=False)
        axes.set_title(f"{block} per rank, {rows[0].ranks} ranks", fontsize=10)
        axes.set_ylabel("time in µs (median)")
    shared_legend(figure, panels)
    figure.suptitle(machine_text(results[0].host), fontsize=9, wrap=True)
    save_figure(figure, file)


def _codecs(results: Sequence[Bench], file: str) -> None:
    """A panel for each codec, with the raw sum and the best MPI call, which take part in the same rounds."""
    codecs: dict[str, list[Row]] = {}
    for row in results[0].rows:
        codecs.setdefault(row.codec, []).append(row)
    raw = codecs.pop("raw")
    figure = empty_figure(WIDTH, 4.2)
    panels = figure.subplots(1, len(codecs), sharey=True, squeeze=False)[0]
    for axes, (codec, rows) in zip(panels, codecs.items(), strict=True):
        sizes = [row.bytes for row in rows]
        draw_known(axes, sizes, [row.best_peer_us for row in raw], label="best MPI call", **BEST_PEER)
        draw_known(axes, sizes, [row.ours_us for row in raw], label="onehop, raw", **RAW)
        draw_ours(axes, rows, sizes, "onehop, with the codec")
        row_axis(axes, rows, "size of the array")
        log_scale(axes)
        axes.set_title(codec, fontsize=10)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("time in µs (median)")
    shared_legend(figure, panels)
    figure.suptitle(machine_text(results[0].host), fontsize=9, wrap=True)
    save_figure(figure, file)


def _plain(source: str, draw: Callable[..., None] = save_plot, **options: Any) -> Figure:
    """What the benchmark draws with --plot."""
    return Figure((source,), lambda results, file: draw(results[0], file, **options))


_MESSAGES = partial(
    _side_by_side,
    titles=("one message, one way", "ten messages each way at once"),
    labels=("size of the message", "messages that a rank sends"),
)
_SUMS = partial(_side_by_side, titles=["sum of float32, {ranks} ranks"] * 2, labels=["size of the array"] * 2)
FIGURES = {
    "messages": Figure(("pingpong", "channel"), _MESSAGES),
    "circuits": _plain("circuits", save_circuit_plot, best=True, width=WIDTH),
    "quarks": Figure(("dslash", "wilson"), _quarks),
    "allreduce": Figure(("allreduce", "allreduce-4"), _SUMS),
    "pingpong": _plain("pingpong"),
    "channel": _plain("channel"),
    "halo": Figure(("halo",), _halo),
    "poisson": _plain("poisson"),
    "codecs": Figure(("allreduce-codecs",), _codecs),
    "simulators": _plain("circuits", save_circuit_plot),
    "permutation": _plain("permutation"),
    "scaling": _plain("scaling", save_scaling_plot),
    "smearing": _plain("smearing", save_rate_plot),
    "solver": _plain("solver", save_solver_plot),
}
"""All figures, by the name of their file."""


@dataclass(kw_only=True)
class All(Options):
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
        line = python_module("onehop", *arguments)
        if subprocess.run(line, check=False, preexec_fn=end_with_parent).returncode != 0:
            failed.append(name)
    if failed:
        commands = "; ".join(f"`{command_text(name, results, quick=options.quick)}`" for name in failed)
        raise Error(f"{len(failed)} of {counted(len(chosen), 'benchmark')} failed: {commands}")


@dataclass(kw_only=True)
class Figures(Options):
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
