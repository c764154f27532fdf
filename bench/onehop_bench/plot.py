"""Plots of a benchmark's rows as points and lines; `bars` has those as bars.

onehop is red and bare code black. Markers, hatches and line styles tell candidates apart in grey.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from onehop.figure import empty_figure, save_figure
from onehop.text import bytes_text
from onehop_bench.result import Bench, Row, machine_text

PEER_COLOURS = tuple(
    f"tab:{name}" for name in ("blue", "orange", "green", "purple", "brown", "pink", "olive", "cyan")
)
PEER_MARKERS = ("s", "^", "D", "v", "P", "X", "<", ">")
OURS = {"color": "tab:red", "marker": "o", "linestyle": "-", "linewidth": 2, "zorder": 3}
BEST_PEER = {"color": "tab:blue", "marker": "s", "linestyle": "--", "markersize": 5}
RAW = {"color": "black", "marker": "^", "linestyle": ":", "markersize": 5}
SPEED_OF_LIGHT = {"marker": "_", "linestyle": ":", "color": "black", "markersize": 10}

# Benchmarks of one operation at several sizes, and the label of the axis that shows the sizes.
_BY_SIZE = {
    "pingpong": "size of the message",
    "channel": "messages that a rank sends at once",
    "allreduce": "size of the array",
    "allreduce, link": "size of the array",
    "poisson": "bytes that a rank sends",
}


def case_text(case: str) -> str:
    """A case's name, shorter: "8x8x8x8 per rank, single" becomes "8⁴, single"."""
    return re.sub(r"\b(\d+)x\1x\1x\1\b", r"\1⁴", case).replace(" per rank", "")


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


def case_axis(axes: Any, cases: Sequence[str]) -> None:
    """Make the horizontal axis one of cases, at 0, 1, ..."""
    many = len(cases) > 6
    names = [case_text(case) if many else case_text(case).replace(", ", ",\n") for case in cases]
    turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if many else {}
    axes.set_xticks(range(len(cases)), names, fontsize=8, **turned)


def log_scale(axes: Any) -> None:
    """Make the vertical axis logarithmic, after everything is drawn, with plain numbers and enough of them.

    Between powers of ten, all minor ticks have a label within one decade, and 2 and 5 within two.
    """
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,g}")
    low, high = axes.get_ylim()
    shown = "23456789" if high < 12 * low else "25" if high < 100 * low else ""
    axes.yaxis.set_minor_formatter(lambda x, _: f"{x:,g}" if f"{x:e}"[0] in shown else "")


def shared_legend(figure: Any, panels: Iterable[Any]) -> None:
    """Put one legend for several axes below them."""
    shown = [panel.get_legend_handles_labels() for panel in panels]
    marks = {label: mark for found in shown for mark, label in zip(*found, strict=True)}
    figure.legend(marks.values(), marks.keys(), fontsize=8, ncols=4, loc="outside lower center")


def title_of(result: Bench) -> str:
    """The title of a plot: the benchmark, and the machine."""
    return f"onehop bench {result.bench}: {machine_text(result.host)}"


# Points and lines


def draw_known(axes: Any, places: Sequence[int], values: Sequence[float | None], **look: Any) -> bool:
    """Draw the values that there are; without any, draw nothing, so that the legend names nothing that is missing."""
    known = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
    if known:
        axes.plot(*zip(*known, strict=True), **look)
    return bool(known)


def draw_ours(axes: Any, rows: Sequence[Row], places: Sequence[int], name: str, **look: Any) -> None:
    """Draw onehop's times with their spread."""
    times = [row.ours_us for row in rows]
    spread = [[row.ours_us - row.p10_us for row in rows], [row.p90_us - row.ours_us for row in rows]]
    axes.errorbar(places, times, spread, label=name, elinewidth=1, capsize=3, **{**OURS, **look})


def _peer_looks(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """The colour and marker of each peer."""
    names = dict.fromkeys(name for row in rows for name in row.peers)
    looks = zip(PEER_COLOURS, PEER_MARKERS, strict=True)
    return {
        name: {"color": colour, "marker": marker, "markersize": 5, "linestyle": "--"}
        for name, (colour, marker) in zip(names, list(looks) * 4, strict=False)
    }


def limit_name(rows: Sequence[Row]) -> str:
    """What the bare code of `limit_us` does: in several variants, it copies and sets a flag."""
    names = {row.limit for row in rows if row.limit}
    return names.pop() if len(names) == 1 else "bare copy and flag"


def _unjoined(joined: bool) -> dict[str, str]:
    return {} if joined else {"linestyle": "none"}


def draw_times(
    axes: Any, rows: Sequence[Row], places: Sequence[int], name: str = "onehop", joined: bool = True
) -> None:
    """Draw the times of the peers, of bare code and of onehop, which has a line for each codec."""
    if not rows:
        return
    series: dict[str, list[tuple[Row, int]]] = {}
    for row, place in zip(rows, places, strict=True):
        series.setdefault(getattr(row, "codec", "") if joined else "", []).append((row, place))
    some, spots = zip(*next(iter(series.values())), strict=True)
    for peer, look in _peer_looks(some).items():
        draw_known(
            axes, spots, [row.peers.get(peer) for row in some], label=peer, **{**look, **_unjoined(joined)}
        )
    limits = [row.limit_us for row in some]
    draw_known(axes, spots, limits, label=limit_name(some), **{**SPEED_OF_LIGHT, **_unjoined(joined)})
    styles = zip(("-", "--", "-.", ":") * 2, ("o", *PEER_MARKERS), strict=False)
    for (codec, part), (line, marker) in zip(series.items(), styles, strict=False):
        label = f"{name}, {codec}" if len(series) > 1 else name
        some, spots = zip(*part, strict=True)
        draw_ours(axes, some, spots, label, marker=marker, linestyle=line if joined else "none")
    log_scale(axes)
    axes.set_ylabel("time in µs (median; bars: 10th to 90th percentile)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _draw_ratios(axes: Any, rows: Sequence[Row], places: Sequence[int], joined: bool) -> None:
    axes.axhline(1, color="black", linewidth=0.8)
    limits, peers = [row.limit_ratio for row in rows], [row.ratio for row in rows]
    best = {"marker": "o", "linestyle": "-", "color": "tab:red"}
    drawn = draw_known(
        axes, places, limits, label=f"over {limit_name(rows)}", **{**SPEED_OF_LIGHT, **_unjoined(joined)}
    )
    drawn |= draw_known(axes, places, peers, label="over the best peer", **{**best, **_unjoined(joined)})
    known = [value for value in (*limits, *peers) if value is not None]
    axes.set_yscale("log", base=2)
    axes.set_ylim(0.9 * min(0.5, *known, 0.5), 1.1 * max(2, *known, 2))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_ylabel("onehop's time\n(ratio)")
    axes.grid(alpha=0.3)
    if drawn:
        axes.legend(fontsize=8)


def draw_speedups(axes: Any, rows: Sequence[Row], sizes: Sequence[int]) -> None:
    """Draw each peer's time over ours, over the size."""
    for peer, look in _peer_looks(rows).items():
        ratios = [row.ratios.get(peer) for row in rows]
        draw_known(axes, sizes, [ratio and 1 / ratio for ratio in ratios], label=peer, **look)
    axes.axhline(1, color="black", linewidth=0.8)
    size_axis(axes, sizes)
    axes.grid(alpha=0.3)
    axes.set_ylim(bottom=0)


def _by_size(result: Bench) -> bool:
    """Whether the rows are one operation at ascending sizes, so that lines may join them."""
    if result.bench not in _BY_SIZE or len(result.rows) < 2:
        return False
    sizes: dict[str, list[int]] = {}
    for row in result.rows:
        if row.bytes:
            sizes.setdefault(getattr(row, "codec", ""), []).append(row.bytes)
    return all(a < b for some in sizes.values() for a, b in pairwise(some)) and bool(sizes)


def save_plot(result: Bench, file: str) -> None:
    """Draw the times of onehop, all peers and bare code, and below them onehop's time over the others'.

    The horizontal axis shows bytes where the rows are one operation at ascending sizes. Otherwise it shows the cases,
    which no line joins. A row without bytes, the bare flag, has no place on an axis of bytes and is left out there.
    Raise Error if matplotlib is not installed, and BadInput if the file cannot be written or its ending names no
    format.
    """
    joined = _by_size(result)
    rows = [row for row in result.rows if row.bytes] if joined else result.rows
    figure = empty_figure(8 if joined else max(8, 0.45 * len(rows) + 2), 7)
    times, ratios = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    places = [row.bytes for row in rows] if joined else list(range(len(rows)))
    draw_times(times, rows, places, joined=joined)
    first = getattr(rows[0], "codec", "") if joined and rows else None
    pairs = [
        pair for pair in zip(rows, places, strict=True) if first in (None, getattr(pair[0], "codec", ""))
    ]
    _draw_ratios(ratios, [row for row, _ in pairs], [place for _, place in pairs], joined)
    times.set_title(title_of(result), fontsize=10, wrap=True)
    if joined:
        row_axis(ratios, rows, _BY_SIZE[result.bench])
    else:
        case_axis(ratios, [row.case for row in rows])
    save_figure(figure, file, dpi=130)
