"""Plans of arrays on devices."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from onehop import _core
from onehop._core import Schedule
from onehop.device.arrays import Place, device_array, torch_stream
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.text import counted


class DevicePlan(_core.DevicePlan):
    """A schedule bound to a group and to arrays on devices, which `onehop.Plan` makes of such arrays.

    Kernels pack and unpack, in the stream of the arrays, after what is in it; no call waits for the device. What the
    schedule writes is there for what comes later in the stream. Between hosts, and where cards do not reach each
    other, messages go through the processor's memory, and `finish` waits. `wait` waits for the device, and raises
    PeerLost if a rank ended, so that what the last run writes is undefined.

    Attributes
    ----------
    counters : PlanCounters
        As of `onehop.Plan`.
    staging_bytes : int
        Memory for messages: of the device, or of the processor if they go through it.
    """

    def __init__(self, schedule: Schedule, group: Group, arrays: Sequence[Any], **keywords: Any) -> None:
        places = [None if array is None else device_array(array) for array in arrays]
        on_device = [place for place in places if place is not None]
        error = ""
        try:
            _check(arrays, places, keywords)
        except Error as found:
            error = str(found)
        self._arrays = list(arrays)  # keeps their memory
        self._stream = on_device[0].stream
        self._tensor = next((array for array in arrays if hasattr(array, "data_ptr")), None)
        super().__init__(
            group,
            schedule,
            _core.Device.named(on_device[0].device),
            [(0, 0) if place is None else (place.address, place.bytes) for place in places],
            error,
        )

    def start(self, stream: int | None = None) -> None:
        """Start a run after what is in a stream.

        Parameters
        ----------
        stream : int, optional
            The stream's address for the driver. By default that of the arrays: torch's current stream, or the `stream`
            of `__cuda_array_interface__`, or the default stream.
        """
        super().start(self._stream_or(stream))

    def finish(self, stream: int | None = None) -> None:
        """Complete the run in a stream, which may be another one."""
        super().finish(self._stream_or(stream))

    def run(self, stream: int | None = None) -> None:
        """Call `start` and `finish`."""
        self.start(stream)
        self.finish(stream)

    def __enter__(self) -> DevicePlan:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()

    def explain(self) -> dict[str, Any]:
        """Say how messages move: `path`, the `reason` of a path without kernels, `groups`, `staging_bytes`."""
        reason = self.reason
        path = "through the processor's memory" if reason else "kernel"
        return {
            "path": path,
            "reason": reason,
            "groups": self.groups,
            "staging_bytes": self.staging_bytes,
        }

    def _stream_or(self, stream: int | None) -> int:
        if stream is not None:
            return stream
        return self._stream if self._tensor is None else torch_stream(self._tensor)


def _check(arrays: Sequence[Any], places: Sequence[Place | None], keywords: dict[str, Any]) -> None:
    if more := sorted(set(keywords) - {"verify"}):
        raise BadInput(
            f"expected no {counted(len(more), 'option')} of plans of arrays in the processor's memory, "
            f"found {', '.join(more)}"
        )
    device = ""
    for number, (array, place) in enumerate(zip(arrays, places, strict=True)):
        if array is None:
            continue
        found = "the processor's memory" if place is None else place.device
        device = device or found
        if found != device or place is None:
            raise BadInput(
                f"expected all arrays of a plan on one device, found one on {device} and array {number} on {found}"
            )
