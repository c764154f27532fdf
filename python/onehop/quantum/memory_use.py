"""`MemoryUse`: peak memory of a rank, which counts memory that ranks share once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from os import stat_result
from pathlib import Path

from onehop.group import Group


class MemoryUse:
    """Peak memory of this process since the object was made.

    Ranks map each other's arrays, so the resident set of each includes pages of other ranks. This class counts shared
    memory in full for the rank that allocated it, and not for the others. Everything else counts as it is: the
    interpreter, libraries, tables and buffers. Page tables, which the kernel keeps, do not count (1/512 of the mapped
    memory). `before` is the bytes in use when this object was made, that is, by the program without a state.
    """

    def __init__(self) -> None:
        with contextlib.suppress(OSError):  # without it, the peak counts from the start of the program
            Path("/proc/self/clear_refs").write_text("5")
        status = _status()
        self.before = status["RssAnon"] + status["RssFile"] + _own_shared()

    def peak(self) -> int:
        """Return the peak number of bytes. The states of the run must still exist."""
        status = _status()
        now = status["RssAnon"] + status["RssFile"]
        # At its peak the resident set held all the shared memory that is mapped now; otherwise the current value is
        # at least as large.
        return max(now, status["VmHWM"] - status["RssShmem"]) + _own_shared()

    def report(self, group: Group) -> dict[str, int]:
        """Return the largest values of all ranks for a report. Collective."""
        mine = f"{self.peak()} {self.before}".encode()
        peaks, before = zip(*(map(int, one.split()) for one in group.allgather(mine)), strict=True)
        return {"peak_memory_per_rank": max(peaks), "program_memory_per_rank": max(before)}


def _status() -> dict[str, int]:
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return {line[0][:-1]: int(line[1]) * 1024 for line in lines if line[0].startswith(("VmHWM", "Rss"))}


def _own_shared() -> int:
    """Return the bytes of the shared arrays of this process, which keeps only its own files open."""
    return sum({one.st_ino: one.st_blocks * 512 for one in _memory_files()}.values())


def _memory_files() -> Iterator[stat_result]:
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            name = str(descriptor.readlink())
            if name.startswith("/memfd:onehop") or "/onehop-memory-" in name:  # src/group/memory_file.cc
                yield descriptor.stat()
        except OSError:  # the descriptor with which the folder was read is closed by now
            continue
