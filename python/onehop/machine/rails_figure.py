"""The plot of `onehop rails --plot`: the time of every rail under each assignment."""

from __future__ import annotations

from typing import Any

from onehop.error import BadInput
from onehop.figure import empty_figure, save_figure
from onehop.text import counted

__all__ = ["plot_rails", "plot_schedule_rails"]

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#000000")
_HATCHES = ("", "///", "|||", "xxx", "---", "\\\\\\", "+++", "/-")  # tell rails apart in grey


def _draw(axes: Any, report: dict[str, Any], case: str, title: str) -> None:
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
        text = f"{one[case]['gb_per_s']:.1f} GB/s"
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
    _draw(axes, units | {"speeds": report["speeds"]}, "longest", title)
    save_figure(figure, file, dpi=150)


def plot_rails(report: dict[str, Any], file: str) -> None:
    """Draw the result of `compare_rails` and write it to a file.

    Raises
    ------
    Error
        matplotlib is not installed.
    BadInput
        The file cannot be written.
    """
    figure = empty_figure(8, 6)
    upper, lower = figure.subplots(2, 1)
    messages = report["assignments"][0]["faces"]["messages"]
    _draw(
        upper,
        report,
        "talk",
        f"the talk: {report['units']} equal messages on {counted(report['rails'], 'rail')}",
    )
    extents = "x".join(map(str, report["faces"]))
    _draw(lower, report, "faces", f"faces of {extents}: {counted(messages, 'message')}")
    if report["rails"] <= len(_COLOURS):
        bars, names = upper.get_legend_handles_labels()
        figure.legend(bars, names, loc="outside lower center", ncols=report["rails"], fontsize=8)
    save_figure(figure, file, dpi=150)
