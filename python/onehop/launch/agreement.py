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
    """Ask the rank that has printed whether its message has this digest; False also if it cannot be reached."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, contextlib.suppress(OSError):
        connection.settimeout(REACHABLE)
        connection.connect(name)
        if not _of_own_user(connection):
            return False
        printed = connection.recv(_DIGEST_BYTES, socket.MSG_WAITALL)
        connection.recv(1)  # wait until the rank that has printed ends, so that it is the first to end
        return printed == digest
    return False


def _answer(claim: socket.socket, digest: bytes, others: int) -> None:
    """Send the digest to the other ranks until all have asked or `REACHABLE` seconds have passed."""
    deadline = time.monotonic() + REACHABLE
    connections = []
    with contextlib.suppress(OSError):
        while len(connections) < others and (left := deadline - time.monotonic()) > 0:
            claim.settimeout(left)
            connection, _ = claim.accept()
            if not _of_own_user(connection):
                connection.close()
                continue
            connections.append(connection)
            connection.sendall(digest)


def say_once(launched: Launched, message: str, say: Callable[[], None]) -> None:
    """Call `say`, which prints `message`, unless another rank of the launch on this machine has printed the same.

    The message is without the number of the rank.
    """
    digest = hashlib.sha256(message.encode(errors="replace")).digest()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as claim:
        name = _name(launched)
        try:
            claim.bind(name)
            claim.listen(launched.ranks)
        except OSError:
            if not _has_been_said(name, digest):
                say()
            return
        say()
        _answer(claim, digest, launched.ranks - 1)
