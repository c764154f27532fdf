"""Plots of a simulation: what every rank does when, and how much the links carry."""

from __future__ import annotations

from typing import Any

from onehop._core import Simulation
from onehop.figure import empty_figure, save_figure
from onehop.text import counted, time_unit

_MAX_RANKS = 32
_MAX_LINKS = 400
# Kinds of a rank's time: colour and hatch. They differ in grey, too.
_KINDS = {
    "starts messages": ("#08519c", ""),
    "computes and copies": ("#74c476", "///"),
    "waits and receives": ("#fdd0a2", "|||"),
}
_HATCHES = ("", "///", "|||", "xxx", "---")


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

    Raises
    ------
    Error
        matplotlib is not installed.
    BadInput
        The file cannot be written.
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
