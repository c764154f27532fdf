"""Every number of a machine that is given, with its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onehop._core import Machine
from onehop.machine.reader import _FIGURES, _PROCESSOR, _PROCESSOR_FIGURES, _PROCESSOR_TABLES, _TABLES


def figures_of(machine: Machine) -> Iterator[tuple[str, str, Any]]:
    """Yield level, name and `Figure` of every number of a machine that is given."""
    for level in machine.levels:
        for key in _FIGURES:
            if (figure := getattr(level, key)).source:
                yield level.name, key, figure
    yield _PROCESSOR, "memory_bandwidth", machine.memory_bandwidth
    yield _PROCESSOR, "memory", machine.memory
    for key in (*_PROCESSOR_FIGURES, "multiply_adds_double", "multiply_adds_single"):
        if (figure := getattr(machine, key)).source:
            yield _PROCESSOR, key, figure


def time_tables_of(machine: Machine) -> Iterator[tuple[str, str, Any]]:
    """Yield level, name and `TimeTable` of every table of times that a machine has."""
    for level in machine.levels:
        for key in _TABLES:
            if (table := getattr(level, key)).points:
                yield level.name, key, table
    for key in _PROCESSOR_TABLES:
        if (table := getattr(machine, key)).points:
            yield _PROCESSOR, key, table
