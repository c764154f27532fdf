"""What stands before the links: one function per format, which returns None for files of another."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from onehop.error import BadInput
from onehop.lattice.files.layout import Layout
from onehop.lattice.files.lime import Record, is_lime, records

MILC_MAGIC = 20103
MILC_HEADER = 96


def _check_extents(path: str, extents: tuple[int, ...]) -> tuple[int, ...]:
    if len(extents) != 4 or min(extents) < 1 or np.prod([float(one) for one in extents]) > 2**40:
        raise BadInput(
            f"{path}: expected four extents of 1 or more in its header, found {extents}; it was altered"
        )
    return extents


def milc(path: str, start: bytes) -> Layout | None:
    """MILC version 5: a binary header in either order of bytes, single precision."""
    for order in "<>":
        if len(start) < 4 or struct.unpack(f"{order}i", start[:4])[0] != MILC_MAGIC:
            continue
        if len(start) < MILC_HEADER:
            raise BadInput(
                f"{path} is cut off: expected a header of {MILC_HEADER} bytes (milc), found {len(start)}"
            )
        extents = struct.unpack(f"{order}4i", start[4:20])
        site_order, sum29, sum31 = struct.unpack(f"{order}iII", start[84:96])
        if site_order != 0:
            raise BadInput(
                f"{path}: expected sites in natural order (0), found order {site_order}; convert it with MILC"
            )
        checksums = {"sum29": sum29, "sum31": sum31}
        dtype = np.dtype(f"{order}f4")
        return Layout(path, "milc", _check_extents(path, extents), MILC_HEADER, dtype, 3, checksums)
    return None


def nersc(path: str, start: bytes) -> Layout | None:
    """NERSC: a header of text lines, two or three rows, single or double precision."""
    if not start.startswith(b"BEGIN_HEADER"):
        return None
    with Path(path).open("rb") as file:
        text = file.read(1 << 20)
    end = re.search(rb"END_HEADER[ \t]*\r?\n", text)
    if end is None:
        raise BadInput(f"{path} is cut off: expected END_HEADER (nersc), found none")
    lines = text[: end.start()].decode("latin-1").splitlines()
    values = {
        key.strip(): value.strip() for key, equals, value in (line.partition("=") for line in lines) if equals
    }
    try:
        extents = tuple(int(values[f"DIMENSION_{d}"]) for d in (1, 2, 3, 4))
        kind, point = values["DATATYPE"], values["FLOATING_POINT"]
        checksums = {"checksum": int(values["CHECKSUM"], 16)} if "CHECKSUM" in values else {}
        plaquette, trace = (
            float(values[name]) if name in values else None for name in ("PLAQUETTE", "LINK_TRACE")
        )
    except (KeyError, ValueError) as error:
        raise BadInput(
            f"{path}: expected a NERSC header, found one without a usable {error}; it was altered"
        ) from error
    rows = {"4D_SU3_GAUGE": 2, "4D_SU3_GAUGE_3x3": 3, "4D_SU3_GAUGE_3X3": 3}.get(kind)
    dtype = re.fullmatch(r"IEEE(32|64)(BIG|LITTLE)?", point)
    if rows is None or dtype is None:
        raise BadInput(
            f"{path}: expected DATATYPE 4D_SU3_GAUGE or 4D_SU3_GAUGE_3x3 and FLOATING_POINT IEEE32 or IEEE64, BIG or "
            f"LITTLE, found {kind}, {point}"
        )
    numbers = np.dtype(f"{'<' if dtype[2] == 'LITTLE' else '>'}f{int(dtype[1]) // 8}")
    return Layout(
        path, "nersc", _check_extents(path, extents), end.end(), numbers, rows, checksums, plaquette, trace
    )


def tag(text: str, name: str) -> str | None:
    """The text of an XML element, or nothing."""
    found = re.search(rf"<(?:\w+:)?{name}\b[^>]*>\s*([^<]*?)\s*</", text)
    return None if found is None else found[1]


def text_of(path: str, record: Record | None) -> str:
    """The bytes of a record, as text."""
    if record is None:
        return ""
    with Path(path).open("rb") as file:
        file.seek(record.offset)
        return file.read(min(record.length, 1 << 20)).decode("latin-1")


def _only(path: str, text: str, name: str) -> str:
    found = tag(text, name)
    if found is None:
        raise BadInput(f"{path}: expected <{name}> in its header, found none; it was altered")
    return found


def lime(path: str, start: bytes) -> Layout | None:
    """ILDG and SciDAC: LIME records, the numbers in big-endian order."""
    if not is_lime(start):
        return None
    found: dict[str, Record] = {}
    for record in records(path):
        found.setdefault(record.name, record)
    checksum = text_of(path, found.get("scidac-checksum"))
    checksums = {
        name: int(value, 16) for name in ("suma", "sumb") if (value := tag(checksum, name)) is not None
    }
    private = text_of(path, found.get("scidac-private-record-xml"))
    try:
        if "ildg-binary-data" in found:
            text = text_of(path, found.get("ildg-format"))
            extents = tuple(int(_only(path, text, name)) for name in ("lx", "ly", "lz", "lt"))
            bits = int(_only(path, text, "precision"))
            data, name = found["ildg-binary-data"], "ildg"
        elif "scidac-binary-data" in found:
            text = text_of(path, found.get("scidac-private-file-xml"))
            extents = tuple(int(one) for one in _only(path, text, "dims").split())
            bits = {"F": 32, "D": 64}[_only(path, private, "precision")]
            if int(_only(path, private, "datacount")) != 4 or _only(path, private, "colors") != "3":
                raise BadInput(
                    f"{path}: expected four matrices of three colours a site, found another field (scidac)"
                )
            data, name = found["scidac-binary-data"], "scidac"
        else:
            raise BadInput(
                f"{path}: expected a LIME record ildg-binary-data or scidac-binary-data, "
                f"found {', '.join(found) or 'none'}"
            )
    except (KeyError, ValueError) as error:
        raise BadInput(f"{path}: expected numbers in its header, found {error}; it was altered") from error
    if bits not in (32, 64):
        raise BadInput(f"{path}: expected a precision of 32 or 64 bits, found {bits}")
    layout = Layout(
        path, name, _check_extents(path, extents), data.offset, np.dtype(f">f{bits // 8}"), 3, checksums
    )
    if data.length != layout.bytes_needed - data.offset:
        raise BadInput(
            f"{path}: expected {layout.bytes_needed - data.offset} bytes of links for a lattice of "
            f"{'x'.join(map(str, extents))} ({name}), found a record of {data.length}"
        )
    return layout


class OpenQcdLayout(Layout):
    """openQCD's: the eight links around every odd point, t slowest and z fastest, time as the first direction."""

    def raw_block(self, slices: Any) -> Any:
        """The numbers of a block, sorted by their sites."""
        x, y, z, t = self.extents
        sites = np.indices((t, x, y, z)).reshape(4, -1)
        odd = sites[:, sites.sum(axis=0) % 2 == 1]
        shape = (odd.shape[1], 8, 3, 3, 2)
        stored = np.memmap(self.path, self.dtype, "r", self.offset, shape)
        links = np.empty((t, z, y, x, 4, 3, 3, 2), self.dtype)
        for direction, here in enumerate((3, 0, 1, 2)):  # theirs are t, x, y, z
            for backward in (0, 1):
                at = odd.copy()
                at[direction] = (at[direction] - backward) % (t, x, y, z)[direction]
                links[at[0], at[3], at[2], at[1], here] = stored[:, 2 * direction + backward]
        return np.array(links[tuple(slices)])


def openqcd(path: str, start: bytes) -> Layout | None:
    """openQCD: four extents, the plaquette as a trace of 3, double precision in little-endian order, without a mark."""
    if len(start) < 24:
        return None
    t, x, y, z = struct.unpack("<4i", start[:16])
    (plaquette,) = struct.unpack("<d", start[16:24])
    length = Path(path).stat().st_size
    if min(t, x, y, z) < 1 or max(t, x, y, z) > 1 << 16 or t * x * y * z % 2 or not -3 <= plaquette <= 3:
        return None
    layout = OpenQcdLayout(path, "openqcd", (x, y, z, t), 24, np.dtype("<f8"), plaquette=plaquette / 3)
    return layout if length <= layout.bytes_needed and length > 24 else None


HEADERS: tuple[Callable[[str, bytes], Layout | None], ...] = (milc, nersc, lime, openqcd)


def read_header(path: str) -> Layout:
    """What a file says about itself.

    Raises
    ------
    BadInput
        There is no such file, it is of no known format, or its header makes no sense.
    """
    try:
        with Path(path).open("rb") as file:
            start = file.read(MILC_HEADER)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    for header in HEADERS:
        layout = header(path, start)
        if layout is not None:
            layout.check_length()
            return layout
    raise BadInput(
        f"{path} is of no format known here: expected MILC version 5, NERSC, ILDG or SciDAC (LIME), or openQCD, "
        f"found a file that begins with {start[:8].hex(' ') or 'nothing'}"
    )
