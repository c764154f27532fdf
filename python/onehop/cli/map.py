"""`onehop map`: choose which rank runs on which host, from the shape of a grid alone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onehop.cli.common import JsonOptions, console, write_json
from onehop.cli.schedule import load_schedule, periodic_of
from onehop.cli.screen import Screen, Table
from onehop.cli.waiting import waiting
from onehop.error import BadInput
from onehop.machine import Machine, load_machine
from onehop.options import LARGEST_INT, LARGEST_SEED, file_option, option
from onehop.output import write_file
from onehop.schedule import Schedule
from onehop.text import bytes_text, count_text, counted, seconds_text
from onehop.topology import (
    FORMATS,
    Grid,
    HostLayout,
    MapCost,
    RankMap,
    check_map_figure,
    machine_hosts,
    map_schedule,
    map_text,
    save_map_figure,
    switch_hosts,
)
from onehop.topology.switches import host_names


@dataclass(kw_only=True)
class Map(JsonOptions):
    grid: tuple[int, ...] | None = option(None, "Number of ranks per dimension.", high=LARGEST_INT)
    periodic: tuple[bool, ...] | None = option(
        None, "The grid is periodic in these dimensions; alone: in all.", metavar="1x1x0", alone="1"
    )
    message_bytes: tuple[int, ...] | None = option(None, "Bytes of a message in each dimension.", "--bytes")
    schedule: str | None = option(
        None, "JSON schedule whose ranks to map (instead of --grid).", metavar="FILE|-"
    )
    hosts: int | None = option(None, "Number of hosts.", metavar="H", high=LARGEST_INT)
    per_host: list[int] = option(
        [],
        "Number of ranks per host, or one number for each host.",
        metavar="P[,P...]",
        separator=",",
        high=LARGEST_INT,
    )
    machine: str | None = option(
        None,
        "Machine that gives hosts, levels and torus (instead of --hosts and --per-host).",
        metavar="NAME|FILE.toml",
    )
    topology: str | None = option(
        None,
        "Switches above the hosts, as Slurm's topology.conf or lines 'SWITCH: MEMBER ...' (instead of --groups). Its "
        "first --hosts nodes, or those of --host-names, hold the ranks.",
        metavar="FILE",
    )
    groups: tuple[int, ...] | None = option(
        None, "Sizes of nested units: hosts per chassis, chassis per cabinet, ...", metavar="AxB"
    )
    costs: tuple[int, ...] | None = option(
        None, "Cost of a byte that leaves a host, a unit of --groups, ...", low=0
    )
    torus: tuple[int, ...] | None = option(
        None, "Extents of a torus of hosts, to count hops.", high=LARGEST_INT
    )
    seed: int = option(1, "Seed of the local search.", low=0, high=LARGEST_SEED)
    output: str | None = file_option(
        "Write the map as JSON, for simulate --map.", "the map", "-o", "--output"
    )
    rankfile: str | None = file_option("Write the map to FILE, in the format of --format.", "the map")
    form: str | None = option(
        None, "Format of --rankfile.", "--format", choices=tuple(FORMATS), default=FORMATS[0]
    )
    host_names: list[str] = option(
        [], "Names of the hosts, for --rankfile and --topology.", metavar="A,B,...", separator=","
    )
    plot: str | None = file_option("Draw the map: a colour per host, a dot per rank.", "the plot")

    def __post_init__(self) -> None:
        """Refuse options that do not go together."""
        if (self.grid is None) == (self.schedule is None):
            raise BadInput(
                "expected --grid or --schedule, found " + ("neither" if self.grid is None else "both")
            )
        if self.rankfile is None and (self.form is not None or (self.host_names and self.topology is None)):
            name = "--host-names" if self.form is None else "--format"
            raise BadInput(f"expected {name} with --rankfile only; name the file, or leave {name} out")
        if self.schedule is not None and (self.periodic or self.message_bytes or self.plot is not None):
            raise BadInput("expected --periodic, --bytes and --plot with --grid only, found --schedule")


def _machine_layout(machine: Machine, ranks: int, options: Map) -> HostLayout:
    """Return the hosts of a job; refuse the options that describe hosts otherwise."""
    for name in ("hosts", "per_host", "groups", "torus", "topology"):
        if getattr(options, name) not in (None, []):
            raise BadInput(
                f"expected --{name.replace('_', '-')} without --machine, which describes the hosts, found both"
            )
    return machine_hosts(machine, ranks, options.costs)


def _switch_layout(file: str, options: Map) -> HostLayout:
    """Return the hosts below the switches of --topology, and set their names."""
    if options.groups or options.torus:
        raise BadInput("expected --topology without --groups and --torus, which it describes, found both")
    nodes = host_names(",".join(options.host_names), "--host-names") if options.host_names else None
    layout, names = switch_hosts(file, options.per_host, nodes, options.costs, hosts=options.hosts)
    options.host_names = [name or f"none{number}" for number, name in enumerate(names)]
    return layout


def _layout(options: Map) -> HostLayout:
    sizes, hosts = options.per_host, options.hosts
    if not sizes:
        raise BadInput("expected --per-host with the number of ranks per host, or --machine, found neither")
    if options.topology is not None:
        return _switch_layout(options.topology, options)
    if len(sizes) > 1 and hosts is not None and hosts != len(sizes):
        raise BadInput(
            f"expected --per-host with one number, or one for each of {counted(hosts, 'host')}, found "
            f"{','.join(map(str, sizes))}"
        )
    if len(sizes) == 1 and hosts is None:
        raise BadInput("expected --hosts with the number of hosts, or --per-host with one number per host")
    layout = HostLayout.of_equal(hosts, sizes[0]) if len(sizes) == 1 else HostLayout.of_sizes(sizes)
    if not (options.groups or options.costs or options.torus):
        return layout
    return HostLayout(layout.host_of_rank, options.groups or (), options.costs or (), options.torus or ())


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


def _show(found: RankMap, screen: Screen, weighted: bool, levels: bool, torus: bool) -> None:
    columns: list[tuple[str, Callable[[MapCost], object], bool]] = [
        ("edges between hosts", lambda cost: count_text(cost.edges_between_hosts), True),
        ("of the busiest host", lambda cost: count_text(cost.busiest_host_edges), True),
        ("bytes between hosts", lambda cost: bytes_text(cost.bytes_between_hosts), weighted),
        ("of the busiest host", lambda cost: bytes_text(cost.busiest_host_bytes), weighted),
        ("bytes by level", lambda cost: " + ".join(map(bytes_text, cost.bytes_by_level[1:])), levels),
        ("byte-hops", lambda cost: count_text(cost.byte_hops), torus),
    ]
    shown = [f">{name}" for name, _, is_shown in columns if is_shown]
    table = Table("candidate", *shown, title="Maps of ranks to hosts")
    for candidate in found.candidates:
        cells = [cell(candidate.cost) for _, cell, is_shown in columns if is_shown]
        table.add_row(candidate.name, *cells, bold=candidate.name == found.chosen)
    screen.print(table)
    for name, reason in found.skipped.items():
        screen.print(f"{name}: left out, {reason}")
    bound = ""
    if found.lower_bound is not None:
        bound = "; no map has fewer than "
        bound += (
            bytes_text(found.lower_bound) if weighted else counted(found.lower_bound, "edge", commas=True)
        )
    screen.print(f"chosen: {found.chosen}{bound} ({seconds_text(found.seconds)})")


def _describe(layout: HostLayout, machine: Machine | None) -> dict[str, Any]:
    """Return the hosts of a map for JSON."""
    sizes = [0] * layout.hosts
    for host in layout.host_of_rank:
        sizes[host] += 1
    found: dict[str, Any] = {} if machine is None else {"machine": machine.name}
    found |= {"hosts": layout.hosts, "per_host": sizes[0] if len(set(sizes)) == 1 else sizes}
    return found | {"groups": layout.groups, "costs": layout.costs, "torus": layout.torus}


def map_ranks(options: Map) -> None:
    """Choose which rank runs on which host, so that few bytes travel between hosts."""
    described = None if options.machine is None else load_machine(options.machine)
    what: Grid | Schedule
    if options.grid is None:
        what = load_schedule(options.schedule or "-")
        number = what.ranks
    else:
        what = Grid(options.grid, periodic_of(options.periodic or (False,)), options.message_bytes)
        if options.plot is not None:
            check_map_figure(options.grid)
        number = math.prod(options.grid)
    layout = _layout(options) if described is None else _machine_layout(described, number, options)
    with waiting("mapping"):
        found = (
            what.map(layout, seed=options.seed)
            if isinstance(what, Grid)
            else map_schedule(what, layout, seed=options.seed)
        )
    if options.rankfile is not None:
        text = map_text(found, options.form or FORMATS[0], options.host_names)
    if options.plot is not None and isinstance(what, Grid):
        save_map_figure(what, found, options.plot)
    if options.rankfile is not None:
        write_file(options.rankfile, text, "the map")
    placed = {"processors": len(found.position_of), "places": found.rank_at}
    if options.output is not None:
        write_file(options.output, json.dumps(_describe(layout, described) | placed) + "\n", "the map")
    has_torus = bool(layout.torus)
    weighted = options.message_bytes is not None or options.schedule is not None
    _show(found, console(options.json), weighted, bool(layout.groups), has_torus)
    result: dict[str, Any] = {"candidates": _rows(found, has_torus), "chosen": found.chosen}
    if found.lower_bound is not None:
        result["lower_bound"] = found.lower_bound
    result["seconds"] = found.seconds
    write_json(options.json, result | _describe(layout, described) | placed)
