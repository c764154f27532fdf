"""Plots of a benchmark's rows.

onehop is red and the speed of light black. Markers, hatches and line styles tell candidates apart in grey.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from onehop.bench.result import Bench, FlopRow, Row, machine_text
from onehop.figure import empty_figure, save_figure
from onehop.text import bytes_text, counted

__all__ = [
    "OURS",
    "PEER_COLOURS",
    "PEER_MARKERS",
    "SPEED_OF_LIGHT",
    "Bar",
    "bar_places",
    "case_text",
    "draw_bars",
    "draw_rates",
    "draw_solver",
    "log_scale",
    "peer_looks",
    "save_plot",
    "save_rate_plot",
    "save_solver_plot",
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
HATCHES = ("", "//", "..", "xx", "--")

# Benchmarks of one operation at several sizes, and the label of the axis that shows the sizes.
_BY_SIZE = {
    "pingpong": "size of the message",
    "channel": "messages that a rank sends at once",
    "allreduce": "size of the array",
    "allreduce, link": "size of the array",
    "poisson": "bytes that a rank sends",
}
_CASES = {
    "dslash": "sites per rank, precision",
    "smearing": "kind of links, sites per rank, precision",
    "wilson": "sites, variant",
    "su3": "operation, precision, sites",
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


def size_axis(axes: Any, rows: Sequence[Row], label: str) -> None:
    """Make the horizontal axis one of the rows' bytes, on a logarithmic scale."""
    counted = {row.bytes: row.case for row in rows if " x " in row.case}
    names = {row.bytes: counted.get(row.bytes, bytes_text(row.bytes, exact=True)) for row in rows}
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(names), list(names.values()), rotation=45, ha="right", fontsize=8)
    axes.minorticks_off()
    axes.set_xlabel(label)


def log_scale(axes: Any) -> None:
    """Make the vertical axis logarithmic, after everything is drawn, with plain numbers and enough of them."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    low, high = axes.get_ylim()
    axes.yaxis.set_minor_formatter("{x:g}" if high < 12 * low else "")


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
        size_axis(ratios, rows, _BY_SIZE[result.bench])
    else:
        _case_axis(ratios, [row.case for row in rows])
    save_figure(figure, file, dpi=130)


def _case_axis(axes: Any, cases: Sequence[str]) -> None:
    many = len(cases) > 6
    names = [case_text(case) if many else case_text(case).replace(", ", ",\n") for case in cases]
    turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if many else {}
    axes.set_xticks(range(len(cases)), names, fontsize=8, **turned)


def _draw(
    axes: Any, places: Sequence[int], values: Sequence[float | None], series: bool, **look: Any
) -> bool:
    """Draw the values that there are; without any, draw nothing, so that the legend names nothing that is missing."""
    known = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
    if known:
        if not series:
            look["linestyle"] = "none"
        axes.plot(*zip(*known, strict=True), **look)
    return bool(known)


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
    axes.yaxis.set_major_formatter("{x:g}")
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


# Bars


@dataclass(frozen=True)
class Bar:
    """The bars of one candidate, one for each case; None where it has no value."""

    name: str
    values: list[float | None]
    colour: str


def bar_places(cases: int, candidates: int) -> tuple[float, list[list[float]]]:
    """The width of a bar, and the places of each candidate's bars around 0, 1, ..."""
    width = 0.8 / max(candidates, 1)
    return width, [
        [case + (i - (candidates - 1) / 2) * width for case in range(cases)] for i in range(candidates)
    ]


def draw_bars(
    axes: Any,
    bars: Sequence[Bar],
    cases: Sequence[str],
    limits: Sequence[float | None] = (),
    *,
    limit: str = "speed of light",
    log: bool = False,
    legend: bool = True,
) -> None:
    """Draw groups of bars, one group for each case, and a line across each group for its speed of light.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    bars : sequence of Bar
        One for each candidate.
    cases : sequence of str
        Names of the groups.
    limits : sequence of float or None
        The speed of light of each group.
    limit : str
        Its name in the legend.
    log : bool
        Whether the vertical axis is logarithmic.
    legend : bool
        Whether the axes get a legend of their own.
    """
    width, places = bar_places(len(cases), len(bars))
    for bar, spots, hatch in zip(bars, places, HATCHES * 2, strict=False):
        known = [(x, y) for x, y in zip(spots, bar.values, strict=True) if y is not None]
        if known:
            look = {"color": bar.colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.5}
            axes.bar(*zip(*known, strict=True), width, label=bar.name, **look)
    known = [(x, y) for x, y in enumerate(limits) if y is not None]
    if known:
        axes.hlines(
            [y for _, y in known],
            [x - 0.45 for x, _ in known],
            [x + 0.45 for x, _ in known],
            color="black",
            linestyle=":",
            linewidth=2,
            label=limit,
        )
    _case_axis(axes, cases)
    axes.grid(alpha=0.3, axis="y")
    axes.set_axisbelow(True)
    if log:
        log_scale(axes)
    if not legend:
        return
    low, high = axes.get_ylim()  # room for the legend
    axes.set_ylim(low, high * (high / low) ** 0.3 if log else 1.3 * high)
    axes.legend(fontsize=8, ncols=2)


def _is_clock(name: str) -> bool:
    """Whether a variant is no candidate, but the part of its time in the faces."""
    return name.endswith("by clocks")


def draw_rates(axes: Any, rows: Sequence[FlopRow]) -> None:
    """Draw the GFLOP/s per rank of onehop, plain MPI and scalar code, with the rate that the speed of light allows."""
    peers = dict.fromkeys(name for row in rows for name in row.peers if not _is_clock(name))
    scalar = dict.fromkeys(name for row in rows for name in row.variants if name == "scalar code")
    bars = [Bar("onehop", [row.gflops(row.ours_us) for row in rows], "tab:red")]
    for name, colour in zip((*peers, *scalar), PEER_COLOURS, strict=False):
        times = [{**row.variants, **row.peers}.get(name) for row in rows]
        bars.append(Bar(name, [us and row.gflops(us) for us, row in zip(times, rows, strict=True)], colour))
    limits = [row.limit_us and row.gflops(row.limit_us) for row in rows]
    rates = [rate for bar in bars for rate in bar.values if rate is not None]
    far = max((rate for rate in limits if rate is not None), default=0) > 4 * max(rates)
    draw_bars(axes, bars, [row.case for row in rows], limits, log=far)
    axes.set_ylabel("GFLOP/s per rank (median)")


def _draw_variants(axes: Any, row: FlopRow) -> None:
    """Draw one case with many variants as horizontal bars."""
    times = {"onehop: all of them": row.ours_us, **row.variants}
    times = {name: us for name, us in times.items() if not _is_clock(name)}
    names = sorted(times, key=lambda name: row.gflops(times[name]))
    axes.barh(names, [row.gflops(times[name]) for name in names], color="tab:red")
    if row.limit_us is not None:
        axes.axvline(row.gflops(row.limit_us), label="speed of light", color="black", linestyle=":")
        axes.legend(fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel(f"GFLOP/s per rank (median), {case_text(row.case)}")
    axes.grid(alpha=0.3, axis="x")
    axes.set_axisbelow(True)


def save_rate_plot(result: Bench, file: str) -> None:
    """Draw arithmetic rates as bars; times, as `save_plot` does, where the arithmetic is not counted.

    Raises
    ------
    Error
        matplotlib is not installed.
    BadInput
        The file cannot be written, or matplotlib does not know the format that its name ends with.
    """
    rows = [row for row in result.rows if isinstance(row, FlopRow)]
    if len(rows) < len(result.rows) or not rows:
        save_plot(result, file)
        return
    figure = empty_figure(max(8, 0.55 * len(rows) + 2), 5)
    axes = figure.subplots()
    if len(rows) == 1 and len(rows[0].variants) > 5:
        _draw_variants(axes, rows[0])
    else:
        draw_rates(axes, rows)
        axes.set_xlabel(_CASES.get(result.bench, ""))
    axes.set_title(
        f"onehop bench {result.bench}, {counted(rows[0].ranks, 'rank')}: {machine_text(result.host)}",
        fontsize=10,
        wrap=True,
    )
    save_figure(figure, file, dpi=130)


def draw_solver(whole_axes: Any, part_axes: Any, rows: Sequence[Row]) -> None:
    """Draw the solves of `onehop bench solver`: whole ones on the left, and a number of iterations on the right."""
    whole = [row for row in rows if row.limit_us is None]
    parts = [row for row in rows if row.limit_us is not None]
    variants = dict.fromkeys(name for row in whole for name in row.variants)
    bars = [Bar("half inside", [row.ours_us / 1e3 for row in whole], "tab:red")]
    for name, colour in zip(variants, PEER_COLOURS[::-1], strict=False):
        bars.append(Bar(name, [us and us / 1e3 for us in (row.variants.get(name) for row in whole)], colour))
    draw_bars(whole_axes, bars, [row.case for row in whole], log=True)
    peers = dict.fromkeys(name for row in parts for name in row.peers)
    scalar = [next((us for name, us in row.variants.items() if "scalar" in name), None) for row in parts]
    bars = [Bar("onehop", [row.ours_us / 1e3 for row in parts], "tab:red")]
    for name, colour in zip(peers, PEER_COLOURS, strict=False):
        bars.append(Bar(name, [us and us / 1e3 for us in (row.peers.get(name) for row in parts)], colour))
    bars.append(Bar("scalar code", [us and us / 1e3 for us in scalar], "tab:olive"))
    limits = [row.limit_us and row.limit_us / 1e3 for row in parts]
    draw_bars(part_axes, bars, [row.case for row in parts], limits, log=True)
    whole_axes.set_title("whole solves", fontsize=10)
    part_axes.set_title("iterations", fontsize=10)
    for axes in (whole_axes, part_axes):
        axes.set_ylabel("time in ms (median)")
        axes.set_xlabel("sites per rank")


def save_solver_plot(result: Bench, file: str) -> None:
    """Draw the times of `onehop bench solver` as bars.

    Raises
    ------
    Error
        matplotlib is not installed.
    BadInput
        The file cannot be written, or matplotlib does not know the format that its name ends with.
    """
    figure = empty_figure(10, 5.5)
    draw_solver(*figure.subplots(1, 2, width_ratios=(2, 3)), result.rows)
    figure.suptitle(f"onehop bench {result.bench}: {machine_text(result.host)}", fontsize=10, wrap=True)
    save_figure(figure, file, dpi=130)
