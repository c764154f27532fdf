"""What the predictions share: the part of a machine that a job gets, checks of its memory, and sums of bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from onehop.error import BadInput
from onehop.machine import Machine, Simulation
from onehop.machine.reader import machine_of
from onehop.text import counted

__all__ = [
    "add_bytes",
    "bounding_level",
    "check_memory",
    "check_ranks",
    "machine_of",
    "ranks_per_host",
    "ranks_per_unit",
]


def check_ranks(ranks: int, machine: Machine) -> None:
    """Raise BadInput unless the machine has a processor for every rank."""
    if ranks > machine.processors:
        raise BadInput(
            f"expected at most {counted(machine.processors, 'rank')}, one for each processor of {machine.name}, "
            f"found {ranks}"
        )


def ranks_per_unit(machine: Machine, ranks: int) -> list[int]:
    """List the ranks in one unit of each level, innermost first, of the part of the machine that a job gets."""
    units = [1]
    for level in machine.job(ranks).levels:
        units.append(units[-1] * math.prod(level.extents))
    return units


def ranks_per_host(machine: Machine, ranks: int) -> int:
    """Return the ranks in the largest units between which a placement can avoid exchanges; 1 if there are none."""
    return max(
        unit for unit in ranks_per_unit(machine, ranks) if unit < max(ranks, 2) and unit & (unit - 1) == 0
    )


def check_memory(need: int, machine: Machine, what: str, remedy: str) -> None:
    """Raise BadInput if a rank needs more memory than a processor has."""
    if need > machine.memory.value:
        raise BadInput(
            f"{what} does not fit: expected at most {machine.memory.value / 1e9:.4g} GB for each rank, the memory of "
            f"a processor of {machine.name}, found {need / 1e9:.4g} GB; {remedy}"
        )


def add_bytes(total: dict[str, int], more: Mapping[str, float], times: int = 1) -> None:
    """Add bytes by level to a total."""
    for level, found in more.items():
        total[level] = total.get(level, 0) + times * round(found)


def bounding_level(simulation: Simulation) -> str:
    """Name the bound of a simulation: the links of a level if they are busy for half of the time, or latency."""
    link = simulation.busiest_link
    if link is not None and link.seconds >= 0.5 * simulation.seconds:
        return f"links of level {link.level}"
    return "latency and overhead of messages"
