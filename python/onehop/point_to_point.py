"""Messages of any length with tags between two ranks, over channels prepared once."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from onehop.channel import Receiver
from onehop.error import BadInput, Error, Mismatch, Timeout
from onehop.group import Group

__all__ = ["PACKET_BYTES", "PointToPoint"]

PACKET_BYTES = 64 << 10
_HEADER = 16  # two int64: the tag, and the bytes of the message that are still to come with this packet
_SLICE = 0.25  # seconds after which a wait looks whether it is still wanted

Done = Callable[[int, Exception | None], Any]
_open: weakref.WeakSet[PointToPoint] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """A thread that outlives the interpreter would touch memory that is gone."""
    for paths in list(_open):
        paths.close()


class _Request:
    """A message that somebody wants."""

    def __init__(self, sources: set[int], tag: int, message: np.ndarray, done: Done) -> None:
        self.sources, self.tag, self.message, self.done = sources, tag, message, done
        self.since = time.monotonic()


class PointToPoint:
    """A path from every rank to every other one. Making it is collective.

    Messages between two ranks with the same tag arrive in the order in which they were sent, and fit the requests in
    the order in which those were made. A message that nobody wants yet is kept. Threads wait for messages, one for each
    rank from which any was ever wanted.

    Parameters
    ----------
    group : Group
        The ranks.

    Attributes
    ----------
    timeout : float
        Limit in seconds for every wait; at first that of the group.
    """

    def __init__(self, group: Group) -> None:
        self._rank, self.timeout = group.rank, group.timeout
        # A group of its own, whose waits are short ones, so that a thread can be told to end.
        self._group = group.split(0)
        assert self._group is not None
        others = [rank for rank in range(group.size) if rank != group.rank]
        sizes = dict.fromkeys(others, PACKET_BYTES)
        self._channels = self._group.channels(send=sizes, receive=sizes, slots=4, slot_bytes=PACKET_BYTES)
        self._group.timeout = _SLICE
        self._changed = threading.Condition()  # its lock is for everything below
        self._requests: list[_Request] = []
        self._kept: list[tuple[int, int, np.ndarray]] = []  # sender, tag, message
        self._readers: dict[int, threading.Thread] = {}
        self._closing = False
        _open.add(self)

    def send(self, other: int, message: np.ndarray, tag: int = 0) -> None:
        """Send bytes; returns when they may be overwritten. To one rank by one thread at a time.

        Raises
        ------
        PeerLost, Timeout
            The other rank does not take it.
        """
        if other == self._rank:
            self._arrived(other, tag, message.copy())
            return
        sender = self._channels.send[other]
        at = 0
        while True:
            slot = self._patiently(sender.slot, f"until rank {other} takes a message with tag {tag}")
            slot[:_HEADER].view(np.int64)[:] = (tag, message.size - at)
            part = min(PACKET_BYTES - _HEADER, message.size - at)
            slot[_HEADER : _HEADER + part] = message[at : at + part]
            sender.put()
            at += part
            if at >= message.size:
                return

    def receive(self, source: int | None, message: np.ndarray, tag: int = 0) -> int:
        """Wait for the next message with this tag, from one rank or (None) from any other, and copy it.

        Returns
        -------
        int
            Who sent it.

        Raises
        ------
        Mismatch
            It has another length.
        PeerLost, Timeout
            It does not come.
        """
        result: list[Any] = []
        here = threading.Event()

        def done(sender: int, error: Exception | None) -> None:
            result[:] = [sender, error]
            here.set()

        self.request(source, message, tag, done)
        here.wait()
        if result[1] is not None:
            raise result[1]
        return result[0]

    def request(self, source: int | None, message: np.ndarray, tag: int, done: Done) -> None:
        """Ask for a message and return at once.

        Parameters
        ----------
        source : int or None
            The rank it comes from; None: any other rank.
        message : array of uint8
            Where it goes.
        tag : int
            That of the message.
        done : callable
            Called with (sender, None) when the message is there, or with (-1, error) when it will not come; perhaps by
            another thread, perhaps before `request` returns.
        """
        others = self._channels.receive
        request = _Request(set(others) if source is None else {source}, tag, message, done)
        if not request.sources:
            raise BadInput("expected other ranks to receive from, found that this one is alone")
        with self._changed:
            if self._closing:
                raise Error("this path is closed; receive before it is")
            kept = self._take_kept(request)
            if kept is None:
                self._requests.append(request)
                for rank in request.sources & others.keys():
                    self._start_reader(rank)
                self._changed.notify_all()
        if kept is not None:
            self._give(request, *kept)

    def close(self) -> None:
        """End the threads; what is still wanted will not come."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for reader in self._readers.values():
            reader.join(timeout=12 * _SLICE)

    def _take_kept(self, request: _Request) -> tuple[int, np.ndarray] | None:
        for place, (sender, tag, message) in enumerate(self._kept):
            if tag == request.tag and sender in request.sources:
                del self._kept[place]
                return sender, message
        return None

    def _start_reader(self, rank: int) -> None:
        if rank not in self._readers:
            name = f"onehop from {rank}"
            self._readers[rank] = threading.Thread(target=self._read, args=(rank,), name=name, daemon=True)
            self._readers[rank].start()

    def _read(self, rank: int) -> None:
        """What a thread does: take messages as long as somebody wants any from this rank."""
        receiver = self._channels.receive[rank]
        while self._is_wanted(rank):
            try:
                tag, length = (int(n) for n in receiver.wait()[:_HEADER].view(np.int64))
                self._take(rank, receiver, tag, length)
            except Timeout:
                self._look_at_the_time()
            except Exception as error:
                self._fail(rank, error)

    def _is_wanted(self, rank: int) -> bool:
        with self._changed:
            while not self._closing and not any(rank in request.sources for request in self._requests):
                self._changed.wait()
            return not self._closing

    def _take(self, rank: int, receiver: Receiver, tag: int, length: int) -> None:
        request = self._match(rank, tag)
        fits = request is not None and request.message.size == length
        whole = request.message if request is not None and fits else np.empty(length, np.uint8)
        try:
            self._copy(rank, receiver, whole)
        except Exception as error:
            if request is not None:
                request.done(-1, error)
            raise
        if request is not None and fits:
            request.done(rank, None)
        elif request is not None:
            self._give(request, rank, whole)
        else:
            self._arrived(rank, tag, whole)

    def _match(self, rank: int, tag: int) -> _Request | None:
        with self._changed:
            for place, request in enumerate(self._requests):
                if request.tag == tag and rank in request.sources:
                    return self._requests.pop(place)
        return None

    def _arrived(self, rank: int, tag: int, whole: np.ndarray) -> None:
        """For the first who wants it, or to be kept."""
        with self._changed:  # nobody asks between the look and the keeping
            request = self._match(rank, tag)
            if request is None:
                self._kept.append((rank, tag, whole))
        if request is not None:
            self._give(request, rank, whole)

    def _give(self, request: _Request, rank: int, whole: np.ndarray) -> None:
        if whole.size == request.message.size:
            request.message[:] = whole
            request.done(rank, None)
        else:
            request.done(
                -1,
                Mismatch(
                    f"rank {rank} sent {whole.size} bytes with tag {request.tag}, but rank {self._rank} receives "
                    f"{request.message.size}; give the tensor that it has there"
                ),
            )

    def _copy(self, rank: int, receiver: Receiver, message: np.ndarray) -> None:
        at = 0
        while True:
            part = min(PACKET_BYTES - _HEADER, message.size - at)
            packet = self._patiently(receiver.wait, f"for the rest of a message of rank {rank}")
            message[at : at + part] = packet[_HEADER : _HEADER + part]
            receiver.release()
            at += part
            if at >= message.size:
                return

    def _fail(self, rank: int, error: Exception) -> None:
        """Nothing will come from this rank: an end for all that wait for no other."""
        with self._changed:
            failed = []
            for request in self._requests:
                request.sources.discard(rank)
                if not request.sources:
                    failed.append(request)
            self._requests = [request for request in self._requests if request.sources]
        for request in failed:
            request.done(-1, error)

    def _look_at_the_time(self) -> None:
        if self.timeout <= 0:
            return
        now = time.monotonic()
        with self._changed:
            late = [request for request in self._requests if now - request.since > self.timeout]
            self._requests = [request for request in self._requests if request not in late]
        for request in late:
            ranks = " or ".join(str(rank) for rank in sorted(request.sources))
            what = f"for a message with tag {request.tag} from rank {ranks}"
            request.done(-1, self._too_late(now - request.since, what))

    def _too_late(self, seconds: float, what: str) -> Timeout:
        return Timeout(
            f"rank {self._rank} waited {seconds:.1f} s {what}, longer than the group's limit; is that rank busy, "
            "stopped, or in another step?"
        )

    def _patiently(self, step: Callable[[], np.ndarray], what: str) -> np.ndarray:
        begin = time.monotonic()
        while True:
            try:
                return step()
            except Timeout:
                waited = time.monotonic() - begin
                if self._closing or 0 < self.timeout < waited:
                    raise self._too_late(waited, what) from None
