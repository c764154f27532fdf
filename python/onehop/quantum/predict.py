"""Prediction of the time of a circuit on this machine, from the speed of `onehop tune` or of the first longer run."""

from __future__ import annotations

import contextlib
import json
import math
import os
from pathlib import Path

from onehop.error import Error
from onehop.output import write_file
from onehop.quantum.circuit_plan import CircuitPlan

# Bytes per second that the ranks of a machine together read and write, before a run has shown how many they are.
BUILT_IN_RATE = 10e9
# Shorter runs show the time to start them rather than the speed of memory.
_SHORTEST_RUN = 0.1


def _file() -> Path:
    return (
        Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "onehop" / "circuits.json"
    )


def kept_rate() -> float | None:
    """Return the rate that `keep_rate` has kept; None without one."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, RuntimeError):
        rate = float(json.loads(_file().read_bytes()[:4096])["bytes_per_second"])
        return rate if 0 < rate < math.inf else None
    return None


def keep_rate(circuit_plan: CircuitPlan, seconds: float, *, replace: bool = False) -> None:
    """Keep the rate of a run in the user's cache folder, unless one is kept already or the run was short."""
    if seconds >= _SHORTEST_RUN and (replace or kept_rate() is None):
        text = json.dumps({"bytes_per_second": _traffic(circuit_plan) / seconds})
        # Without a place for it, the next run tries again; RuntimeError: the user has no home.
        with contextlib.suppress(Error, OSError, RuntimeError):
            write_file(_file(), text + "\n", "the speed of circuits", make_parents=True)


def predict(circuit_plan: CircuitPlan) -> float:
    """Predict the seconds of a run, without sampling and observables. Nothing is run."""
    return _traffic(circuit_plan) / (kept_rate() or BUILT_IN_RATE)


def _traffic(circuit_plan: CircuitPlan) -> float:
    """Return the bytes of memory that the ranks of one machine read and write together."""
    share = (16 if circuit_plan.precision == "double" else 8) << circuit_plan.placement.local_bits
    each = share * (1 + 2 * circuit_plan.passes) + 2 * circuit_plan.bytes_per_rank
    return each * circuit_plan.ranks_per_node
