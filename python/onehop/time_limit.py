"""Time limits of waits in Python: a line on stderr after 30 seconds, and `Timeout` after the limit of the group."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from onehop.error import Timeout

_WARN_AFTER = 30.0  # seconds, as in src/group/liveness.h
_SECONDS_TO_END = 1.0  # for a call to reach Python after its limit
_T = TypeVar("_T")


def _timeout(what: str, waited: float) -> Timeout:
    return Timeout(
        f"{what} for {waited:.1f} s, longer than the timeout of the group; has every rank started, did one fail before "
        "it joined, or is one busy, stopped, or in another step?"
    )


def _warn(what: str, waited: float, goes_on: str) -> None:
    print(f"onehop: {what} for {waited:.0f} s and goes on waiting ({goes_on})", file=sys.stderr, flush=True)


class Wait:
    """One wait that polls, with a limit in seconds; 0: none."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._begin = time.monotonic()
        self._warned = False

    def check(self, describe: Callable[[], str]) -> None:
        """Raise Timeout after the limit, and warn once. `describe()` returns the text that messages begin with."""
        waited = time.monotonic() - self._begin
        if 0 < self._limit < waited:
            raise _timeout(describe(), waited)
        if waited > _WARN_AFTER and not self._warned:
            self._warned = True
            _warn(describe(), waited, "set ONEHOP_TIMEOUT to give up")


class _Expired(BaseException):
    """Ends a call that `call_within` has made."""


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if kind is None else ctypes.py_object(kind)
    )


def call_within(limit: float, describe: Callable[[], str], call: Callable[[], _T]) -> _T:
    """Call a function of the program, which may wait for other ranks, with a limit in seconds; 0: none.

    After it, Python raises `Timeout` in the function as soon as the function runs Python code. A library's call that
    blocks ends by its own limit; a line on stderr says so. `describe` returns the text that messages begin with.
    """
    thread, begin = threading.get_ident(), time.monotonic()
    lock, done, told = threading.Lock(), False, False
    returned = threading.Event()

    def watch() -> None:
        nonlocal told
        ends = [end for end in (_WARN_AFTER, limit) if end > 0]
        for end in sorted(ends):
            if returned.wait(max(0.0, begin + end - time.monotonic())):
                return
            with lock:
                if done:
                    return
                if end == limit:
                    told = True
                    _raise_in(thread, _Expired)
                    break
            _warn(describe(), time.monotonic() - begin, "set ONEHOP_TIMEOUT to give up")
        if told and not returned.wait(_SECONDS_TO_END):
            _warn(describe(), time.monotonic() - begin, "a call outside Python, which has a limit of its own")

    try:
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            result = call()
        finally:
            with lock:
                done = True
            returned.set()
            if told:
                _raise_in(thread, None)  # it was about to come
    except _Expired:
        raise _timeout(describe(), time.monotonic() - begin) from None
    return result
