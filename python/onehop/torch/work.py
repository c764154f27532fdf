"""The `Work` objects that torch waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from onehop.error import Timeout

Task = Callable[[], Any]
_guard = threading.Lock()  # of the short steps that change the members of any work


class _Failure:
    """Stands in place of the result of an operation that failed."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _result(outcome: Any) -> Any:
    if isinstance(outcome, _Failure):
        raise outcome.error
    return outcome


def _value(outcome: torch.futures.Future) -> Any:
    return _result(outcome.value())


class Work(dist._Work):
    """An operation that is pending, running or done. After a receive, `source` is the rank that sent the message.

    On `devices` it is done once it is in the current stream: whoever waits lets its own current stream wait for that.
    """

    def __init__(self, devices: list[torch.device] | None = None) -> None:
        super().__init__()
        # A failure is its value, never its error state.
        self._outcome: torch.futures.Future = torch.futures.Future(devices=devices)
        self._future: torch.futures.Future | None = None
        self._sealed = self._watched = False
        self.source = -1

    def succeed(self, result: Any) -> None:
        """Mark it as done, with its result."""
        self._outcome.set_result(result)

    def fail(self, error: Exception) -> None:
        """Mark it as failed."""
        self._outcome.set_result(_Failure(error))

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call a function once it is done; at once if it is."""
        with _guard:
            self._watched = True
        self._outcome.add_done_callback(lambda _: callback())

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
        with _guard:
            if self._future is None and not self._sealed:
                self._future = self._outcome.then(_value)
        if self._future is None:  # the operation is about to be done, and callbacks will run in this thread
            self._outcome.wait()
            self._future = self._outcome.then(_value)
        return self._future

    def seal(self) -> bool:
        """Return whether callbacks may run in the thread that reports the outcome. If not, later ones will not."""
        with _guard:
            self._sealed = True
            return self._future is not None or self._watched

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


class JoinedWork(Work):
    """Several works as one, which is done when all are. It carries the failures of all."""

    def __init__(self, works: Sequence[Work]) -> None:
        super().__init__()
        self._left, self._works = len(works), works
        if not works:
            self.succeed([])
        for work in works:
            work.when_done(self._one_done)

    def _one_done(self) -> None:
        with _guard:
            self._left -= 1
            if self._left > 0:
                return
        errors = [(n, work.exception()) for n, work in enumerate(self._works, 1) if work.exception()]
        if errors:
            self.fail(_joined(errors, len(self._works)))
        else:
            self.succeed([one for work in self._works for one in work.result() or ()])


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
