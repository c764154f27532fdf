"""How much memory a rank has held, memory that ranks share counted once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from os import stat_result
from pathlib import Path

from onehop.group import Group

__all__ = ["MemoryUse"]


class MemoryUse:
    """What this process holds, and the most it has held since this object was made.

    Ranks map each other's arrays, so the resident set of each counts pages that belong to others. Here shared memory
    counts with the rank that made it, all of it, and is left out where it is another's. Everything else counts as it
    is: the interpreter, libraries, tables, buffers. Tables of pages, which the kernel keeps, do not (1/512 of what is
    mapped).

    Attributes
    ----------
    before : int
        Bytes held when this object was made: the program without a state.
    """

    def __init__(self) -> None:
        _forget_peak()
        status = _status()
        self.before = status["RssAnon"] + status["RssFile"] + _own_shared()

    def peak(self) -> int:
        """Bytes at most since then; states of the run must still be there."""
        status = _status()
        now = status["RssAnon"] + status["RssFile"]
        # The largest resident set was with all the shared memory that is mapped now, or is no larger than this.
        return max(now, status["VmHWM"] - status["RssShmem"]) + _own_shared()

    def report(self, group: Group) -> dict[str, int]:
        """The largest of all ranks, for a report. Collective."""
        mine = f"{self.peak()} {self.before}".encode()
        peaks, before = zip(*(map(int, one.split()) for one in group.allgather(mine)), strict=True)
        return {"peak_memory_per_rank": max(peaks), "program_memory_per_rank": max(before)}


def _forget_peak() -> None:
    """Let the kernel's peak begin anew; where it cannot, it is the peak since the program began."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _status() -> dict[str, int]:
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return {line[0][:-1]: int(line[1]) * 1024 for line in lines if line[0].startswith(("VmHWM", "Rss"))}


def _own_shared() -> int:
    """Bytes of memory in the shared arrays that this process has made: it keeps no file of others' open."""
    return sum({one.st_ino: one.st_blocks * 512 for one in _memory_files()}.values())


def _memory_files() -> Iterator[stat_result]:
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            if str(descriptor.readlink()).startswith("/memfd:onehop"):
                yield descriptor.stat()
        except OSError:  # the folder's own descriptor is closed by now
            continue
