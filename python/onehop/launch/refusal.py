"""What the system refuses to a program that is at one of its limits, and what helps."""

from __future__ import annotations

import errno

__all__ = ["reason_of", "remedy_of"]

_REMEDIES = {
    errno.EMFILE: "raise the limit on open files (`ulimit -n`)",
    errno.ENFILE: "all programs of this machine together have too many open files; end some",
    errno.EAGAIN: "end other processes, or raise the limit on processes (`ulimit -u`)",
    errno.ENOMEM: "free memory, or raise the limit on it (`ulimit -v`)",
}


def remedy_of(error: BaseException) -> str | None:
    """Return what helps if the system refused files, processes or memory, and None for any other error."""
    if isinstance(error, MemoryError):
        return _REMEDIES[errno.ENOMEM]
    return _REMEDIES.get(error.errno or 0) if isinstance(error, OSError) else None


def reason_of(error: BaseException) -> str:
    """Return what the system said, without the number of the error."""
    return getattr(error, "strerror", None) or str(error) or "out of memory"
