"""Rows as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, pairwise
from typing import Any

from onehop.bench.result import Bench, Row
from onehop.figure import empty_figure, save_figure

# Red is onehop's, black the limit's.
PEER_COLOURS = (
    "tab:blue",
    "tab:orange",
    "tab:green",
    "tab:purple",
    "tab:brown",
    "tab:pink",
    "tab:olive",
    "tab:cyan",
)


def save_plot(result: Bench, file: str) -> None:
    """Times, and ratios below, over size, or over the cases where sizes do not ascend: onehop, all peers and the limit.

    Raises
    ------
    Error
        matplotlib is not installed.
    BadInput
        The file cannot be written, or its ending is no kind of picture.
    """
    figure = empty_figure(8, 7)
    times, ratios = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    rows = result.rows
    sizes = [row.bytes for row in rows]
    ascending = len(rows) > 1 and all(a < b for a, b in pairwise(sizes))
    by_size = ascending and sizes[0] > 0
    places = sizes if by_size else list(range(len(rows)))
    line = "-" if ascending else ""  # nothing lies between cases that are of different kinds
    _draw_times(times, rows, places, line)
    _draw_ratios(ratios, rows, places, line)
    times.set_title(
        f"onehop bench {result.bench}: {result.host['cpu']}, {result.host['mpi'] or 'no MPI'}", fontsize=10
    )
    if by_size:
        ratios.set_xscale("log", base=2)
        ratios.set_xlabel("bytes")
    else:
        ratios.set_xticks(places, [row.case.replace(", ", ",\n") for row in rows])
    save_figure(figure, file, dpi=130)


def _draw_times(axes: Any, rows: Sequence[Row], places: Sequence[int], line: str) -> None:
    ours = [row.ours_us for row in rows]
    spread = [[row.ours_us - row.p10_us for row in rows], [row.p90_us - row.ours_us for row in rows]]
    look = {"marker": "o", "color": "tab:red", "linewidth": 2, "capsize": 3, "zorder": 3}
    axes.errorbar(places, ours, spread, label="onehop", linestyle=line, elinewidth=1, **look)
    names = dict.fromkeys(name for row in rows for name in row.peers)
    for name, colour in zip(names, cycle(PEER_COLOURS)):
        times = [row.peers.get(name) for row in rows]
        axes.plot(
            places, times, linestyle=line * 2 or "none", marker=".", color=colour, label=name, linewidth=1
        )
    if any(row.limit_us is not None for row in rows):
        axes.plot(places, [row.limit_us for row in rows], "_:" if line else "_", color="black", label="limit")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("µs, median (bars: p10 to p90)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _draw_ratios(axes: Any, rows: Sequence[Row], places: Sequence[int], line: str) -> None:
    axes.axhline(1, color="black", linewidth=0.8)
    highest = 1.0
    for values, style, colour, label in (
        ([row.ratio for row in rows], "o" + line, "tab:red", "the best peer"),
        ([row.limit_ratio for row in rows], "_:" if line else "_", "black", "the limit"),
    ):
        there = [value for value in values if value is not None]
        if there:
            axes.plot(places, values, style, color=colour, label=label)
            highest = max(highest, *there)
    # Where communication is nothing but cost, the limit is far away: what counts is near 1.
    axes.set_ylim(0, min(1.1 * highest, 3))
    axes.set_ylabel("onehop over ...")
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)
