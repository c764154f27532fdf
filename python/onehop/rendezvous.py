"""Authenticated connections between rank 0 and the other ranks of one machine, over a Unix socket.

Rank 0 listens at an abstract address, which needs no file. It accepts a caller as a rank if the kernel confirms that
the caller runs as the same user, and if the caller sends rank 0's key. A calling rank checks the user of the listener
in the same way. Every wait has a time limit.
"""

from __future__ import annotations

import hmac
import os
import secrets
import selectors
import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onehop.error import BadInput, Mismatch, PeerLost, Timeout
from onehop.group import Group

__all__ = ["KEY_BYTES", "Line", "Listener", "call", "meeting_limit"]

KEY_BYTES = 32
_RANK = struct.Struct("<I")
_LENGTH = struct.Struct("<I")
_HELLO_BYTES = KEY_BYTES + _RANK.size
_TIME = struct.Struct("ll")  # timeval: seconds, microseconds
_CREDENTIALS = struct.Struct("3i")  # ucred: pid, uid, gid
# Time limit for a caller to identify itself, and for a rank to send the rest of a message that it has begun.
_HELLO_SECONDS = 10.0
_POLL_SECONDS = 0.2
_MAX_STRAY_CALLERS = 64
_ACCEPTS_PER_TURN = 64
# Ranks exchange far shorter messages before they share memory; a longer one is an error.
_MAX_BYTES = 1 << 28


def meeting_limit() -> float:
    """Return the time limit in seconds for the ranks to connect: $ONEHOP_TIMEOUT, or a minute."""
    return Group.alone().timeout or 60.0


def _is_own_user(line: socket.socket) -> bool:
    """Whether the kernel says that the process at the other end runs as the same user as this process."""
    credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(credentials)[1] == os.geteuid()


class Line:
    """A connection to a rank for messages, each of which is preceded by its length."""

    def __init__(self, line: socket.socket, rank: int) -> None:
        self._line, self._rank = line, rank

    def send(self, data: bytes, limit: float | None) -> None:
        """Send a message within `limit` seconds; None: no limit. Raises Timeout or PeerLost."""
        self._line.settimeout(limit)
        try:
            self._line.sendall(_LENGTH.pack(len(data)) + data)
        except TimeoutError:
            raise self._late() from None
        except OSError as error:
            raise self._lost() from error

    def receive(self, limit: float | None) -> bytes:
        """Receive a message that begins within `limit` seconds; None: no limit.

        Raises Timeout or PeerLost, and Mismatch for a message that is too long.
        """
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, limit))
        if length > _MAX_BYTES:
            raise Mismatch(
                f"expected a message of at most {_MAX_BYTES} bytes from rank {self._rank}, found {length}"
            )
        return self._exactly(length, _HELLO_SECONDS)

    def _exactly(self, size: int, limit: float | None) -> bytes:
        found = b""
        while len(found) < size:
            self._line.settimeout(limit if not found else _HELLO_SECONDS)
            try:
                piece = self._line.recv(min(size - len(found), 1 << 20))
            except TimeoutError:
                raise self._late() from None
            except OSError as error:
                raise self._lost() from error
            if not piece:
                raise self._lost()
            found += piece
        return found

    def _late(self) -> Timeout:
        return Timeout(
            f"rank {self._rank} has not answered in time while the ranks were being connected; does every rank call "
            "set_comm_handles()? ONEHOP_TIMEOUT sets another limit in seconds"
        )

    def _lost(self) -> PeerLost:
        return PeerLost(f"rank {self._rank} has ended while the ranks were being connected", self._rank)


class Listener:
    """The end of rank 0: accepts connections until every other rank has connected.

    A caller that does not identify itself as a rank is disconnected after ten seconds at the latest. Meanwhile it does
    not delay the others.

    Parameters
    ----------
    purpose : str
        Part of the address.
    size : int
        Number of ranks.
    """

    def __init__(self, purpose: str, size: int) -> None:
        self.key = secrets.token_bytes(KEY_BYTES)
        self.address = f"\0onehop-{purpose}-{secrets.token_hex(16)}"
        self._size = size
        self._max_callers = size + _MAX_STRAY_CALLERS
        self._lines: dict[int, Line] = {}
        # For each caller that has not identified itself yet: the bytes received, and the time until it must.
        self._callers: dict[socket.socket, tuple[bytearray, float]] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.setblocking(False)
        self._listener.bind(self.address)
        self._listener.listen(self._max_callers)

    def accept(self, pids: Sequence[int]) -> dict[int, Line]:
        """Wait for the other ranks, and close the listening socket.

        Parameters
        ----------
        pids : sequence of int
            Process number of each rank. The wait ends if one of these processes ends.

        Returns
        -------
        dict of Line
            The connection to each rank.

        Raises
        ------
        PeerLost
            A rank's process has ended.
        Timeout
            A rank has not connected within `meeting_limit`.
        """
        limit = meeting_limit()
        until = time.monotonic() + limit
        next_check = 0.0
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            try:
                while len(self._lines) < self._size - 1:
                    self._serve_callers(selector)
                    if time.monotonic() > next_check:
                        self._check_missing(pids, None if time.monotonic() < until else limit)
                        next_check = time.monotonic() + _POLL_SECONDS
            finally:
                for line in list(self._callers):
                    self._disconnect(selector, line)
                self._listener.close()
        return self._lines

    def _check_missing(self, pids: Sequence[int], spent: float | None) -> None:
        """Raise PeerLost if a missing rank's process has ended, or Timeout if the limit of `spent` seconds is over."""
        for rank in range(1, self._size):
            if rank in self._lines:
                continue
            if not _is_alive(pids[rank]):
                raise PeerLost(f"rank {rank} (process {pids[rank]}) has ended before it was connected", rank)
            if spent is not None:
                raise Timeout(
                    f"rank {rank} (process {pids[rank]}) has not connected within {spent:g} s; does it connect, and "
                    "with the handle of this rank 0? ONEHOP_TIMEOUT sets another limit in seconds"
                )

    def _serve_callers(self, selector: selectors.BaseSelector) -> None:
        for key, _ in selector.select(_POLL_SECONDS):
            if key.fileobj is self._listener:
                self._accept_callers(selector)
            elif key.fileobj in self._callers:
                self._read_hello(selector, key.fileobj)
        now = time.monotonic()
        for line in [line for line, (_, until) in self._callers.items() if now > until]:
            self._disconnect(selector, line)

    def _accept_callers(self, selector: selectors.BaseSelector) -> None:
        # A limited number, because other users may connect without pause.
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                line, _ = self._listener.accept()
            except OSError:
                return  # there is no further caller, it has gone, or no descriptor is left for it
            self._admit(selector, line)

    def _admit(self, selector: selectors.BaseSelector, line: socket.socket) -> None:
        if not _is_own_user(line):
            line.close()
            return
        if len(self._callers) >= self._max_callers:
            self._disconnect(selector, next(iter(self._callers)))  # the oldest
        line.setblocking(False)
        self._callers[line] = bytearray(), time.monotonic() + _HELLO_SECONDS
        selector.register(line, selectors.EVENT_READ)

    def _read_hello(self, selector: selectors.BaseSelector, line: Any) -> None:
        hello = self._callers[line][0]
        try:
            piece = line.recv(_HELLO_BYTES - len(hello))
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        hello += piece
        if not piece:
            self._disconnect(selector, line)
        elif len(hello) == _HELLO_BYTES:
            (rank,) = _RANK.unpack_from(hello, KEY_BYTES)
            right = hmac.compare_digest(bytes(hello[:KEY_BYTES]), self.key)
            if right and 0 < rank < self._size and rank not in self._lines:
                self._forget(selector, line)
                self._lines[rank] = Line(line, rank)
            else:
                self._disconnect(selector, line)

    def _forget(self, selector: selectors.BaseSelector, line: socket.socket) -> None:
        selector.unregister(line)
        del self._callers[line]

    def _disconnect(self, selector: selectors.BaseSelector, line: socket.socket) -> None:
        self._forget(selector, line)
        line.close()


def call(address: str, key: bytes, rank: int, pid: int) -> Line:
    """Connect a rank to rank 0 and identify it.

    Parameters
    ----------
    address : str
        Address of the `Listener` of rank 0.
    key : bytes
        Key of the `Listener`, `KEY_BYTES` long.
    rank : int
        Number of this rank.
    pid : int
        Process number of rank 0, for error messages.

    Raises
    ------
    PeerLost
        Rank 0 does not answer, or a process of another user listens in its place.
    BadInput
        The address is not a valid socket address.
    """
    line = socket.socket(socket.AF_UNIX)
    try:
        _connect(line, address)
        if not _is_own_user(line):
            raise ConnectionError("a process of another user listens in its place")
        line.sendall(key + _RANK.pack(rank))
    except OSError as error:
        line.close()
        raise PeerLost(
            f"rank 0 (process {pid}) does not answer: {error}; it must live until all are connected", 0
        ) from error
    return Line(line, 0)


def _connect(line: socket.socket, address: str) -> None:
    until = time.monotonic() + meeting_limit()
    # Where others connect without pause, only who waits in line in the kernel gets into the queue of the listener.
    line.settimeout(None)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIME.pack(0, int(_POLL_SECONDS * 1e6)))
    while True:
        try:
            line.connect(address)
            break
        except BlockingIOError:  # the queue is still full
            if time.monotonic() > until:
                raise
        except UnicodeError:
            raise BadInput(f"expected the address of rank 0, found {address!r}") from None
    line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIME.pack(0, 0))
    line.settimeout(meeting_limit())


def _is_alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie. True for a process of another user."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except PermissionError:
        return True
    except OSError:
        return False
    return state not in "ZX"
