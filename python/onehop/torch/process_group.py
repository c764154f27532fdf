"""The backend "onehop" of torch.distributed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any

import torch
import torch.distributed as dist

from onehop.collectives import Plans
from onehop.error import BadInput, Error
from onehop.point_to_point import PointToPoint
from onehop.torch.data_movement import DataMovement
from onehop.torch.monitored_barrier import MonitoredBarrier
from onehop.torch.reductions import Reductions
from onehop.torch.store import group_from_store
from onehop.torch.work import JoinedWork, Work
from onehop.torch.work_queue import UNUSABLE_AFTER, WorkQueue, is_machine_full

_NO_TIME = timedelta(0)


class ProcessGroup(Reductions, DataMovement, MonitoredBarrier, dist.ProcessGroup):
    """A process group of `torch.distributed` for tensors in CPU memory, or by copies on cards.

    It supports all operations of torch. All ranks of a group must call its collective operations in the same order.
    A synchronous operation runs in the calling thread if no other is pending; asynchronous ones run in one thread per
    group, in the order of the calls. Operations on tensors without memory (of the device meta, or fake) do nothing.

    Attributes
    ----------
    group : Group
        The ranks as a group of onehop.
    error : Exception or None
        The exception of the last collective operation that failed. An error inside `backward` reaches the program as a
        RuntimeError with the same text, because the compiled parts of torch keep only the text.
    niceness : int
        How much nicer the threads of asynchronous operations are than the process, 0 (the default) to 19; see nice(2).
        Where threads compete for processors, computing comes first then, and operations take longer
        (docs/performance/collectives.md).
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._rank, self._size, self._store = rank, size, store
        self._name = self._description = ""
        self.group = group_from_store(store, rank, size)
        self.group.timeout = timeout.total_seconds()
        self._plans = Plans(self.group)
        self._messages = PointToPoint(self.group)
        full = is_machine_full(len(self.group.local_ranks))
        self._collective = WorkQueue(f"the process group of rank {rank}", UNUSABLE_AFTER, full)
        self._senders: dict[int, WorkQueue] = {}
        self._ended: Exception | None = None
        self._batch: list[Work] | None = None  # the works between _start_coalescing and _end_coalescing
        self._splits = self._calls = 0

    @property
    def error(self) -> Exception | None:
        """The exception of the last collective operation that failed, or None."""
        return self._collective.error

    @property
    def niceness(self) -> int:
        """How much nicer the threads of asynchronous operations are than the process."""
        return self._collective.niceness

    @niceness.setter
    def niceness(self, niceness: int) -> None:
        for queue in [self._collective, *self._senders.values()]:
            queue.niceness = niceness

    def get_group_store(self) -> Any:
        """Return the store through which the ranks met."""
        return self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the time limit for every wait."""
        self.group.timeout = self._messages.timeout = timeout.total_seconds()

    def shutdown(self) -> None:
        """End the threads. Operations that other ranks do not take part in fail after a few seconds."""
        if self._ended is None:
            self._ended = Error(
                f"the process group of rank {self._rank} was shut down; make a new one to continue"
            )
        self._collective.close()
        for sender in list(self._senders.values()):  # other threads may add one
            sender.close()
        self._messages.close()

    def abort(self) -> None:
        """Let every operation that waits, and every later one, fail at once. Callable from any thread.

        The other ranks of this machine that use the group raise `PeerLost`, which names this rank. Groups of this rank
        with other process groups are not affected.
        """
        self._ended = error = Error(
            f"rank {self._rank} has aborted this process group; make a new one to continue"
        )
        queues = [self._collective, *self._senders.values()]
        for queue in queues:
            queue.abort(error)
        self.group.abort()
        self._messages.abort(error)
        self.shutdown()

    def split_group(
        self,
        new_ranks: list[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        device_types: Any = None,
    ) -> ProcessGroup | None:
        """Make a process group of some ranks of this one. Collective over this group.

        Parameters
        ----------
        new_ranks : list of int
            Ranks in this group. Ranks that pass the same list form a group, in ascending order.
        timeout : timedelta, optional
            Time limit of the new group; None: that of this group.
        opts, device_types
            Not used.
        group_name, group_desc : str, optional
            Name, the same on all its ranks, and description of the new group.

        Returns
        -------
        ProcessGroup or None
            None if this rank is not in the list.

        Raises
        ------
        BadInput
            The list is empty, has a rank twice, or a rank that this group does not have.
        """
        ranks = sorted(new_ranks)
        if not ranks or len(set(ranks)) != len(ranks) or ranks[0] < 0 or ranks[-1] >= self._size:
            raise BadInput(f"expected different ranks from 0 to {self._size - 1} to split, found {new_ranks}")
        self._splits += 1
        if self._rank not in ranks:
            return None
        name = group_name or f"{self._name}:split:{self._splits}:{','.join(map(str, ranks))}"
        limit = timedelta(seconds=self.group.timeout) if timeout is None else timeout
        store = dist.PrefixStore(f"{name}/", self._store)
        made = ProcessGroup(store, ranks.index(self._rank), len(ranks), limit)
        made.setGroupName(name)
        made.setGroupDesc(group_desc or f"{self._description}:split:{self._splits}")
        return made

    splitGroup = split_group  # noqa: N815

    def _start_coalescing(self, device: Any) -> None:
        """Collect the operations that follow, for torch's coalescing manager. They run as they come."""
        self._batch = []

    def _end_coalescing(self, device: Any) -> Work:
        """Return the operations since `_start_coalescing` as one work, which carries the failures of all."""
        works, self._batch = self._batch or [], None
        return JoinedWork(works)

    def _note(self, work: Work) -> Work:
        if self._batch is not None:
            self._batch.append(work)
        return work

    def _do(self, task: Callable[[], Any], opts: Any = None) -> Work:
        self._calls += 1
        work = self._collective.submit(task, not getattr(opts, "asyncOp", True))
        return work if self._batch is None else self._note(work)

    def _limited(self, task: Callable[[], Any], limit: timedelta) -> Callable[[], Any]:
        """A task with a time limit of its own, unless that is not set."""
        if limit <= _NO_TIME:
            return task
        seconds = limit.total_seconds()

        def limited() -> Any:
            before, self.group.timeout = self.group.timeout, seconds
            try:
                return task()
            finally:
                self.group.timeout = before

        return limited

    def _get_backend(self, device: torch.device) -> Any:
        """Return the backend for a type of device: this object for the CPU."""
        if torch.device(device).type != "cpu":
            raise RuntimeError(
                f"No backend type associated with device type {torch.device(device).type}: this process group of the "
                "backend onehop has one for cpu; make another group for tensors on other devices"
            )
        return self


def create_process_group(
    store: Any, rank: int, size: int, timeout: timedelta, ranks: Sequence[int] = ()
) -> ProcessGroup:
    """Create a process group. Torch calls this for `init_process_group("onehop")` and `new_group`.

    Parameters
    ----------
    store : torch.distributed.Store
        Where the ranks of the group meet.
    rank, size : int
        Number of this rank in the group, and number of ranks.
    timeout : timedelta
        Time limit for every wait.
    ranks : sequence of int, optional
        Global numbers of the ranks. Torch numbers groups in the order in which a rank makes them, so different groups
        get the same number, and the same part of the store, where ranks make different groups: with
        `new_subgroups(group=...)`. The global numbers keep their entries apart.
    """
    if ranks:
        store = dist.PrefixStore(sha256(",".join(map(str, ranks)).encode()).hexdigest()[:16], store)
    return ProcessGroup(store, rank, size, timeout)
