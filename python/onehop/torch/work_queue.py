"""Asynchronous operations for torch: queues whose threads run tasks, and the `Work` objects that torch waits for."""

from __future__ import annotations

import atexit
import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from copy import copy
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from onehop import _core
from onehop.error import PeerLost, Timeout

__all__ = ["UNUSABLE_AFTER", "Work", "WorkQueue", "in_sequence"]

#: Exceptions of a collective operation after which its group cannot be used any more.
UNUSABLE_AFTER = (PeerLost, Timeout)

_CLOSE_SECONDS = 3.0

Task = Callable[[], Any]


class _Failure:
    """Stands in place of the result of an operation that failed."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _result(outcome: Any) -> Any:
    if isinstance(outcome, _Failure):
        raise outcome.error
    return outcome


class Work(dist._Work):
    """An operation that is pending, running or done.

    Attributes
    ----------
    source : int
        Rank that sent the message, after a receive.
    """

    def __init__(self) -> None:
        super().__init__()
        self._outcome: torch.futures.Future = (
            torch.futures.Future()
        )  # a failure is its value, never its error state
        self._future: torch.futures.Future | None = None
        self.source = -1

    def succeed(self, result: Any) -> None:
        """Mark it as done, with its result."""
        self._outcome.set_result(result)

    def fail(self, error: Exception) -> None:
        """Mark it as failed."""
        self._outcome.set_result(_Failure(error))

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is done. Raises the error of the operation, or Timeout."""
        if timeout is not None and timeout > timedelta(0):
            finished = threading.Event()
            self._outcome.add_done_callback(lambda _: finished.set())
            if not finished.wait(timeout.total_seconds()):
                raise Timeout(
                    f"the operation is not done after {timeout.total_seconds():g} s; it continues, "
                    "so do not use its tensors yet"
                )
        _result(self._outcome.wait())
        return True

    def source_rank(self) -> int:
        """The rank that sent the message, after a receive."""
        return self.source

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        """Return a future of the list of tensors; if the operation fails, of a RuntimeError with the same text."""
        # The compiled parts of torch (the reducer of DistributedDataParallel) read the value of a future without
        # Python. They would take an exception from `Future.set_exception` for a list of tensors. They recognise an
        # error only if a callback raises it.
        if self._future is None:
            self._future = self._outcome.then(lambda outcome: _result(outcome.value()))
        return self._future

    def is_completed(self) -> bool:
        """Whether it is done."""
        return self._outcome.done()

    def is_success(self) -> bool:
        """Whether it is done without an error."""
        return self._outcome.done() and self.exception() is None

    def exception(self) -> Exception | None:
        """The error of the operation, or None."""
        outcome = self._outcome.value() if self._outcome.done() else None
        return outcome.error if isinstance(outcome, _Failure) else None

    def result(self) -> Any:
        """Wait, and return the tensors. Raises the error of the operation."""
        return _result(self._outcome.wait())

    def synchronize(self) -> None:
        """Wait until it is done, as wait() does."""
        self.wait()


def in_sequence(tasks: Sequence[Task]) -> Task:
    """Combine tasks into one that runs them in sequence and returns the list of their results.

    If one fails, the others run nevertheless, since other ranks run them too. The first error is raised afterwards; its
    text includes the other errors.
    """

    def task() -> list[Any]:
        results, errors = [], []
        for number, one in enumerate(tasks, 1):
            try:
                results.append(one())
            except Exception as error:
                errors.append((number, error))
        if errors:
            raise _joined(errors, len(tasks))
        return results

    return task


def _joined(errors: Sequence[tuple[int, Exception]], number: int) -> Exception:
    """The first error, extended by the texts of the errors that differ from it."""
    first = errors[0][1]
    texts = {str(first)}
    more = []
    for place, error in errors[1:]:
        if str(error) not in texts:
            texts.add(str(error))
            more.append(f"; operation {place} of {number} failed, too: {type(error).__name__}: {error}")
    if more:
        first.args = (str(first) + "".join(more), *first.args[1:])
    return first


_started: weakref.WeakSet[WorkQueue] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Close all queues, because a thread that outlives the interpreter would access freed tensors."""
    for thread in list(_started):
        thread.close()


class WorkQueue:
    """Runs tasks one after the other, in a thread that starts when it is first needed.

    Parameters
    ----------
    name : str
        Name of the thread.
    ended_by : tuple of exception types
        After a task has raised one of these, all later tasks fail at once with the same error.

    Attributes
    ----------
    error : Exception or None
        Error of the last task that failed.
    """

    def __init__(self, name: str, ended_by: tuple[type[Exception], ...] = ()) -> None:
        self._name, self._ended_by = name, ended_by
        self._tasks: queue.SimpleQueue[tuple[Task, Work] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._pending = 0  # number of tasks that wait or run, in this thread or another
        self._turn = threading.Lock()  # held while a task runs
        self.error: Exception | None = None

    def submit(self, task: Task, wait: bool) -> Work:
        """Run a task in the queue's thread, or in the calling thread if `wait` is true and no task is pending.

        Parameters
        ----------
        task : callable
            The task.
        wait : bool
            Whether the caller waits for the task at once. In the calling thread, its exception is raised here.
        """
        work = Work()
        with self._lock:
            in_caller = wait and self._pending == 0
            self._pending += 1
            if in_caller:
                self._turn.acquire()  # never blocks: no task is pending, so none runs
            else:
                self._start()
                self._tasks.put((task, work))
        if in_caller:
            error = self._run(task, work)
            if error is not None:
                raise error
        return work

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
            self._thread.start()
            _started.add(self)

    def _loop(self) -> None:
        while (item := self._tasks.get()) is not None:
            self._turn.acquire()
            self._run(*item)
            del item

    def _run(self, task: Task, work: Work) -> Exception | None:
        """Run a task while holding the turn; report its outcome after releasing the turn."""
        try:
            if isinstance(self.error, self._ended_by):
                raise copy(self.error)
            result, error = task(), None
        except Exception as caught:
            result, error = None, caught
            self.error = caught
        finally:
            self._turn.release()
            with self._lock:
                self._pending -= 1
        if error is None:
            work.succeed(result)
        else:
            work.fail(error)
        return error

    def close(self) -> None:
        """End the thread after its pending tasks. Tasks that take longer than a few seconds fail."""
        thread = self._thread
        if thread is None or thread.ident is None:
            return
        self._tasks.put(None)
        thread.join(timeout=_CLOSE_SECONDS)
        if thread.is_alive():
            # The thread waits for other ranks and polls for signals. Polling after the interpreter has ended would
            # abort the process.
            _core.interrupt_thread(thread.ident)
            thread.join(timeout=_CLOSE_SECONDS)
            _core.interrupt_thread(thread.ident, False)
