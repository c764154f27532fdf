"""How many processor cores there are."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Those that this process may run on: a rank has its own, others what `taskset` or a container leaves them."""
    return len(os.sched_getaffinity(0))


def machine_cores() -> int:
    """All of the machine."""
    return os.cpu_count() or 1
