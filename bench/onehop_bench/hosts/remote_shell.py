"""Run a command on an emulated host, as ssh does on a real one: `remote_shell.py FOLDER [-OPTIONS] HOST WORDS...`.

FOLDER holds the sockets of the hosts' servers (`keeper.py`). The words are joined by blanks and given to a shell, as
ssh does. Launchers of MPI call this script instead of ssh. Like the server, it uses the standard library alone.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
import sys
from collections.abc import Mapping, Sequence


def connect(
    path: str, words: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int]
) -> socket.socket:
    """Start a command and return the connection to the server, on which its exit status will arrive.

    `path` is the socket of the host's server, `environment` all variables of the command, and `descriptors` its
    standard input, output and error. Raise OSError if the host is gone, or if its server runs as another user
    (PermissionError), which gets nothing.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
        _check_user(connection)
        command = {"words": list(words), "environment": dict(environment), "folder": os.getcwd()}
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        text = json.dumps(command).encode() + b"\n"
        sent = connection.sendmsg([text], [rights])
        # Once the server has all of it, a short command may have ended, and the server closed the connection: to send
        # even nothing would then be an error.
        if sent < len(text):
            connection.sendall(text[sent:])
    except OSError:
        connection.close()
        raise
    return connection


def _check_user(connection: socket.socket) -> None:
    """Raise PermissionError if the server runs as another user, as the kernel says (struct ucred)."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    user = struct.unpack("3i", credentials)[1]
    if user != os.geteuid():
        raise PermissionError(f"expected a server of user {os.geteuid()}, found one of user {user}")


def exit_status(connection: socket.socket) -> int:
    """Wait for the end of a command.

    The status is minus the number of the signal that ended it, or 255 if the host is gone.
    """
    text = b""
    while not text.endswith(b"\n"):
        try:
            part = connection.recv(64)
        except ConnectionError:
            part = b""
        if not part:
            return 255
        text += part
    return int(text)


def _main(folder: str, rest: list[str]) -> int:
    while rest and rest[0].startswith("-"):
        del rest[0]
    if len(rest) < 2:
        print("remote_shell: expected HOST COMMAND...", file=sys.stderr)
        return 255
    host, words = rest[0], " ".join(rest[1:])
    path = os.path.join(folder, f"{host}.sock")
    try:
        with connect(path, ["/bin/sh", "-c", words], os.environ, (0, 1, 2)) as connection:
            status = exit_status(connection)
    except OSError as error:
        print(f"remote_shell: no host {host}: {error}", file=sys.stderr)
        return 255
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], sys.argv[2:]))
