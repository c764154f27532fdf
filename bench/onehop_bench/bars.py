"""Plots of a benchmark's rows as bars: rates of arithmetic, and the times of solvers and circuits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from onehop.figure import empty_figure, save_figure
from onehop.text import counted
from onehop_bench.plot import (
    PEER_COLOURS,
    case_axis,
    case_text,
    limit_name,
    log_scale,
    save_plot,
    shared_legend,
    title_of,
)
from onehop_bench.result import Bench, Row, machine_text

HATCHES = ("", "//", "\\\\", "xx", "--")  # no dots: an SVG has a path of many points for them
# Benchmarks whose plots are bars of rates, and the label of the axis that shows the cases.
_RATES = {
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


def bars_of(
    rows: Sequence[Row],
    others: Iterable[str],
    value: Callable[[Row, float], float],
    name: str = "onehop",
    colours: Sequence[str] = PEER_COLOURS,
) -> list[Bar]:
    """Bars of onehop and of other candidates, whose names may end before a comma; `value` makes them from times."""
    bars = [Bar(name, [value(row, row.ours_us) for row in rows], "tab:red")]
    for other, colour in zip(others, colours, strict=False):
        short = [
            {key.split(", ")[0]: us for key, us in {**row.variants, **row.peers}.items()} for row in rows
        ]
        times = [names.get(other.split(", ")[0]) for names in short]
        values = [us and value(row, us) for us, row in zip(times, rows, strict=True)]
        bars.append(Bar(other, values, colour))
    return bars


def draw_bars(
    axes: Any,
    bars: Sequence[Bar],
    cases: Sequence[str],
    limits: Sequence[float | None] = (),
    *,
    limit: str = "",
    log: bool = False,
    legend: bool = True,
) -> None:
    """Draw groups of bars, or with `log` of points, one group for each case, and a line for its limit.

    `limits` are those of the groups, which the legend calls `limit`.
    """
    width = 0.8 / max(len(bars), 1)
    for i, (bar, hatch) in enumerate(zip(bars, HATCHES * 2, strict=False)):
        offset = (i - (len(bars) - 1) / 2) * width
        known = [(x + offset, y) for x, y in enumerate(bar.values) if y is not None]
        if known and log:  # a bar would begin at an arbitrary place
            axes.plot(*zip(*known, strict=True), "osD^vP"[i % 6], color=bar.colour, label=bar.name)
        elif known:
            look = {"color": bar.colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.5}
            axes.bar(*zip(*known, strict=True), width, label=bar.name, **look)
    known = [(y, x - 0.45, x + 0.45) for x, y in enumerate(limits) if y is not None]
    if known:
        axes.hlines(*zip(*known, strict=True), color="black", linestyle=":", linewidth=2, label=limit)
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


def draw_rates(axes: Any, rows: Sequence[Row]) -> None:
    """Draw the GFLOP/s per rank of onehop, plain MPI and scalar code, with the rate that `limit_us` allows."""
    others = dict.fromkeys(name for row in rows for name in row.peers)
    others |= dict.fromkeys(name for row in rows for name in row.variants if name == "scalar code")
    bars = bars_of(rows, others, Row.gflops)
    limits = [row.limit_us and row.gflops(row.limit_us) for row in rows]
    fastest = max(rate for bar in bars for rate in bar.values if rate is not None)
    far = max((rate for rate in limits if rate is not None), default=0) > 4 * fastest
    draw_bars(axes, bars, [row.case for row in rows], limits, limit=limit_name(rows), log=far)
    axes.set_ylabel("GFLOP/s per rank (median)")


def _draw_variants(axes: Any, row: Row) -> None:
    """Draw one case with many variants as horizontal bars."""
    times = {"onehop: all of them": row.ours_us, **row.variants}
    rates = {name: row.gflops(us) for name, us in times.items() if not name.endswith("by clocks")}
    names = sorted(rates, key=rates.__getitem__)
    axes.barh(names, [rates[name] for name in names], color="tab:red")
    if row.limit_us is not None:
        axes.axvline(row.gflops(row.limit_us), label=limit_name([row]), color="black", linestyle=":")
        axes.legend(fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel(f"GFLOP/s per rank (median), {case_text(row.case)}")
    axes.grid(alpha=0.3, axis="x")
    axes.set_axisbelow(True)


def save_rate_plot(result: Bench, file: str) -> None:
    """Draw arithmetic rates as bars; times, as `save_plot` does, where the arithmetic is not counted. Errors alike."""
    rows = result.rows
    if not rows or any("flop" not in row for row in rows):
        save_plot(result, file)
        return
    figure = empty_figure(max(8, 0.55 * len(rows) + 2), 5)
    axes = figure.subplots()
    if len(rows) == 1 and len(rows[0].variants) > 5:
        _draw_variants(axes, rows[0])
    else:
        draw_rates(axes, rows)
        axes.set_xlabel(_RATES.get(result.bench, ""))
    ranks = counted(rows[0].ranks, "rank")
    title = f"onehop bench {result.bench}, {ranks}: {machine_text(result.host)}"
    axes.set_title(title, fontsize=10, wrap=True)
    save_figure(figure, file, dpi=130)


def save_solver_plot(result: Bench, file: str) -> None:
    """Draw the solves of `onehop bench solver`: whole ones on the left, and a number of iterations on the right."""
    whole = [row for row in result.rows if row.limit_us is None and "bicgstab" not in row.variants]
    parts = [row for row in result.rows if row.limit_us is not None]
    figure = empty_figure(10, 5.5)
    whole_axes, part_axes = figure.subplots(1, 2, width_ratios=(2, 3))

    def milliseconds(_: Row, us: float) -> float:
        return us / 1e3

    variants = dict.fromkeys(name for row in whole for name in row.variants)
    bars = bars_of(whole, variants, milliseconds, "half inside", PEER_COLOURS[::-1])
    draw_bars(whole_axes, bars, [row.case for row in whole], log=True)
    peers = dict.fromkeys(name for row in parts for name in row.peers)
    bars = bars_of(parts, [*peers, "scalar code"], milliseconds)
    limits = [milliseconds(row, row.limit_us) for row in parts]
    draw_bars(part_axes, bars, [row.case for row in parts], limits, limit=limit_name(parts), log=True)
    for axes, title in ((whole_axes, "whole solves"), (part_axes, "iterations")):
        axes.set_title(title, fontsize=10)
        axes.set_ylabel("time in ms (median)")
        axes.set_xlabel("sites per rank")
    figure.suptitle(title_of(result), fontsize=10, wrap=True)
    save_figure(figure, file, dpi=130)


def save_circuit_plot(result: Bench, file: str, *, best: bool = False, width: float = 10) -> None:
    """Draw times of circuits as points, with the time of one pass over the state, a panel for each precision.

    Beside onehop's bars are those of all simulators, or with `best` of the fastest one alone.
    """
    rows = result.rows
    precisions = list(dict.fromkeys(row.precision for row in rows))
    least = min((time for row in rows for time in (row.ours_s, row.pass_s) if time), default=1.0)
    factor, unit = (1.0, "s") if least >= 0.05 else (1e3, "ms") if least >= 5e-5 else (1e6, "µs")
    figure = empty_figure(width, 4.2 if best else 6)
    panels = figure.subplots(1, len(precisions), sharey=True, squeeze=False)[0]
    names = list(dict.fromkeys(n for row in rows for n in row.peers))
    if best:
        names = [f"fastest of {', '.join(names)}"]
    for axes, precision in zip(panels, precisions, strict=True):
        some = [row for row in rows if row.precision == precision]
        bars = [Bar("onehop", [factor * row.ours_s for row in some], "tab:red")]
        for name, colour in zip(names, PEER_COLOURS, strict=False):
            times = [row.best_peer_s if best else row.peers.get(name) for row in some]
            bars.append(Bar(name, [time and factor * time for time in times], colour))
        alike = len({row.qubits for row in some}) == 1
        cases = [row.case if alike else f"{row.case}, {row.qubits} qubits" for row in some]
        limits = [factor * row.pass_s for row in some]
        draw_bars(axes, bars, cases, limits, limit="one pass over the state", log=True, legend=False)
        qubits = f"{some[0].qubits} qubits, " if alike else ""
        axes.set_title(f"{qubits}{precision} precision", fontsize=10)
    shared_legend(figure, panels)
    panels[0].set_ylabel(f"time in {unit} (best run)")
    figure.suptitle(machine_text(result.host) if best else title_of(result), fontsize=9, wrap=True)
    save_figure(figure, file, dpi=130)
