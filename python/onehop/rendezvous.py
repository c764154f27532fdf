"""Ranks of one machine that find each other over a Unix socket, with nobody else let in.

Rank 0 listens at an address without a file. A caller is taken for a rank if the kernel says that it is of the same
user, and if it sends rank 0's key; a rank makes sure likewise of who listens. Every wait has an end.
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
_CREDENTIALS = struct.Struct("3i")  # ucred: pid, uid, gid
# A caller has so long to say who it is, and a rank to send the rest of what it has begun.
_HELLO_SECONDS = 10.0
_LOOK_SECONDS = 0.2
_STRAY_CALLERS = 64
# What ranks tell each other before they have memory in common is far shorter.
_MOST_BYTES = 1 << 28


def meeting_limit() -> float:
    """Seconds in which the ranks must have connected: $ONEHOP_TIMEOUT, or a minute."""
    return Group.alone().timeout or 60.0


def _is_mine(line: socket.socket) -> bool:
    """Whether the process at the other end is of this process's user, as the kernel says."""
    credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(credentials)[1] == os.geteuid()


class Line:
    """A connection to a rank, for messages with their length in front."""

    def __init__(self, line: socket.socket, rank: int) -> None:
        self._line, self._rank = line, rank

    def send(self, data: bytes, limit: float | None) -> None:
        """Send a message within so many seconds; None: however long the rank takes."""
        self._line.settimeout(limit)
        try:
            self._line.sendall(_LENGTH.pack(len(data)) + data)
        except TimeoutError:
            raise self._late() from None
        except OSError as error:
            raise self._lost() from error

    def receive(self, limit: float | None) -> bytes:
        """Receive a message that begins within so many seconds; None: whenever it does."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, limit))
        if length > _MOST_BYTES:
            raise Mismatch(f"expected at most {_MOST_BYTES} bytes from rank {self._rank}, found {length}")
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
    """Rank 0's end: takes calls until every other rank has called.

    Every caller who is no rank is hung up on, at the latest after some seconds, and keeps nobody waiting meanwhile.

    Parameters
    ----------
    purpose : str
        Part of the address.
    size : int
        How many ranks there are.
    """

    def __init__(self, purpose: str, size: int) -> None:
        self.key = secrets.token_bytes(KEY_BYTES)
        self.address = f"\0onehop-{purpose}-{secrets.token_hex(16)}"
        self._size = size
        self._most_callers = size + _STRAY_CALLERS
        self._lines: dict[int, Line] = {}
        self._said: dict[socket.socket, tuple[bytearray, float]] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.setblocking(False)
        self._listener.bind(self.address)
        self._listener.listen(self._most_callers)

    def accept(self, pids: Sequence[int]) -> dict[int, Line]:
        """Wait for the other ranks; then nobody listens any more.

        Parameters
        ----------
        pids : sequence of int
            The process of each rank, in whose place nobody else is waited for.

        Raises
        ------
        PeerLost
            A rank's process has ended.
        Timeout
            A rank has not called within `meeting_limit`.
        """
        limit = meeting_limit()
        until = time.monotonic() + limit
        look = 0.0
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            try:
                while len(self._lines) < self._size - 1:
                    self._take_calls(selector)
                    if time.monotonic() > look:
                        self._look_for_missing(pids, None if time.monotonic() < until else limit)
                        look = time.monotonic() + _LOOK_SECONDS
            finally:
                for line in list(self._said):
                    self._hang_up(selector, line)
                self._listener.close()
        return self._lines

    def _look_for_missing(self, pids: Sequence[int], spent: float | None) -> None:
        for rank in range(1, self._size):
            if rank in self._lines:
                continue
            if not _lives(pids[rank]):
                raise PeerLost(f"rank {rank} (process {pids[rank]}) has ended before it was connected", rank)
            if spent is not None:
                raise Timeout(
                    f"rank {rank} (process {pids[rank]}) has not connected within {spent:g} s; does it connect, and "
                    "with the handle of this rank 0? ONEHOP_TIMEOUT sets another limit in seconds"
                )

    def _take_calls(self, selector: selectors.BaseSelector) -> None:
        for key, _ in selector.select(_LOOK_SECONDS):
            if key.fileobj is self._listener:
                self._take_call(selector)
            elif key.fileobj in self._said:
                self._listen_to(selector, key.fileobj)
        now = time.monotonic()
        for line in [line for line, (_, until) in self._said.items() if now > until]:
            self._hang_up(selector, line)

    def _take_call(self, selector: selectors.BaseSelector) -> None:
        try:
            line, _ = self._listener.accept()
        except OSError:
            return  # the caller has gone, or there is no descriptor left for it
        if not _is_mine(line):
            line.close()
            return
        if len(self._said) >= self._most_callers:
            self._hang_up(selector, next(iter(self._said)))  # it has been silent for longest
        line.setblocking(False)
        self._said[line] = bytearray(), time.monotonic() + _HELLO_SECONDS
        selector.register(line, selectors.EVENT_READ)

    def _listen_to(self, selector: selectors.BaseSelector, line: Any) -> None:
        said = self._said[line][0]
        try:
            piece = line.recv(_HELLO_BYTES - len(said))
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        said += piece
        if not piece:
            self._hang_up(selector, line)
        elif len(said) == _HELLO_BYTES:
            (rank,) = _RANK.unpack_from(said, KEY_BYTES)
            right = hmac.compare_digest(bytes(said[:KEY_BYTES]), self.key)
            if right and 0 < rank < self._size and rank not in self._lines:
                self._forget(selector, line)
                self._lines[rank] = Line(line, rank)
            else:
                self._hang_up(selector, line)

    def _forget(self, selector: selectors.BaseSelector, line: socket.socket) -> None:
        selector.unregister(line)
        del self._said[line]

    def _hang_up(self, selector: selectors.BaseSelector, line: socket.socket) -> None:
        self._forget(selector, line)
        line.close()


def call(address: str, key: bytes, rank: int, pid: int) -> Line:
    """A rank's end: call rank 0 and say who this is.

    Parameters
    ----------
    address, key
        Of the `Listener`.
    rank : int
        Who this is.
    pid : int
        The process of rank 0, for messages.

    Raises
    ------
    PeerLost
        Rank 0 does not answer, or a process of another user does in its place.
    BadInput
        There can be no such address.
    """
    line = socket.socket(socket.AF_UNIX)
    try:
        _connect(line, address)
        if not _is_mine(line):
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
    line.settimeout(meeting_limit())
    while True:
        try:
            line.connect(address)
            return
        except BlockingIOError:  # others are waiting to be heard
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        except UnicodeError:
            raise BadInput(f"expected the address of rank 0, found {address!r}") from None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except PermissionError:
        return True
    except OSError:
        return False
    return state not in "ZX"
