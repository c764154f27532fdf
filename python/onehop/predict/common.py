"""What the predictions share: the part of a machine that a job gets, its memory, and the speed of a processor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from onehop.error import BadInput
from onehop.machine import Machine, Simulation
from onehop.text import counted


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


@dataclass(frozen=True)
class Computing:
    """Seconds of computing, by what limits it."""

    memory: float = 0.0
    arithmetic: float = 0.0

    @property
    def seconds(self) -> float:
        """The seconds of both."""
        return self.memory + self.arithmetic

    def __add__(self, other: Computing) -> Computing:
        return Computing(self.memory + other.memory, self.arithmetic + other.arithmetic)


@dataclass(frozen=True)
class Speed:
    """What a processor does per second: bytes of memory, and floating-point operations (0: not known)."""

    machine: Machine
    bytes: float
    flops: float

    @staticmethod
    def of(machine: Machine, precision: str) -> Speed:
        """Return the speed of a processor of a machine: "double", or any other precision as single."""
        rate = machine.multiply_adds_double if precision == "double" else machine.multiply_adds_single
        return Speed(machine, machine.memory_bandwidth.value, 2 * rate.value)

    def timed(self, moved: float, flops: float) -> Computing:
        """Return the seconds of a loop: those of its memory traffic or of its arithmetic, whichever is longer."""
        memory = moved / self.bytes
        arithmetic = flops / self.flops if self.flops > 0 else 0.0
        return Computing(arithmetic=arithmetic) if arithmetic > memory else Computing(memory)
