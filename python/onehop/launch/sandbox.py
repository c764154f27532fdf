"""System calls that a launch needs, tried one by one to name the one that a sandbox refuses."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
from collections.abc import Callable, Iterator

_NO_USER = 0xFFFFFFFF  # -1 as a user's number


def _number(call: Callable[[], int]) -> None:
    """Call a function that the C library says never to fail: Python passes on the -1 of a sandbox as its result."""
    if call() in (-1, _NO_USER):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def _dup2() -> None:
    with _pipe() as (reading, writing):
        os.dup2(reading, writing)


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


def _open_pipe() -> None:
    with _pipe():
        pass


def _ioctl() -> None:
    with _pipe() as (reading, _):
        os.set_blocking(reading, False)


def _wait() -> None:
    # No process is this one's own child, so nothing is taken from those who wait for theirs.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(os.getpid(), os.WNOHANG)


def _poll() -> None:
    selector_of = getattr(selectors, "PollSelector", selectors.SelectSelector)
    with selector_of() as selector:
        selector.select(0)


def _epoll() -> None:
    with _pipe() as (reading, _), selectors.DefaultSelector() as selector:
        selector.register(reading, selectors.EVENT_READ)
        selector.select(0)


def _socketpair() -> None:
    one, other = socket.socketpair()
    with one, other:
        one.send(b"x")
        other.recv(1)


def _connect() -> None:
    with socket.socket() as listener, socket.socket() as caller:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        caller.settimeout(1)  # a firewall that drops is no refusal
        caller.connect(listener.getsockname())


# What every rank needs, by itself or for NumPy.
_OF_RANKS: dict[str, Callable[[], object]] = {
    "getpid": lambda: _number(os.getpid),
    "geteuid": lambda: _number(os.geteuid),
    "uname": os.uname,
}
_OF_LAUNCHER: dict[str, Callable[[], object]] = {
    "pipe2": _open_pipe,
    "dup2": _dup2,
    "ioctl": _ioctl,
    "wait4": _wait,
    "poll": _poll,
    "socketpair, sendto or recvfrom": _socketpair,
    "epoll_create1, epoll_ctl or epoll_wait": _epoll,
}
_OF_MPIEXEC: dict[str, Callable[[], object]] = {
    "getcwd": os.getcwd,
    "sched_getaffinity": lambda: os.sched_getaffinity(0),
    "socket, setsockopt, bind, listen or connect": _connect,
}


def _first_refused(calls: dict[str, Callable[[], object]]) -> str | None:
    for name, call in calls.items():
        try:
            call()
        except OSError as error:
            if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS):
                return f"{name} ({error.strerror})"
    return None


def refused_to_ranks() -> str | None:
    """Return the first call of every rank that the system refuses, with its reason; None if there is none."""
    return _first_refused(_OF_RANKS)


def refused_to_launcher() -> str | None:
    """Return the first call of the built-in launcher that the system refuses, as `refused_to_ranks`."""
    return _first_refused(_OF_RANKS | _OF_LAUNCHER)


def refused_to_mpiexec() -> str | None:
    """Return the first call of Open MPI's mpiexec that the system refuses, as `refused_to_ranks`."""
    return _first_refused(_OF_RANKS | _OF_LAUNCHER | _OF_MPIEXEC)
