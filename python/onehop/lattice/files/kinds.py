"""Names of files that are no lattice fields, for error messages: what they are, and what to do with them."""

from __future__ import annotations

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
