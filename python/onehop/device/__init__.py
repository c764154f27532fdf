"""Devices: cards behind the drivers of CUDA and HIP, and arrays in their memory.

The device "processor" runs the same kernels on this processor, for tests.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from onehop import _core
from onehop.device.arrays import Array, array, device_array
from onehop.device.plans import DevicePlan
from onehop.device.sums import DeviceSums, allreduce, explain, wait
from onehop.error import Error

__all__ = [
    "Array",
    "Card",
    "DevicePlan",
    "DeviceSums",
    "allreduce",
    "array",
    "available",
    "device_array",
    "explain",
    "images",
    "wait",
    "why_none",
]


@dataclass(frozen=True)
class Card:
    """A card that the driver shows.

    Attributes
    ----------
    name : str
        Its name for onehop, such as "cuda:0".
    kind : str
        "cuda" or "hip".
    model : str
        Its name by the driver.
    memory : int
        Its memory in bytes; 0 if onehop cannot use it.
    error : str
        Why onehop cannot use it; empty if it can.
    """

    name: str
    kind: str
    model: str
    memory: int
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the object of JSON reports."""
        return asdict(self)


def available() -> list[Card]:
    """Return the cards of this machine. It is empty if there is no card, or no driver: `why_none` says why."""
    found = []
    for kind in ("cuda", "hip"):
        for index in range(_core.device_count(kind)[0]):
            name = f"{kind}:{index}"
            try:
                device = _core.Device.named(name)
                found.append(Card(name, kind, device.model, device.memory))
            except Error as error:
                found.append(Card(name, kind, "", 0, str(error)))
    return found


def why_none(kind: str) -> str:
    """Say why there is no card of a kind, "cuda" or "hip"; empty if there is one."""
    count, reason = _core.device_count(kind)
    return "" if count > 0 else reason


def images() -> list[str]:
    """Return the images of kernels that this build of onehop holds, such as "sm_80.ptx"; empty if it has none."""
    return _core.device_images()
