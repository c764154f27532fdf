"""Numbers of processor cores."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return the number of processors that this process may run on, as set by a launcher, `taskset` or a container."""
    return len(os.sched_getaffinity(0))


def machine_cores() -> int:
    """Return the number of processors of the machine."""
    return os.cpu_count() or 1
