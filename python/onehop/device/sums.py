"""Sums of arrays on the devices of a group."""

from __future__ import annotations

import logging
from typing import Any

from onehop import _core
from onehop.array_memory import element_count, new_array
from onehop.collective_plans import Plans, plans
from onehop.device.arrays import Array, Place, device_array
from onehop.error import BadInput
from onehop.group import Group

_log = logging.getLogger("onehop.device")


class DeviceSums:
    """The sums of a group on a device of each rank, which `allreduce` keeps. Making one is collective."""

    def __init__(self, of_group: Plans, device: str) -> None:
        self.device = device
        self._core_device = _core.Device.named(device)
        self.core = _core.DeviceReduce(of_group.collectives, self._core_device)
        self._said: set[str] = set()

    def make_stream(self) -> _core.DeviceStream:
        """Make a stream of the device, whose `native` is its address for the driver."""
        return self._core_device.make_stream()

    def run(
        self, source: Place, target: Place, op: str, codec: str, shots: int = 0, stream: int | None = None
    ) -> None:
        """Add the arrays of all ranks after what is in the stream, by default that of the source."""
        kind = (element_count(source.shape), source.type, op, codec, shots)
        reason = self.core.choose(*kind)[3]
        if reason and reason not in self._said:
            self._said.add(reason)
            _log.warning("arrays on %s go through the processor's memory: %s", self.device, reason)
        self.core.run(source.stream if stream is None else stream, source.address, target.address, *kind)


def sums_of(of_group: Plans, device: str) -> DeviceSums:
    """Return the sums of a group on a device; the first call makes them, which is collective."""
    found: dict[str, DeviceSums] = of_group.__dict__.setdefault("_device_sums", {})
    if device not in found:
        if found:
            raise BadInput(
                f"expected an array on {next(iter(found))}, as before in this group, found one on {device}"
            )
        found[device] = DeviceSums(of_group, device)
    return found[device]


def allreduce(group: Group, array: Any, op: str = "sum", codec: str = "raw", out: Any = None) -> Any:
    """Add the arrays of all ranks on their devices, as `onehop.allreduce` does; does not wait for the device."""
    source = device_array(array)
    if source is None:
        raise BadInput(
            f"expected an array on a device, found a {type(array).__name__} in the processor's memory"
        )
    result = out
    if out is None:
        other = not hasattr(array, "new_empty")
        result = Array(source.shape, source.type, source.device) if other else new_array(array, array.shape)
    target = device_array(result)
    if target is None or target.device != source.device:
        found = "the processor's memory" if target is None else target.device
        raise BadInput(f"expected `out` on {source.device}, as the array, found it in {found}")
    if (target.shape, target.type) != (source.shape, source.type):
        raise BadInput(
            f"expected `out` with the shape and type {source.shape}, {source.type}, found {target.shape}, {target.type}"
        )
    sums_of(plans(group), source.device).run(source, target, op, codec)
    return result


def wait(group: Group, array: Any) -> None:
    """Wait until what is in the stream of an array is done.

    Raises
    ------
    PeerLost
        A rank ended, so that a sum was given up; its target is undefined.
    """
    place = device_array(array)
    if place is not None:
        sums_of(plans(group), place.device).core.wait(place.stream)


def explain(group: Group, array: Any, op: str = "sum", codec: str = "raw") -> dict[str, Any]:
    """Say how `allreduce` would add an array: the path, shots, groups of threads, and why. Not collective once used."""
    place = device_array(array)
    if place is None:
        raise BadInput(f"expected an array on a device, found a {type(array).__name__}")
    shots, groups, tiles, reason = sums_of(plans(group), place.device).core.choose(
        element_count(place.shape), place.type, op, codec
    )
    path = "kernel" if shots else "through the processor's memory"
    return {"path": path, "shots": shots, "groups": groups, "tiles": tiles, "reason": reason}
