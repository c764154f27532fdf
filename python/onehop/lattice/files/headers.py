"""Headers of gauge files: one function per format, which returns None for a file of another format."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from onehop.error import BadInput
from onehop.lattice.files.layout import HeaderAverage, Layout
from onehop.lattice.files.lime import Record, is_lime, records
from onehop.text import shortened

MILC_MAGIC = 20103
MILC_HEADER = 96
_LONGEST_MESSAGE = 500  # characters besides the path
LIME_TEXTS = ("ildg-format", "scidac-private-file-xml", "scidac-private-record-xml", "scidac-record-xml")
NOT_KNOWN = (
    "missing",
    "unknown",
    "none",
)  # programs write these words in place of a number that they do not have


def _check_extents(path: str, extents: tuple[int, ...]) -> tuple[int, ...]:
    if len(extents) != 4 or min(extents) < 1 or np.prod([float(one) for one in extents]) > 2**40:
        raise BadInput(
            f"{path}: expected four extents of 1 or more in its header, found {extents}; it was altered"
        )
    return extents


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
        return Layout(path, "milc", _check_extents(path, extents), MILC_HEADER, dtype, 3, checksums)
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
        averages = [
            HeaderAverage.of_text(what, values[name])
            for name, what in (("PLAQUETTE", "plaquette"), ("LINK_TRACE", "link trace"))
            if name in values
        ]
    except (KeyError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
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
    return Layout(path, "nersc", _check_extents(path, extents), end.end(), numbers, rows, checksums, averages)


def tag(text: str, name: str) -> str | None:
    """Return the text of an XML element, or None."""
    # Headers are untrusted input. This expression takes at most quadratic time for every text.
    found = re.search(rf"<(?:\w+:)?{name}\b[^<>]*>([^<]*)</", text)
    return None if found is None else found[1].strip()


def check_regular(path: str) -> None:
    """Check before opening a path that it is not a folder, pipe or device: opening a pipe would wait for its other end.

    A path that does not exist passes.

    Raises
    ------
    BadInput
        The path is a folder, a pipe or a device, or cannot be the name of a file.
    """
    try:
        regular = Path(path).is_file() or not Path(path).exists()
    except (OSError, ValueError) as error:  # a name that no file can have
        raise BadInput(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    if not regular:
        raise BadInput(f"cannot read {path}: expected a file, found a folder, a pipe or a device")


def whole_number(path: str, text: str, name: str) -> int:
    """Parse an extent or a count of at most nine decimal digits. Raises BadInput for other text."""
    if re.fullmatch(r"[0-9]{1,9}", text) is None:
        raise BadInput(
            f"{path}: expected a number as {name} in its header, found {text!r:.40}; it was altered"
        )
    return int(text)


def checksum_number(path: str, text: str, name: str) -> int:
    """Parse a 32-bit checksum in hexadecimal digits.

    Raises
    ------
    BadInput
        The text is not such a number.
    """
    if re.fullmatch(r"(?:0[xX])?0*[0-9a-fA-F]{1,8}", text) is None:
        raise BadInput(
            f"{path}: expected up to 8 hexadecimal digits as {name} in its header, found {text!r:.40}; it was altered"
        )
    return int(text, 16)


def scidac_sums(path: str, record: Record | None) -> dict[str, int]:
    """Return the checksums in a SciDAC checksum record; empty without a record."""
    text = text_of(path, record)
    found = {name: tag(text, name) for name in ("suma", "sumb")}
    return {name: checksum_number(path, value, name) for name, value in found.items() if value is not None}


def text_of(path: str, record: Record | None) -> str:
    """Return the bytes of a record as text; empty without a record."""
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


def check_scidac_record(path: str, about: str, bits: int, numbers: int) -> None:
    """Check the fields of a SciDAC record header that repeat the precision and the size of a site.

    Parameters
    ----------
    path : str
        The file, for error messages.
    about : str
        The XML of the record header.
    bits : int
        Bits per number: 32 or 64.
    numbers : int
        Real numbers per site.

    Raises
    ------
    BadInput
        The header contradicts itself.
    """
    letter = {32: "F", 64: "D"}[bits]
    fields: list[tuple[str, str | None, str]] = [("precision", tag(about, "precision"), letter)]
    named = re.search(r"_([FD])\d?_", tag(about, "datatype") or "")
    if named is not None:
        fields.append(("letter of the datatype", named[1], letter))
    size, count = tag(about, "typesize"), tag(about, "datacount")
    if size is not None and count is not None:
        if not (size.isdecimal() and count.isdecimal() and len(size + count) < 40):
            raise BadInput(
                f"{path}: expected numbers as <typesize> and <datacount>, found {size[:40]!r} and {count[:40]!r}; "
                "it was altered"
            )
        fields.append(("typesize x datacount", str(int(size) * int(count)), str(numbers * bits // 8)))
    for what, found, expected in fields:
        if found is not None and found != expected:
            raise BadInput(
                f"{path}: its header contradicts itself: expected the {what} {expected} in the SciDAC record header "
                f"for {bits} bits per number and {numbers} numbers per site, found {found}; it was altered"
            )


def _check_ildg(path: str, texts: dict[str, str], extents: tuple[int, ...], bits: int) -> None:
    """Check that the ILDG header agrees with the SciDAC headers around it."""
    kind = tag(texts["ildg-format"], "field")
    if kind not in (None, "su3gauge"):
        raise BadInput(f"{path}: expected <field> su3gauge in its ILDG header, found {kind}")
    dims = tag(texts["scidac-private-file-xml"], "dims")
    if dims is not None and tuple(whole_number(path, one, "dims") for one in dims.split()) != extents:
        raise BadInput(
            f"{path}: its header contradicts itself: <lx>, <ly>, <lz>, <lt> are {'x'.join(map(str, extents))}, but "
            f"<dims> is {'x'.join(dims.split())}; it was altered"
        )
    about = texts["scidac-private-record-xml"]
    colours, count = tag(about, "colors"), tag(about, "datacount")
    if colours not in (None, "3") or count not in (None, "4"):
        raise BadInput(
            f"{path}: its header contradicts itself: expected <datacount> 4 and <colors> 3 in the SciDAC record header "
            f"of an ILDG file, found {count} and {colours}; it was altered"
        )
    check_scidac_record(path, about, bits, 72)


def _usqcd_averages(text: str) -> list[HeaderAverage]:
    """Return the plaquette and link trace in a USQCD info record. Programs without such a number write a word."""
    found = ((what, tag(text, name)) for name, what in (("plaq", "plaquette"), ("linktr", "link trace")))
    return [
        HeaderAverage.of_text(what, value, (1.0, 3.0))
        for what, value in found
        if value and value.lower() not in NOT_KNOWN
    ]


def _ildg_shape(path: str, texts: dict[str, str]) -> tuple[tuple[int, ...], int]:
    """Return the extents and the bits of a number of an ILDG file."""
    text = texts["ildg-format"]
    extents = tuple(whole_number(path, _only(path, text, name), name) for name in ("lx", "ly", "lz", "lt"))
    bits = whole_number(path, _only(path, text, "precision"), "precision")
    if bits in (32, 64):
        _check_ildg(path, texts, extents, bits)
    return extents, bits


def _scidac_shape(path: str, texts: dict[str, str]) -> tuple[tuple[int, ...], int]:
    """Return the extents and the bits of a number of a SciDAC file."""
    private = texts["scidac-private-record-xml"]
    dims = _only(path, texts["scidac-private-file-xml"], "dims").split()
    extents = tuple(whole_number(path, one, "dims") for one in dims)
    bits = {"F": 32, "D": 64}[_only(path, private, "precision")]
    if _only(path, private, "datacount") != "4" or _only(path, private, "colors") != "3":
        raise BadInput(
            f"{path}: expected a SciDAC field of four 3x3 matrices per site (<datacount> 4, <colors> 3), "
            "found another field"
        )
    check_scidac_record(path, private, bits, 72)
    return extents, bits


def lime(path: str, start: bytes) -> Layout | None:
    """Read the headers of an ILDG or SciDAC file: LIME records, with numbers in big-endian order."""
    if not is_lime(start):
        return None
    found: dict[str, Record] = {}
    for record in records(path):
        found.setdefault(record.name, record)
    checksums = scidac_sums(path, found.get("scidac-checksum"))
    texts = {name: text_of(path, found.get(name)) for name in LIME_TEXTS}
    try:
        if "ildg-binary-data" in found:
            extents, bits = _ildg_shape(path, texts)
            data, name = found["ildg-binary-data"], "ildg"
        elif "scidac-binary-data" in found:
            extents, bits = _scidac_shape(path, texts)
            data, name = found["scidac-binary-data"], "scidac"
        else:
            raise BadInput(
                f"{path}: expected a LIME record ildg-binary-data or scidac-binary-data, "
                f"found {', '.join(found) or 'none'}"
            )
        averages = _usqcd_averages(texts["scidac-record-xml"])
    except BadInput:  # BadInput is a ValueError
        raise
    except (KeyError, ValueError) as error:
        raise BadInput(f"{path}: expected numbers in its header, found {error}; it was altered") from error
    if bits not in (32, 64):
        raise BadInput(f"{path}: expected a precision of 32 or 64 bits, found {bits}")
    layout = Layout(
        path,
        name,
        _check_extents(path, extents),
        data.offset,
        np.dtype(f">f{bits // 8}"),
        3,
        checksums,
        averages,
    )
    if data.length != layout.bytes_needed - data.offset:
        raise BadInput(
            f"{path}: expected {layout.bytes_needed - data.offset} bytes of links for a lattice of "
            f"{'x'.join(map(str, extents))} ({name}), found a record of {data.length}"
        )
    return layout


class OpenQcdLayout(Layout):
    """The layout of openQCD: the eight links around every odd site, t slowest and z fastest, directions t, x, y, z."""

    def raw_block(self, slices: Any) -> Any:
        """Return the numbers of a block in lexicographic order."""
        x, y, z, t = self.extents
        sites = np.indices((t, x, y, z)).reshape(4, -1)
        odd = sites[:, sites.sum(axis=0) % 2 == 1]
        shape = (odd.shape[1], 8, 3, 3, 2)
        stored = np.memmap(self.path, self.dtype, "r", self.offset, shape)
        links = np.empty((t, z, y, x, 4, 3, 3, 2), self.dtype)
        for direction, own_direction in enumerate((3, 0, 1, 2)):  # openQCD's directions are t, x, y, z
            for backward in (0, 1):
                at = odd.copy()
                at[direction] = (at[direction] - backward) % (t, x, y, z)[direction]
                links[at[0], at[3], at[2], at[1], own_direction] = stored[:, 2 * direction + backward]
        return np.array(links[tuple(slices)])


def openqcd(path: str, start: bytes) -> Layout | None:
    """Read an openQCD header: four extents and Re tr of the plaquette, in little-endian order, without a magic number.

    The links are in double precision.
    """
    if len(start) < 24:
        return None
    t, x, y, z = struct.unpack("<4i", start[:16])
    (plaquette,) = struct.unpack("<d", start[16:24])
    length = Path(path).stat().st_size
    if min(t, x, y, z) < 1 or max(t, x, y, z) > 1 << 16 or t * x * y * z % 2 or not -3 <= plaquette <= 3:
        return None
    layout = OpenQcdLayout(path, "openqcd", (x, y, z, t), 24, np.dtype("<f8"))
    layout.averages.append(HeaderAverage("plaquette", plaquette, scales=(3.0,)))
    return layout if length <= layout.bytes_needed and length > 24 else None


HEADERS: tuple[Callable[[str, bytes], Layout | None], ...] = (milc, nersc, lime, openqcd)


def read_header(path: str) -> Layout:
    """Read the header of a gauge file of any known format.

    Raises
    ------
    BadInput
        The file does not exist, its format is unknown, its header is invalid, or its length does not match its header.
    """
    check_regular(path)
    try:
        with Path(path).open("rb") as file:
            start = file.read(MILC_HEADER)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
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
        f"found a file that begins with {start[:8].hex(' ') or 'nothing'}"
    )
