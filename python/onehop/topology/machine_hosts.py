"""The hosts of a job on a machine, with the levels or the torus between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from onehop._core import HostLayout, Level, Machine
from onehop.arguments import whole_number
from onehop.error import BadInput
from onehop.machine.reader import machine_of
from onehop.machine.traffic_rails import host_level
from onehop.text import counted

_FINENESS = 100  # costs are rounded to hundredths of the cheapest border


def _bandwidth(level: Level) -> float:
    """Return the bytes per second that one member sends."""
    return float(level.injection.value or level.bandwidth.value * level.links)


def _tiers(level: Level) -> list[tuple[int, float]]:
    """Return the units of members of a level, innermost first: how many join, and bytes/s of a member beyond them."""
    if level.routing == "fat_tree":
        rate = _bandwidth(level)
        capacity = float(level.bandwidth.value * level.links)
        tiers = []
        for children, taper in zip(level.extents[:-1], level.taper, strict=True):
            capacity *= taper
            rate = min(rate, capacity)
            tiers.append((children, rate))
        return tiers
    if level.routing == "dragonfly":
        hosts, routers, groups = level.extents
        tiers = []
        rate = _bandwidth(level)
        if routers > 1:
            rate = min(rate, (routers - 1) * level.local_bandwidth.value / hosts)
        tiers.append((hosts, rate))
        if groups > 1:
            rate = min(rate, (groups - 1) * level.group_bandwidth.value / (hosts * routers))
        return [*tiers, (routers, rate)]
    return []


def _costs(host: float, tiers: Sequence[float]) -> list[int]:
    """Return the time of a byte over each border in whole numbers; a byte over an outer one costs no less."""
    costs = [_FINENESS]
    for bandwidth in tiers:
        costs.append(max(costs[-1], round(_FINENESS * host / bandwidth)))
    common = math.gcd(*costs)
    return [cost // common for cost in costs]


def machine_hosts(
    machine: Machine | str | Path, ranks: int, costs: Sequence[int] | None = None
) -> HostLayout:
    """Return the hosts of the part of a machine that a job gets (`Machine.job`).

    A host is a member of the outermost level of which the job has more than one member: of Mira, a node. Rank r is at
    place r of the job. The torus of the layout is that of the level. The tiers of a fat tree, or the routers and groups
    of a dragonfly, become units of hosts. A byte over the border of a unit costs the time that it takes when all hosts
    send as much over this border, relative to a byte that leaves a host.

    Parameters
    ----------
    machine : Machine, str or path
        The machine, the name of an installed one, or the path of a TOML file.
    ranks : int
        Number of ranks, one per processor.
    costs : sequence of int, optional
        Cost of a byte that leaves a host, a unit, ..., instead of the costs above.

    Raises
    ------
    BadInput
        The machine does not have as many processors, or the number of costs is wrong.

    Examples
    --------
    >>> layout = machine_hosts("fugaku", 4096)
    >>> layout.hosts, layout.torus
    (1024, (2, 2, 2, 4, 4, 8))
    """
    described = machine_of(machine)
    number = whole_number(ranks, "ranks")
    if not 1 <= number <= described.processors:
        raise BadInput(
            f"expected 1 to {counted(described.processors, 'rank')}, one per processor of "
            f"{described.name}, found {number}; `onehop machines` lists larger ones"
        )
    job = described.job(number)
    level, size = host_level(job)
    hosts = -(-number // size)
    torus = [extent for extent in reversed(level.extents) if extent > 1] if level.routing == "torus" else []
    groups: list[int] = []
    rates: list[float] = []
    for members, rate in _tiers(level):
        if math.prod(groups) * members >= hosts:
            break
        groups.append(members)
        rates.append(rate)
    known = _costs(_bandwidth(level), rates) if costs is None else costs
    return HostLayout([rank // size for rank in range(number)], groups, known, torus)
