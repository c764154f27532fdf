"""Asynchronous operations for torch: queues whose threads run tasks."""

from __future__ import annotations

import atexit
import os
import queue
import threading
import weakref
from copy import copy

import torch

from onehop import _core
from onehop.cores import machine_cores
from onehop.error import BadInput, Error, PeerLost, Timeout
from onehop.torch.work import Task, Work

#: Exceptions of a collective operation after which its group cannot be used any more.
UNUSABLE_AFTER = (PeerLost, Timeout)

_CLOSE_SECONDS = 3.0
_LARGEST_NICENESS = 19

_started: weakref.WeakSet[WorkQueue] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Close all queues, because a thread that outlives the interpreter would access freed tensors."""
    for thread in list(_started):
        thread.close()


def is_machine_full(local_ranks: int) -> bool:
    """Whether the computing threads of the ranks need all processors of this machine."""
    return local_ranks * torch.get_num_threads() >= machine_cores()


def _check_niceness(niceness: int) -> int:
    """Return a niceness, or raise BadInput if it is not one."""
    if not isinstance(niceness, int) or not 0 <= niceness <= _LARGEST_NICENESS:
        raise BadInput(f"expected a niceness from 0 to {_LARGEST_NICENESS}, found {niceness!r}")
    return niceness


def _be_nice(thread: int, niceness: int) -> None:
    """Set the priority of a thread: on Linux each has its own. The main thread's is that of the process."""
    wanted = min(os.getpriority(os.PRIO_PROCESS, os.getpid()) + niceness, _LARGEST_NICENESS)
    try:
        os.setpriority(os.PRIO_PROCESS, thread, wanted)
    except PermissionError:
        raise BadInput(
            f"expected a niceness that this user may set, found {niceness}, less than before: only a user with "
            "CAP_SYS_NICE may raise a priority; set the niceness before the first asynchronous operation"
        ) from None
    except ProcessLookupError:
        pass  # the thread has ended


class WorkQueue:
    """Runs tasks one after the other, in a thread that starts when it is first needed.

    Callbacks of a task's future run in the thread, after the task and before the next one. A task that a callback
    submits runs at once, so that the callback may wait for it, and so that it has the same place among the tasks of the
    queue on every rank. After a task has raised an error of a type in `ended_by`, all later tasks fail at once with the
    same error; `error` is that of the last task that failed. With `sleep_early` the thread sleeps in waits instead of
    yielding: a machine without a free processor then runs it as soon as what it waits for is there, and not after the
    time slice of a thread that computes. `niceness` says how much nicer the thread is than the process, 0 to 19 (see
    nice(2)).
    """

    def __init__(
        self, name: str, ended_by: tuple[type[Exception], ...] = (), sleep_early: bool = False
    ) -> None:
        self._name, self._ended_by, self.sleeps_early = name, ended_by, sleep_early
        self._niceness = 0
        self._tasks: queue.SimpleQueue[tuple[Task, Work] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._pending = 0  # number of tasks that wait or run, in this thread or another
        self._turn = threading.Lock()  # held while a task runs
        self._aborted: Exception | None = None
        self._closed: Exception | None = None  # why no more tasks are taken
        self.error: Exception | None = None

    @property
    def niceness(self) -> int:
        """How much nicer the thread is than the process."""
        return self._niceness

    @niceness.setter
    def niceness(self, niceness: int) -> None:
        with self._lock:
            _check_niceness(niceness)
            if self._thread is not None and self._thread.native_id is not None and niceness != self._niceness:
                _be_nice(self._thread.native_id, niceness)
            self._niceness = niceness

    def submit(self, task: Task, wait: bool) -> Work:
        """Run a task in the queue's thread, or in the calling thread if `wait` is true and no task is pending.

        `wait` says that the caller waits for the task at once. In the calling thread, the task's exception is raised
        here.
        """
        work = Work()
        if self._thread is threading.current_thread():  # in a callback: no other task may come between
            with self._lock:
                self._pending += 1
            self._turn.acquire()
            self._run(task, work, False)
            return work
        with self._lock:
            if self._closed is not None:
                work.fail(self._closed)
                if wait:
                    raise copy(self._closed)
                return work
            in_caller = wait and self._pending == 0
            self._pending += 1
            if in_caller:
                self._turn.acquire()  # never blocks: no task is pending, so none runs
            else:
                self._start()
                self._tasks.put((task, work))
        if in_caller:
            error = self._run(task, work, False)
            if error is not None and wait:
                raise error
        return work

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
            self._thread.start()
            _started.add(self)

    def _loop(self) -> None:
        _core.set_sleep_early(self.sleeps_early)
        if self._niceness:
            _be_nice(threading.get_native_id(), self._niceness)
        while (item := self._tasks.get()) is not None:
            self._turn.acquire()
            self._run(*item)
            del item

    def _run(self, task: Task, work: Work, handed_out: bool = True) -> Exception | None:
        """Run a task while holding the turn; report its outcome after releasing the turn.

        `handed_out`: whether the program has the work already, so that it may have attached callbacks.
        """
        try:
            ended = self._aborted or (self.error if isinstance(self.error, self._ended_by) else None)
            if ended is not None:
                raise copy(ended)
            result, error = task(), None
        except Exception as caught:
            result, error = None, caught
            self.error = caught
        finally:
            self._turn.release()
        # Until callbacks are through, tasks of other threads have to queue behind those that the callbacks submit.
        callbacks = handed_out and work.seal()
        if not callbacks:
            self._done()
        if error is None:
            work.succeed(result)
        else:
            work.fail(error)
        if callbacks:
            self._done()
        return error

    def _done(self) -> None:
        with self._lock:
            self._pending -= 1

    def abort(self, error: Exception) -> None:
        """Let all tasks that have not yet begun fail with this error, now and later."""
        self._aborted = self.error = error

    def close(self) -> None:
        """End the thread after its pending tasks. Tasks that take longer than a few seconds fail, as do later ones."""
        shut = Error(f"expected a queue that is open, found that {self._name} was shut down")
        with self._lock:
            self._closed = self._closed or self._aborted or shut
        thread = self._thread
        if thread is None or thread.ident is None or thread is threading.current_thread():
            return
        self._tasks.put(None)
        thread.join(timeout=_CLOSE_SECONDS)
        if thread.is_alive():
            # The thread waits for other ranks and polls for signals. Polling after the interpreter has ended would
            # abort the process.
            _core.interrupt_thread(thread.ident)
            thread.join(timeout=_CLOSE_SECONDS)
            _core.interrupt_thread(thread.ident, False)
