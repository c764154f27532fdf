"""Atomic file output: a file is written under a temporary name in its folder, then renamed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from onehop.error import BadInput, WrongType
from onehop.place import Place, find_place, refuse_trap


def file_path(value: Any, name: str) -> Path:
    """Return a path that an argument names. Raises WrongType if it is none; `name` begins the error."""
    if isinstance(value, str | os.PathLike):
        path = Path(value)
        if "\0" in str(path) or re.search("[\ud800-\udc7f\udd00-\udfff]", str(path)):
            raise BadInput(f"{name}: expected a path, found {str(path)!r:.60}, which no file can have")
        return path
    raise WrongType(f"{name}: expected a path, found {value!r:.60}")


def open_descriptor(path: str | Path) -> int | None:
    """Return the number of an open file of this process that a path names, for example 1 for /dev/stdout.

    Such a file is continued. Replacing it would lose what a log held before: `onehop ... --json /dev/stdout >> log`.
    """
    named = {"/dev/stdout": 1, "/dev/stderr": 2}.get(str(path))
    found = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]{1,9})", str(path))
    return int(found[1]) if found else named


@contextlib.contextmanager
def _continued(number: int) -> Iterator[BinaryIO]:
    """Yield a file in memory; write its contents to an open file when the block ends."""
    kept = io.BytesIO()
    yield kept
    sys.stdout.flush()
    rest = kept.getbuffer()
    while rest:
        rest = rest[os.write(number, rest) :]


def check_name(path: str | Path, begin: str) -> Path:
    """Return the place that a path names, with symbolic links followed, whether there is something or not.

    Raises BadInput, which begins with `begin`, if the system refuses the name, if a link on the way may be a trap
    (`find_place`), or if it is -, which other options take for standard output.
    """
    if str(file_path(path, begin)) == "-":
        raise BadInput(
            f"{begin}: expected the name of a file, found '-'; standard output is /dev/stdout, a file of this name ./-"
        )
    try:
        with find_place(path) as place:
            return place.path()
    except (FileNotFoundError, NotADirectoryError):
        return Path(path)
    except (OSError, ValueError) as error:
        name = str(path) if len(str(path)) < 200 else f"{str(path)[:100]}..."
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{begin}: {name} cannot be written: {reason}; give another name") from error


def make_folder(folder: Path, what: str) -> None:
    """Make the folder of result files, unless it exists. Raises BadInput, which begins with `what`.

    The folder around it must exist, so that a mistyped path makes none.
    """
    target = check_name(folder, what)
    if target.is_dir():
        return
    if not target.parent.is_dir():
        raise BadInput(f"{what}: there is no folder {target.parent} to make the folder {target.name} in")
    try:
        with find_place(folder) as place:
            os.mkdir(place.name, dir_fd=place.folder)
    except OSError as error:
        raise BadInput(f"{what}: cannot make the folder {folder}: {error.strerror}") from error


def check_file_target(path: str | Path, what: str, *, replaces: bool = False) -> None:
    """Check before a long computation that its result can be written. Raises BadInput, which begins with `what`.

    With `replaces`, the result is a new regular file in place of what may be there.
    """
    target = check_name(path, what)
    if target.is_dir():
        raise BadInput(f"{what}: expected a file to write to, found the folder {path}")
    if replaces and (open_descriptor(path) is not None or (target.exists() and not target.is_file())):
        raise BadInput(f"{what}: {path} is no regular file; give another name")
    if open_descriptor(path) is not None:
        return
    if target.exists() and not target.is_file():  # a pipe or device
        _check_pipe(path, what)
        if not os.access(target, os.W_OK):
            raise BadInput(f"{what}: {path} cannot be written: permission denied")
        return
    if not target.parent.is_dir():
        raise BadInput(f"{what}: there is no folder {target.parent} to write {target.name} to")
    if not replaces and target.exists() and not os.access(target, os.W_OK):
        raise BadInput(f"{what}: {path} cannot be written: permission denied")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise BadInput(
            f"{what}: {path} cannot be written: permission denied in the folder {target.parent}; "
            "give a name in another folder"
        )


def _check_pipe(path: str | Path, what: str) -> None:
    try:
        with find_place(path) as place:
            found = place.stat()
            if found is not None and stat.S_ISFIFO(found.st_mode):
                refuse_trap(place, found, "the pipe")
    except OSError as error:
        raise BadInput(f"{what}: {path} cannot be written: {error.strerror}; give another name") from error


def _prefix() -> str:
    """How the names of temporary files of this machine begin."""
    return f".unfinished-{re.sub('[^A-Za-z0-9.-]', '_', os.uname().nodename)}-"


def _sweep(place: Place) -> None:
    """Remove temporary files of this machine whose writers were killed: nobody holds their locks any more."""
    pattern = re.compile(re.escape(_prefix()) + r"\d+-[0-9a-f]{8}")
    with contextlib.suppress(OSError):
        folder = place.open(os.O_RDONLY | os.O_DIRECTORY, ".")
        try:
            for name in filter(pattern.fullmatch, os.listdir(folder)):  # noqa: PTH208, a descriptor
                with contextlib.suppress(OSError):
                    _remove_abandoned(place, name)
        finally:
            os.close(folder)


def _remove_abandoned(place: Place, name: str) -> None:
    handle = place.open(os.O_RDONLY | os.O_NONBLOCK, name)
    try:
        found = os.fstat(handle)
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if its writer lives
            os.unlink(name, dir_fd=place.folder)
    finally:
        os.close(handle)


def _create_locked(place: Place) -> tuple[str, BinaryIO]:
    """Create a temporary file beside an output. The lock shows other writers that this process lives."""
    while True:
        name = f"{_prefix()}{os.getpid()}-{secrets.token_hex(4)}"
        file = os.fdopen(place.open(os.O_RDWR | os.O_CREAT | os.O_EXCL, name), "r+b")
        with contextlib.suppress(OSError):  # a file system without locks, where nobody can sweep either
            fcntl.flock(file, fcntl.LOCK_EX)
        if Place(place.folder, name).stat() is not None:  # else a writer has swept it before it was locked
            return name, file
        file.close()


def _open_stream(place: Place) -> int:
    """Open what is no regular file, such as a pipe, through a descriptor of it, so that it stays the same."""
    opened = place.open(os.O_PATH)
    try:
        found = os.fstat(opened)
        if stat.S_ISFIFO(found.st_mode):
            refuse_trap(place, found, "the pipe")
        name, flags = f"/proc/self/fd/{opened}", os.O_WRONLY | os.O_CLOEXEC
        try:
            number = os.open(name, flags | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            print(
                f"onehop: waiting for a program that reads the pipe {place.name}", file=sys.stderr, flush=True
            )
            number = os.open(name, flags)
        os.set_blocking(number, True)
        return number
    finally:
        os.close(opened)


def open_new(place: Place) -> int:
    """Open an output that is written as it comes, not when it is complete: a new file, or the pipe or device there.

    A regular file is replaced rather than emptied, because another user may have given it a second name.
    """
    found = place.stat()
    if found is not None and not stat.S_ISREG(found.st_mode):
        return _open_stream(place)
    if found is not None:
        os.unlink(place.name, dir_fd=place.folder)
    number = place.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
    if found is not None:
        _pass_permissions(found, number)
    return number


@contextlib.contextmanager
def unfinished_file(path: str | Path, *, make_parents: bool = False) -> Iterator[BinaryIO]:
    """Yield an empty temporary file; rename it to `path` when the block ends without an exception.

    Symbolic links are followed, as `find_place` does. A replaced file passes its permissions on. After an exception the
    temporary file is removed. If the process is killed, the temporary file stays until the next output in the same
    folder, from the same machine. A pipe or device is written directly. What is meant for /dev/stdout and the like is
    written to the open file. Raises OSError.
    """
    number = open_descriptor(path)
    if number is not None:
        with _continued(number) as file:
            yield file
        return
    with find_place(path, make_parents=make_parents) as place:
        found = place.stat()
        if found is not None and not stat.S_ISREG(found.st_mode):
            with os.fdopen(_open_stream(place), "wb") as file:
                yield file
            return
        _sweep(place)
        name, file = _create_locked(place)
        try:
            yield file
            file.flush()
            if found is not None:
                _pass_permissions(found, file.fileno())
            os.fsync(file.fileno())  # a full disk may show only here
            os.rename(name, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            _flush_folder(place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=place.folder)
            raise
        finally:
            with contextlib.suppress(OSError):  # its last bytes, after an exception
                file.close()


def _pass_permissions(replaced: os.stat_result, handle: int) -> None:
    """Give a new file the permissions of the one that it replaces; of another user's only those it has itself."""
    mode = stat.S_IMODE(replaced.st_mode) & 0o777
    if replaced.st_uid != os.geteuid():
        mode &= os.fstat(handle).st_mode
    os.fchmod(handle, mode)


def _flush_folder(place: Place) -> None:
    """Wait until the new name of a file is on the disk, where the folder can be read and its file system can do it."""
    with contextlib.suppress(OSError):
        folder = place.open(os.O_RDONLY | os.O_DIRECTORY, ".")
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def open_unfinished(path: str | Path, name: str, owner: int) -> int:
    """Open the temporary file that another process of user `owner` has made for an output, to write a part of it.

    `path` is the output, `name` that of the temporary file beside it. Raises OSError if it cannot be opened, or if
    another file has taken its name.
    """
    with find_place(path) as place:
        opened = place.open(os.O_WRONLY | os.O_NONBLOCK, name)
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != owner or found.st_nlink != 1:
        os.close(opened)
        raise FileNotFoundError(errno.ENOENT, "another file has taken the name of the temporary file")
    return opened


def remove_output(path: str | Path) -> None:
    """Remove an output, if it is there; links are followed as for writing it. Raises OSError."""
    with find_place(path) as place, contextlib.suppress(FileNotFoundError):
        os.unlink(place.name, dir_fd=place.folder)


def write_file(path: str | Path, data: bytes | str, what: str, *, make_parents: bool = False) -> None:
    """Write a file; text is encoded as UTF-8. If writing fails, an existing file stays as it was.

    `what` names the contents in the BadInput of a file that cannot be written, for example "the plot".
    """
    raw = data.encode() if isinstance(data, str) else data
    check_name(path, f"cannot write {what}")
    try:
        with unfinished_file(path, make_parents=make_parents) as file:
            file.write(raw)
    except (OSError, ValueError) as error:
        advice = (
            "; give a name in another folder"
            if getattr(error, "errno", None) in (errno.EACCES, errno.EROFS)
            else ""
        )
        raise BadInput(
            f"cannot write {what} to {path}: {getattr(error, 'strerror', None) or error}{advice}"
        ) from error


def date_text(form: str) -> str:
    """The date of a file that is being written, formatted by `time.strftime`.

    SOURCE_DATE_EPOCH in the environment, a number of seconds since 1970, sets it; with 0 the text is empty. Equal data
    then give equal files. Raises BadInput if it is no such number.
    """
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    try:
        seconds = int(text) if text else None
        if seconds is not None and seconds < 0:
            raise ValueError
        return "" if seconds == 0 else time.strftime(form, time.gmtime(seconds))
    except (ValueError, OverflowError, OSError):
        raise BadInput(
            f"SOURCE_DATE_EPOCH: expected a whole number of seconds since 1970, 0 or more, found {text!r}"
        ) from None
