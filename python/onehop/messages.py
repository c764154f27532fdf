"""Tagged messages between two ranks: send, receive and isend."""

from __future__ import annotations

import queue
import threading
from typing import Any

import numpy as np

from onehop.arguments import instance, whole_number
from onehop.array_movement import dense, returned, shape_of
from onehop.error import BadInput, WrongType
from onehop.group import Group
from onehop.point_to_point import PointToPoint

_LARGEST_TAG = 2**62


class SendRequest:
    """A message that `isend` has begun to send."""

    def __init__(self) -> None:
        self._finished = threading.Event()
        self._error: Exception | None = None

    def _end(self, error: Exception | None) -> None:
        self._error = error
        self._finished.set()

    def test(self) -> bool:
        """Return whether the array may be overwritten. Raises the error of a message that could not be sent."""
        if self._finished.is_set() and self._error is not None:
            raise self._error
        return self._finished.is_set()

    def wait(self) -> None:
        """Wait until the array may be overwritten. Raises PeerLost or Timeout."""
        self._finished.wait()
        self.test()


class _Paths:
    """The paths of a group, and the messages to each rank that wait to be sent, in their order."""

    def __init__(self, group: Group) -> None:
        self.paths = PointToPoint(group)
        self._lock = threading.Lock()
        self._senders: dict[int, queue.SimpleQueue[Any]] = {}

    def submit(self, to: int, message: np.ndarray, tag: int) -> SendRequest:
        request = SendRequest()
        with self._lock:
            waiting = self._senders.get(to)
            if waiting is None:
                waiting = self._senders[to] = queue.SimpleQueue()
                # A daemon: PointToPoint ends its waits before the interpreter ends.
                threading.Thread(
                    target=self._send, args=(to, waiting), name=f"onehop to {to}", daemon=True
                ).start()
            waiting.put((message, tag, request))
        return request

    def _send(self, to: int, waiting: queue.SimpleQueue[Any]) -> None:
        while True:
            message, tag, request = waiting.get()
            try:
                self.paths.send(to, message, tag)
            except Exception as error:
                request._end(error)
            else:
                request._end(None)
            del message, request


def _paths_of(group: Any) -> _Paths:
    found: _Paths | None = instance(group, Group, "group").__dict__.get("_messages")
    if found is None:
        found = group.__dict__["_messages"] = _Paths(group)
    return found


def _rank_of(group: Group, rank: Any, what: str) -> int:
    number = whole_number(rank, what)
    if not 0 <= number < group.size:
        raise BadInput(f"expected {what} as a rank from 0 to {group.size - 1}, found {rank!r}")
    return number


def _bytes_of(array: Any) -> np.ndarray:
    shape_of(array)
    if not isinstance(array, np.ndarray):
        array = array.detach().numpy() if hasattr(array, "detach") else np.from_dlpack(array)
    if array.dtype.hasobject:
        raise WrongType(f"expected an array of numbers, found elements of {array.dtype}")
    return array


def isend(group: Group, array: Any, to: int, tag: int = 0) -> SendRequest:
    """Begin to send an array to one rank, and return at once. Do not change the array until the request is done.

    Messages to one rank with the same tag arrive in the order in which they were sent. The first send, receive or isend
    of a group is collective: every rank of the group calls one of the three, which opens the paths.

    Parameters
    ----------
    group : Group
        The ranks.
    array : array
        NumPy array, or a tensor in the processor's memory; an array with gaps is copied.
    to : int
        The rank that receives it.
    tag : int
        Number that `receive` names as well.

    Returns
    -------
    SendRequest
        With `wait()` and `test()`.

    Raises
    ------
    BadInput
        There is no such rank, or `array` is no array.
    """
    paths = _paths_of(group)
    to, tag = _rank_of(group, to, "to"), whole_number(tag, "tag", 0, _LARGEST_TAG)
    return paths.submit(to, dense(_bytes_of(array)).reshape(-1).view(np.uint8), tag)


def send(group: Group, array: Any, to: int, tag: int = 0) -> None:
    """Send an array to one rank, and return when it may be changed. Parameters as for `isend`.

    The first send, receive or isend of a group is collective.

    Raises
    ------
    PeerLost, Timeout
        The rank has ended, or did not take the message in time.
    BadInput
        There is no such rank, or `array` is no array.
    """
    isend(group, array, to, tag).wait()


def receive(group: Group, array: Any, source: int | None = None, tag: int = 0) -> int:
    """Wait for an array from one rank, and write it into an array of the same number of bytes.

    Parameters
    ----------
    group : Group
        The ranks.
    array : array
        Receives the message.
    source : int, optional
        The rank that sends it. None: any other rank.
    tag : int
        Number of the message, as for `isend`.

    Returns
    -------
    int
        The rank that has sent it.

    Raises
    ------
    Mismatch
        The message has another length than the array.
    PeerLost, Timeout
        The rank has ended, or did not send in time.
    BadInput
        There is no such rank, or `array` is no array that can be written.
    """
    paths = _paths_of(group)
    rank = None if source is None else _rank_of(group, source, "source")
    tag = whole_number(tag, "tag", 0, _LARGEST_TAG)
    plain = _bytes_of(array)
    if not plain.flags.writeable:
        raise BadInput("expected an array that can be written, found a read-only one")
    target = dense(plain)
    sender = paths.paths.receive(rank, target.reshape(-1).view(np.uint8), tag)
    returned(target, plain)
    return sender
