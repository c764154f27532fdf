"""`onehop rails`: which network interface carries which message, and the bandwidth that results."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onehop.cli.common import JsonOptions, console, write_json
from onehop.cli.schedule import load_schedule
from onehop.cli.screen import Table
from onehop.cores import usable_cores
from onehop.error import BadInput
from onehop.machine import load_machine
from onehop.machine.plot import plot_rails, plot_schedule_rails
from onehop.machine.rails import compare_rails
from onehop.machine.schedule_rails import compare_schedule_rails
from onehop.machine.traffic_rails import RAIL_RULES, rails_to_json
from onehop.options import LARGEST_INT, LARGEST_SIZE, file_option, option
from onehop.output import write_file
from onehop.text import bytes_text, counted, rate_text, seconds_text

_MAX_RAILS_SHOWN = 16


@dataclass(kw_only=True)
class Rails(JsonOptions):
    example: bool = option(
        False, "The host of the talk on QWS: 4 ranks, 6 interfaces, 40.8 GB/s. By default it is this machine."
    )
    ranks: int | None = option(
        None,
        "Number of ranks of the host.",
        *("-n", "--ranks"),
        metavar="RANKS",
        default="this machine's cores, or 4 with --example or --rails",
    )
    grid: tuple[int, ...] | None = option(None, "Grid of the ranks of the host (instead of --ranks).")
    rails: int | None = option(
        None, "Number of network interfaces of the host.", default="those of this machine"
    )
    faces: tuple[int, ...] = option(
        (60, 60), "Local lattice of one rank, which sends two faces per dimension."
    )
    injected: float | None = option(
        None,
        "GB/s that the host injects if all interfaces are busy.",
        default="what this machine says, or 40.8 with --example or --rails",
    )
    speeds: list[float] = option(
        [], "Relative speed of each interface, if they are not equal.", metavar="A,B,...", separator=","
    )
    min_piece: int = option(
        1,
        "Shortest piece of a cut message, in sites; with --schedule in bytes.",
        low=1,
        high=LARGEST_SIZE,
    )
    skip_inside: bool = option(False, "Messages inside the host use no interface; needs --grid.")
    plot: str | None = file_option("Draw the load of each interface into FILE.", "the plot")
    schedule: str | None = option(
        None, "JSON schedule whose messages to assign (instead of --faces).", metavar="FILE|-"
    )
    machine: str | None = option(
        None,
        "With --schedule: machine that gives hosts and interfaces (instead of --per-host and --rails).",
        metavar="NAME|FILE.toml",
    )
    per_host: int | None = option(
        None, "With --schedule: number of ranks per host.", metavar="P", high=LARGEST_INT
    )
    rule: str = option(
        "optimum", "With --schedule: the assignment that -o writes.", choices=tuple(RAIL_RULES)
    )
    output: str | None = file_option(
        "With --schedule: write the assignment, for simulate --rails.", "the rails", "-o", "--output"
    )


# In files of the system, for an interface that is up and does not say its speed: 10 Gbit/s.
_ASSUMED = 10_000


def interfaces(place: Path = Path("/sys/class/net")) -> dict[str, int]:
    """Return the network interfaces of this machine that are up, with their Mbit/s; 0: unknown."""
    found = {}
    for one in sorted(place.glob("*")):
        with contextlib.suppress(OSError, ValueError):
            if one.name == "lo" or (one / "operstate").read_text().strip() != "up":
                continue
            found[one.name] = 0
            found[one.name] = max(int((one / "speed").read_text()), 0)
    return found


def _host(options: Rails) -> tuple[int, int, float, str]:
    """Return the ranks, the interfaces and the GB/s of the host, and a line about it."""
    if options.example or options.rails is not None:
        ranks, rails, injected = (
            usual if given is None else given
            for given, usual in ((options.ranks, 4), (options.rails, 6), (options.injected, 40.8))
        )
        return int(ranks), int(rails), injected, "the host of the talk on QWS" if options.example else ""
    found = interfaces()
    listed = [
        f"{name} {rate_text(speed * 1e6, 'bit/s')}" if speed else f"{name}, 10 Gbit/s assumed"
        for name, speed in found.items()
    ]
    injected = options.injected
    if injected is None:
        injected = sum(speed or _ASSUMED for speed in found.values()) / 8000 or _ASSUMED / 8000
    text = f"this machine: {counted(len(found), 'network interface')} up ({'; '.join(listed) or 'none'})"
    if len(found) < 2:
        text += "; there is nothing to choose. --rails N compares assignments to N, --example those of a talk"
    ranks = usable_cores() if options.ranks is None else options.ranks
    return ranks, max(len(found), 1), injected, text


def _number(value: float) -> str:
    return f"{value:.4g}"


def _summary(report: dict[str, Any]) -> Table:
    units = report["units"]
    extents = "x".join(map(str, report["faces"]))
    messages = report["assignments"][0]["faces"]["messages"]
    table = Table(
        "assignment",
        *(f">equal messages:\n{units} units", ">\nrate"),
        *(f">faces of {extents}:\n{counted(messages, 'message')}", ">\nrate"),
        title=f"Load of the busiest of {counted(report['rails'], 'rail')}, and rate of the host\n"
        f"({units}: all rails are equally busy; least: no assignment has less)",
    )
    for one in report["assignments"]:
        cells = []
        for case in ("talk", "faces"):
            least = " (least)" if one[case]["optimal"] else ""
            cells += [
                f"{_number(one[case]['busiest_rail'])}{least}",
                rate_text(one[case]["gb_per_s"] * 1e9, digits=3),
            ]
        table.add_row(one["name"], *cells)
    return table


def _loads(report: dict[str, Any]) -> Table:
    extents = "x".join(map(str, report["faces"]))
    names = (f">{one['name']}" for one in report["assignments"])
    table = Table("rail", *names, title=f"Sites on each rail, faces of {extents}")
    for rail in range(min(report["rails"], _MAX_RAILS_SHOWN)):
        table.add_row(rail, *(one["faces"]["loads"][rail] for one in report["assignments"]))
    return table


def _proof(report: dict[str, Any]) -> str:
    """Return a sentence on the talk's messages: what whole messages and cut ones reach at best."""
    rows = {one["name"]: one["talk"] for one in report["assignments"]}
    whole, cut = rows["optimum"], rows["optimum, cut"]
    text = f"{rate_text(whole['gb_per_s'] * 1e9, digits=3)} is "
    text += "the most" if whole["optimal"] else "the best found"
    text += f" for {counted(whole['messages'], 'whole equal message')}: the busiest rail has at least "
    text += f"{_number(whole['lower_bound'])}. "
    cuts = cut["pieces"] - cut["messages"]
    return text + f"With {counted(cuts, 'cut')} it is {rate_text(cut['gb_per_s'] * 1e9, digits=3)}."


def _check_options(options: Rails) -> None:
    """Refuse options that do not go together."""
    if options.schedule is None:
        if found := options.given(("machine", "per_host", "rule", "output")):
            raise BadInput(f"expected {found[0]} with --schedule only, found it without")
        if options.grid is not None and (found := options.given(("ranks",))):
            raise BadInput(f"expected {found[0]} or --grid, found both")
        return
    if found := options.given(("example", "ranks", "grid", "faces", "skip_inside")):
        raise BadInput(f"expected {found[0]} without --schedule, which has its own messages, found both")
    of_hosts = ("rails", "injected", "speeds", "per_host")
    if options.machine is not None and (found := options.given(of_hosts)):
        raise BadInput(f"expected {found[0]} without --machine, which describes the hosts, found both")


def _schedule_table(report: dict[str, Any]) -> Table:
    rounds = report["assignments"][0]["rounds"]
    messages = counted(sum(one["messages"] for one in rounds), "message")
    title = (
        f"{messages} of the slowest of {counted(report['hosts'], 'host')}, {counted(report['rails'], 'rail')}"
    )
    predicted = report["machine"] is not None
    columns = (">bytes of the host", ">busiest rail", ">rate", *[">whole schedule"] * predicted)
    table = Table("assignment", *columns, title=title)
    for one in report["assignments"]:
        least = " (least)" if one["optimal"] else ""
        busiest, rate = f"{_number(one['busiest_rail'])}{least}", rate_text(one["gb_per_s"] * 1e9, digits=3)
        whole = [seconds_text(one["predicted_seconds"])] if predicted else []
        table.add_row(one["name"], bytes_text(one["bytes"]), busiest, rate, *whole)
    return table


def _schedule_rails(options: Rails, schedule: str) -> None:
    """Compare the assignments of a schedule's messages, and write one of them."""
    _, number, injected, _ = _host(options)
    report, chosen = compare_schedule_rails(
        load_schedule(schedule),
        machine=None if options.machine is None else load_machine(options.machine),
        per_host=options.per_host,
        rails=number,
        speeds=options.speeds or None,
        injected=injected,
        min_piece=options.min_piece,
    )
    if options.plot is not None:
        plot_schedule_rails(report, options.plot)
    if options.output is not None:
        data = {key: report[key] for key in ("schedule", "machine", "ranks", "hosts", "speeds")}
        text = json.dumps(data | {"rule": options.rule, "rails": rails_to_json(chosen[options.rule])})
        write_file(options.output, text + "\n", "the rails")
    screen = console(options.json)
    screen.print(_schedule_table(report))
    screen.print("busiest rail: the bytes that all rails of a host carry until the last one has finished")
    write_json(options.json, report)


def rails(options: Rails) -> None:
    """Compare assignments of the messages of a host to its network interfaces.

    The assignments are the two of the talk on QWS's communication (one interface per rank, and round robin), longest
    message first, the best for whole messages, and the best if messages may be cut. With --schedule they are those of
    the messages of a schedule that leave their host.
    """
    _check_options(options)
    if options.schedule is not None:
        _schedule_rails(options, options.schedule)
        return
    ranks, number, injected, about = _host(options)
    report = compare_rails(
        ranks if options.grid is None else options.grid,
        number,
        options.faces,
        injected=injected,
        speeds=options.speeds or None,
        inside=not options.skip_inside,
        min_piece=options.min_piece,
    )
    if options.plot is not None:
        plot_rails(report, options.plot)
    screen = console(options.json)
    if about:
        screen.print(about)
    if number == 1:
        write_json(options.json, report)
        return
    screen.print(_summary(report))
    screen.print(_loads(report))
    if number > _MAX_RAILS_SHOWN:
        screen.print(f"... and {counted(number - _MAX_RAILS_SHOWN, 'more rail')} (--json lists all)")
    ideal = math.fsum(report["assignments"][0]["faces"]["loads"]) / number
    if not options.speeds:
        screen.print(f"Equally busy rails have {_number(ideal)} sites each.")
    screen.print(_proof(report))
    write_json(options.json, report)
