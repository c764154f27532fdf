"""The rows of `onehop bench scaling` as a table and as a plot."""

from __future__ import annotations

from itertools import groupby
from typing import cast

from onehop.cli.screen import Table
from onehop.figure import empty_figure, save_figure
from onehop.text import counted, number
from onehop_bench.plot import PEER_COLOURS, PEER_MARKERS, named_axis
from onehop_bench.result import Bench, machine_text
from onehop_bench.scaling import ScalingRow
from onehop_bench.table import Cell, table_of

__all__ = ["make_scaling_table", "save_scaling_plot"]


def _rows(result: Bench) -> list[ScalingRow]:
    return [cast(ScalingRow, row) for row in result.rows]


def make_scaling_table(result: Bench) -> Table:
    """A table with a line for each row."""
    caption = (
        f"{result.host['cpu']}, {counted(result.host['cores'], 'core')}; s: seconds, the median of "
        f"{result.rows[0].rounds}; "
        "speedup:\ngates times amplitudes in a second over those of one rank with as many threads;\n"
        "MiB: moved, all ranks"
    )
    columns: dict[str, Cell] = {
        "case": lambda row: row.case,
        "n": lambda row: str(row.qubits),
        "ranks x threads": lambda row: f"{row.ranks} x {row.threads}",
        "s": lambda row: number(row.seconds),
        "speedup": lambda row: number(row.speedup),
        "passes": lambda row: f"{row.passes:g}",
        "exchanges": lambda row: str(row.exchanges),
        "MiB": lambda row: number(row.bytes_moved / 2**20),
    }
    return table_of(result.rows, "onehop bench scaling", caption, columns, ("case",))


def save_scaling_plot(result: Bench, file: str) -> None:
    """Draw the speedup over the number of ranks, with a line for each case.

    Raises
    ------
    Error
        matplotlib is not installed.
    BadInput
        The file cannot be written, or matplotlib does not know the format that its name ends with.
    """
    figure = empty_figure(8, 5)
    axes = figure.subplots()
    threads = result.rows[0].threads if result.rows else 1
    for (case, group), (colour, marker) in zip(
        groupby(_rows(result), lambda row: row.case),
        zip(PEER_COLOURS, PEER_MARKERS, strict=True),
        strict=False,
    ):
        rows = [row for row in group if row.threads == threads]
        line = "-" if rows[0].kind == "strong" else "--"
        axes.plot(
            [r.ranks for r in rows],
            [r.speedup for r in rows],
            marker=marker,
            linestyle=line,
            color=colour,
            label=case,
        )
    ranks = sorted({row.ranks for row in result.rows})
    cores = {row.ranks: row.cores for row in _rows(result) if row.threads == threads}
    axes.plot(ranks, [cores[r] / cores[1] for r in ranks], ":", color="black", label="ideal: cores in use")
    named_axis(axes, {r: str(r) for r in ranks})
    axes.set(
        xlabel=f"ranks, with {counted(threads, 'thread')} each",
        ylabel="speedup over one rank",
    )
    axes.set_title(f"onehop bench scaling: {machine_text(result.host)}", fontsize=10, wrap=True)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    save_figure(figure, file, dpi=130)
