"""Run a command some of whose system calls fail, as in a sandbox: `refused_calls.py ERRNO NAME,... COMMAND...`."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ranks import Ranks

# The numbers of system calls, by machine.
_NUMBERS = {
    "x86_64": {
        "sched_setaffinity": 203,
        "sched_getaffinity": 204,
        "memfd_create": 319,
        "pidfd_open": 434,
        "membarrier": 324,
        "getrandom": 318,
        "prctl": 157,
        "setpgid": 109,
        "setsid": 112,
        "waitid": 247,
        "madvise": 28,
        "fallocate": 285,
        "ftruncate": 77,
        "socketpair": 53,
        "getpid": 39,
        "getppid": 110,
        "geteuid": 107,
        "uname": 63,
        "socket": 41,
        "bind": 49,
        "setsockopt": 54,
        "wait4": 61,
        "epoll_ctl": 233,
        "ioctl": 16,
        "unlink": 87,
        "unlinkat": 263,
    },
    "aarch64": {
        "sched_setaffinity": 122,
        "sched_getaffinity": 123,
        "memfd_create": 279,
        "pidfd_open": 434,
        "membarrier": 283,
        "getrandom": 278,
        "prctl": 167,
        "setpgid": 154,
        "setsid": 157,
        "waitid": 95,
        "madvise": 233,
        "fallocate": 47,
        "ftruncate": 46,
        "socketpair": 199,
        "getpid": 172,
        "getppid": 173,
        "geteuid": 175,
        "uname": 160,
        "socket": 198,
        "bind": 200,
        "setsockopt": 208,
        "wait4": 260,
        "epoll_ctl": 21,
        "ioctl": 29,
        "unlink": 35,  # the system has only unlinkat
        "unlinkat": 35,
    },
}
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # instructions of a filter
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def refuse(names: list[str], number: int) -> None:
    """Let these system calls fail with this error from now on, here and in all children."""
    calls = _NUMBERS[platform.machine()]
    code = struct.pack("HBBI", _LOAD, 0, 0, 0)
    for name in names:
        code += struct.pack("HBBI", _EQUAL, 0, 1, calls[name])
        code += struct.pack("HBBI", _RETURN, 0, 0, _ERRNO | number)
    code += struct.pack("HBBI", _RETURN, 0, 0, _ALLOW)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(
        _SECCOMP, _FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "this system has no filters of system calls")


def run_with_refused_calls(
    ranks: Ranks, error: str, names: str, program: str
) -> subprocess.CompletedProcess[str]:
    """Run a program on two ranks under `onehop launch`, with these system calls refused to all of them."""
    return run_command(ranks, error, names, "launch", "-n", "2", program)


def run_command(ranks: Ranks, error: str, names: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of onehop with these system calls refused."""
    line = [sys.executable, __file__, error, names, sys.executable, "-m", "onehop", *words]
    return ranks.run(line, cwd=ranks.folder, timeout=60)


if __name__ == "__main__":
    refuse(sys.argv[2].split(","), getattr(errno, sys.argv[1]))
    os.execvp(sys.argv[3], sys.argv[3:])
