"""What runs beside the program for torch: threads that take jobs, and the works that torch waits for."""

from __future__ import annotations

import atexit
import queue
import threading
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from onehop.error import Timeout

__all__ = ["Thread", "Work"]


class Work(dist._Work):
    """One operation under way, or done.

    Attributes
    ----------
    source : int
        Of a message that has come: who sent it.
    """

    def __init__(self, future: torch.futures.Future) -> None:
        super().__init__()
        self._future = future
        self.source = -1

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Until it is done; raises what it raised, or Timeout."""
        if timeout is not None and timeout > timedelta(0):
            here = threading.Event()
            self._future.add_done_callback(lambda _: here.set())
            if not here.wait(timeout.total_seconds()):
                raise Timeout(
                    f"the operation is not done after {timeout.total_seconds():g} s; it goes on, "
                    "and its tensors must be left alone"
                )
        self._future.wait()
        return True

    def source_rank(self) -> int:
        """Of a message that has come: who sent it."""
        return self.source

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        """Its future, of a list of tensors."""
        return self._future

    def is_completed(self) -> bool:
        """Whether it is done."""
        return self._future.done()

    def is_success(self) -> bool:
        """Whether it is done, and well."""
        return self._future.done() and self.exception() is None

    def exception(self) -> BaseException | None:
        """What it raised."""
        try:
            self._future.value()
        except Exception as error:
            return error
        return None

    def result(self) -> Any:
        """The tensors."""
        return self._future.wait()

    def synchronize(self) -> None:
        """The same as wait()."""
        self.wait()


_started: weakref.WeakSet[Thread] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """A thread that outlives the interpreter would touch tensors that are gone."""
    for thread in list(_started):
        thread.close()


class Thread:
    """Runs jobs one after the other, in a thread that is started when it is first needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], torch.futures.Future] | None] = (
            queue.SimpleQueue()
        )
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._pending = 0

    def submit(self, job: Callable[[], Any], wait: bool) -> Work:
        """Run the job: here if the caller would wait anyway and nothing is before it."""
        future: torch.futures.Future = torch.futures.Future()
        with self._lock:
            here = wait and self._pending == 0
            if not here:
                self._pending += 1
                if self._thread is None:
                    self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
                    self._thread.start()
                    _started.add(self)
        if here:
            future.set_result(job())
        else:
            self._jobs.put((job, future))
        return Work(future)

    def _loop(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, future = item
            try:
                result, error = job(), None
            except Exception as caught:
                result, error = None, caught
            with self._lock:
                self._pending -= 1
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
            del job, future, item, result, error

    def close(self) -> None:
        """End the thread after the jobs that it has."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join(timeout=3)
