"""How long a processor computes: the time of its memory traffic or of its arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from onehop.machine import Machine

__all__ = ["Computing", "Speed"]


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
