"""Files that appear whole or not at all: written under another name beside their place, then renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from onehop.error import BadInput

__all__ = ["check_file_target", "unfinished_file", "write_file"]


def _is_stream(target: Path) -> bool:
    """Whether it is a pipe, a terminal or a device, which is written as it is: nothing may be renamed to it."""
    return target.exists() and not target.is_file()


def check_file_target(path: str | Path, what: str) -> None:
    """Find out before the work that a file cannot be written.

    Raises
    ------
    BadInput
        It is a folder; there is no such folder; the file or its folder cannot be written to.
    """
    target = Path(path)
    if target.is_dir():
        raise BadInput(f"{what}: expected a file to write to, found the folder {path}")
    target = target.resolve()
    if _is_stream(target):
        if not os.access(target, os.W_OK):
            raise BadInput(f"{what}: {path} cannot be written: permission denied")
        return
    if not target.parent.is_dir():
        raise BadInput(f"{what}: there is no folder {target.parent} to write {target.name} to")
    if target.exists() and not os.access(target, os.W_OK):
        raise BadInput(f"{what}: {path} cannot be written: permission denied")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise BadInput(f"{what}: {path} cannot be written: permission denied in the folder {target.parent}")


@contextlib.contextmanager
def unfinished_file(path: str | Path) -> Iterator[Path]:
    """Yields the name under which the file is to be written; it gets its own name when the body has ended.

    Links are followed, a file that is replaced hands on its permissions, and nothing is left behind by an error.
    A pipe or device is written as it is.

    Raises
    ------
    OSError
        The file cannot be given its name.
    """
    target = Path(path).resolve()
    if _is_stream(target):
        yield target
        return
    unfinished = target.with_name(f".unfinished-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())  # a full disk may be found out as late as here
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
        unfinished.replace(target)
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)


def write_file(path: str | Path, data: bytes | str, what: str) -> None:
    """Write a whole file, or leave what there was.

    Parameters
    ----------
    what : str
        What is written, for the message of an error: "the plot".

    Raises
    ------
    BadInput
        The file cannot be written.
    """
    raw = data.encode() if isinstance(data, str) else data
    try:
        with unfinished_file(path) as place:
            place.write_bytes(raw)
    except OSError as error:
        raise BadInput(f"cannot write {what} to {path}: {error.strerror or error}") from error
