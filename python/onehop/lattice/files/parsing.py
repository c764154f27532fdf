"""Numbers in the headers of gauge files, which are untrusted input, and names of files that are no lattice fields."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from onehop.error import BadInput
from onehop.lattice.files.layout import HeaderAverage


def check_extents(path: str, extents: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents. Raises BadInput unless there are four, of 1 or more, and at most 2^40 sites."""
    if len(extents) != 4 or min(extents) < 1 or np.prod([float(one) for one in extents]) > 2**40:
        raise BadInput(
            f"{path}: expected four extents of 1 or more in its header, found {extents}; it was altered"
        )
    return extents


def whole_number(path: str, text: str, name: str) -> int:
    """Parse an extent or a count of at most nine decimal digits. Raises BadInput for other text."""
    if re.fullmatch(r"[0-9]{1,9}", text) is None:
        raise BadInput(
            f"{path}: expected a number as {name} in its header, found {text!r:.40}; it was altered"
        )
    return int(text)


def checksum_number(path: str, text: str, name: str) -> int:
    """Parse a 32-bit checksum in hexadecimal digits. Raises BadInput for other text."""
    if re.fullmatch(r"(?:0[xX])?0*[0-9a-fA-F]{1,8}", text) is None:
        raise BadInput(
            f"{path}: expected up to 8 hexadecimal digits as {name} in its header, found {text!r:.40}; it was altered"
        )
    return int(text, 16)


def averages_in(
    found: Iterable[tuple[str, str | None, tuple[float, ...]]],
) -> list[HeaderAverage]:
    """Return the averages of a header, given as name, text and normalisations, without those whose text is None."""
    return [HeaderAverage.of_text(what, text, scales) for what, text, scales in found if text is not None]


ACCEPTED = "accepted checksum: "


def accepted_in(note: str) -> list[str]:
    """Return the wrong checksum that was accepted when the links were first read, if a note tells of one."""
    return [note.removeprefix(ACCEPTED).strip()] if note.startswith(ACCEPTED) else []


_KINDS: tuple[tuple[bytes, str], ...] = (
    (
        b"version https://git-lfs",
        "a Git LFS pointer, which stands for the file; fetch the file itself with `git lfs pull`",
    ),
    (
        b"/annex/objects/",
        "a git-annex pointer, which stands for the file; fetch the file itself with `git annex get`",
    ),
    (b"\x1f\x8b", "a file compressed with gzip; decompress it with `gunzip`"),
    (b"BZh", "a file compressed with bzip2; decompress it with `bunzip2`"),
    (b"\xfd7zXZ\0", "a file compressed with xz; decompress it with `unxz`"),
    (b"\x28\xb5\x2f\xfd", "a file compressed with Zstandard; decompress it with `unzstd`"),
    (b"PK\x03\x04", "a zip archive; unpack it with `unzip`"),
    (
        b"\x89HDF\r\n\x1a\n",
        "an HDF5 file, which onehop does not read as a lattice field; convert it with the program that wrote it",
    ),
    (b"\x93NUMPY", "an array of NumPy; set the links of a Gauge from it and write them with `write_gauge`"),
    (b"<!DOCTYPE", "a web page, perhaps the error of a download; download the file again"),
    (b"<html", "a web page, perhaps the error of a download; download the file again"),
)


def what_it_is(start: bytes) -> str:
    """Describe a file by its first bytes, for a message that ends with "found ..."."""
    if not start:
        return "an empty file; copy it again"
    for magic, what in _KINDS:
        if start[: len(magic)].lower() == magic.lower():
            return what
    if start[257:262] == b"ustar":
        return "a tar archive; unpack it with `tar -xf`"
    if not start.strip(b"\0"):
        return "a file that begins with zeros, perhaps an unfinished copy; copy it again"
    line = start.split(b"\n", 1)[0][:40]
    if len(start) >= 4 and all(byte in b"\t\r" or 32 <= byte < 127 for byte in line):
        return f"a text file that begins with {line.decode()!r}"
    return f"a file that begins with {start[:8].hex(' ')}"
