"""Plots of a benchmark's rows as points and lines; `bars` has those as bars.

onehop is red and the speed of light black. Markers, hatches and line styles tell candidates apart in grey.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from onehop.figure import empty_figure, save_figure
from onehop.text import bytes_text
from onehop_bench.result import Bench, Row, machine_text

__all__ = [
    "OURS",
    "PEER_COLOURS",
    "PEER_MARKERS",
    "SPEED_OF_LIGHT",
    "case_axis",
    "case_text",
    "draw_known",
    "log_scale",
    "named_axis",
    "peer_looks",
    "row_axis",
    "save_plot",
    "shared_legend",
    "size_axis",
    "time_unit",
]

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
OURS = {"color": "tab:red", "marker": "o", "linestyle": "-", "linewidth": 2, "zorder": 3}
SPEED_OF_LIGHT = {"marker": "_", "linestyle": ":", "color": "black", "markersize": 10}

# Benchmarks of one operation at several sizes, and the label of the axis that shows the sizes.
_BY_SIZE = {
    "pingpong": "size of the message",
    "channel": "messages that a rank sends at once",
    "allreduce": "size of the array",
    "allreduce, link": "size of the array",
    "poisson": "bytes that a rank sends",
}


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


def case_text(case: str) -> str:
    """A case's name, shorter: "8x8x8x8 a rank, single" becomes "8⁴, single"."""
    return re.sub(r"\b(\d+)x\1x\1x\1\b", r"\1⁴", case).replace(" a rank", "")


def named_axis(axes: Any, names: Mapping[int, str], **look: Any) -> None:
    """Make the horizontal axis logarithmic, with ticks at these numbers only, which have these names."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(names), list(names.values()), **look)
    axes.minorticks_off()


def size_axis(axes: Any, sizes: Iterable[int], counts: Mapping[int, str] | None = None) -> None:
    """Make the horizontal axis one of bytes. Sizes that `counts` names, as "10 x 1 KiB", have that name."""
    names = {size: (counts or {}).get(size, bytes_text(size, exact=True)) for size in sizes}
    named_axis(axes, names, rotation=45, ha="right", fontsize=8)


def row_axis(axes: Any, rows: Sequence[Row], label: str) -> None:
    """Make the horizontal axis one of the rows' bytes."""
    size_axis(axes, (row.bytes for row in rows), {row.bytes: row.case for row in rows if " x " in row.case})
    axes.set_xlabel(label)


def log_scale(axes: Any) -> None:
    """Make the vertical axis logarithmic, after everything is drawn, with plain numbers and enough of them.

    Between powers of ten, all minor ticks have a label within one decade, and 2 and 5 within two.
    """
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,g}")
    low, high = axes.get_ylim()
    shown = "23456789" if high < 12 * low else "25" if high < 100 * low else ""
    axes.yaxis.set_minor_formatter(lambda x, _: f"{x:,g}" if f"{x:e}"[0] in shown else "")


def _codecs(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each codec, in the order of the rows; one entry without a name if there are no codecs."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(getattr(row, "codec", ""), []).append(row)
    return found


def _by_size(result: Bench) -> bool:
    """Whether the rows are one operation at ascending sizes, so that lines may join them."""
    if result.bench not in _BY_SIZE or len(result.rows) < 2:
        return False
    return all(
        rows[0].bytes > 0 and all(a.bytes < b.bytes for a, b in pairwise(rows))
        for rows in ([row for row in some if row.bytes] for some in _codecs(result.rows).values())
        if rows
    )


def save_plot(result: Bench, file: str) -> None:
    """Draw the times of onehop, all peers and the speed of light, and below them onehop's time over the others'.

    The horizontal axis shows bytes where the rows are one operation at ascending sizes. Otherwise it shows the cases,
    which no line joins. A row without bytes, the bare flag, has no place on an axis of bytes and is left out there.

    Raises
    ------
    Error
        matplotlib is not installed.
    BadInput
        The file cannot be written, or matplotlib does not know the format that its name ends with.
    """
    series = _by_size(result)
    rows = [row for row in result.rows if row.bytes] if series else result.rows
    figure = empty_figure(8 if series else max(8, 0.45 * len(rows) + 2), 7)
    times, ratios = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    places = [row.bytes for row in rows] if series else list(range(len(rows)))
    _draw_times(times, rows, places, series)
    _draw_ratios(ratios, rows, places, series)
    times.set_title(f"onehop bench {result.bench}: {machine_text(result.host)}", fontsize=10, wrap=True)
    if series:
        row_axis(ratios, rows, _BY_SIZE[result.bench])
    else:
        case_axis(ratios, [row.case for row in rows])
    save_figure(figure, file, dpi=130)


def case_axis(axes: Any, cases: Sequence[str]) -> None:
    """Make the horizontal axis one of cases, at 0, 1, ..."""
    many = len(cases) > 6
    names = [case_text(case) if many else case_text(case).replace(", ", ",\n") for case in cases]
    turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if many else {}
    axes.set_xticks(range(len(cases)), names, fontsize=8, **turned)


def draw_known(axes: Any, places: Sequence[int], values: Sequence[float | None], **look: Any) -> bool:
    """Draw the values that there are; without any, draw nothing, so that the legend names nothing that is missing."""
    known = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
    if known:
        axes.plot(*zip(*known, strict=True), **look)
    return bool(known)


def _draw(
    axes: Any, places: Sequence[int], values: Sequence[float | None], series: bool, **look: Any
) -> bool:
    """Draw the values that there are, joined by lines if they are a series."""
    return draw_known(axes, places, values, **(look if series else {**look, "linestyle": "none"}))


def _draw_times(axes: Any, rows: Sequence[Row], places: Sequence[int], series: bool) -> None:
    codecs = _codecs(rows) if series else {"": list(rows)}
    first = next(iter(codecs.values()))
    spots = places[: len(first)] if not series else [row.bytes for row in first]
    names = list(dict.fromkeys(name for row in first for name in row.peers))
    looks = peer_looks(names)
    for name, look in looks.items():
        values = [row.peers.get(name) for row in first]
        _draw(axes, spots, values, series, label=name, linewidth=1, linestyle="--", **look)
    limits = [row.limit_us for row in first]
    _draw(axes, spots, limits, series, label="speed of light", **SPEED_OF_LIGHT)
    styles = zip(("-", "--", "-.", ":") * 2, ("o", *PEER_MARKERS), strict=False)
    for (codec, some), (line, marker) in zip(codecs.items(), styles, strict=False):
        axes.errorbar(
            [row.bytes for row in some] if series else places,
            [row.ours_us for row in some],
            [[row.ours_us - row.p10_us for row in some], [row.p90_us - row.ours_us for row in some]],
            label=f"onehop, {codec}" if len(codecs) > 1 else "onehop",
            elinewidth=1,
            capsize=3,
            **{**OURS, "linestyle": line if series else "none", "marker": marker},
        )
    log_scale(axes)
    axes.set_ylabel("time in µs (median; bars: 10th to 90th percentile)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _draw_ratios(axes: Any, rows: Sequence[Row], places: Sequence[int], series: bool) -> None:
    some = next(iter(_codecs(rows).values())) if series else rows
    spots = [row.bytes for row in some] if series else places
    axes.axhline(1, color="black", linewidth=0.8)
    limits = [row.limit_ratio for row in some]
    peers = [row.ratio for row in some]
    drawn = _draw(axes, spots, limits, series, label="over the speed of light", **SPEED_OF_LIGHT)
    best = {"marker": "o", "linestyle": "-", "color": "tab:red"}
    drawn |= _draw(axes, spots, peers, series, label="over the best peer", **best)
    known = [value for value in (*limits, *peers) if value is not None]
    axes.set_yscale("log", base=2)
    axes.set_ylim(0.9 * min(0.5, *known, 0.5), 1.1 * max(2, *known, 2))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_ylabel("onehop's time\n(ratio)")
    axes.grid(alpha=0.3)
    if drawn:
        axes.legend(fontsize=8)


def shared_legend(figure: Any, panels: Iterable[Any]) -> None:
    """Put one legend for several axes below them."""
    shown = [panel.get_legend_handles_labels() for panel in panels]
    marks = {label: mark for found in shown for mark, label in zip(*found, strict=True)}
    figure.legend(marks.values(), marks.keys(), fontsize=8, ncols=4, loc="outside lower center")


def time_unit(seconds: Sequence[float | None]) -> tuple[float, str]:
    """The factor and the name of the unit in which these times are drawn: s, ms or µs."""
    least = min((one for one in seconds if one), default=1.0)
    return (1.0, "s") if least >= 0.05 else (1e3, "ms") if least >= 5e-5 else (1e6, "µs")
