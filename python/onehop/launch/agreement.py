"""Print an error once if several ranks of a machine find it.

The first rank with an error claims a name that all ranks of the launch on this machine share, and prints its message.
The others ask it for a digest of that message, and print nothing if theirs is the same. The name is a socket in
Linux's abstract namespace: only one process can bind it, and it disappears with that process.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path

from onehop.launch.environment import Launched

# Seconds in which the rank that has printed its message answers the others.
REACHABLE = 2.0
# Seconds that the others wait for an answer of a rank that has claimed the name and lives: a busy machine may let it
# rest between any two steps.
PATIENCE = 10.0
_DIGEST_BYTES = 32


def _name(launched: Launched) -> str:
    """Return a name that the ranks of one launch on this machine share, because the same parent started them."""
    parent = os.getppid()
    try:
        started = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        started = ""
    control = os.environ.get("ONEHOP_CONTROL", "")
    key = f"{os.getuid()} {launched.launcher} {launched.ranks} {control} {parent} {started}"
    return "\0onehop-error-" + hashlib.sha256(key.encode()).hexdigest()[:32]


def _of_own_user(connection: socket.socket) -> bool:
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", data)[1] == os.getuid()


def _has_been_said(name: str, digest: bytes) -> bool:
    """Ask the rank that has printed whether its message has this digest; False also if it does not answer.

    Raises ConnectionRefusedError if nobody listens at the name.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(REACHABLE)
        try:
            connection.connect(name)
            return _agrees(connection, digest)
        except ConnectionRefusedError:
            raise
        except OSError:
            return False


def _agrees(connection: socket.socket, digest: bytes) -> bool:
    if not _of_own_user(connection):
        return False
    connection.settimeout(PATIENCE)
    printed = connection.recv(_DIGEST_BYTES, socket.MSG_WAITALL)
    connection.settimeout(REACHABLE)
    with contextlib.suppress(OSError):
        connection.recv(1)  # wait until the rank that has printed ends, so that it is the first to end
    return printed == digest


def _answer(claim: socket.socket, digest: bytes, others: int) -> None:
    """Send the digest to the other ranks until all have asked or `REACHABLE` seconds have passed."""
    deadline = time.monotonic() + REACHABLE
    connections: list[socket.socket] = []
    with contextlib.suppress(TimeoutError):
        while len(connections) < others and (left := deadline - time.monotonic()) > 0:
            claim.settimeout(left)
            connection, _ = claim.accept()
            with contextlib.suppress(OSError):  # it may have ended
                if not _of_own_user(connection):
                    connection.close()
                    continue
                connection.sendall(digest)
            connections.append(connection)


def _claimed(claim: socket.socket, name: str, ranks: int) -> bool:
    """Claim the name, and listen at it; False if another rank has claimed it."""
    try:
        claim.bind(name)
        claim.listen(ranks)
    except OSError:
        return False
    return True


def say_once(launched: Launched, message: str, say: Callable[[], None]) -> None:
    """Call `say`, which prints `message`, unless another rank of the launch on this machine has printed the same.

    The message is without the number of the rank.
    """
    digest, name = hashlib.sha256(message.encode(errors="replace")).digest(), _name(launched)
    deadline = time.monotonic() + REACHABLE
    while True:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as claim:
            if _claimed(claim, name, launched.ranks):
                say()
                _answer(claim, digest, launched.ranks - 1)
                return
        try:
            said = _has_been_said(name, digest)
        except ConnectionRefusedError:
            # The rank that has claimed the name does not listen yet, or has ended between these two calls.
            if time.monotonic() < deadline:
                time.sleep(0.01)
                continue
            said = False
        if not said:
            say()
        return
