"""Run a command on an emulated host, as ssh does on a real one: `remote_shell.py SOCKET [-OPTIONS] HOST WORDS...`.

SOCKET is that of the hosts' server (`keeper.py`). The words are joined by blanks and given to a shell, as ssh does.
Launchers of MPI call this script instead of ssh. It uses the standard library alone and imports no other module of
onehop, because it must start quickly and in a bare interpreter.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from collections.abc import Sequence


def check_user(connection: socket.socket) -> None:
    """Raise PermissionError if the other end runs as another user, as the kernel says (struct ucred)."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    user = struct.unpack("3i", credentials)[1]
    if user != os.geteuid():
        raise PermissionError(f"expected a process of user {os.geteuid()}, found one of user {user}")


def run(path: str, host: str, words: Sequence[str]) -> int:
    """Run a command on a host, through the server at a socket, and return its exit status.

    The status is minus the number of the signal that ended it. Raise OSError if there is no server or no such host, if
    the hosts have ended, or if the server runs as another user (PermissionError), which gets nothing.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        check_user(connection)
        text = json.dumps([host, words, dict(os.environ), os.getcwd()]).encode() + b"\n"
        sent = socket.send_fds(connection, [text], [0, 1, 2])
        # Once the server has all of it, a short command may have ended, and the server closed the connection: to send
        # even nothing would then be an error.
        if sent < len(text):
            connection.sendall(text[sent:])
        if answer := connection.recv(64):
            return int(answer)
    raise ConnectionError("it was never made, or has ended")


def _main(path: str, rest: list[str]) -> int:
    while rest and rest[0].startswith("-"):
        del rest[0]
    if len(rest) < 2:
        print("remote_shell: expected HOST COMMAND...", file=sys.stderr)
        return 255
    try:
        status = run(path, rest[0], ["/bin/sh", "-c", " ".join(rest[1:])])
    except OSError as error:
        print(f"remote_shell: no host {rest[0]}: {error}", file=sys.stderr)
        return 255
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], sys.argv[2:]))
