"""Find where an output goes: its folder, which is opened one step at a time, and its name there.

In a folder where other users may write, they could put a link to any file of this user, and exchange a folder between
a check and its use. So every step is opened without following links, every link is judged before it is followed, and
the output is made, renamed and removed through the descriptor of its folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from onehop.error import Error

_MOST_LINKS = 40  # as many as Linux follows


class Place:
    """A name in an open folder, which need not exist. It is a context manager that closes the folder.

    `folder` is the descriptor of the folder, for the arguments `dir_fd`.
    """

    def __init__(self, folder: int, name: str) -> None:
        self.folder = folder
        self.name = name

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.folder)

    def path(self) -> Path:
        """Return the path without links, for messages and early checks."""
        return Path(f"/proc/self/fd/{self.folder}").readlink() / self.name

    def stat(self) -> os.stat_result | None:
        """Describe what has the name; None if nothing has."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, flags: int, name: str | None = None, mode: int = 0o666) -> int:
        """Open this name, or another one in the folder, without following a link."""
        name = self.name if name is None else name
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=self.folder)


def refuse_trap(place: Place, found: os.stat_result, kind: str) -> None:
    """Raise PermissionError for a link or pipe that another user may have put there to mislead this one.

    In a folder of a group, which not every user can write, an ordinary user follows links of colleagues. Root follows
    its own links in its own folders only. `kind` names in the message what is there.
    """
    folder = os.fstat(place.folder)
    is_stranger = found.st_uid not in _trusted_users()
    strict = os.geteuid() == 0 or folder.st_mode & stat.S_IWOTH
    path = place.path()
    if is_stranger and strict:
        reason = f"belongs to user {found.st_uid}"
    elif not (why := distrust_of(folder)):
        return
    else:
        reason = f"lies in {path.parent}, {why}"
    raise PermissionError(errno.EACCES, f"{kind} {path} {reason}")


def distrust_of(folder: os.stat_result) -> str:
    """Say why another user may exchange what this user has put into a folder; "" if none can but its own group."""
    open_to_all = folder.st_mode & stat.S_IWOTH
    if open_to_all and not folder.st_mode & stat.S_ISVTX:
        return "where every user may rename files"
    if folder.st_uid not in _trusted_users() and (open_to_all or os.geteuid() == 0):
        return f"which belongs to user {folder.st_uid}"
    return ""


def _trusted_users() -> set[int]:
    """Return this user, root, and the number that stands for root if this user namespace has no number for it.

    In a container of Apptainer, for example, what belongs to root of the host seems to belong to user 65534.
    """
    users = {os.geteuid(), 0}
    with contextlib.suppress(OSError, ValueError):
        stand_in = int(Path("/proc/sys/kernel/overflowuid").read_text())
        ranges = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
        if not any(int(first) <= stand_in < int(first) + int(count) for first, _, count in ranges):
            users.add(stand_in)
    return users


def _open_step(folder: int, name: str) -> int:
    """Open what has a name in a folder, whatever it is, without following a link."""
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags | os.O_DIRECTORY, dir_fd=folder)  # also mounts what is mounted on demand
    except NotADirectoryError:
        return os.open(name, flags, dir_fd=folder)


def find_place(path: str | Path, *, make_parents: bool = False) -> Place:
    """Open the folder that a path leads to, with symbolic links followed, and return the place, which need not exist.

    Raises PermissionError if the path leads through a link that another user may have put there to mislead this one,
    and OSError if a folder on the way does not exist or cannot be entered, or if links form a circle.
    """
    steps = list(reversed(Path(path).parts)) or ["."]
    links = 0
    folder = os.open("/" if steps[-1] == "/" else ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while True:
            place = Place(folder, steps.pop())
            try:
                opened = _open_step(folder, place.name)
            except FileNotFoundError:
                if not steps:
                    return place
                if not make_parents:
                    raise
                with contextlib.suppress(FileExistsError):
                    os.mkdir(place.name, dir_fd=folder)
                steps.append(place.name)
                continue
            try:
                found = os.fstat(opened)
                if stat.S_ISLNK(found.st_mode):
                    refuse_trap(place, found, "the link")
                    links += 1
                    if links > _MOST_LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                    steps += reversed(Path(os.readlink("", dir_fd=opened)).parts)
                elif not steps:
                    return place
                else:
                    folder, opened = opened, folder
            finally:
                os.close(opened)
    except BaseException:
        os.close(folder)
        raise


@contextlib.contextmanager
def private_folder(prefix: str, within: str | None = None) -> Iterator[Path]:
    """Make a temporary folder that no other user can enter or exchange, and remove it when the block ends.

    It lies in `within`, by default the system's folder for temporary files. Raises Error if that folder, or one above,
    lets another user exchange it.
    """
    import tempfile

    around = Path(within or tempfile.gettempdir()).resolve()
    for folder in (around, *around.parents):
        if why := distrust_of(folder.stat()):
            raise Error(
                f"expected a folder for temporary files that other users cannot exchange, found {folder}, {why}; set "
                "TMPDIR to a folder of your own"
            )
    with tempfile.TemporaryDirectory(prefix=prefix, dir=around) as name:
        yield Path(name)
