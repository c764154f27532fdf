"""`onehop tour`: checked examples on a few ranks, timed beside plain MPI."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from onehop._core import __version__
from onehop.cli.common import JsonOption, MpiOption, RanksOption, console, progress, write_json
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks_beside_mpi
from onehop.text import bytes_text, counted
from onehop.tour import STEPS, StepResult, run, why_no_baseline
from onehop.tour_lattice import gauge_field  # noqa: F401, adds the lattice steps to STEPS


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.2f} µs"


MOST_RANKS = 64


def _table(results: list[StepResult], ranks: int) -> Table:
    caption = (
        "ratio: time of onehop over that of MPI's fastest variant, measured in turn; below 1 onehop is faster"
    )
    if all(one.ratio is None for one in results):
        caption = None
    title = f"onehop {__version__} on {counted(ranks, 'rank')}"
    table = Table(title=title, caption=caption, caption_justify="left", show_lines=True)
    for heading in ("what ran", "right?", "checked against", "onehop", "plain MPI", "ratio", "moved"):
        table.add_column(heading, justify="left" if heading in ("what ran", "checked against") else "right")
    for one in results:
        baseline = _time(one.baseline_seconds) + (f"\n{one.baseline}" if one.baseline else "")
        table.add_row(
            one.name,
            "[green]yes[/]" if one.ok else "[bold red]NO[/]",
            one.checked_against,
            _time(one.seconds),
            baseline,
            "–" if one.ratio is None else f"{one.ratio:.2f}",
            bytes_text(one.bytes_moved),
        )
    return table


def tour(
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    seconds: Annotated[
        float, typer.Option(help="Duration of the measurements of each step, in seconds.")
    ] = 5.0,
    json_target: JsonOption = None,
) -> None:
    """Run small examples of each kind on a few ranks, check the results, and compare the times with plain MPI.

    The exit code is 1 if a result is wrong.
    """
    if not 0 < seconds <= 600:
        raise BadInput(f"expected --seconds above 0 and up to 600, found {seconds:g}")
    if ranks is not None and ranks > MOST_RANKS:
        raise BadInput(
            f"expected at most {MOST_RANKS} ranks, whose examples one machine can run, found {ranks}"
        )
    ensure_ranks_beside_mpi(ranks, mpi, default=2)
    group = Group.world()
    why_not = why_no_baseline(group)
    with progress("the tour", len(STEPS)) as advance:
        results = run(group, seconds, lambda _: advance(1))
    screen = console(json_target)
    screen.print(_table(results, group.size))
    if why_not:
        screen.print(why_not, markup=False)
    report = {"version": __version__, "ranks": group.size, "steps": [one.to_dict() for one in results]}
    if why_not:
        report["no_baseline"] = why_not
    write_json(json_target, report)
    if not all(one.ok for one in results):
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(tour)
