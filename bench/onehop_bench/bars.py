"""Plots of a benchmark's rows as bars: rates of arithmetic, and the times of the solvers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onehop.figure import empty_figure, save_figure
from onehop.text import counted
from onehop_bench.plot import PEER_COLOURS, case_axis, case_text, log_scale, save_plot
from onehop_bench.result import Bench, FlopRow, Row, machine_text

__all__ = [
    "Bar",
    "bar_places",
    "draw_bars",
    "draw_rates",
    "draw_solver",
    "save_rate_plot",
    "save_solver_plot",
]

HATCHES = ("", "//", "\\\\", "xx", "--")  # no dots: an SVG has a path of many points for them
_CASES = {
    "dslash": "sites per rank, precision",
    "smearing": "kind of links, sites per rank, precision",
    "wilson": "sites, variant",
    "su3": "operation, precision, sites",
}


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
    case_axis(axes, cases)
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
