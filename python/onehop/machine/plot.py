"""Plots of a simulation (what every rank does when, and how much the links carry), and of rails."""

from __future__ import annotations

from typing import Any

from onehop._core import Simulation
from onehop.error import BadInput
from onehop.figure import empty_figure, save_figure
from onehop.text import counted, rate_text, time_unit

_MAX_RANKS = 32
_MAX_LINKS = 400
# Kinds of a rank's time: colour and hatch. They differ in grey, too.
_KINDS = {
    "starts messages": ("#08519c", ""),
    "computes and copies": ("#74c476", "///"),
    "waits and receives": ("#fdd0a2", "|||"),
}
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#000000")
_HATCHES = ("", "///", "|||", "xxx", "---", "\\\\\\", "+++", "/-")  # tell bars apart in grey


def _draw_ranks(axes: Any, simulation: Simulation) -> None:
    factor, unit = time_unit(simulation.seconds)
    shown = simulation.timeline_ranks[:_MAX_RANKS]
    bars: dict[str, list[tuple[int, float, float]]] = {kind: [] for kind in _KINDS}  # row, width, left
    for row in range(len(shown)):
        for begin, posted, computed, end in simulation.timeline(row):
            parts = zip(_KINDS, (begin, posted, computed), (posted, computed, end), strict=True)
            for kind, first, last in parts:
                if last > first:
                    bars[kind].append((row, (last - first) * factor, first * factor))
    for kind, (colour, hatch) in _KINDS.items():
        if bars[kind]:  # the legend names only kinds that are drawn
            rows, widths, left = zip(*bars[kind], strict=True)
            look = {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
            axes.barh(rows, widths, 0.8, left, label=kind, **look)
    ends = 0.0
    for one in simulation.rounds:
        ends += one.seconds
        axes.axvline(ends * factor, color="0.6", linewidth=0.6)
    axes.set_yticks(range(len(shown)), [str(rank) for rank in shown], fontsize=7 if len(shown) > 16 else 9)
    axes.invert_yaxis()
    axes.set_ylabel(
        "rank" if len(shown) == simulation.ranks else f"rank ({len(shown)} of {simulation.ranks})"
    )
    axes.set_xlabel(f"time in {unit}")
    if any(bars.values()):
        # Just above the frame, whatever its height.
        axes.legend(
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            borderaxespad=0.2,
            ncols=3,
            frameon=False,
            fontsize=8,
        )


def _draw_links(axes: Any, simulation: Simulation) -> None:
    links = simulation.links[:_MAX_LINKS]
    total = simulation.seconds or 1.0
    levels = list(dict.fromkeys(link.level for link in links))
    for number, level in enumerate(levels):
        here = [(place, link) for place, link in enumerate(links) if link.level == level]
        axes.bar(
            [place for place, _ in here],
            [100 * link.seconds / total for _, link in here],
            width=1.0,
            color=f"C{number}",
            hatch=_HATCHES[number % len(_HATCHES)],
            edgecolor="white",
            linewidth=0,
            label=f"level {level}",
        )
    # By symmetry one link stands for all that carry the same.
    what = "kinds of links" if any(link.alike > 1 for link in links) else "links"
    axes.set_xlabel(f"{what}, busiest first{'' if len(links) < _MAX_LINKS else f' (the first {_MAX_LINKS})'}")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel("busy, % of the time")
    axes.set_ylim(0, 105)
    if links:
        axes.legend(frameon=False, fontsize=8)


def plot_simulation(simulation: Simulation, file: str) -> None:
    """Draw the time lines of the ranks and the loads of the links to a file.

    Raise Error if matplotlib is not installed, and BadInput if the file cannot be written.
    """
    rows = min(_MAX_RANKS, max(1, len(simulation.timeline_ranks)))
    figure = empty_figure(9, 4 + 0.12 * rows)
    ranks, links = figure.subplots(2, 1, height_ratios=[1 + rows / 12, 1])
    _draw_ranks(ranks, simulation)
    _draw_links(links, simulation)
    figure.suptitle(
        f"{simulation.schedule} of {counted(simulation.ranks, 'rank')} on {simulation.machine}", fontsize=11
    )
    save_figure(figure, file, dpi=150)


def _draw_rails(axes: Any, report: dict[str, Any], case: str, title: str) -> None:
    """Draw one bar per rail for each assignment, in units of the time that equally busy rails take."""
    rows = report["assignments"]
    rails = report["rails"]
    total = sum(rows[0][case]["loads"])
    ideal = total / report["injected"]
    width = 0.8 / rails
    highest = 0.0
    for rail, speed in enumerate(report["speeds"]):
        places = [row + (rail + 0.5) * width - 0.4 for row in range(len(rows))]
        times = [one[case]["loads"][rail] / speed / ideal if total else 0.0 for one in rows]
        highest = max(highest, *times)
        look = {"color": _COLOURS[rail % len(_COLOURS)], "hatch": _HATCHES[rail % len(_HATCHES)]}
        axes.bar(places, times, width * 0.9, label=f"rail {rail}", edgecolor="white", linewidth=0.5, **look)
    for row, one in enumerate(rows):
        text = rate_text(one[case]["gb_per_s"] * 1e9, digits=3)
        axes.text(row, highest * 1.04, text, ha="center", fontsize=8)
    axes.axhline(1, color="black", linewidth=0.8, linestyle="--")
    axes.set_ylim(0, highest * 1.15)
    axes.set_xticks(range(len(rows)), [one["name"] for one in rows])
    axes.set_ylabel("time of each rail / ideal")
    axes.set_title(title, fontsize=10)


def plot_schedule_rails(report: dict[str, Any], file: str) -> None:
    """Draw the longest round of `compare_schedule_rails` on the slowest host; the rest is as for `plot_rails`."""
    first = report["assignments"][0]["rounds"]
    if not first:
        raise BadInput("rails: expected a schedule with one round or more to draw, found none")
    longest = max(range(len(first)), key=lambda number: first[number]["seconds"])
    rows = [{"name": one["name"], "longest": one["rounds"][longest]} for one in report["assignments"]]
    for row in rows:
        longest_round = row["longest"]
        seconds = longest_round["seconds"]
        row["longest"] = longest_round | {
            "gb_per_s": longest_round["bytes"] / seconds / 1e9 if seconds else 0.0
        }
    figure = empty_figure(8, 3.5)
    axes = figure.subplots()
    messages = rows[0]["longest"]["messages"]
    units = {"assignments": rows, "rails": report["rails"], "injected": report["injected"]}
    title = f"{report['schedule']}, round {longest}: {counted(messages, 'message')} of a host"
    _draw_rails(axes, units | {"speeds": report["speeds"]}, "longest", title)
    save_figure(figure, file, dpi=150)


def plot_rails(report: dict[str, Any], file: str) -> None:
    """Draw the result of `compare_rails` to a file. The errors are those of `plot_simulation`."""
    figure = empty_figure(8, 6)
    upper, lower = figure.subplots(2, 1)
    messages = report["assignments"][0]["faces"]["messages"]
    _draw_rails(
        upper,
        report,
        "talk",
        f"{report['units']} equal messages on {counted(report['rails'], 'rail')}",
    )
    extents = "x".join(map(str, report["faces"]))
    _draw_rails(lower, report, "faces", f"faces of {extents}: {counted(messages, 'message')}")
    if report["rails"] <= len(_COLOURS):
        bars, names = upper.get_legend_handles_labels()
        figure.legend(bars, names, loc="outside lower center", ncols=report["rails"], fontsize=8)
    save_figure(figure, file, dpi=150)
