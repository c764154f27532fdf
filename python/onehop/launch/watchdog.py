"""A small process that kills the ranks and their children if the launcher itself is killed."""

from __future__ import annotations

import contextlib
import os
import signal


def kill_group(group: int, number: int) -> None:
    """Send a signal to a process group, if it still exists."""
    with contextlib.suppress(OSError):  # it has ended, is protected, or a sandbox refuses kill
        os.killpg(group, number)


class Watchdog:
    """Kills the process groups of the ranks when the pipe to the launcher closes."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.close(self._writing)
                self._watch(reading)
            finally:
                os._exit(0)
        os.close(reading)

    def started(self, group: int) -> None:
        """Add a process group to those that are killed with the launcher."""
        os.write(self._writing, b"+%d\n" % group)

    def ended(self, group: int) -> None:
        """Forget this process group."""
        os.write(self._writing, b"-%d\n" % group)

    def close(self) -> None:
        """End the watchdog, which kills the process groups that have not ended."""
        os.close(self._writing)
        with contextlib.suppress(ChildProcessError):  # a program that ignores SIGCHLD
            os.waitpid(self._pid, 0)

    @staticmethod
    def _watch(reading: int) -> None:
        with contextlib.suppress(
            OSError
        ):  # then a signal to the launcher's process group reaches it, which is ignored
            os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(OSError):
                signal.signal(number, signal.SIG_IGN)
        with contextlib.suppress(OSError):  # then it holds the launcher's streams open until it ends
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
        groups = set()
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
        for group in groups:
            kill_group(group, signal.SIGKILL)
