"""Headers of gauge files: one function per format, which returns None for a file of another format."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

from onehop.error import BadInput
from onehop.lattice.files.blocks import first_bytes
from onehop.lattice.files.kinds import what_it_is
from onehop.lattice.files.layout import Layout
from onehop.lattice.files.lime_headers import lime
from onehop.lattice.files.openqcd import openqcd
from onehop.lattice.files.parsing import averages_in, check_extents, checksum_number, whole_number
from onehop.text import shortened

MILC_MAGIC = 20103
MILC_HEADER = 96
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


def nersc(path: str, start: bytes) -> Layout | None:
    """Read a NERSC header: lines of text, for links with two or three rows in single or double precision."""
    if not start.startswith(b"BEGIN_HEADER"):
        return None
    with Path(path).open("rb") as file:
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
    dtype = re.fullmatch(r"IEEE(32|64)(BIG|LITTLE)?", point)
    if rows is None or dtype is None:
        raise BadInput(
            f"{path}: expected DATATYPE 4D_SU3_GAUGE or 4D_SU3_GAUGE_3x3 and FLOATING_POINT IEEE32 or IEEE64, BIG or "
            f"LITTLE, found {kind}, {point}"
        )
    numbers = np.dtype(f"{'<' if dtype[2] == 'LITTLE' else '>'}f{int(dtype[1]) // 8}")
    return Layout(path, "nersc", check_extents(path, extents), end.end(), numbers, rows, checksums, averages)


HEADERS: tuple[Callable[[str, bytes], Layout | None], ...] = (milc, nersc, lime, openqcd)


def read_header(path: str) -> Layout:
    """Read the header of a gauge file of any known format, and compare it with the length of the file."""
    start = first_bytes(path)
    for header in HEADERS:
        try:
            layout = header(path, start)
        except BadInput as error:  # it may quote a header of any length
            raise BadInput(shortened(str(error), len(path) + _LONGEST_MESSAGE)) from error
        if layout is not None:
            layout.check_length()
            return layout
    raise BadInput(
        f"{path} has an unknown format: expected MILC version 5, NERSC, ILDG or SciDAC (LIME), or openQCD, "
        f"found {what_it_is(start)}"
    )
