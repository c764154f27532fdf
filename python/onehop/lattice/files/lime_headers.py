"""Headers of LIME files: ILDG and SciDAC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape

import numpy as np

from onehop.error import BadInput
from onehop.lattice.files.blocks import open_file
from onehop.lattice.files.layout import HeaderAverage, Layout
from onehop.lattice.files.lime import Record, is_lime, records
from onehop.lattice.files.parsing import (
    accepted_in,
    averages_in,
    check_extents,
    checksum_number,
    whole_number,
)

LIME_TEXTS = (
    "ildg-format",
    "scidac-private-file-xml",
    "scidac-private-record-xml",
    "scidac-record-xml",
    "xlf-info",
)


_LONGEST_TEXT = 1 << 20  # bytes of a record that are looked at
# Programs write these words in place of a number that they do not have.
_NOT_KNOWN = ("", "missing", "unknown", "none")
# The last words of datatypes of QIO.
_KINDS = ("Real", "Complex", "ColorVector", "ColorMatrix", "HalfFermion", "DiracFermion", "DiracPropagator")


def tag(text: str, name: str) -> str | None:
    """Return the text of an XML element, or None without one. Raises ValueError if a part of it is missing."""
    # Headers are untrusted input. These expressions take at most quadratic time for every text.
    found = re.search(rf"<(?:\w+:)?{name}\b[^<>]*>([^<]*)</", text)
    if found is not None:
        return found[1].strip()
    if re.search(rf"</?(?:\w+:)?{name}\b", text) is not None:
        raise ValueError(f"an element <{name}> that is not complete")
    return None


def scidac_sums(path: str, record: Record | None) -> dict[str, int]:
    """Return the checksums in a SciDAC checksum record; empty without a record."""
    if record is None:
        return {}
    text = text_of(path, record)
    try:
        found = {name: tag(text, name) for name in ("suma", "sumb")}
    except ValueError as error:
        raise BadInput(f"{path}: found {error} in its record {record.name}; it was altered") from error
    missing = [name for name, value in found.items() if value is None]
    if missing:
        raise BadInput(
            f"{path}: expected the checksums suma and sumb in its record {record.name}, found no {missing[0]}; it was "
            "altered"
        )
    return {name: checksum_number(path, value, name) for name, value in found.items() if value is not None}


def text_of(path: str, record: Record | None) -> str:
    """Return the bytes of a record as text; empty without a record."""
    if record is None:
        return ""
    with open_file(path) as file:
        file.seek(record.offset)
        wanted = min(record.length, _LONGEST_TEXT)
        text = file.read(wanted)
    if len(text) < wanted:
        raise BadInput(
            f"{path} was cut off while it was read: expected {wanted} bytes in the record {record.name}, found "
            f"{len(text)}; copy it again"
        )
    found = text.decode("latin-1")
    return found if record.name == "xlf-info" else _without_comments(found)


def _without_comments(text: str) -> str:
    """Return XML without its comments."""
    parts = []
    begin = 0
    while (at := text.find("<!--", begin)) >= 0:
        parts.append(text[begin:at])
        begin = text.find("-->", at + 4) + 3
        if begin < 3:  # a comment that does not end
            return "".join(parts)
    return "".join([*parts, text[begin:]])


def _only(path: str, texts: dict[str, str], record: str, name: str) -> str:
    """Return the text of an element that a record must have."""
    if record not in texts:
        raise BadInput(
            f"{path}: expected a LIME record {record}, which describes the lattice, found none; the program that wrote "
            "the links left it out: give the extents (extent, --extent)"
        )
    found = tag(texts[record], name)
    if found is None:
        raise BadInput(f"{path}: expected <{name}> in its record {record}, found none; it was altered")
    return found


def check_scidac_record(path: str, about: str, bits: int, numbers: int, kind: str) -> None:
    """Refuse a SciDAC record header that contradicts the bits and count of the numbers of a site, or the kind of field.

    `about` is the XML of the header. `kind` is named as in datatypes: "ColorMatrix" or "ColorVector".
    """
    letter = {32: "F", 64: "D"}[bits]
    fields: list[tuple[str, str | None, str]] = [("precision", tag(about, "precision"), letter)]
    named = re.search(r"_([FD])\d?_", tag(about, "datatype") or "")
    if named is not None:
        fields.append(("letter of the datatype", named[1], letter))
    of_datatype = re.search(r"_([A-Za-z]+)$", tag(about, "datatype") or "")
    if of_datatype is not None and of_datatype[1] in _KINDS:
        fields.append(("kind of field", of_datatype[1], kind))
    if tag(about, "recordtype") not in (None, "0"):
        raise BadInput(
            f"{path}: expected a field on all sites (<recordtype> 0) in the SciDAC record header, found "
            f"{tag(about, 'recordtype')!r:.40}"
        )
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


def scidac_dims(path: str, text: str, expected: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
    """Return the extents in a SciDAC file header, or None without any. They must be the `expected` ones, if given."""
    dims, directions, volume = tag(text, "dims"), tag(text, "spacetime"), tag(text, "volfmt")
    if volume not in (None, "0"):
        raise BadInput(
            f"{path}: expected the whole field in one file (<volfmt> 0), found {volume!r:.40}; join its parts with QIO"
        )
    if dims is None:
        return None
    extents = tuple(whole_number(path, one, "dims") for one in dims.split())
    if expected is not None and extents != expected:
        raise BadInput(
            f"{path}: its header contradicts itself: <lx>, <ly>, <lz>, <lt> are {'x'.join(map(str, expected))}, but "
            f"<dims> is {'x'.join(map(str, extents))}; it was altered"
        )
    if directions is not None and directions != str(len(extents)):
        raise BadInput(
            f"{path}: its header contradicts itself: <spacetime> is {directions!r:.40}, but <dims> has "
            f"{len(extents)} extents; it was altered"
        )
    return extents


def _check_ildg(path: str, texts: dict[str, str], extents: tuple[int, ...], bits: int) -> None:
    """Check that the ILDG header agrees with the SciDAC headers around it."""
    kind = tag(texts["ildg-format"], "field")
    if kind not in (None, "su3gauge"):
        raise BadInput(f"{path}: expected <field> su3gauge in its ILDG header, found {kind}")
    scidac_dims(path, texts.get("scidac-private-file-xml", ""), extents)
    about = texts.get("scidac-private-record-xml", "")
    colours, count = tag(about, "colors"), tag(about, "datacount")
    if colours not in (None, "3") or count not in (None, "4"):
        raise BadInput(
            f"{path}: its header contradicts itself: expected <datacount> 4 and <colors> 3 in the SciDAC record header "
            f"of an ILDG file, found {count} and {colours}; it was altered"
        )
    check_scidac_record(path, about, bits, 72, "ColorMatrix")


def _averages(texts: dict[str, str]) -> list[HeaderAverage]:
    """Return the averages in USQCD's info record, in MILC's info within it, and in the xlf-info of tmLQCD."""
    about, xlf = texts.get("scidac-record-xml", ""), texts.get("xlf-info", "")

    def line(text: str, name: str) -> str | None:
        found = re.search(rf"(?:^|[\s>]){re.escape(name)}\s*=\s*([^\s,<]*)", text)
        return None if found is None else found[1]

    found = (
        ("plaquette", tag(about, "plaq"), (1.0, 3.0)),
        ("link trace", tag(about, "linktr"), (1.0, 3.0)),
        ("spatial plaquette", line(about, "gauge.ssplaq"), (3.0,)),
        ("plaquette in time", line(about, "gauge.stplaq"), (3.0,)),
        ("link trace", line(about, "gauge.nersc_linktr"), (1.0,)),
        ("plaquette", line(xlf, "plaquette"), (1.0,)),
    )
    return averages_in(
        (what, None if text is None or text.lower() in _NOT_KNOWN else text, scales)
        for what, text, scales in found
    )


def _ildg_shape(path: str, texts: dict[str, str]) -> tuple[tuple[int, ...], int]:
    """Return the extents and the bits of a number of an ILDG file."""
    extents = tuple(
        whole_number(path, _only(path, texts, "ildg-format", name), name) for name in ("lx", "ly", "lz", "lt")
    )
    bits = whole_number(path, _only(path, texts, "ildg-format", "precision"), "precision")
    if bits in (32, 64):
        _check_ildg(path, texts, extents, bits)
    return extents, bits


def _scidac_shape(path: str, texts: dict[str, str]) -> tuple[tuple[int, ...], int]:
    """Return the extents and the bits of a number of a SciDAC file."""
    _only(path, texts, "scidac-private-file-xml", "dims")
    extents = scidac_dims(path, texts["scidac-private-file-xml"]) or ()
    record = "scidac-private-record-xml"
    bits = {"F": 32, "D": 64}[_only(path, texts, record, "precision")]
    if _only(path, texts, record, "datacount") != "4" or _only(path, texts, record, "colors") != "3":
        raise BadInput(
            f"{path}: expected a SciDAC field of four 3x3 matrices per site (<datacount> 4, <colors> 3), "
            "found another field"
        )
    check_scidac_record(path, texts[record], bits, 72, "ColorMatrix")
    return extents, bits


def _of_one_field(path: str, all_records: Sequence[Record]) -> tuple[Record, dict[str, str], Record | None]:
    """Return the record of the links, the texts that describe them, and their checksum.

    A record belongs to the links if no other field lies between. The texts of the whole file come before all fields.
    """
    data = next((one for one in all_records if one.name == "ildg-binary-data"), None)
    data = data or next((one for one in all_records if one.name == "scidac-binary-data"), None)
    if data is None:
        raise BadInput(
            f"{path}: expected a LIME record ildg-binary-data or scidac-binary-data, "
            f"found {', '.join(dict.fromkeys(one.name for one in all_records)) or 'none'}"
        )
    at = all_records.index(data)
    fields = [number for number, one in enumerate(all_records) if one.name.endswith("-binary-data")]
    begin = max((number + 1 for number in fields if number < at), default=0)
    end = min((number for number in fields if number > at), default=len(all_records))
    texts: dict[str, str] = {}
    sums: list[Record] = []
    for record in all_records[begin:end]:
        if record.name == "scidac-checksum":
            sums.append(record)
        elif (
            record.name in LIME_TEXTS and texts.setdefault(record.name, text := text_of(path, record)) != text
        ):
            raise BadInput(
                f"{path}: its header contradicts itself: it has two records {record.name} that differ; it was altered"
            )
    if len({text_of(path, one) for one in sums}) > 1:
        raise BadInput(
            f"{path}: its header contradicts itself: it has two checksums that differ; it was altered"
        )
    for record in all_records:
        if record.name in LIME_TEXTS and record.name not in texts:
            texts[record.name] = text_of(path, record)
    return data, texts, sums[0] if sums else None


def lime(path: str, start: bytes, given: tuple[int, ...] | None = None) -> Layout | None:
    """Read the headers of an ILDG or SciDAC file: LIME records, with numbers in big-endian order.

    `given` are the extents of an ILDG file without its record `ildg-format`.
    """
    if not is_lime(start):
        return None
    data, texts, sums = _of_one_field(path, list(records(path)))
    checksums = scidac_sums(path, sums)
    name = data.name.removesuffix("-binary-data")
    try:
        if given is not None and name == "ildg" and "ildg-format" not in texts:
            extents = given
            bits = 64 if data.length == np.prod(extents, dtype=float) * 4 * 18 * 8 else 32
            scidac_dims(path, texts.get("scidac-private-file-xml", ""), extents)
        else:
            extents, bits = (_ildg_shape if name == "ildg" else _scidac_shape)(path, texts)
        averages = _averages(texts)
    except BadInput:  # BadInput is a ValueError
        raise
    except (KeyError, ValueError) as error:
        raise BadInput(f"{path}: expected numbers in its header, found {error}; it was altered") from error
    if bits not in (32, 64):
        raise BadInput(f"{path}: expected a precision of 32 or 64 bits, found {bits}")
    extents = check_extents(path, extents)
    layout = Layout(path, name, extents, data.offset, np.dtype(f">f{bits // 8}"), 3, checksums, averages)
    if data.length != layout.bytes_needed - data.offset:
        raise BadInput(
            f"{path}: expected {layout.bytes_needed - data.offset} bytes of links for a lattice of "
            f"{'x'.join(map(str, extents))} ({name}), found a record of {data.length}"
        )
    info = texts.get("scidac-record-xml", "").partition("<info>")[2].partition("</info>")[0]
    layout.accepted += accepted_in(unescape(info))
    return layout
