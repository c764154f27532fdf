"""Atomic file output: a file is written under a temporary name in its folder, then renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from onehop.error import BadInput

__all__ = ["check_file_target", "make_folder", "unfinished_file", "write_file"]


def _is_stream(target: Path) -> bool:
    """Whether the target is a pipe, a terminal or a device, which must be written directly and not be replaced."""
    return target.exists() and not target.is_file()


def make_folder(folder: Path, what: str) -> None:
    """Make the folder of result files, unless it exists.

    Parameters
    ----------
    folder : Path
        The folder. The folder around it must exist, so that a mistyped path makes none.
    what : str
        Begins the error message, for example the name of an option.

    Raises
    ------
    BadInput
        The folder around it does not exist, the path is a file, or the folder cannot be made.
    """
    if folder.is_dir():
        return
    target = folder.resolve()
    if not target.parent.is_dir():
        raise BadInput(f"{what}: there is no folder {target.parent} to make the folder {target.name} in")
    try:
        folder.mkdir()
    except OSError as error:
        raise BadInput(f"{what}: cannot make the folder {folder}: {error.strerror}") from error


def check_file_target(path: str | Path, what: str) -> None:
    """Check before a long computation that its result can be written.

    Parameters
    ----------
    path : path
        The file to be written.
    what : str
        Begins the error message, for example the name of an option.

    Raises
    ------
    BadInput
        The path is a folder, its folder does not exist, or the file or its folder is not writable.
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
    """Yield a temporary path to write to; rename it to `path` when the block ends without an exception.

    Symbolic links are followed. A replaced file passes its permissions on. After an exception the temporary file is
    removed. For a pipe or device the path itself is yielded.

    Raises
    ------
    OSError
        The temporary file cannot be flushed to disk or renamed.
    """
    target = Path(path).resolve()
    if _is_stream(target):
        yield target
        return
    unfinished = target.with_name(f".unfinished-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())  # a full disk may show only here
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
        unfinished.replace(target)
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)


def write_file(path: str | Path, data: bytes | str, what: str) -> None:
    """Write a file. If writing fails, an existing file stays as it was.

    Parameters
    ----------
    path : path
        The file.
    data : bytes or str
        The contents; text is encoded as UTF-8.
    what : str
        Names the contents in an error message, for example "the plot".

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
