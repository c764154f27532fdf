"""The names and properties by which torch knows a process group, and the members that its parts share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from onehop.collectives import Plans
from onehop.point_to_point import PointToPoint
from onehop.torch.work import Work
from onehop.torch.work_queue import WorkQueue


class Names:
    """The part of `ProcessGroup` that says what it is. Compiled collectives find groups by their names."""

    group: Any
    _rank: int
    _size: int
    _name: str
    _description: str
    _calls: int  # collective operations so far
    _plans: Plans
    _messages: PointToPoint
    _collective: WorkQueue
    _senders: dict[int, WorkQueue]
    _ended: Exception | None  # why nothing can be sent any more
    _do: Callable[..., Work]
    _note: Callable[[Work], Work]
    _limited: Callable[..., Callable[[], Any]]

    # Attributes that torch reads of a backend, for which this object stands, too.
    supports_splitting = False
    supports_coalescing = False
    supports_time_estimate = False
    bound_device_id = None

    def getBackendName(self) -> str:  # noqa: N802
        """Return the name of the backend."""
        return "onehop"

    name = getBackendName

    def rank(self) -> int:
        """Return the number of this rank."""
        return self._rank

    getRank = rank  # noqa: N815

    def size(self) -> int:
        """Return the number of ranks."""
        return self._size

    getSize = size  # noqa: N815

    def setGroupName(self, name: str) -> None:  # noqa: N802
        """Set the name of the group."""
        self._name = name

    def getGroupName(self) -> str:  # noqa: N802
        """Return the name of the group."""
        return self._name

    group_name = property(getGroupName)

    def setGroupDesc(self, description: str) -> None:  # noqa: N802
        """Set the description of the group."""
        self._description = description

    def getGroupDesc(self) -> str:  # noqa: N802
        """Return the description of the group."""
        return self._description

    group_desc = property(getGroupDesc)

    @property
    def _device_types(self) -> list[torch.device]:
        """The types of devices whose tensors the group takes."""
        return [torch.device("cpu")]

    def _get_sequence_number_for_group(self) -> int:
        """Return the number of collective operations so far."""
        return self._calls

    def _set_sequence_number_for_group(self) -> None:
        """Count the collective operations from now on."""
        self._calls = 0

    def _has_hooks(self) -> bool:
        """Whether there are hooks on completed operations: never."""
        return False

    def _wait_for_pending_works(self) -> None:
        """Wait for hooks on completed operations, of which there are none."""

    def _enable_collectives_timing(self) -> None:
        """Do nothing: there are no events to time."""
