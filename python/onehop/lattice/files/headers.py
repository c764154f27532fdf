"""What stands before the links: one function per format, which returns None for files of another."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from onehop.error import BadInput
from onehop.lattice.files.layout import Layout, Said
from onehop.lattice.files.lime import Record, is_lime, records

MILC_MAGIC = 20103
MILC_HEADER = 96
LIME_TEXTS = ("ildg-format", "scidac-private-file-xml", "scidac-private-record-xml", "scidac-record-xml")
NOT_KNOWN = ("missing", "unknown", "none")  # what stands for a number that a program did not have


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
                f"{path}: expected sites in lexicographic order (0), found order {site_order}; convert it with MILC"
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
        said = [
            Said.of_text(what, values[name])
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
    return Layout(path, "nersc", _check_extents(path, extents), end.end(), numbers, rows, checksums, said)


def tag(text: str, name: str) -> str | None:
    """The text of an XML element, or nothing."""
    # Each character is looked at once for each "<" at most, whatever the text: headers come from anywhere.
    found = re.search(rf"<(?:\w+:)?{name}\b[^<>]*>([^<]*)</", text)
    return None if found is None else found[1].strip()


def check_regular(path: str) -> None:
    """Find out before opening it that a file is one: whoever opens a pipe waits for its other end.

    Raises
    ------
    BadInput
        There is no such file, or it is a folder, a pipe or a device.
    """
    try:
        regular = Path(path).is_file() or not Path(path).exists()
    except (OSError, ValueError) as error:  # a name that no file can have
        raise BadInput(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    if not regular:
        raise BadInput(f"cannot read {path}: expected a file, found a folder, a pipe or a device")


def whole_number(path: str, text: str, name: str) -> int:
    """A number of at most nine decimal digits, as extents and counts are."""
    if re.fullmatch(r"[0-9]{1,9}", text) is None:
        raise BadInput(
            f"{path}: expected a number as {name} in its header, found {text!r:.40}; it was altered"
        )
    return int(text)


def checksum_number(path: str, text: str, name: str) -> int:
    """A checksum of 32 bits in hexadecimal digits.

    Raises
    ------
    BadInput
        It is something else.
    """
    if re.fullmatch(r"(?:0[xX])?0*[0-9a-fA-F]{1,8}", text) is None:
        raise BadInput(
            f"{path}: expected up to 8 hexadecimal digits as {name} in its header, found {text!r:.40}; it was altered"
        )
    return int(text, 16)


def scidac_sums(path: str, record: Record | None) -> dict[str, int]:
    """The checksums that a record of them says."""
    text = text_of(path, record)
    said = {name: tag(text, name) for name in ("suma", "sumb")}
    return {name: checksum_number(path, value, name) for name, value in said.items() if value is not None}


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


def check_scidac_record(path: str, about: str, bits: int, numbers: int) -> None:
    """What a SciDAC record header says several times: `bits` a number, and `numbers` real ones a site.

    Raises
    ------
    BadInput
        It contradicts itself.
    """
    letter = {32: "F", 64: "D"}[bits]
    said: list[tuple[str, str | None, str]] = [("precision", tag(about, "precision"), letter)]
    named = re.search(r"_([FD])\d?_", tag(about, "datatype") or "")
    if named is not None:
        said.append(("letter of the datatype", named[1], letter))
    size, count = tag(about, "typesize"), tag(about, "datacount")
    if size is not None and count is not None:
        if not (size.isdecimal() and count.isdecimal() and len(size + count) < 40):
            raise BadInput(
                f"{path}: expected numbers as <typesize> and <datacount>, found {size[:40]!r} and {count[:40]!r}; "
                "it was altered"
            )
        said.append(("typesize x datacount", str(int(size) * int(count)), str(numbers * bits // 8)))
    for what, found, expected in said:
        if found is not None and found != expected:
            raise BadInput(
                f"{path}: its header contradicts itself: {bits} bits a number and {numbers} numbers a site go with "
                f"the {what} {expected}, its SciDAC record header says {found}; it was altered"
            )


def _check_ildg(path: str, texts: dict[str, str], extents: tuple[int, ...], bits: int) -> None:
    """What an ILDG file says twice: its own header, and those of SciDAC around it."""
    kind = tag(texts["ildg-format"], "field")
    if kind not in (None, "su3gauge"):
        raise BadInput(f"{path}: expected <field> su3gauge in its ILDG header, found {kind}")
    dims = tag(texts["scidac-private-file-xml"], "dims")
    if dims is not None and tuple(whole_number(path, one, "dims") for one in dims.split()) != extents:
        raise BadInput(
            f"{path}: its header contradicts itself: <lx>, <ly>, <lz>, <lt> are {'x'.join(map(str, extents))}, "
            f"<dims> is {'x'.join(dims.split())}; it was altered"
        )
    about = texts["scidac-private-record-xml"]
    colours, count = tag(about, "colors"), tag(about, "datacount")
    if colours not in (None, "3") or count not in (None, "4"):
        raise BadInput(
            f"{path}: its header contradicts itself: ILDG's links are 4 matrices of 3 colours a site, its SciDAC "
            f"record header says <datacount> {count} and <colors> {colours}; it was altered"
        )
    check_scidac_record(path, about, bits, 72)


def _said_by_usqcd(text: str) -> list[Said]:
    """The plaquette and link trace of USQCD's info, where there are such. Programs that have none write a word."""
    found = ((what, tag(text, name)) for name, what in (("plaq", "plaquette"), ("linktr", "link trace")))
    return [
        Said.of_text(what, value, (1.0, 3.0))
        for what, value in found
        if value and value.lower() not in NOT_KNOWN
    ]


def lime(path: str, start: bytes) -> Layout | None:
    """ILDG and SciDAC: LIME records, the numbers in big-endian order."""
    if not is_lime(start):
        return None
    found: dict[str, Record] = {}
    for record in records(path):
        found.setdefault(record.name, record)
    checksums = scidac_sums(path, found.get("scidac-checksum"))
    texts = {name: text_of(path, found.get(name)) for name in LIME_TEXTS}
    private = texts["scidac-private-record-xml"]
    try:
        if "ildg-binary-data" in found:
            text = texts["ildg-format"]
            extents = tuple(
                whole_number(path, _only(path, text, name), name) for name in ("lx", "ly", "lz", "lt")
            )
            bits = whole_number(path, _only(path, text, "precision"), "precision")
            if bits in (32, 64):
                _check_ildg(path, texts, extents, bits)
            data, name = found["ildg-binary-data"], "ildg"
        elif "scidac-binary-data" in found:
            text = texts["scidac-private-file-xml"]
            extents = tuple(whole_number(path, one, "dims") for one in _only(path, text, "dims").split())
            bits = {"F": 32, "D": 64}[_only(path, private, "precision")]
            if _only(path, private, "datacount") != "4" or _only(path, private, "colors") != "3":
                raise BadInput(
                    f"{path}: expected four matrices of three colours a site, found another field (scidac)"
                )
            check_scidac_record(path, private, bits, 72)
            data, name = found["scidac-binary-data"], "scidac"
        else:
            raise BadInput(
                f"{path}: expected a LIME record ildg-binary-data or scidac-binary-data, "
                f"found {', '.join(found) or 'none'}"
            )
        said = _said_by_usqcd(texts["scidac-record-xml"])
    except BadInput:  # which is a ValueError, too
        raise
    except (KeyError, ValueError) as error:
        raise BadInput(f"{path}: expected numbers in its header, found {error}; it was altered") from error
    if bits not in (32, 64):
        raise BadInput(f"{path}: expected a precision of 32 or 64 bits, found {bits}")
    layout = Layout(
        path, name, _check_extents(path, extents), data.offset, np.dtype(f">f{bits // 8}"), 3, checksums, said
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
    layout = OpenQcdLayout(path, "openqcd", (x, y, z, t), 24, np.dtype("<f8"))
    layout.said.append(Said("plaquette", plaquette, scales=(3.0,)))
    return layout if length <= layout.bytes_needed and length > 24 else None


HEADERS: tuple[Callable[[str, bytes], Layout | None], ...] = (milc, nersc, lime, openqcd)


def read_header(path: str) -> Layout:
    """What a file says about itself.

    Raises
    ------
    BadInput
        There is no such file, it is of no known format, or its header makes no sense.
    """
    check_regular(path)
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
