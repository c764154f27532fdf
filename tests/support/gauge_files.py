"""Gauge files of several formats, written number by number as their definitions have it."""

import itertools
import struct
import zlib

import numpy as np

EXTENTS = (4, 2, 6, 4)


def rotated(word: int, by: int) -> int:
    return ((word << by) | (word >> (32 - by))) & 0xFFFFFFFF


def milc_sums(data: bytes, order: str) -> tuple[int, int]:
    """Word by word, as the format's definition has it."""
    sums = [0, 0]
    for number, (word,) in enumerate(struct.iter_unpack(f"{order}I", data)):
        sums = [old ^ rotated(word, number % m) for old, m in zip(sums, (29, 31), strict=True)]
    return sums[0], sums[1]


def sites() -> list[tuple[int, int, int, int]]:
    """(x, y, z, t), x fastest."""
    return [(x, y, z, t) for t, z, y, x in itertools.product(*map(range, EXTENTS[::-1]))]


def numbers(links: np.ndarray, order: str) -> bytes:
    """All links in lexicographic order, one number after the other."""
    values = []
    for x, y, z, t in sites():
        for matrix in links[t, z, y, x]:
            for entry in matrix.ravel():
                values += [entry.real, entry.imag]
    return struct.pack(f"{order[0]}{len(values)}{order[1]}", *values)


def milc_file(links: np.ndarray, order: str) -> bytes:
    data = numbers(links, f"{order}f")
    head = struct.pack(f"{order}5i64si", 20103, *EXTENTS, b"some day", 0)
    return head + struct.pack(f"{order}2I", *milc_sums(data, order)) + data


def nersc_file(links: np.ndarray, order: str, rows: int = 2, plaquette: float | None = None) -> bytes:
    data = numbers(links[..., :rows, :], order)
    total = sum(word for (word,) in struct.iter_unpack(f"{order[0]}I", data)) & 0xFFFFFFFF
    sizes = "".join(f"DIMENSION_{d + 1} = {extent}\n" for d, extent in enumerate(EXTENTS))
    bits, end = {"f": 32, "d": 64}[order[1]], {">": "BIG", "<": "LITTLE"}[order[0]]
    said = "" if plaquette is None else f"PLAQUETTE = {plaquette:.10f}\n"
    kind = "4D_SU3_GAUGE" + ("" if rows == 2 else "_3x3")
    return (
        f"BEGIN_HEADER\nHDR_VERSION = 1.0\nDATATYPE = {kind}\n{sizes}{said}CHECKSUM = {total:x}\n"
        f"FLOATING_POINT = IEEE{bits}{end}\nEND_HEADER\n"
    ).encode() + data


def lime_record(name: str, data: bytes) -> bytes:
    return (
        struct.pack(">IHHQ128s", 0x456789AB, 1, 0, len(data), name.encode()) + data + b"\0" * (-len(data) % 8)
    )


def lime_parts(data: bytes) -> list[tuple[str, bytes]]:
    """The names and contents of the records of a file."""
    parts, at = [], 0
    while at < len(data):
        *_, length, name = struct.unpack_from(">IHHQ128s", data, at)
        at += 144
        parts.append((name.split(b"\0")[0].decode(), data[at : at + length]))
        at += (length + 7) // 8 * 8
    return parts


def lime_file(parts: list[tuple[str, bytes]]) -> bytes:
    return b"".join(lime_record(*part) for part in parts)


def lime_sums(data: bytes, site_bytes: int) -> str:
    suma = sumb = 0
    for number in range(len(data) // site_bytes):
        crc = zlib.crc32(data[number * site_bytes : (number + 1) * site_bytes])
        suma, sumb = suma ^ rotated(crc, number % 29), sumb ^ rotated(crc, number % 31)
    return (
        f"<scidacChecksum><version>1.0</version><suma>{suma:x}</suma><sumb>{sumb:x}</sumb></scidacChecksum>"
    )


def ildg_file(links: np.ndarray, _order: str) -> bytes:
    data = numbers(links, ">d")
    sizes = "".join(f"<l{name}>{extent}</l{name}>" for name, extent in zip("xyzt", EXTENTS, strict=True))
    head = f"<ildgFormat><version>1.0</version><field>su3gauge</field><precision>64</precision>{sizes}</ildgFormat>"
    return (
        lime_record("ildg-format", head.encode())
        + lime_record("ildg-binary-data", data)
        + lime_record("scidac-checksum", lime_sums(data, 4 * 18 * 8).encode())
    )


def scidac_file(links: np.ndarray, _order: str) -> bytes:
    data = numbers(links, ">f")
    dims = "".join(f"{extent} " for extent in EXTENTS)
    about = "<precision>F</precision><colors>3</colors><typesize>72</typesize><datacount>4</datacount>"
    return (
        lime_record("scidac-private-file-xml", f"<scidacFile><dims>{dims}</dims></scidacFile>".encode())
        + lime_record("scidac-private-record-xml", f"<scidacRecord>{about}</scidacRecord>".encode())
        + lime_record("scidac-binary-data", data)
        + lime_record("scidac-checksum", lime_sums(data, 4 * 72).encode())
    )


def openqcd_file(links: np.ndarray, _order: str, plaquette: float = 0.0) -> bytes:
    """The eight links around each odd point: in each direction the one ahead, then the one behind."""
    x_, y_, z_, t_ = EXTENTS
    parts = [struct.pack("<4id", t_, x_, y_, z_, 3 * plaquette)]
    for t, x, y, z in itertools.product(range(t_), range(x_), range(y_), range(z_)):
        if (t + x + y + z) % 2 == 0:
            continue
        for direction, place in ((3, 0), (0, 1), (1, 2), (2, 3)):
            behind = [t, x, y, z]
            behind[place] = (behind[place] - 1) % (t_, x_, y_, z_)[place]
            tb, xb, yb, zb = behind
            for matrix in (links[t, z, y, x, direction], links[tb, zb, yb, xb, direction]):
                parts.append(np.ascontiguousarray(matrix).astype("<c16").tobytes())
    return b"".join(parts)


def openqcd_spinor_file(field: np.ndarray, norm: float | None = None) -> bytes:
    """A file of export_sfld, number by number: t slowest, then x, y, and z fastest."""
    t, z, y, x = field.shape[:4]
    total = sum(abs(one) ** 2 for one in field.ravel()) if norm is None else norm
    parts = [struct.pack("<iiiid", t, x, y, z, total)]
    for it, ix, iy, iz in itertools.product(range(t), range(x), range(y), range(z)):
        parts += [struct.pack("<dd", one.real, one.imag) for one in field[it, iz, iy, ix].ravel()]
    return b"".join(parts)


def grid_file(fields: list[tuple[str, np.ndarray]], letter: str) -> bytes:
    """As Grid's ScidacWriter has it: numbers are "ildg-binary-data", and their norm lies before their checksum."""
    dims = " \n".join(map(str, fields[0][1].shape[3::-1]))
    top = f"<scidacFile><version>1</version><spacetime>4</spacetime><dims>{dims}</dims><volfmt>0</volfmt></scidacFile>"
    user = b"<emptyUserRecord><dummy>0</dummy></emptyUserRecord>"
    parts = [("scidac-private-file-xml", top.encode()), ("scidac-file-xml", user)]
    for kind, field in fields:
        data = field.astype({"D": ">c16", "F": ">c8"}[letter]).tobytes()
        size = len(data) // int(np.prod(field.shape[:4]))
        about = (
            "<scidacRecord>\n  <version>1</version>\n  <date>now</date>\n  <recordtype>0</recordtype>\n"
            f"  <datatype>GRID_{letter}_{kind}</datatype>\n  <precision>{letter}</precision>\n"
            "  <colors>3</colors>\n  <spins>4</spins>\n"
            f"  <typesize>{size}</typesize>\n  <datacount>1</datacount>\n</scidacRecord>\n"
        )
        norm = f"<FieldNormMetaData><norm2>{np.vdot(field, field).real:.6e}</norm2></FieldNormMetaData>"
        parts += [
            ("grid-format", b"<FieldMetaData><nd>4</nd></FieldMetaData>"),
            ("scidac-record-xml", user),
            ("scidac-private-record-xml", about.encode()),
            ("ildg-binary-data", data),
            ("FieldNormMetaData", norm.encode()),
            ("scidac-checksum", lime_sums(data, size).encode()),
        ]
    return lime_file(parts)
