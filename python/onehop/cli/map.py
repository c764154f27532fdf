"""`onehop map`: choose which rank runs on which host, from the shape of a grid alone."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer
from rich.table import Table

from onehop.cli.common import (
    LARGEST_INT,
    LARGEST_SEED,
    JsonOption,
    check_plot,
    console,
    parse_numbers,
    write_json,
)
from onehop.cli.schedule import load_schedule
from onehop.error import BadInput
from onehop.machine import Machine, load_machine
from onehop.output import check_file_target, write_file
from onehop.schedule import Schedule
from onehop.text import alternatives, counted
from onehop.topology import (
    FORMATS,
    Grid,
    HostLayout,
    RankMap,
    check_map_figure,
    machine_hosts,
    map_schedule,
    map_text,
    save_map_figure,
)


def _machine_layout(machine: Machine, ranks: int, costs: str, **others: Any) -> HostLayout:
    """Return the hosts of a job; refuse the options that describe hosts otherwise."""
    for name, value in others.items():
        if value not in (None, ""):
            option = f"--{name.replace('_', '-')}"
            raise BadInput(f"expected {option} without --machine, which describes the hosts, found both")
    return machine_hosts(machine, ranks, parse_numbers(costs, "--costs", "x") if costs else None)


def _layout(hosts: int | None, per_host: str | None, groups: str, costs: str, torus: str) -> HostLayout:
    if per_host is None:
        raise BadInput("expected --per-host with the number of ranks per host, or --machine, found neither")
    sizes = parse_numbers(per_host, "--per-host", ",", LARGEST_INT)
    if len(sizes) > 1 and hosts is not None and hosts != len(sizes):
        raise BadInput(
            f"expected --per-host with one number, or one for each of {counted(hosts, 'host')}, found {per_host}"
        )
    if len(sizes) == 1 and hosts is None:
        raise BadInput("expected --hosts with the number of hosts, or --per-host with one number per host")
    layout = HostLayout.of_equal(hosts, sizes[0]) if len(sizes) == 1 else HostLayout.of_sizes(sizes)
    if not (groups or costs or torus):
        return layout
    return HostLayout(
        layout.host_of_rank,
        parse_numbers(groups, "--groups", "x") if groups else [],
        parse_numbers(costs, "--costs", "x") if costs else [],
        parse_numbers(torus, "--torus", "x", LARGEST_INT) if torus else [],
    )


def _format(form: str | None, host_names: str, rankfile: str | None) -> str:
    """Return the format of --rankfile; refuse an unknown one, and options that need --rankfile."""
    if form is not None and form not in FORMATS:
        raise BadInput(f"expected --format {alternatives(FORMATS)}, found {form!r}")
    if rankfile is None and (form is not None or host_names):
        option = "--host-names" if form is None else "--format"
        raise BadInput(f"expected {option} with --rankfile only; name the file, or leave {option} out")
    return form or FORMATS[0]


# Figures of a candidate for JSON.
_COST = (
    "edges_between_hosts",
    "busiest_host_edges",
    "bytes_between_hosts",
    "busiest_host_bytes",
    "weighted_bytes",
)


def _rows(found: RankMap, torus: bool) -> list[dict[str, Any]]:
    rows = []
    for candidate in found.candidates:
        row: dict[str, Any] = {"name": candidate.name}
        row |= {name: getattr(candidate.cost, name) for name in _COST}
        row["bytes_by_level"] = list(candidate.cost.bytes_by_level)
        if torus:
            row["byte_hops"] = candidate.cost.byte_hops
        rows.append(row)
    return rows


def _show(found: RankMap, screen: Any, weighted: bool, levels: bool, torus: bool) -> None:
    table = Table("candidate", title="Maps of ranks to hosts")
    table.add_column("edges between hosts", justify="right")
    table.add_column("of the busiest host", justify="right")
    if weighted:
        table.add_column("bytes between hosts", justify="right")
        table.add_column("of the busiest host", justify="right")
    if levels:
        table.add_column("bytes by level", justify="right")
    if torus:
        table.add_column("byte-hops", justify="right")
    for candidate in found.candidates:
        cost = candidate.cost
        cells: list[Any] = [cost.edges_between_hosts, cost.busiest_host_edges]
        if weighted:
            cells += [cost.bytes_between_hosts, cost.busiest_host_bytes]
        if levels:
            cells.append(" + ".join(map(str, cost.bytes_by_level[1:])))
        if torus:
            cells.append(cost.byte_hops)
        style = "bold" if candidate.name == found.chosen else None
        table.add_row(candidate.name, *map(str, cells), style=style)
    screen.print(table)
    for name, reason in found.skipped.items():
        screen.print(f"{name}: left out, {reason}", markup=False)
    bound = ""
    if found.lower_bound is not None:
        bound = f"; no map has fewer than {counted(found.lower_bound, 'byte' if weighted else 'edge')}"
    screen.print(f"chosen: {found.chosen}{bound} ({found.seconds:.3f} s)", markup=False)


def _describe(layout: HostLayout, machine: Machine | None) -> dict[str, Any]:
    """Return the hosts of a map for JSON."""
    sizes = [0] * layout.hosts
    for host in layout.host_of_rank:
        sizes[host] += 1
    found: dict[str, Any] = {} if machine is None else {"machine": machine.name}
    found |= {"hosts": layout.hosts, "per_host": sizes[0] if len(set(sizes)) == 1 else sizes}
    return found | {"groups": layout.groups, "costs": layout.costs, "torus": layout.torus}


def map_ranks(
    per_host: Annotated[
        str | None,
        typer.Option(metavar="P[,P...]", help="Number of ranks per host, or one number for each host."),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.toml",
            help="Machine that gives hosts, levels and torus (instead of --hosts and --per-host).",
        ),
    ] = None,
    grid: Annotated[str | None, typer.Option(metavar="AxBxC", help="Number of ranks per dimension.")] = None,
    schedule: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="JSON schedule whose ranks to map (instead of --grid)."),
    ] = None,
    hosts: Annotated[int | None, typer.Option(metavar="H", max=LARGEST_INT, help="Number of hosts.")] = None,
    periodic: Annotated[bool, typer.Option("--periodic", help="The grid is periodic.")] = False,
    message_bytes: Annotated[
        str, typer.Option("--bytes", metavar="AxBxC", help="Bytes of a message in each dimension.")
    ] = "",
    groups: Annotated[
        str,
        typer.Option(
            metavar="AxB", help="Sizes of nested units: hosts per chassis, chassis per cabinet, ..."
        ),
    ] = "",
    costs: Annotated[
        str,
        typer.Option(metavar="AxBxC", help="Cost of a byte that leaves a host, a unit of --groups, ..."),
    ] = "",
    torus: Annotated[
        str, typer.Option(metavar="AxBxC", help="Extents of a torus of hosts, to count hops.")
    ] = "",
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the local search.")] = 1,
    scotch: Annotated[
        bool, typer.Option(help="Also ask the mapper of SCOTCH, if its library is installed.")
    ] = True,
    rankfile: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the map to FILE, in the format of --format.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="|".join(FORMATS), help=f"Format of --rankfile. Default: {FORMATS[0]}."
        ),
    ] = None,
    host_names: Annotated[
        str, typer.Option(metavar="A,B,...", help="Names of the hosts, for --rankfile.")
    ] = "",
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the map as JSON, for simulate --map."),
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the map: a colour per host, a dot per rank.")
    ] = None,
    json_target: JsonOption = None,
) -> None:
    """Choose which rank runs on which host, so that few bytes travel between hosts."""
    check_plot(plot)
    for target, option in ((rankfile, "--rankfile"), (output, "--output")):
        if target is not None:
            check_file_target(target, option)
    if (grid is None) == (schedule is None):
        raise BadInput("expected --grid or --schedule, found " + ("neither" if grid is None else "both"))
    form = _format(form, host_names, rankfile)
    if schedule is not None and (periodic or message_bytes or plot is not None):
        raise BadInput("expected --periodic, --bytes and --plot with --grid only, found --schedule")
    described = None if machine is None else load_machine(machine)
    what: Grid | Schedule
    if schedule is not None:
        what = load_schedule(schedule)
        number = what.ranks
    else:
        extents = tuple(parse_numbers(grid or "", "--grid", "x"))
        sizes = tuple(parse_numbers(message_bytes, "--bytes", "x")) if message_bytes else None
        what = Grid(extents, periodic, sizes)
        if plot is not None:
            check_map_figure(extents)
        number = math.prod(extents)
    if described is None:
        layout = _layout(hosts, per_host, groups, costs, torus)
    else:
        others = {"hosts": hosts, "per_host": per_host, "groups": groups, "torus": torus}
        layout = _machine_layout(described, number, costs, **others)
    if isinstance(what, Grid):
        found = what.map(layout, seed=seed, scotch=scotch)
    else:
        found = map_schedule(what, layout, seed=seed, scotch=scotch)
    text = map_text(found, form, host_names.split(",") if host_names else ()) if rankfile is not None else ""
    if plot is not None and isinstance(what, Grid):
        save_map_figure(what, found, plot)
    if rankfile is not None:
        write_file(rankfile, text, "the map")
    placed = {"processors": len(found.position_of), "places": found.rank_at}
    if output is not None:
        write_file(output, json.dumps(_describe(layout, described) | placed) + "\n", "the map")
    has_torus = bool(layout.torus)
    weighted = bool(message_bytes) or schedule is not None
    _show(found, console(json_target), weighted, bool(layout.groups), has_torus)
    result: dict[str, Any] = {"candidates": _rows(found, has_torus), "chosen": found.chosen}
    if found.lower_bound is not None:
        result["lower_bound"] = found.lower_bound
    result["seconds"] = found.seconds
    write_json(json_target, result | _describe(layout, described) | placed)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("map")(map_ranks)
