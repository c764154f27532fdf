"""`onehop machines`: list the machines that are installed with onehop, and show the numbers of one."""

from __future__ import annotations

import itertools
import json
from typing import Annotated

import typer
from rich.table import Table

from onehop.cli.common import JsonOption, console, write_json
from onehop.machine import Machine, figures_of, load_machine, machine_names, time_tables_of
from onehop.text import bytes_text, counted

_TIMES = ("latency", "hop_latency", "overhead", "gap", "packed_piece", "copied_piece", "used_line")


def figure_text(name: str, value: float) -> str:
    """Return a number of a machine with its unit: times in µs, sizes in GB or GiB, rates in GB/s or 10^9/s."""
    if name in _TIMES:
        return f"{value * 1e6:.4g} µs"
    if name == "memory":
        return f"{value / 1e9:.4g} GB" if value % 1e9 == 0 else bytes_text(value)
    return f"{value / 1e9:.4g} {'10^9/s' if name.startswith('multiply_adds') else 'GB/s'}"


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


def _origins(*columns: str, title: str) -> Table:
    """Return a table whose last column, the origin of a number, takes the width that the others leave."""
    table = Table(*columns, title=title, title_justify="left", expand=True)
    table.add_column("source", ratio=1, overflow="fold")
    return table


def _show(machine: Machine, json_target: str | None) -> None:
    screen = console(json_target)
    screen.print(f"{machine.title}\n{counted(machine.processors, 'processor', commas=True)}", markup=False)
    levels = _origins("level", "routing", "members", "links", title="Levels")
    for level in machine.levels:
        interfaces = f", {level.interfaces} interfaces" if level.interfaces else ""
        extents = "x".join(map(str, level.extents))
        levels.add_row(level.name, level.routing, extents, f"{level.links}{interfaces}", level.topology)
    screen.print(levels)
    for group, figures in itertools.groupby(figures_of(machine), key=lambda one: one[0]):
        numbers = _origins("number", "value", "basis", title=f"Numbers of {group}")
        for _, name, figure in figures:
            numbers.add_row(
                name.replace("_", " "), figure_text(name, figure.value), figure.basis, figure.source
            )
        screen.print(numbers)
    for group, name, table in time_tables_of(machine):
        title = f"{name.replace('_', ' ')} of {group}, {table.basis}: {table.source}"
        times = Table("bytes", "µs", title=title, title_justify="left")
        for size, seconds in table.points:
            times.add_row(f"{size:,.0f}", f"{seconds * 1e6:.4g}")
        screen.print(times)
    write_json(json_target, json.loads(machine.to_json()))


def machines(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME|FILE.toml", help="Show this machine with the source of every number."),
    ] = None,
    json_target: JsonOption = None,
) -> None:
    """List the machines that schedules can be simulated on, or show one."""
    if name is None:
        _list(json_target)
    else:
        _show(load_machine(name), json_target)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(machines)
