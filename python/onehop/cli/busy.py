"""Whether other programs, or other virtual machines, took the processor while something was measured."""

from __future__ import annotations

import contextlib
import json
import os
import resource
from pathlib import Path
from typing import Any

from onehop.cores import machine_cores
from onehop.group import Group
from onehop.text import digits_text

_MOST = 0.1  # of the cores; from here on the machine is busy


def _ticks() -> tuple[float, float]:
    """Return the seconds that all processors have worked, and those that the host of a virtual machine took."""
    try:
        numbers = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:  # a sandbox hides it
        return 0.0, 0.0
    user, nice, system, _idle, _io, irq, soft, stolen = map(int, (*numbers, *"0" * 8)[:8])
    each = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + soft) / each, stolen / each


def _own() -> float:
    with contextlib.suppress(OSError):  # a sandbox refuses it
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)
    return 0.0


def _average() -> float:
    with contextlib.suppress(OSError):
        return os.getloadavg()[0]
    return 0.0


def _machine() -> str:
    """Return what tells this machine from others. Emulated hosts and containers share it."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text()
    return os.uname().nodename


class Load:
    """Counts from its making until `found` what the ranks of a group on this machine, and all others, compute."""

    def __init__(self, group: Group | None = None) -> None:
        self._group = group
        self._begin = (os.times().elapsed, *_ticks(), _own())

    def found(self) -> dict[str, Any]:
        """Return `others`, the cores that others took on average, the part `steal` of them, and `busy`. Collective."""
        elapsed, worked, stolen, own = (
            now - before
            for now, before in zip((os.times().elapsed, *_ticks(), _own()), self._begin, strict=True)
        )
        if self._group is not None:
            each = [json.loads(one) for one in self._group.allgather(json.dumps([_machine(), own]).encode())]
            own = sum(theirs for machine, theirs in each if machine == _machine())
        elapsed = max(elapsed, 0.01)
        steal = stolen / elapsed
        others = max(worked - own, 0) / elapsed + steal
        return {
            "others": others,
            "steal": steal,
            "load": _average(),
            "cores": machine_cores(),
            "busy": others > _MOST * machine_cores(),
        }


def load_text(found: dict[str, Any]) -> str:
    """Say whether the machine was busy."""
    took = f"others took {digits_text(found['others'], 2)} of {found['cores']} cores"
    if found["steal"] >= 0.005:
        took += f", {digits_text(found['steal'], 2)} of them below this virtual machine"
    if not found["busy"]:
        return f"the machine was quiet: {took}"
    return (
        f"the machine was busy: {took} (load {digits_text(found['load'], 2)}); measure again when it is quiet"
    )
