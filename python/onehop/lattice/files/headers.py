"""Headers of gauge files: one function per format, which returns None for a file of another format."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.lattice.files.blocks import first_bytes, open_file, read_block
from onehop.lattice.files.layout import HeaderAverage, Layout
from onehop.lattice.files.lime_headers import lime
from onehop.lattice.files.parsing import (
    accepted_in,
    averages_in,
    check_extents,
    checksum_number,
    what_it_is,
    whole_number,
)
from onehop.text import shortened

MILC_MAGIC = 20103
MILC_HEADER = 96
OLDEST_MILC_MAGIC = 59354
NOTE = "NOTE"  # the line of a NERSC header that `write_gauge` puts a note in
RAW_DEVIATION = 1e-2  # of the norm of a row in raw links
_LONGEST_MESSAGE = 500  # characters besides the path


def milc(path: str, start: bytes) -> Layout | None:
    """Read a header of MILC version 5: binary, in either byte order, with links in single precision."""
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
                f"{path}: expected sites in lexicographic order (0), found order {site_order}; convert it with MILC"
            )
        checksums = {"sum29": sum29, "sum31": sum31}
        dtype = np.dtype(f"{order}f4")
        return Layout(path, "milc", check_extents(path, extents), MILC_HEADER, dtype, 3, checksums)
    return None


def oldest_milc(path: str, start: bytes) -> Layout | None:
    """Read a header of MILC versions 1 to 4: a magic number, four extents and two parameters, without a checksum.

    The whole numbers have 32 bits, or 64 bits in the files of a Cray; the links are in single precision.
    """
    for kind in ("<5i2f", ">5i2f", ">5q2f"):
        header = struct.Struct(kind)
        if len(start) >= header.size and header.unpack(start[: header.size])[0] == OLDEST_MILC_MAGIC:
            extents = check_extents(path, header.unpack(start[: header.size])[1:5])
            return Layout(path, "milc-v1", extents, header.size, np.dtype(f"{kind[0]}f4"))
    return None


def nersc(path: str, start: bytes) -> Layout | None:
    """Read a NERSC header: lines of text, for links with two or three rows in single or double precision."""
    if not start.startswith(b"BEGIN_HEADER"):
        return None
    with open_file(path) as file:
        text = file.read(1 << 20)
    end = re.search(rb"END_HEADER[ \t]*\r?\n", text)
    if end is None:
        raise BadInput(f"{path} is cut off: expected END_HEADER (nersc), found none")
    lines = text[: end.start()].decode("latin-1").splitlines()
    values: dict[str, str] = {}
    for key, equals, value in (line.partition("=") for line in lines):
        if equals and values.setdefault(key.strip(), value.strip()) != value.strip():
            raise BadInput(
                f"{path}: its NERSC header contradicts itself: {key.strip()} is {values[key.strip()]!r} and "
                f"{value.strip()!r}; it was altered"
            )
    try:
        extents = tuple(
            whole_number(path, values[name], name) for name in map("DIMENSION_{}".format, (1, 2, 3, 4))
        )
        kind, point = values["DATATYPE"], values["FLOATING_POINT"]
        checksum = values.get("CHECKSUM")
        checksums = {} if checksum is None else {"checksum": checksum_number(path, checksum, "CHECKSUM")}
        averages = averages_in(
            (what, values.get(name), (1.0,))
            for name, what in (("PLAQUETTE", "plaquette"), ("LINK_TRACE", "link trace"))
        )
    except (KeyError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"{path}: expected a NERSC header, found one without a usable {error}; it was altered, or is not complete"
        ) from error
    rows = {"4D_SU3_GAUGE": 2, "4D_SU3_GAUGE_3x3": 3, "4D_SU3_GAUGE_3X3": 3}.get(kind)
    dtype = re.fullmatch(r"IEEE(32|64)(BIG|LITTLE)?", point.upper())
    if rows is None or dtype is None:
        raise BadInput(
            f"{path}: expected DATATYPE 4D_SU3_GAUGE or 4D_SU3_GAUGE_3x3 and FLOATING_POINT IEEE32 or IEEE64, BIG or "
            f"LITTLE, found {kind}, {point}"
        )
    numbers = np.dtype(f"{'<' if dtype[2] == 'LITTLE' else '>'}f{int(dtype[1]) // 8}")
    layout = Layout(
        path, "nersc", check_extents(path, extents), end.end(), numbers, rows, checksums, averages
    )
    layout.accepted += accepted_in(values.get(NOTE, ""))
    return layout


_OWN_DIRECTION = (3, 0, 1, 2)  # openQCD's directions are t, x, y, z


class OpenQcdLayout(Layout):
    """The layout of openQCD: the eight links around every odd site, t slowest and z fastest, directions t, x, y, z."""

    def read_bytes(self, ranks: int) -> float:
        """The memory in bytes that each of the ranks needs to read its block: also a time slice, and its links."""
        return super().read_bytes(ranks) + math.prod(self.extents[:3]) * 4 * 9 * 16 * 2

    def raw_block(self, slices: Any) -> NDArray[Any]:
        """Return the numbers of a block in lexicographic order, read time slice by time slice."""
        times, *others = slices
        x, y, z, t = self.extents
        counts = [one.stop - one.start for one in slices]
        block = np.empty((*counts, 4, 3, 3, 2), self.dtype)
        whole = np.empty((z, y, x, 4, 3, 3, 2), self.dtype)
        for number, time in enumerate(range(times.start, times.stop)):
            self._put(whole, time, behind=False)
            self._put(whole, (time + 1) % t, behind=True)
            block[number] = whole[tuple(others)]
        return block

    def _put(self, whole: NDArray[Any], time: int, *, behind: bool) -> None:
        """Store the links around the odd sites of a time slice that belong to it, or to the slice behind it."""
        x, y, z, t = self.extents
        sites = np.indices((x, y, z)).reshape(3, -1)
        odd = sites[:, (sites.sum(axis=0) + time) % 2 == 1]
        shape = (t, odd.shape[1], 8, 3, 3, 2)
        stored = read_block(self.path, self.dtype, self.offset, shape, (slice(time, time + 1),))[0]
        if behind:
            whole[odd[2], odd[1], odd[0], _OWN_DIRECTION[0]] = stored[:, 1]
            return
        whole[odd[2], odd[1], odd[0], _OWN_DIRECTION[0]] = stored[:, 0]
        for direction in (1, 2, 3):
            own = _OWN_DIRECTION[direction]
            whole[odd[2], odd[1], odd[0], own] = stored[:, 2 * direction]
            at = odd.copy()
            at[own] = (at[own] - 1) % (x, y, z)[own]
            whole[at[2], at[1], at[0], own] = stored[:, 2 * direction + 1]


def openqcd(path: str, start: bytes) -> Layout | None:
    """Read an openQCD header: four extents and Re tr of the plaquette, in little-endian order, without a magic number.

    The links are in double precision.
    """
    if len(start) < 24:
        return None
    t, x, y, z = struct.unpack("<4i", start[:16])
    (plaquette,) = struct.unpack("<d", start[16:24])
    length = Path(path).stat().st_size
    if any(extent < 2 or extent > 1 << 16 or extent % 2 for extent in (t, x, y, z)):
        return None
    if not -3 <= plaquette <= 3:
        return None
    layout = OpenQcdLayout(path, "openqcd", (x, y, z, t), 24, np.dtype("<f8"))
    layout.averages.append(HeaderAverage("plaquette", plaquette, scales=(3.0,)))
    return layout if length <= layout.bytes_needed and length > 24 else None


def raw_links(path: str, extents: tuple[int, ...]) -> Layout | None:
    """Return the layout of links without any header, in the order of ILDG, or None if the length is not theirs.

    The length gives the precision and the number of rows, the first row of each of the first links the byte order.
    """
    length, links = Path(path).stat().st_size, 4 * math.prod(extents)
    for rows, width in ((3, 8), (3, 4), (2, 8), (2, 4)):
        if length != links * rows * 6 * width:
            continue
        count = min(links, 64)
        for order in "><":
            dtype = np.dtype(f"{order}f{width}")
            first = read_block(path, dtype, 0, (links, rows * 6), (slice(0, count),))[:, :6]
            with np.errstate(over="ignore", invalid="ignore"):
                norms = np.square(first, dtype=np.float64).sum(axis=1)
            if (abs(norms - 1) < RAW_DEVIATION).all():
                return Layout(path, "raw", extents, 0, dtype, rows)
        raise BadInput(
            f"{path}: expected {8 * width}-bit links of {rows} rows, as its length fits {'x'.join(map(str, extents))}, "
            "found first rows whose norm is not 1 in either byte order; its numbers are in another order, or no links"
        )
    return None


HEADERS: tuple[Callable[[str, bytes], Layout | None], ...] = (milc, oldest_milc, nersc, lime, openqcd)


def read_header(path: str, extents: tuple[int, ...] | None = None) -> Layout:
    """Read the header of a gauge file of any known format, and compare it with the length of the file.

    `extents` are those of a file that does not give them: ILDG without its record `ildg-format`, or raw links.
    """
    start = first_bytes(path)
    if extents is not None:
        extents = check_extents("the given extents", tuple(extents))
    for header in HEADERS:
        try:
            layout = lime(path, start, extents) if header is lime else header(path, start)
        except BadInput as error:  # it may quote a header of any length
            raise BadInput(shortened(str(error), len(path) + _LONGEST_MESSAGE)) from error
        if layout is not None:
            layout.check_length()
            if extents not in (None, layout.extents):
                raise BadInput(
                    f"{path}: expected a lattice of {'x'.join(map(str, extents or ()))}, as was given, found "
                    f"{'x'.join(map(str, layout.extents))} in its {layout.format} header; leave the extents out"
                )
            return layout
    layout = None if extents is None else raw_links(path, extents)
    if layout is not None:
        return layout
    what = what_it_is(start)
    raw = "; raw links need their extents (extent, --extent)" if what.startswith("a file that begins") else ""
    if extents is not None:
        raw = (
            f"; raw links of {'x'.join(map(str, extents))} have {4 * math.prod(extents) * 72} bytes in single and "
            f"twice as many in double precision, found {Path(path).stat().st_size}"
        )
    raise BadInput(
        f"{path} has an unknown format: expected MILC (versions 1 to 5), NERSC, ILDG or SciDAC (LIME), or openQCD, "
        f"found {what}{raw}"
    )
