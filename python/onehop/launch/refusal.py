"""What the system refuses to a program that is at one of its limits, and what helps."""

from __future__ import annotations

import errno

_REMEDIES = {
    errno.EMFILE: "raise the limit on open files (`ulimit -n`)",
    errno.ENFILE: "all programs of this machine together have too many open files; end some",
    errno.EAGAIN: "end other processes, or raise the limit on processes (`ulimit -u`)",
    errno.ENOMEM: "free memory, or raise the limit on it (`ulimit -v`)",
}
# Messages of the loader of shared libraries, which Python passes on as the text of an ImportError.
_LOADER = {
    "failed to map segment from shared object": errno.ENOMEM,
    "Cannot allocate memory": errno.ENOMEM,
    "cannot allocate memory": errno.ENOMEM,
    "Too many open files": errno.EMFILE,
}


def _of_loader(error: BaseException) -> str | None:
    """Return the words of the loader if it was refused something."""
    text = str(error) if isinstance(error, ImportError) else ""
    return next((words for words in _LOADER if words in text), None)


def remedy_of(error: BaseException) -> str | None:
    """Return what helps if the system refused files, processes or memory, and None for any other error."""
    if isinstance(error, MemoryError):
        return _REMEDIES[errno.ENOMEM]
    if words := _of_loader(error):
        return _REMEDIES[_LOADER[words]]
    return _REMEDIES.get(error.errno or 0) if isinstance(error, OSError) else None


def reason_of(error: BaseException) -> str:
    """Return what the system said, without the number of the error."""
    if words := _of_loader(error):
        return f"a library could not be loaded: {words}"
    return getattr(error, "strerror", None) or str(error) or "out of memory"
