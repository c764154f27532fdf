"""The figures of the README and of the pages on performance, drawn from the results of `make bench`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from onehop.error import BadInput, Error
from onehop.figure import empty_figure, save_figure
from onehop.json_file import read_json
from onehop_bench.allreduce import AllReduceRow
from onehop_bench.bars import Bar, draw_bars, draw_rates, save_rate_plot, save_solver_plot
from onehop_bench.circuits import CircuitRow
from onehop_bench.circuits_table import save_circuit_plot
from onehop_bench.overlap import OverlapRow
from onehop_bench.permutation import PermutationRow
from onehop_bench.plot import (
    OURS,
    SPEED_OF_LIGHT,
    draw_known,
    log_scale,
    row_axis,
    save_plot,
    shared_legend,
    time_unit,
)
from onehop_bench.recipes import command_text
from onehop_bench.result import Bench, FlopRow, Row, machine_text
from onehop_bench.run import HaloRow
from onehop_bench.scaling import ScalingRow
from onehop_bench.scaling_table import save_scaling_plot

__all__ = ["FIGURES", "Figure", "draw_figure", "read_result"]

WIDTH = 8.3  # inches; an SVG of this width is 800 pixels wide on a page


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes
    ----------
    sources : tuple of str
        Names of the results that it shows, as in `recipes`.
    draw : callable
        Draws the results into a file.
    """

    sources: tuple[str, ...]
    draw: Callable[[Sequence[Bench], str], None]


# Rows of results beside `Row` itself. `Bench.from_dict` knows a kind of row if its module has been imported.
KINDS_OF_ROWS = (AllReduceRow, CircuitRow, FlopRow, HaloRow, OverlapRow, PermutationRow, ScalingRow)


def read_result(name: str, folder: Path) -> Bench:
    """Read a result of `make bench`.

    Raises
    ------
    BadInput
        The file is missing, or it is no result of this version. The message names the command that makes it.
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

    Raises
    ------
    BadInput
        A result is missing, or the file cannot be written.
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


# The figures of the README: onehop, the best of the others, and the speed of light


def _draw_best(axes: Any, rows: Sequence[Row], label: str) -> None:
    """Draw lines over the size: onehop, the best peer of each size, and the speed of light."""
    rows = [row for row in rows if row.bytes]
    sizes = [row.bytes for row in rows]
    look = {"color": "tab:blue", "marker": "s", "linestyle": "--", "markersize": 5}
    draw_known(axes, sizes, [row.best_peer_us for row in rows], label="best MPI call", **look)
    draw_known(axes, sizes, [row.limit_us for row in rows], label="speed of light", **SPEED_OF_LIGHT)
    spread = [[row.ours_us - row.p10_us for row in rows], [row.p90_us - row.ours_us for row in rows]]
    axes.errorbar(
        sizes, [row.ours_us for row in rows], spread, label="onehop", elinewidth=1, capsize=3, **OURS
    )
    row_axis(axes, rows, label)
    log_scale(axes)
    axes.set_ylabel("time in µs (median)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _side_by_side(results: Sequence[Bench], titles: Sequence[str], labels: Sequence[str], file: str) -> None:
    figure = empty_figure(WIDTH, 4.2)
    for axes, result, title, label in zip(figure.subplots(1, 2), results, titles, labels, strict=True):
        _draw_best(axes, result.rows, label)
        axes.set_title(title, fontsize=10)
    figure.suptitle(machine_text(results[0].host), fontsize=9, wrap=True)
    save_figure(figure, file)


def _messages(results: Sequence[Bench], file: str) -> None:
    titles = ("one message, one way", "ten messages each way at once")
    _side_by_side(results, titles, ("size of the message", "messages that a rank sends"), file)


def _allreduce(results: Sequence[Bench], file: str) -> None:
    titles = [f"sum of float32, {result.rows[0].ranks} ranks" for result in results]
    _side_by_side(results, titles, ["size of the array"] * 2, file)


def _circuits(results: Sequence[Bench], file: str) -> None:
    """Bars of onehop's and the fastest simulator's times, with one pass over the state as the speed of light."""
    (result,) = results
    rows = [cast(CircuitRow, row) for row in result.rows]
    precisions = list(dict.fromkeys(row.precision for row in rows))
    figure = empty_figure(WIDTH, 4.2)
    panels = figure.subplots(1, len(precisions), sharey=True, squeeze=False)[0]
    factor, unit = time_unit([time for row in rows for time in (row.ours_s, row.pass_s)])
    for axes, precision in zip(panels, precisions, strict=True):
        some = [row for row in rows if row.precision == precision]
        peers = [row.best_peer_s and factor * row.best_peer_s for row in some]
        bars = [
            Bar("onehop", [factor * row.ours_s for row in some], "tab:red"),
            Bar("fastest other simulator", peers, "tab:blue"),
        ]
        limits = [factor * row.pass_s for row in some]
        draw_bars(
            axes,
            bars,
            [row.case for row in some],
            limits,
            limit="one pass over the state",
            log=True,
            legend=False,
        )
        axes.set_title(f"{some[0].qubits} qubits, {precision} precision", fontsize=10)
    times = [factor * time for row in rows for time in (row.ours_s, row.pass_s, row.best_peer_s) if time]
    panels[0].set_ylim(min(times) / 2, max(times) * 2)
    shared_legend(figure, panels)
    panels[0].set_ylabel(f"time in {unit} (best run)")
    figure.suptitle(machine_text(result.host), fontsize=9, wrap=True)
    save_figure(figure, file)


def _quarks(results: Sequence[Bench], file: str) -> None:
    """Bars of the rates of the staggered and the Wilson operator."""
    figure = empty_figure(WIDTH, 7.5)
    titles = ("staggered (HISQ) hopping term", "Wilson hopping term")
    for axes, result, title in zip(figure.subplots(2, 1), results, titles, strict=True):
        draw_rates(axes, [cast(FlopRow, row) for row in result.rows])
        axes.set_title(f"{title}, {result.rows[0].ranks} ranks", fontsize=10)
        per_rank = " a rank" in result.rows[0].case
        axes.set_xlabel(f"sites {'per rank' if per_rank else 'of all ranks'}, precision")
    figure.suptitle(machine_text(results[0].host), fontsize=9, wrap=True)
    save_figure(figure, file)


# The figures of the pages are the plots that the benchmarks draw with --plot


def _plain(draw: Callable[[Bench, str], None]) -> Callable[[Sequence[Bench], str], None]:
    return lambda results, file: draw(results[0], file)


FIGURES = {
    "messages": Figure(("pingpong", "channel"), _messages),
    "circuits": Figure(("circuits",), _circuits),
    "quarks": Figure(("dslash", "wilson"), _quarks),
    "allreduce": Figure(("allreduce", "allreduce-4"), _allreduce),
    "pingpong": Figure(("pingpong",), _plain(save_plot)),
    "channel": Figure(("channel",), _plain(save_plot)),
    "halo": Figure(("halo",), _plain(save_plot)),
    "poisson": Figure(("poisson",), _plain(save_plot)),
    "codecs": Figure(("allreduce-codecs",), _plain(save_plot)),
    "simulators": Figure(("circuits",), _plain(save_circuit_plot)),
    "permutation": Figure(("permutation",), _plain(save_plot)),
    "scaling": Figure(("scaling",), _plain(save_scaling_plot)),
    "smearing": Figure(("smearing",), _plain(save_rate_plot)),
    "solver": Figure(("solver",), _plain(save_solver_plot)),
}
"""All figures, by the name of their file."""
