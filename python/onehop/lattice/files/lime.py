"""LIME files: records with a big-endian header of 144 bytes, padded to multiples of 8 bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onehop.arguments import quoted
from onehop.error import BadInput
from onehop.lattice.files.blocks import open_file
from onehop.output import date_text

MAGIC = 0x456789AB
_HEADER = struct.Struct(">IHHQ128s")
_BEGIN, _END = 0x8000, 0x4000  # flags of the first and last record of a message


@dataclass(frozen=True)
class Record:
    """A record: its type, and offset and length of its data in bytes."""

    name: str
    offset: int
    length: int


def is_lime(start: bytes) -> bool:
    """Whether a file that begins with these bytes is a LIME file."""
    return len(start) >= 4 and struct.unpack(">I", start[:4])[0] == MAGIC


def records(path: str) -> Iterator[Record]:
    """Yield all records of a file. Raises BadInput where it is cut off, or other bytes stand in place of a record."""
    size = Path(path).stat().st_size
    at = 0
    with open_file(path) as file:
        while at < size:
            file.seek(at)
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                raise BadInput(
                    f"{path} is cut off: expected a LIME record at byte {at}, found the end; copy it again"
                )
            magic, _version, _flags, length, name = _HEADER.unpack(header)
            if magic != MAGIC:
                raise BadInput(
                    f"{path}: expected a LIME record at byte {at}, found {header[:4].hex(' ')}; it was altered"
                )
            offset = at + _HEADER.size
            name = name.split(b"\0", 1)[0]  # what follows is padding
            if not name:
                raise BadInput(
                    f"{path}: expected a LIME record with a name at byte {at}, found none; it was altered"
                )
            record = Record(name.decode("latin-1"), offset, length)
            if offset + length > size:
                raise BadInput(
                    f"{path} is cut off: expected {length} bytes in the LIME record {record.name} at byte {offset}, "
                    f"found {size - offset}; copy it again"
                )
            yield record
            at = offset + (length + 7) // 8 * 8


def pack(messages: Sequence[Sequence[tuple[str, bytes]]]) -> bytes:
    """Return the bytes of a file of messages, each a sequence of records (type, data)."""
    parts = []
    for message in messages:
        for number, (name, data) in enumerate(message):
            flags = (_BEGIN if number == 0 else 0) | (_END if number + 1 == len(message) else 0)
            parts.append(_HEADER.pack(MAGIC, 1, flags, len(data), name.encode()))
            parts.append(data + b"\0" * (-len(data) % 8))
    return b"".join(parts)


def xml(name: str, text: str) -> tuple[str, bytes]:
    """Return a record of XML."""
    try:
        return name, f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()
    except UnicodeEncodeError as error:
        raise BadInput(
            f"expected a text to store, found half of a character: {quoted(error.object[error.start])}"
        ) from error


def scidac_file(extents: Sequence[int], title: str, about: str = "") -> list[tuple[str, bytes]]:
    """Return the message with which a SciDAC file begins. `about` is XML in place of the title."""
    dims = "".join(f"{extent} " for extent in extents)
    private = (
        f"<scidacFile><version>1.1</version><spacetime>{len(extents)}</spacetime>"
        f"<dims>{dims}</dims><volfmt>0</volfmt></scidacFile>"
    )
    return [
        xml("scidac-private-file-xml", private),
        xml("scidac-file-xml", about or f"<title>{title}</title>"),
    ]


def scidac_record(kind: str, bits: int, numbers: int, count: int) -> tuple[str, bytes]:
    """Return the header of a field of `count` objects at each site, each of so many real numbers."""
    letter = {32: "F", 64: "D"}[bits]
    datatype = f"QLA_{letter}_Complex" if kind == "Complex" else f"USQCD_{letter}3_{kind}"
    colours = "" if kind == "Complex" else "<colors>3</colors>"
    spins = "<spins>4</spins>" if kind.startswith("Dirac") else ""
    return xml(
        "scidac-private-record-xml",
        "<scidacRecord><version>1.1</version>"
        f"<date>{date_text('%a %b %d %H:%M:%S %Y UTC')}</date><recordtype>0</recordtype>"
        f"<datatype>{datatype}</datatype><precision>{letter}</precision>{colours}{spins}"
        f"<typesize>{numbers * bits // 8}</typesize><datacount>{count}</datacount></scidacRecord>",
    )


def scidac_checksum(suma: int, sumb: int) -> tuple[str, bytes]:
    """Return the record of the two checksums of a field."""
    sums = f"<suma>{suma:x}</suma><sumb>{sumb:x}</sumb>"
    return xml("scidac-checksum", f"<scidacChecksum><version>1.0</version>{sums}</scidacChecksum>")
