"""`onehop map`: choose which rank runs on which host, from the shape of a grid alone."""

from __future__ import annotations

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
from onehop.output import check_file_target, write_file
from onehop.text import counted
from onehop.topology import FORMATS, Grid, HostLayout, RankMap, map_schedule, map_text, save_map_figure


def _layout(hosts: int | None, per_host: str, groups: str, costs: str, torus: str) -> HostLayout:
    sizes = parse_numbers(per_host, "--per-host", ",", LARGEST_INT)
    if len(sizes) > 1 and hosts is not None and hosts != len(sizes):
        raise BadInput(
            f"expected --per-host with one number, or one for each of {hosts} hosts, found {per_host}"
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


def _rows(found: RankMap, torus: bool) -> list[dict[str, Any]]:
    rows = []
    for candidate in found.candidates:
        row: dict[str, Any] = {
            "name": candidate.name,
            "edges_between_hosts": candidate.cost.edges_between_hosts,
            "busiest_host_edges": candidate.cost.busiest_host_edges,
        }
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
    bound = (
        "" if found.lower_bound is None else f"; no map has fewer than {counted(found.lower_bound, 'byte')}"
    )
    if not weighted:
        bound = bound.replace("byte", "edge")
    screen.print(f"chosen: {found.chosen}{bound} ({found.seconds:.3f} s)", markup=False)


def map_ranks(
    per_host: Annotated[
        str, typer.Option(metavar="P[,P...]", help="Number of ranks per host, or one number for each host.")
    ],
    grid: Annotated[str | None, typer.Option(metavar="AxBxC", help="Number of ranks per dimension.")] = None,
    schedule: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="Schedule as JSON whose ranks to map, instead of --grid."),
    ] = None,
    hosts: Annotated[int | None, typer.Option(metavar="H", max=LARGEST_INT, help="Number of hosts.")] = None,
    periodic: Annotated[bool, typer.Option("--periodic", help="The grid is periodic.")] = False,
    message_bytes: Annotated[
        str, typer.Option("--bytes", metavar="AxBxC", help="Bytes of a message in each dimension.")
    ] = "",
    groups: Annotated[
        str,
        typer.Option(metavar="AxB", help="Hosts in a unit, units in a larger unit, ... (chassis, cabinets)."),
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
        str, typer.Option("--format", metavar="|".join(FORMATS), help="Format of --rankfile.")
    ] = "openmpi",
    host_names: Annotated[
        str, typer.Option(metavar="A,B,...", help="Names of the hosts, for --rankfile.")
    ] = "",
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the map: a colour per host, a dot per rank.")
    ] = None,
    json_target: JsonOption = None,
) -> None:
    """Choose which rank runs on which host, so that few bytes travel between hosts."""
    check_plot(plot)
    if rankfile is not None:
        check_file_target(rankfile, "--rankfile")
    if (grid is None) == (schedule is None):
        raise BadInput("expected --grid or --schedule, found " + ("neither" if grid is None else "both"))
    if schedule is not None and (periodic or message_bytes or plot is not None):
        raise BadInput("expected --periodic, --bytes and --plot with --grid only, found --schedule")
    layout = _layout(hosts, per_host, groups, costs, torus)
    ranks = None
    if schedule is not None:
        found = map_schedule(load_schedule(schedule), layout, seed=seed, scotch=scotch)
    else:
        ranks = Grid(
            tuple(parse_numbers(grid or "", "--grid", "x")),
            periodic,
            tuple(parse_numbers(message_bytes, "--bytes", "x")) if message_bytes else None,
        )
        found = ranks.map(layout, seed=seed, scotch=scotch)
    text = map_text(found, form, host_names.split(",") if host_names else ()) if rankfile is not None else ""
    if plot is not None and ranks is not None:
        save_map_figure(ranks, found, plot)
    if rankfile is not None:
        write_file(rankfile, text, "the map")
    _show(found, console(json_target), bool(message_bytes) or ranks is None, bool(groups), bool(torus))
    result: dict[str, Any] = {"candidates": _rows(found, bool(torus)), "chosen": found.chosen}
    if found.lower_bound is not None:
        result["lower_bound"] = found.lower_bound
    result["seconds"] = found.seconds
    write_json(json_target, result)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("map")(map_ranks)
