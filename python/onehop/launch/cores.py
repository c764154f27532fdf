"""Assign processor cores to ranks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from onehop.cores import usable_processors

_SYSFS = Path("/sys/devices/system/cpu")


def _siblings(cpu: int) -> str:
    try:
        return (_SYSFS / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)


def available_cores() -> list[int]:
    """The processors that this process may run on: the first thread of each core, then the second threads."""
    turn: dict[str, int] = {}
    order = []
    for cpu in sorted(usable_processors()):
        core = _siblings(cpu)
        order.append((turn.get(core, 0), cpu))
        turn[core] = turn.get(core, 0) + 1
    return [cpu for _, cpu in sorted(order)]


def share_cores(ranks: int, cores_each: int = 1) -> list[set[int]] | None:
    """The processors of each rank, or None if there are too few to give each rank its own."""
    cores = available_cores()
    if ranks * cores_each > len(cores):
        return None
    return [set(cores[rank * cores_each : (rank + 1) * cores_each]) for rank in range(ranks)]


def why_not_bound(cores: Iterable[int]) -> str | None:
    """Why the system does not let this process choose among these processors of its own; None if it does."""
    before = usable_processors()
    try:
        os.sched_setaffinity(0, cores)
        os.sched_setaffinity(0, before)
    except OSError as error:
        return error.strerror
    return None
