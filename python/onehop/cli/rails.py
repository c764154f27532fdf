"""`onehop rails`: which network interface carries which message, and the bandwidth that results."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer
from rich.table import Table

from onehop.cli.common import (
    LARGEST_INT,
    LARGEST_SIZE,
    JsonOption,
    check_plot,
    console,
    given,
    parse_numbers,
    write_json,
)
from onehop.cli.schedule import load_schedule
from onehop.error import BadInput
from onehop.machine import load_machine
from onehop.machine.rails import compare_rails
from onehop.machine.rails_figure import plot_rails, plot_schedule_rails
from onehop.machine.schedule_rails import compare_schedule_rails
from onehop.machine.traffic_rails import RAIL_RULES, rails_to_json
from onehop.output import check_file_target, write_file
from onehop.text import counted, seconds_text

_MAX_RAILS_SHOWN = 16


def _parse_speeds(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise BadInput(
            f"expected --speeds as numbers with ',' between them, for example 6.8,6.8,3.4, found {text!r}"
        ) from None


def _number(value: float) -> str:
    return f"{value:.4g}"


def _summary(report: dict[str, Any]) -> Table:
    units = report["units"]
    extents = "x".join(map(str, report["faces"]))
    messages = report["assignments"][0]["faces"]["messages"]
    table = Table(
        "assignment",
        title=f"Load of the busiest of {counted(report['rails'], 'rail')}, and GB/s of the host\n"
        f"({units}: all rails are equally busy; least: no assignment has less)",
    )
    table.add_column(f"the talk:\n{units} equal messages", justify="right")
    table.add_column("\nGB/s", justify="right")
    table.add_column(f"faces of {extents}:\n{counted(messages, 'message')}", justify="right")
    table.add_column("\nGB/s", justify="right")
    for one in report["assignments"]:
        cells = []
        for case in ("talk", "faces"):
            least = " (least)" if one[case]["optimal"] else ""
            cells += [f"{_number(one[case]['busiest_rail'])}{least}", f"{one[case]['gb_per_s']:.1f}"]
        table.add_row(one["name"], *cells)
    return table


def _loads(report: dict[str, Any]) -> Table:
    extents = "x".join(map(str, report["faces"]))
    table = Table("rail", title=f"Sites on each rail, faces of {extents}")
    for one in report["assignments"]:
        table.add_column(one["name"], justify="right")
    for rail in range(min(report["rails"], _MAX_RAILS_SHOWN)):
        table.add_row(str(rail), *(str(one["faces"]["loads"][rail]) for one in report["assignments"]))
    return table


def _proof(report: dict[str, Any]) -> str:
    """Return a sentence on the talk's messages: what whole messages and cut ones reach at best."""
    rows = {one["name"]: one["talk"] for one in report["assignments"]}
    whole, cut = rows["optimum"], rows["optimum, cut"]
    text = f"{whole['gb_per_s']:.1f} GB/s is "
    text += "the most" if whole["optimal"] else "the best found"
    text += f" for {counted(whole['messages'], 'whole equal message')}: the busiest rail has at least "
    text += f"{_number(whole['lower_bound'])}. "
    cuts = cut["pieces"] - cut["messages"]
    return text + f"With {counted(cuts, 'cut')} it is {cut['gb_per_s']:.1f} GB/s."


# Options that describe the messages of one host, and those of a schedule.
_OF_FACES = ("--ranks", "--faces", "--skip-inside")
_OF_SCHEDULES = ("--machine", "--per-host", "--rule", "--output")
_OF_HOSTS = ("--rails", "--injected", "--speeds", "--per-host")


def _check_options(context: typer.Context, schedule: str | None, machine: str | None) -> None:
    """Refuse options that do not go together."""
    if schedule is None:
        if found := given(context, _OF_SCHEDULES):
            raise BadInput(f"expected {found[0]} with --schedule only, found it without")
        return
    if found := given(context, _OF_FACES):
        raise BadInput(f"expected {found[0]} without --schedule, which has its own messages, found both")
    if machine is not None and (found := given(context, _OF_HOSTS)):
        raise BadInput(f"expected {found[0]} without --machine, which describes the hosts, found both")


def _schedule_table(report: dict[str, Any]) -> Table:
    rounds = report["assignments"][0]["rounds"]
    messages = counted(sum(one["messages"] for one in rounds), "message")
    title = (
        f"{messages} of the slowest of {counted(report['hosts'], 'host')}, {counted(report['rails'], 'rail')}"
    )
    table = Table("assignment", title=title)
    for column in ("bytes of the host", "busiest rail", "GB/s"):
        table.add_column(column, justify="right")
    if report["machine"] is not None:
        table.add_column("whole schedule", justify="right")
    for one in report["assignments"]:
        least = " (least)" if one["optimal"] else ""
        cells = [
            one["name"],
            str(one["bytes"]),
            f"{_number(one['busiest_rail'])}{least}",
            f"{one['gb_per_s']:.1f}",
        ]
        if report["machine"] is not None:
            cells.append(seconds_text(one["predicted_seconds"]))
        table.add_row(*cells)
    return table


def _schedule_rails(
    schedule: str,
    machine: str | None,
    rule: str,
    output: str | None,
    plot: str | None,
    json_target: str | None,
    **options: Any,
) -> None:
    """Compare the assignments of a schedule's messages, and write one of them."""
    if rule not in RAIL_RULES:
        raise BadInput(f"expected --rule as one of {', '.join(RAIL_RULES)}, found {rule}")
    if output is not None:
        check_file_target(output, "--output")
    described = None if machine is None else load_machine(machine)
    report, chosen = compare_schedule_rails(load_schedule(schedule), machine=described, **options)
    if plot is not None:
        plot_schedule_rails(report, plot)
    if output is not None:
        data = {key: report[key] for key in ("schedule", "machine", "ranks", "hosts", "speeds")}
        text = json.dumps(data | {"rule": rule, "rails": rails_to_json(chosen[rule])})
        write_file(output, text + "\n", "the rails")
    screen = console(json_target)
    screen.print(_schedule_table(report))
    screen.print(
        "busiest rail: the bytes that all rails of a host carry until the last one has finished",
        soft_wrap=True,
    )
    write_json(json_target, report)


def rails(
    context: typer.Context,
    ranks: Annotated[
        str, typer.Option(metavar="N|AxB", help="Number of ranks of the host, or their grid.")
    ] = "4",
    number: Annotated[int, typer.Option("--rails", help="Number of network interfaces of the host.")] = 6,
    faces: Annotated[
        str,
        typer.Option(metavar="AxBxC", help="Local lattice of one rank, which sends two faces per dimension."),
    ] = "60x60",
    injected: Annotated[
        float, typer.Option(help="GB/s that the host injects if all interfaces are busy.")
    ] = 40.8,
    speeds: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Relative speed of each interface, if they are not equal."),
    ] = None,
    min_piece: Annotated[
        int,
        typer.Option(
            min=1,
            max=LARGEST_SIZE,
            help="Shortest piece of a cut message, in sites; with --schedule in bytes.",
        ),
    ] = 1,
    skip_inside: Annotated[
        bool,
        typer.Option(
            "--skip-inside", help="Messages inside the host use no interface; needs the grid of ranks."
        ),
    ] = False,
    schedule: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="JSON schedule whose messages to assign (instead of --faces)."),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.toml",
            help="With --schedule: machine that gives hosts and interfaces (instead of --per-host and --rails).",
        ),
    ] = None,
    per_host: Annotated[
        int | None,
        typer.Option(metavar="P", max=LARGEST_INT, help="With --schedule: number of ranks per host."),
    ] = None,
    rule: Annotated[
        str,
        typer.Option(metavar="|".join(RAIL_RULES), help="With --schedule: the assignment that -o writes."),
    ] = "optimum",
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="With --schedule: write the assignment, for simulate --rails.",
        ),
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the load of each interface into FILE.")
    ] = None,
    json_target: JsonOption = None,
) -> None:
    """Compare assignments of the messages of a host to its network interfaces.

    The assignments are the two of the talk on QWS's communication (one interface per rank, and round robin), longest
    message first, the best for whole messages, and the best if messages may be cut. With --schedule they are those of
    the messages of a schedule that leave their host.
    """
    check_plot(plot)
    _check_options(context, schedule, machine)
    if schedule is not None:
        _schedule_rails(
            schedule,
            machine,
            rule,
            output,
            plot,
            json_target,
            per_host=per_host,
            rails=number,
            speeds=_parse_speeds(speeds),
            injected=injected,
            min_piece=min_piece,
        )
        return
    grid = parse_numbers(ranks, "--ranks", "x")
    report = compare_rails(
        grid[0] if len(grid) == 1 else grid,
        number,
        parse_numbers(faces, "--faces", "x"),
        injected=injected,
        speeds=_parse_speeds(speeds),
        inside=not skip_inside,
        min_piece=min_piece,
    )
    if plot is not None:
        plot_rails(report, plot)
    screen = console(json_target)
    screen.print(_summary(report))
    screen.print(_loads(report))
    if number > _MAX_RAILS_SHOWN:
        screen.print(f"... and {counted(number - _MAX_RAILS_SHOWN, 'more rail')} (--json lists all)")
    ideal = math.fsum(report["assignments"][0]["faces"]["loads"]) / number
    if speeds is None:
        screen.print(f"Equally busy rails have {_number(ideal)} sites each.")
    screen.print(_proof(report), soft_wrap=True)
    write_json(json_target, report)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rails")(rails)
