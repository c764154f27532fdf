"""Tagged messages of any length between two ranks, over channels that are opened once."""

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

PACKET_BYTES = 64 << 10
_HEADER = 16  # two int64: the tag, and the bytes of the message that remain, including this packet's
_POLL_SECONDS = 0.25  # a waiting thread checks this often whether it should end

Done = Callable[[int, Exception | None], Any]
_open: weakref.WeakSet[PointToPoint] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Close all paths, because a thread that outlives the interpreter would access freed memory."""
    for paths in list(_open):
        paths.close()


class _Request:
    """A pending receive."""

    def __init__(self, sources: set[int], tag: int, message: np.ndarray, done: Done) -> None:
        self.sources, self.tag, self.message, self.done = sources, tag, message, done
        self.since = time.monotonic()


class PointToPoint:
    """Tagged messages from every rank to every other one. The constructor is collective.

    Messages between two ranks with the same tag arrive in the order in which they were sent, and match the requests in
    the order of the requests. A message without a request is kept until one matches. One thread per sending rank waits
    for messages; it starts with the first request that names this rank. `timeout` limits every wait, by default to that
    of the group.
    """

    def __init__(self, group: Group) -> None:
        self._rank, self.timeout = group.rank, group.timeout
        # This class needs its own group with a short time limit, so that a waiting thread can be told to end.
        self._group = group.split(0)
        assert self._group is not None
        others = [rank for rank in range(group.size) if rank != group.rank]
        sizes = dict.fromkeys(others, PACKET_BYTES)
        self._channels = self._group.channels(send=sizes, receive=sizes, slots=4, slot_bytes=PACKET_BYTES)
        self._group.timeout = _POLL_SECONDS
        self._changed = threading.Condition()  # its lock protects all members below
        self._requests: list[_Request] = []
        self._kept: list[tuple[int, int, np.ndarray]] = []  # sender, tag, message
        self._readers: dict[int, threading.Thread] = {}
        self._closing = False
        _open.add(self)

    def send(self, other: int, message: np.ndarray, tag: int = 0) -> None:
        """Send a message, an array of uint8, and return when its memory may be overwritten.

        Only one thread at a time may send to the same rank. Raises PeerLost or Timeout.
        """
        if other == self._rank:
            self._deliver(other, tag, message.copy())
            return
        sender = self._channels.send[other]
        at = 0
        while True:
            slot = self._retry(sender.slot, f"until rank {other} takes a message with tag {tag}")
            slot[:_HEADER].view(np.int64)[:] = (tag, message.size - at)
            part = min(PACKET_BYTES - _HEADER, message.size - at)
            slot[_HEADER : _HEADER + part] = message[at : at + part]
            sender.put()
            at += part
            if at >= message.size:
                return

    def receive(self, source: int | None, message: np.ndarray, tag: int = 0) -> int:
        """Wait for the next message with this tag, copy it to an array of uint8, and return the rank that sent it.

        `source` None stands for any other rank. Raises Mismatch for a message of another length, PeerLost or Timeout.
        """
        result: list[Any] = []
        finished = threading.Event()

        def done(sender: int, error: Exception | None) -> None:
            result[:] = [sender, error]
            finished.set()

        self.request(source, message, tag, done)
        finished.wait()
        if result[1] is not None:
            raise result[1]
        return result[0]

    def request(self, source: int | None, message: np.ndarray, tag: int, done: Done) -> object:
        """Request a message and return at once, with the request for `cancel`. `source` None: from any other rank.

        `done` is called with (sender, None) once the message is in place, or with (-1, error) if it cannot arrive. The
        call may come from another thread, and before `request` returns. Raises BadInput if the group has no other rank,
        and Error if the paths are closed.
        """
        others = self._channels.receive
        request = _Request(set(others) if source is None else {source}, tag, message, done)
        if not request.sources:
            raise BadInput("expected another rank to receive from, found a group of one rank")
        with self._changed:
            if self._closing:
                raise Error(
                    "expected open paths to the other ranks, found that close() was called; receive before it"
                )
            kept = self._take_kept(request)
            if kept is None:
                self._requests.append(request)
                for rank in request.sources & others.keys():
                    self._start_reader(rank)
                self._changed.notify_all()
        if kept is not None:
            self._complete(request, *kept)
        return request

    def cancel(self, request: object) -> None:
        """Forget a request; a message that would have matched it is kept for the next one."""
        with self._changed:
            self._requests = [one for one in self._requests if one is not request]

    def abort(self, error: Exception) -> None:
        """Fail all pending requests and sends, and let no other begin. The other ranks see this rank as lost."""
        self._group.abort()
        with self._changed:
            self._closing = True
            pending, self._requests = self._requests, []
            self._changed.notify_all()
        for request in pending:
            request.done(-1, error)

    def close(self) -> None:
        """End the threads. Pending requests are never completed."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for reader in self._readers.values():
            reader.join(timeout=12 * _POLL_SECONDS)

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
        """Receive messages of one rank while requests for it are pending. The body of a reader thread."""
        receiver = self._channels.receive[rank]
        while self._wait_for_request(rank):
            try:
                tag, length = (int(n) for n in receiver.wait()[:_HEADER].view(np.int64))
                self._take(rank, receiver, tag, length)
            except Timeout:
                self._fail_overdue()
            except Exception as error:
                self._fail(rank, error)

    def _wait_for_request(self, rank: int) -> bool:
        """Wait until a request for this rank is pending; False when the paths are closed."""
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
            self._complete(request, rank, whole)
        else:
            self._deliver(rank, tag, whole)

    def _match(self, rank: int, tag: int) -> _Request | None:
        with self._changed:
            for place, request in enumerate(self._requests):
                if request.tag == tag and rank in request.sources:
                    return self._requests.pop(place)
        return None

    def _deliver(self, rank: int, tag: int, whole: np.ndarray) -> None:
        """Complete the first request that a message matches, or keep the message."""
        with self._changed:  # no request may come between the search and the keeping
            request = self._match(rank, tag)
            if request is None:
                self._kept.append((rank, tag, whole))
        if request is not None:
            self._complete(request, rank, whole)

    def _complete(self, request: _Request, rank: int, whole: np.ndarray) -> None:
        if whole.size == request.message.size:
            request.message[:] = whole
            request.done(rank, None)
        else:
            request.done(
                -1,
                Mismatch(
                    f"rank {rank} sent {whole.size} bytes with tag {request.tag}, but rank {self._rank} expected "
                    f"{request.message.size}; pass a tensor of the same size and type on both ranks"
                ),
            )

    def _copy(self, rank: int, receiver: Receiver, message: np.ndarray) -> None:
        at = 0
        while True:
            part = min(PACKET_BYTES - _HEADER, message.size - at)
            packet = self._retry(receiver.wait, f"for the rest of a message of rank {rank}")
            message[at : at + part] = packet[_HEADER : _HEADER + part]
            receiver.release()
            at += part
            if at >= message.size:
                return

    def _fail(self, rank: int, error: Exception) -> None:
        """Fail the requests that can be completed by no other rank than this one, which has failed."""
        with self._changed:
            failed = []
            for request in self._requests:
                request.sources.discard(rank)
                if not request.sources:
                    failed.append(request)
            self._requests = [request for request in self._requests if request.sources]
        for request in failed:
            request.done(-1, error)

    def _fail_overdue(self) -> None:
        """Fail the requests that have waited longer than the time limit."""
        if self.timeout <= 0:
            return
        now = time.monotonic()
        with self._changed:
            late = [request for request in self._requests if now - request.since > self.timeout]
            self._requests = [request for request in self._requests if request not in late]
        for request in late:
            ranks = " or ".join(str(rank) for rank in sorted(request.sources))
            what = f"for a message with tag {request.tag} from rank {ranks}"
            request.done(-1, self._timeout_error(now - request.since, what))

    def _timeout_error(self, seconds: float, what: str) -> Timeout:
        return Timeout(
            f"rank {self._rank} waited {seconds:.1f} s {what}, longer than the timeout of the group; is that rank "
            "busy, stopped, or in another step?"
        )

    def _retry(self, step: Callable[[], np.ndarray], what: str) -> np.ndarray:
        """Repeat a step that raises Timeout after `_POLL_SECONDS`, until `timeout` has passed or the paths close."""
        begin = time.monotonic()
        while True:
            try:
                return step()
            except Timeout:
                waited = time.monotonic() - begin
                if self._closing or 0 < self.timeout < waited:
                    raise self._timeout_error(waited, what) from None
