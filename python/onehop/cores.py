"""Numbers of processor cores."""

from __future__ import annotations

import os


def usable_processors() -> set[int]:
    """Return the processors that this process may run on, as set by a launcher, `taskset` or a container.

    All processors of the machine where the system does not say (`sched_getaffinity` is refused).
    """
    try:
        return os.sched_getaffinity(0)
    except OSError:
        return set(range(machine_cores()))


def usable_cores() -> int:
    """Return the number of processors that this process may run on."""
    return len(usable_processors())


def machine_cores() -> int:
    """Return the number of processors of the machine."""
    return os.cpu_count() or 1
