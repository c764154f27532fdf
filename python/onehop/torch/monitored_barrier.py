"""A barrier that names the ranks that are missing, for process groups of the backend "onehop"."""

from __future__ import annotations

import time
from datetime import timedelta
from threading import TIMEOUT_MAX, Event
from typing import Any

import numpy as np
import torch.distributed as dist

from onehop.error import BadInput, Timeout
from onehop.torch.messages import Messages

_TAGS = -(1 << 40)  # far from the tags of programs; the n-th barrier uses tag _TAGS - n
_PASSED = -1
_GRACE_SECONDS = 2.0  # ranks that began together with rank 0 wait a bit longer than it does, for its answer


class MonitoredBarrier(Messages):
    """The `monitored_barrier` of `ProcessGroup`."""

    _barriers: int = 0

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Wait until all ranks have called it; rank 0 names the ranks that have not.

        Parameters
        ----------
        timeout : timedelta, optional
            How long rank 0 waits for the others. They wait for its answer two seconds longer. None: the limit of the
            group.
        wait_all_ranks : bool
            Whether rank 0 names all missing ranks, or only the first one and then stops.

        Raises
        ------
        Timeout
            On rank 0: a rank has not called it in time, or has ended. On other ranks: rank 0 has said so, or has not
            answered.
        """
        self._barriers += 1
        seconds = self.group.timeout if timeout is None else timeout.total_seconds()
        seconds = float("inf") if timeout is None and seconds == 0 else seconds
        if seconds + _GRACE_SECONDS > TIMEOUT_MAX:
            seconds = float("inf")
        if self._rank == 0:
            self._collect(seconds, wait_all_ranks)
        else:
            self._report(seconds)

    def _notify(self, rank: int, word: int) -> None:
        message, tag = np.array([word], np.int64).view(np.uint8), _TAGS - self._barriers
        self._sender(rank).submit(lambda: self._messages.send(rank, message, tag), False)

    def _expect(self, rank: int) -> tuple[np.ndarray, list[Exception | None], Event, Any]:
        """Request the message of a rank: the message, its error once it has come, and what tells that it has come."""
        message, outcome, finished = np.zeros(1, np.int64), [], Event()

        def done(_: int, error: Exception | None) -> None:
            outcome.append(error)
            finished.set()

        request = self._messages.request(rank, message.view(np.uint8), _TAGS - self._barriers, done)
        return message, outcome, finished, request

    def _collect(self, seconds: float, wait_all_ranks: bool) -> None:
        begin = time.monotonic()
        limit = f"{seconds * 1000:.0f} ms"
        expected = {rank: self._expect(rank) for rank in range(1, self._size)}
        missing: dict[int, str] = {}
        for rank, (_, outcome, finished, _) in expected.items():
            left = seconds - (time.monotonic() - begin)
            if left <= 0 and not (finished.is_set() or missing):
                self._give_up(expected, rank)
                raise Timeout(
                    f"Rank 0 timed out in monitoredBarrier after {limit}, while it waited for rank {rank}"
                )
            if not finished.wait(None if left == float("inf") else max(left, 0)):
                missing[rank] = ""
            elif outcome[0] is not None:
                missing[rank] = f"; {outcome[0]}"
            if missing and not wait_all_ranks:
                break
        if missing:
            self._give_up(expected, min(missing), missing)
            ranks = ", ".join(map(str, missing))
            who = f"Rank {ranks}" if len(missing) == 1 else f"Ranks {ranks}"
            raise Timeout(f"{who} failed to pass monitoredBarrier in {limit}{''.join(missing.values())}")
        for rank in expected:
            self._notify(rank, _PASSED)

    def _give_up(self, expected: dict[int, Any], first: int, missing: Any = ()) -> None:
        for rank, (_, _, finished, request) in expected.items():
            if not finished.is_set():
                self._messages.cancel(request)
            if rank not in missing:
                self._notify(rank, first)

    def _report(self, seconds: float) -> None:
        message, outcome, finished, request = self._expect(0)
        self._notify(0, _PASSED)
        reached = (
            f"Rank {self._rank} successfully reached monitoredBarrier, but received errors while waiting for "
            "send/recv from rank 0"
        )
        if not finished.wait(None if seconds == float("inf") else seconds + _GRACE_SECONDS):
            self._messages.cancel(request)
            raise Timeout(
                f"{reached}: no answer after {seconds:g} s; see the output of rank 0 for the reason"
            )
        if outcome[0] is not None:
            raise Timeout(f"{reached}: {outcome[0]}") from outcome[0]
        if message[0] != _PASSED:
            raise Timeout(
                f"{reached}: it misses rank {message[0]}; see the output of that rank for the reason"
            )


def monitored_barrier(
    group: Any = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all ranks of a process group have called it; rank 0 names the ranks that have not.

    `torch.distributed.monitored_barrier` does the same, but accepts only gloo.

    Parameters
    ----------
    group : ProcessGroup, optional
        A process group of the backend "onehop"; None: the default group. Other ranks return at once.
    timeout : timedelta or float, optional
        Limit of the wait, as a timedelta or in seconds. None: the limit of the group.
    wait_all_ranks : bool
        Whether rank 0 names all missing ranks, or only the first one.

    Raises
    ------
    BadInput
        The group is one of another backend, or the limit is not finite.
    Timeout
        Not all ranks have called it in time.
    """
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        return
    used = group if group is not None else dist.group.WORLD
    if not isinstance(used, MonitoredBarrier):
        raise BadInput(
            f"expected a process group of the backend onehop, found {used!r}; for one of gloo, call "
            "torch.distributed.monitored_barrier"
        )
    try:
        limit = timedelta(seconds=timeout) if isinstance(timeout, (int, float)) else timeout
    except (OverflowError, ValueError):
        raise BadInput(
            f"expected a finite number of seconds as timeout, found {timeout}; pass None for the limit of the group"
        ) from None
    used.monitored_barrier(limit, wait_all_ranks)
