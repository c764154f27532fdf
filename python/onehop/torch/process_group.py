"""The backend "onehop" of torch.distributed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from onehop.collectives import Plans
from onehop.point_to_point import PointToPoint
from onehop.torch.data_movement import DataMovement
from onehop.torch.messages import Messages
from onehop.torch.reductions import Reductions
from onehop.torch.store import group_from_store
from onehop.torch.work_queue import UNUSABLE_AFTER, Work, WorkQueue

__all__ = ["ProcessGroup", "create_process_group"]


class ProcessGroup(Reductions, DataMovement, Messages, dist.ProcessGroup):
    """A process group of `torch.distributed` for dense tensors in CPU memory.

    It supports all operations of torch. All ranks of a group must call its collective operations in the same order.
    A synchronous operation runs in the calling thread if no other is pending; asynchronous ones run in one thread per
    group, in the order of the calls.

    Attributes
    ----------
    group : Group
        The ranks as a group of onehop.
    error : Exception or None
        The exception of the last collective operation that failed. An error inside `backward` reaches the program as a
        RuntimeError with the same text, because the compiled parts of torch keep only the text.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        self._name = self._description = ""
        self.group = group_from_store(store, rank, size)
        self.group.timeout = timeout.total_seconds()
        self._plans = Plans(self.group)
        self._messages = PointToPoint(self.group)
        self._collective = WorkQueue("onehop collectives", UNUSABLE_AFTER)
        self._senders: dict[int, WorkQueue] = {}

    def getBackendName(self) -> str:  # noqa: N802
        """Return the name of the backend."""
        return "onehop"

    name = getBackendName

    @property
    def error(self) -> Exception | None:
        """The exception of the last collective operation that failed, or None."""
        return self._collective.error

    def rank(self) -> int:
        """Return the number of this rank."""
        return self._rank

    getRank = rank  # noqa: N815

    def size(self) -> int:
        """Return the number of ranks."""
        return self._size

    getSize = size  # noqa: N815

    # Names that torch gives its groups; compiled and functional collectives find them by these.

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

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the time limit for every wait."""
        self.group.timeout = self._messages.timeout = timeout.total_seconds()

    def shutdown(self) -> None:
        """End the threads."""
        self._collective.close()
        for sender in self._senders.values():
            sender.close()
        self._messages.close()

    def abort(self) -> None:
        """End the threads."""
        self.shutdown()

    def _do(self, task: Callable[[], Any], opts: Any = None) -> Work:
        return self._collective.submit(task, not getattr(opts, "asyncOp", True))


def create_process_group(store: Any, rank: int, size: int, timeout: timedelta) -> ProcessGroup:
    """Create a process group. Torch calls this for `init_process_group("onehop")` and `new_group`."""
    return ProcessGroup(store, rank, size, timeout)
