"""Plots of a benchmark's rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from onehop.bench.result import Bench, Row, machine_text
from onehop.bench.sizes import size_text
from onehop.figure import empty_figure, save_figure

__all__ = ["PEER_COLOURS", "PEER_MARKERS", "SPEED_OF_LIGHT", "peer_looks", "save_plot"]

# onehop is red and the speed of light black. Markers tell the peers apart where the plot is printed in grey.
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
PEER_MARKERS = ("s", "^", "D", "v", "P", "X", "<", ">")
SPEED_OF_LIGHT = {"marker": "_", "linestyle": ":", "color": "black", "markersize": 10}

_PRECISION = re.compile(r"\b(single|double|half)\b")


def peer_looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The colour and marker of each peer."""
    return {
        name: {
            "color": PEER_COLOURS[i % len(PEER_COLOURS)],
            "marker": PEER_MARKERS[i % len(PEER_MARKERS)],
            "markersize": 5,
        }
        for i, name in enumerate(names)
    }


def _is_series(rows: Sequence[Row]) -> bool:
    """Whether a line may join the rows: their sizes ascend, and their arithmetic has the same precision."""
    sizes = [row.bytes for row in rows]
    precisions = {tuple(_PRECISION.findall(row.case)) for row in rows}
    return len(rows) > 1 and len(precisions) == 1 and all(a < b for a, b in pairwise(sizes))


def save_plot(result: Bench, file: str) -> None:
    """Draw the times of onehop, all peers and the speed of light, and below them onehop's time over the others'.

    The horizontal axis shows bytes where the rows are one operation at ascending sizes. Otherwise it shows the cases,
    which no line joins.

    Raises
    ------
    Error
        matplotlib is not installed.
    BadInput
        The file cannot be written, or matplotlib does not know the format that its name ends with.
    """
    rows = result.rows
    series = _is_series(rows)
    by_size = series and rows[0].bytes > 0
    figure = empty_figure(8 if series else max(8, 0.45 * len(rows) + 2), 7)
    times, ratios = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    places = [row.bytes for row in rows] if by_size else list(range(len(rows)))
    _draw_times(times, rows, places, series)
    _draw_ratios(ratios, rows, places, series)
    times.set_title(f"onehop bench {result.bench}: {machine_text(result.host)}", fontsize=10)
    if by_size:
        ratios.set_xscale("log", base=2)
        ratios.set_xticks(places, [size_text(place) for place in places], rotation=45, ha="right", fontsize=8)
        ratios.minorticks_off()
        ratios.set_xlabel("bytes that a rank sends")
    else:
        many = len(rows) > 6
        names = [row.case if many else row.case.replace(", ", ",\n") for row in rows]
        ratios.set_xticks(
            places, names, rotation=45 if many else 0, ha="right" if many else "center", fontsize=8
        )
    save_figure(figure, file, dpi=130)


def _draw(
    axes: Any, places: Sequence[int], values: Sequence[float | None], series: bool, **look: Any
) -> bool:
    """Draw the values that there are; without any, draw nothing, so that the legend names nothing that is missing."""
    there = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
    if there:
        if not series:
            look["linestyle"] = "none"
        axes.plot(*zip(*there, strict=True), **look)
    return bool(there)


def _draw_times(axes: Any, rows: Sequence[Row], places: Sequence[int], series: bool) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row.peers))
    for name, look in peer_looks(names).items():
        values = [row.peers.get(name) for row in rows]
        _draw(axes, places, values, series, label=name, linewidth=1, linestyle="--", **look)
    limits = [row.limit_us for row in rows]
    _draw(axes, places, limits, series, label="speed of light", **SPEED_OF_LIGHT)
    spread = [[row.ours_us - row.p10_us for row in rows], [row.p90_us - row.ours_us for row in rows]]
    axes.errorbar(
        places,
        [row.ours_us for row in rows],
        spread,
        label="onehop",
        linestyle="-" if series else "none",
        marker="o",
        color="tab:red",
        linewidth=2,
        elinewidth=1,
        capsize=3,
        zorder=3,
    )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("time in µs (median; bars: 10th to 90th percentile)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _draw_ratios(axes: Any, rows: Sequence[Row], places: Sequence[int], series: bool) -> None:
    axes.axhline(1, color="black", linewidth=0.8)
    limits = [row.limit_ratio for row in rows]
    peers = [row.ratio for row in rows]
    drawn = _draw(axes, places, limits, series, label="speed of light", **SPEED_OF_LIGHT)
    drawn |= _draw(axes, places, peers, series, label="best peer", marker="o", linestyle="-", color="tab:red")
    there = [value for value in (*limits, *peers) if value is not None]
    axes.set_yscale("log", base=2)
    axes.set_ylim(0.9 * min(0.5, *there, 0.5), 1.1 * max(2, *there, 2))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("onehop's time\nover that of the")
    axes.grid(alpha=0.3)
    if drawn:
        axes.legend(fontsize=8)
