"""`onehop machines`: list the machines that are installed with onehop, and show the numbers of one."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass

from onehop.cli.common import JsonOptions, console, write_json
from onehop.cli.screen import Table
from onehop.machine import Machine, figures_of, load_machine, machine_names, time_tables_of
from onehop.options import argument
from onehop.text import bytes_text, counted, rate_text, seconds_text

_TIMES = ("latency", "hop_latency", "overhead", "gap", "packed_piece", "copied_piece", "used_line")


def figure_text(name: str, value: float) -> str:
    """Return a number of a machine with its unit."""
    if name in _TIMES:
        return seconds_text(value)
    if name == "memory":
        return f"{value / 1e9:.4g} GB" if value % 1e9 == 0 else bytes_text(value)
    return rate_text(value, "op/s" if name.startswith("multiply_adds") else "B/s")


def _list(json_target: str | None) -> None:
    table = Table("name", "processors", "levels, innermost first", "what it is")
    found = []
    for name in machine_names():
        machine = load_machine(name)
        levels = " · ".join(f"{level.name} ({level.routing})" for level in machine.levels)
        table.add_row(name, f"{machine.processors:,}", levels, machine.title)
        found.append({"name": name, "title": machine.title, "processors": machine.processors})
    console(json_target).print(table)
    write_json(json_target, {"machines": found})


def _show(machine: Machine, json_target: str | None) -> None:
    screen = console(json_target)
    screen.print(f"{machine.title}\n{counted(machine.processors, 'processor', commas=True)}")
    levels = Table("level", "routing", "members", "links", "source", title="Levels")
    for level in machine.levels:
        interfaces = f", {level.interfaces} interfaces" if level.interfaces else ""
        extents = "x".join(map(str, level.extents))
        levels.add_row(level.name, level.routing, extents, f"{level.links}{interfaces}", level.topology)
    screen.print(levels)
    for group, figures in itertools.groupby(figures_of(machine), key=lambda one: one[0]):
        numbers = Table("number", "value", "basis", "source", title=f"Numbers of {group}")
        for _, name, figure in figures:
            numbers.add_row(
                name.replace("_", " "), figure_text(name, figure.value), figure.basis, figure.source
            )
        screen.print(numbers)
    for group, name, table in time_tables_of(machine):
        title = f"{name.replace('_', ' ')} of {group}, {table.basis}: {table.source}"
        times = Table(">size", ">time", title=title)
        for size, seconds in table.points:
            times.add_row(bytes_text(size), seconds_text(seconds))
        screen.print(times)
    write_json(json_target, json.loads(machine.to_json()))


@dataclass(kw_only=True)
class Machines(JsonOptions):
    name: str | None = argument("NAME|FILE.toml", "Show this machine with the source of every number.", None)


def machines(options: Machines) -> None:
    """List the machines that schedules can be simulated on, or show one."""
    if options.name is None:
        _list(options.json)
    else:
        _show(load_machine(options.name), options.json)
