"""An emulated host's first process, the commands that run on it, and the server through which hosts start commands."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import socket
import socketserver
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from onehop.error import Error
from onehop.launch.interpreter import find_program, search_path
from onehop_bench.hosts.remote_shell import check_user

# Open MPI's files are named by process numbers, which repeat from host to host, so each host has a folder of its own.
_TEMPORARY = "/dev/shm/tmp"
_PATIENCE = 5.0  # seconds until a command must have arrived
_SPACES = ("--mount", "--uts", "--ipc", "--net", "--pid")
# Gives the host $1 its own /proc, /sys, /dev/shm, host name and /etc/hosts ($2), and prints the number of its first
# process outside of it. The line that follows is that process: it leaves no zombies, and ends with standard input.
_SCRIPT = f"""set -e
read -r pid rest </proc/self/stat
mount -t proc proc /proc
echo "$1" >/proc/sys/kernel/hostname
mount -t tmpfs tmpfs /dev/shm
mkdir -m 1777 {_TEMPORARY}
mkdir /dev/shm/groups
mount --rbind /sys/fs/cgroup /dev/shm/groups 2>/dev/null || true
mount -t sysfs sysfs /sys
mount --move /dev/shm/groups /sys/fs/cgroup 2>/dev/null || true
rmdir /dev/shm/groups
echo "$2" >/dev/shm/hosts
mount --bind /dev/shm/hosts /etc/hosts
rm /dev/shm/hosts
echo "$pid"
exec >/dev/null 2>&1 "$3" -I -S -c 'import signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
sys.stdin.read()'
"""
# The folder vanishes with the process that made the hosts, even if that was killed.
_THEN_CLEAN = '"$@"; cat >/dev/null; rm -f "$0/shell.sock" "$0/ssh"; rmdir "$0" 2>/dev/null'


class Unavailable(Error):
    """Hosts cannot be emulated here. The message says why."""


def interpreter() -> str:
    """Return this Python without its environment, which takes longer to start."""
    return str(Path(sys.executable).resolve())


def tool(name: str) -> str:
    """Return the path of a program that emulated hosts need."""
    if (found := find_program(name)) is None:
        raise Unavailable(f"emulated hosts need {name}, not found in PATH: `apt install iproute2 util-linux`")
    return found


def safe_environment() -> dict[str, str]:
    """Return the variables of this process, in which PATH names no folder of another user."""
    return {**os.environ, "PATH": os.pathsep.join(map(str, search_path()))}


def start_host(name: str, folder: str, names: str, stack: ExitStack) -> int:
    """Start the first process of a host, which ends with `stack`, and return its number. `names`: its /etc/hosts."""
    words = [tool("unshare"), *_SPACES, "--fork", "--propagation", "private", "/bin/sh", "-c", _SCRIPT, "sh"]
    process = subprocess.Popen(
        ["/bin/sh", "-c", _THEN_CLEAN, folder, *words, name, names, interpreter()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for the process that makes the hosts
        env=safe_environment(),
    )
    stack.callback(process.wait)
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        stack.callback(stream.close)
    pid = process.stdout.readline().strip()  # type: ignore[union-attr]
    if not pid:
        process.stdin.close()  # type: ignore[union-attr]
        said = process.stderr.read().strip()  # type: ignore[union-attr]
        raise Unavailable(
            f"namespaces cannot be made here: {said or 'the first process of a host ended early'}"
        )
    return int(pid)


def start_command(
    pid: int,
    cores: str,
    words: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    descriptors: Sequence[int],
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own on the host with this first process, and on these cores if not empty."""
    bound = [tool("taskset"), "--cpu-list", cores] if cores else []
    inside = [
        tool("nsenter"),
        "--target",
        str(pid),
        *_SPACES,
        "/bin/sh",
        "-c",
        'cd "$1" && shift && exec "$@"',
        "emulated host",  # which begins the error of a program that is not there
        folder,
    ]
    stdin, stdout, stderr = descriptors
    return subprocess.Popen(
        [*bound, *inside, *words],
        env={**environment, "TMPDIR": _TEMPORARY},
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def receive(connection: socket.socket, limit: int = 1 << 20) -> tuple[list[Any], list[int]]:
    """Receive a command: a list in JSON, ended by a newline, and the descriptors that came with its first byte."""
    connection.settimeout(_PATIENCE)
    text, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while not text.endswith(b"\n"):
        part = connection.recv(1 << 16)
        if not part or len(text) > limit:
            raise ValueError("the command ends early or is too long")
        text += part
    connection.settimeout(None)
    return json.loads(text), descriptors


class ShellServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Starts the commands of `remote_shell.py`, reports how they ended, and ends them when their caller goes away.

    `start` starts a command on the host that it is given first.
    """

    daemon_threads = True

    def __init__(self, path: str, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        super().__init__(path, _Caller)
        self.start = start


class _Caller(socketserver.BaseRequestHandler):
    """One command."""

    server: ShellServer
    request: socket.socket

    def handle(self) -> None:
        with suppress(OSError, TypeError, ValueError):
            check_user(self.request)
            command, descriptors = receive(self.request)
            try:
                process = self.server.start(*command, descriptors)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            end = os.pidfd_open(process.pid)
            gone = self.request in select.select([self.request, end], [], [])[0]
            os.close(end)
            if gone:
                os.killpg(process.pid, signal.SIGTERM)
            self.request.sendall(f"{process.wait()}\n".encode())


def shell_script(folder: str) -> str:
    """Return the program that MPI launchers call instead of ssh."""
    script = Path(__file__).with_name("remote_shell.py")
    line = shlex.join([interpreter(), "-I", "-S", str(script), f"{folder}/shell.sock"])
    return f'#!/bin/sh\nexec {line} "$@"\n'
