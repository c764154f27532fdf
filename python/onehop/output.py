"""Atomic file output: a file is written under a temporary name in its folder, then renamed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from onehop.error import BadInput

__all__ = ["check_file_target", "check_name", "make_folder", "unfinished_file", "write_file"]


def _is_stream(target: Path) -> bool:
    """Whether the target is a pipe, a terminal or a device, which must be written directly and not be replaced."""
    return target.exists() and not target.is_file()


def _followed(path: str | Path) -> Path:
    """Return the place that a path names, with symbolic links followed, unless one may be a trap.

    In a folder where every user may write, such as /tmp, a link of another user could lead to any file of this user.
    Linux refuses to follow it if fs.protected_symlinks is set, but only while it opens a file, not to `realpath`.

    Raises
    ------
    PermissionError
        The path is a link of another user in such a folder.
    """
    link = Path(path)
    for _ in range(40):  # as many as Linux follows
        if not link.is_symlink():
            break
        owner, folder = link.lstat().st_uid, link.parent.stat()
        open_to_all = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
        if open_to_all and owner not in (os.geteuid(), folder.st_uid):
            raise PermissionError(errno.EACCES, f"the link {link} belongs to user {owner}")
        link = link.parent / link.readlink()
    return Path(os.path.realpath(path))


def _descriptor(path: str | Path) -> int | None:
    """Return the number of an open file of this process that a path names, for example 1 for /dev/stdout.

    Such a file is continued. Replacing it would lose what a log held before: `onehop ... --json /dev/stdout >> log`.
    """
    named = {"/dev/stdout": 1, "/dev/stderr": 2}.get(str(path))
    found = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]{1,9})", str(path))
    return int(found[1]) if found else named


@contextlib.contextmanager
def _continued(number: int) -> Iterator[Path]:
    """Yield the path of a temporary file; write its contents to an open file when the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "output"
        place.touch()
        yield place
        sys.stdout.flush()
        rest = memoryview(place.read_bytes())
        while rest:
            rest = rest[os.write(number, rest) :]


def check_name(path: str | Path, begin: str) -> Path:
    """Return the place that a path names, with symbolic links followed, whether there is something or not.

    Parameters
    ----------
    path : path
        The name of a file or folder to be written.
    begin : str
        Begins the error message, for example the name of an option.

    Raises
    ------
    BadInput
        The system refuses the name: it is too long, its links form a circle, or a folder on the way is not accessible.
        Or it is -, which other options take for standard output, or a link of another user in a folder where every user
        may write.
    """
    if str(path) == "-":
        raise BadInput(
            f"{begin}: expected the name of a file, found '-'; standard output is /dev/stdout, a file of this name ./-"
        )
    target = Path(path)
    try:
        target = _followed(path)
        target.stat()
    except (FileNotFoundError, NotADirectoryError):
        return target
    except (OSError, ValueError) as error:
        name = str(path) if len(str(path)) < 200 else f"{str(path)[:100]}..."
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{begin}: {name} cannot be written: {reason}; give another name") from error
    return target


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
    target = check_name(folder, what)
    if target.is_dir():
        return
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
    target = check_name(path, what)
    if target.is_dir():
        raise BadInput(f"{what}: expected a file to write to, found the folder {path}")
    if _descriptor(path) is not None:
        return
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


def _prefix() -> str:
    """How the names of temporary files of this machine begin."""
    return f".unfinished-{re.sub('[^A-Za-z0-9.-]', '_', os.uname().nodename)}-"


def _sweep(folder: Path) -> None:
    """Remove temporary files of this machine whose writers were killed: nobody holds their locks any more."""
    pattern = re.compile(re.escape(_prefix()) + r"\d+-[0-9a-f]{8}")
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for name in [entry.name for entry in entries if pattern.fullmatch(entry.name)]:
            with contextlib.suppress(OSError):
                _remove_abandoned(folder / name)


def _remove_abandoned(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if its writer lives
            file.unlink()
    finally:
        os.close(handle)


def _create_locked(target: Path) -> tuple[Path, int]:
    """Create a temporary file beside `target`. The lock shows other writers that this process lives."""
    while True:
        file = target.with_name(f"{_prefix()}{os.getpid()}-{secrets.token_hex(4)}")
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):  # a file system without locks, where nobody can sweep either
            fcntl.flock(handle, fcntl.LOCK_EX)
        if file.exists():  # another writer may have swept it before it was locked
            return file, handle
        os.close(handle)


@contextlib.contextmanager
def unfinished_file(path: str | Path) -> Iterator[Path]:
    """Yield the path of an empty temporary file; rename it to `path` when the block ends without an exception.

    Symbolic links are followed. A replaced file passes its permissions on. After an exception the temporary file is
    removed. If the process is killed, the temporary file stays until the next output in the same folder, from the same
    machine. For a pipe or device the path itself is yielded. What is meant for /dev/stdout and the like is written to
    the open file.

    Raises
    ------
    OSError
        The temporary file cannot be created, flushed to disk or renamed, or the path is a link of another user in a
        folder where every user may write.
    """
    number = _descriptor(path)
    if number is not None:
        with _continued(number) as place:
            yield place
        return
    target = _followed(path)
    with contextlib.suppress(FileNotFoundError):
        target.stat()  # raises for links in a circle, which would be replaced
    if _is_stream(target):
        yield target
        return
    _sweep(target.parent)
    unfinished, handle = _create_locked(target)
    try:
        yield unfinished
        os.fsync(handle)  # a full disk may show only here
        if target.exists():
            os.fchmod(handle, stat.S_IMODE(target.stat().st_mode))
        unfinished.replace(target)
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        os.close(handle)


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
    check_name(path, f"cannot write {what}")
    try:
        with unfinished_file(path) as place:
            place.write_bytes(raw)
    except (OSError, ValueError) as error:
        raise BadInput(
            f"cannot write {what} to {path}: {getattr(error, 'strerror', None) or error}"
        ) from error
