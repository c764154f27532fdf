"""`onehop tour`: checked examples on a few ranks, timed beside plain MPI."""

from __future__ import annotations

from dataclasses import dataclass

from onehop._core import __version__
from onehop.cli.busy import Load, load_text
from onehop.cli.common import JsonOptions, MpiOptions, console, progress, write_json
from onehop.cli.screen import Table, coloured
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks_beside_mpi
from onehop.options import option
from onehop.text import bytes_text, counted, seconds_text
from onehop.tour import STEPS, StepResult, run, why_no_baseline
from onehop.tour_lattice import gauge_field  # noqa: F401, adds the lattice steps to STEPS


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return seconds_text(seconds)


MOST_RANKS = 64


def _table(results: list[StepResult], ranks: int) -> Table:
    caption = (
        "ratio: time of onehop over that of MPI's fastest variant, measured in turn; below 1 onehop is faster"
    )
    if all(one.ratio is None for one in results):
        caption = None
    title = f"onehop {__version__} on {counted(ranks, 'rank')}"
    columns = ("what ran", ">right?", "checked against", ">onehop", ">plain MPI", ">ratio", ">moved")
    table = Table(*columns, title=title, caption=caption, show_lines=True)
    for one in results:
        baseline = _time(one.baseline_seconds) + (f"\n{one.baseline}" if one.baseline else "")
        table.add_row(
            one.name,
            coloured("yes", "green") if one.ok else coloured("NO", "bold red"),
            one.checked_against,
            _time(one.seconds),
            baseline,
            "–" if one.ratio is None else f"{one.ratio:.2f}",
            bytes_text(one.bytes_moved),
        )
    return table


@dataclass(kw_only=True)
class Tour(MpiOptions, JsonOptions):
    seconds: float = option(
        5.0, "Duration of the measurements of each step.", metavar="SECONDS", above=0, high=600
    )


def tour(options: Tour) -> int:
    """Run small examples of each kind on a few ranks, check the results, and compare the times with plain MPI.

    The exit code is 1 if a result is wrong.
    """
    if options.ranks is not None and options.ranks > MOST_RANKS:
        raise BadInput(
            f"expected at most {MOST_RANKS} ranks, whose examples one machine can run, found {options.ranks}"
        )
    ensure_ranks_beside_mpi(options.ranks, options.mpi, default=2)
    group = Group.world()
    why_not = why_no_baseline(group)
    load = Load(group)
    with progress("the tour", len(STEPS)) as advance:
        results = run(group, options.seconds, lambda _: advance(1))
    busy = load.found()
    screen = console(options.json)
    screen.print(_table(results, group.size))
    if why_not:
        screen.print(why_not)
    screen.print(load_text(busy))
    wrong = [one.name for one in results if not one.ok]
    screen.print(
        f"verdict: {len(wrong)} of {counted(len(results), 'result')} wrong: {'; '.join(wrong)}; next: `onehop doctor`"
        if wrong
        else f"verdict: all {len(results)} results are right; next: `onehop docs` lists the tutorials"
    )
    report = {"version": __version__, "ranks": group.size, "steps": [one.to_dict() for one in results]}
    report["busy"] = busy
    if why_not:
        report["no_baseline"] = why_not
    write_json(options.json, report)
    return int(not all(one.ok for one in results))
