"""One emulated host: namespaces, and a server inside them that starts commands, as sshd does on a real host.

Run as a script, `keeper.py NAME FOLDER CORES HOSTS`: NAME is the host's name, FOLDER holds its socket NAME.sock, CORES
are the numbers of its cores, separated by commas (empty: all), HOSTS is the text of its /etc/hosts. The script prints
the process number of the server. The host lives until the script's standard input is closed, thus at most as long as
the process that started it, however that ends. It uses the standard library alone and imports no other module of
onehop, because it must start quickly and in a bare interpreter.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import json
import os
import selectors
import signal
import socket
import struct
import sys

_libc = ctypes.CDLL(None, use_errno=True)
_NEW_MOUNTS, _NEW_UTS, _NEW_IPC, _NEW_PID, _NEW_NET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
# Open MPI's files are named by process numbers, which repeat from host to host, so each host has a folder of its own.
_TEMPORARY = "/dev/shm/tmp"
_DESCRIPTORS = 3  # standard input, output and error, which travel with a command
_PATIENCE = 5.0  # seconds: nobody else is served while a command arrives


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _mount(source: str, target: str, kind: str = "", flags: int = 0) -> None:
    words = (word.encode() or None for word in (source, target, kind))
    _check(_libc.mount(*words, ctypes.c_ulong(flags), None), f"mounting {target}")


def _mount_own(name: str, hosts: str) -> None:
    """Give the host its own /proc, /sys, /dev/shm, host name and /etc/hosts, in its own list of mounts."""
    _mount("none", "/", flags=_MS_REC | _MS_PRIVATE)
    groups = os.open("/sys/fs/cgroup", os.O_PATH) if os.path.isdir("/sys/fs/cgroup") else None
    _mount("proc", "/proc", "proc")
    _mount("sysfs", "/sys", "sysfs")  # shows the network devices of this host
    if groups is not None:
        with contextlib.suppress(OSError):
            _mount(f"/proc/self/fd/{groups}", "/sys/fs/cgroup", flags=_MS_BIND | _MS_REC)
        os.close(groups)
    _mount("tmpfs", "/dev/shm", "tmpfs")
    os.mkdir(_TEMPORARY, 0o1777)
    socket.sethostname(name)
    with open("/dev/shm/hosts", "w") as file:
        file.write(hosts)
    _mount("/dev/shm/hosts", "/etc/hosts", flags=_MS_BIND)
    os.unlink("/dev/shm/hosts")


def receive(connection: socket.socket, limit: int = 1 << 20) -> tuple[dict, list[int]]:
    """Receive a command: a JSON object, ended by a newline, and the descriptors that came with its first byte."""
    descriptors = array.array("i")
    text = b""
    connection.settimeout(_PATIENCE)
    while not text.endswith(b"\n"):
        part, ancillary, _, _ = connection.recvmsg(
            65536, socket.CMSG_SPACE(_DESCRIPTORS * descriptors.itemsize)
        )
        if not part or len(text) > limit:
            raise ValueError("the command ends early or is too long")
        text += part
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return json.loads(text), list(descriptors)


def _become(command: dict, descriptors: list[int]) -> None:
    """Turn this process, a fork of the server, into the command. Does not return."""
    try:
        os.setsid()
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(command["folder"])
        os.execvpe(command["words"][0], command["words"], {**command["environment"], "TMPDIR": _TEMPORARY})
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"{socket.gethostname()}: {command['words'][0]}: {error}\n".encode())
    os._exit(127)


def _is_own_user(connection: socket.socket) -> bool:
    """Whether the process at the other end runs as the user of this process, as the kernel says (struct ucred)."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[1] == os.geteuid()


class _Server:
    """Starts commands, reports how they ended, and ends them when their caller goes away."""

    def __init__(self, path: str) -> None:
        self.commands: dict[int, socket.socket] = {}  # by process number
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        self.select = selectors.DefaultSelector()
        self.alarm, writer = os.pipe()  # readable after SIGCHLD
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for one in (0, self.listener, self.alarm):
            self.select.register(one, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until standard input is closed."""
        while True:
            for key, _ in self.select.select():
                if key.fileobj == 0:
                    return
                if key.fileobj == self.listener:
                    self._start(self.listener.accept()[0])
                elif key.fileobj == self.alarm:
                    os.read(self.alarm, 4096)
                    self._reap()
                else:
                    self._forsaken(key.fileobj)

    def _start(self, connection: socket.socket) -> None:
        if not _is_own_user(connection):
            connection.close()
            return
        try:
            command, descriptors = receive(connection)
        except (OSError, ValueError):
            connection.close()
            return
        pid = os.fork()
        if pid == 0:
            _become(command, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self.commands[pid] = connection
        self.select.register(connection, selectors.EVENT_READ)

    def _reap(self) -> None:
        """Collect ended processes. As process 1, the server also inherits those whose parents have ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            connection = self.commands.pop(pid, None)
            if connection is None:
                continue
            with contextlib.suppress(OSError):
                connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            self.select.unregister(connection)
            connection.close()

    def _forsaken(self, connection: socket.socket) -> None:
        """End a command whose caller has closed the connection, or signal it: each byte is the number of a signal."""
        numbers = b""
        with contextlib.suppress(OSError):
            numbers = connection.recv(16)
        pid = next(pid for pid, one in self.commands.items() if one is connection)
        for number in numbers or bytes([signal.SIGTERM]):
            with contextlib.suppress(OSError):
                os.killpg(pid, number)
        if not numbers:
            self.select.unregister(connection)
            connection.close()
            del self.commands[pid]


def _main(name: str, folder: str, cores: str, hosts: str) -> None:
    path = os.path.join(folder, f"{name}.sock")
    if cores:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that made the host
    kinds = _NEW_NET | _NEW_UTS | _NEW_IPC | _NEW_MOUNTS | _NEW_PID
    _check(_libc.unshare(kinds), "making namespaces")
    ready, tell = os.pipe()
    pid = os.fork()
    if pid != 0:
        os.close(tell)
        os.close(0)
        if os.read(ready, 1):
            print(pid, flush=True)
        os.close(1)
        os.waitpid(pid, 0)
        return
    try:
        _mount_own(name, hosts)
        server = _Server(path)
        os.write(tell, b"1")
        os.close(tell)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.close(null)
        server.serve()
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
        with contextlib.suppress(OSError):
            os.rmdir(folder)  # works for the last host, once the folder is empty


if __name__ == "__main__":
    try:
        _main(*sys.argv[1:5])
    except OSError as error:
        sys.exit(f"{error}")
