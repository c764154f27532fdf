"""Write gauge fields as NERSC, ILDG or MILC version 5."""

from __future__ import annotations

import struct
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop._core import __version__
from onehop.error import BadInput
from onehop.group import Group, require_same, together
from onehop.lattice.files import lime
from onehop.lattice.files.headers import MILC_MAGIC, NOTE
from onehop.lattice.files.layout import milc_checksums, nersc_checksum, scidac_checksums
from onehop.lattice.gauge import Gauge, Plaquettes
from onehop.lattice.geometry import LINK_BYTES, require_memory, sites_on_a_rank
from onehop.output import check_file_target, date_text, file_path, open_descriptor, unfinished_file

# Of all links, in double precision: as numbers, in the file's precision, as bytes, and as a record with its padding.
_COPIES_WHILE_WRITING = 5

Links = NDArray[np.complex128]


def _numbers(links: Links, dtype: str) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        numbers = np.stack([links.real, links.imag], axis=-1).astype(dtype)
    if not np.isfinite(numbers).all():
        raise BadInput(
            f"expected links of finite numbers within the range of {8 * numbers.dtype.itemsize} bits, "
            "found a number that is not"
        )
    return numbers


def _sites(links: Links) -> NDArray[np.int64]:
    return np.arange(np.prod(links.shape[:4]), dtype=np.int64)


def _extents(links: Links) -> tuple[int, ...]:
    return links.shape[3::-1]


def _milc(links: Links, _precision: int, _plaquettes: Plaquettes, _trace: float) -> list[bytes]:
    raw = _numbers(links, "<f4")
    stamp = date_text("%a %b %d %H:%M:%S %Y").encode()
    header = struct.pack("<5i64si", MILC_MAGIC, *_extents(links), stamp, 0)
    return [header, struct.pack("<2I", *milc_checksums(raw, _sites(links))), raw.tobytes()]


def _nersc(links: Links, precision: int, plaquettes: Plaquettes, trace: float, note: str = "") -> list[bytes]:
    raw = _numbers(links, f">f{precision // 8}")
    lines = [
        "BEGIN_HEADER",
        "HDR_VERSION = 1.0",
        "DATATYPE = 4D_SU3_GAUGE_3x3",
        "STORAGE_FORMAT = 1.0",
        *(f"DIMENSION_{d + 1} = {extent}" for d, extent in enumerate(_extents(links))),
        f"LINK_TRACE = {trace:.12g}",
        f"PLAQUETTE = {plaquettes.all:.12g}",
        *(f"BOUNDARY_{d} = PERIODIC" for d in (1, 2, 3, 4)),
        f"CHECKSUM = {nersc_checksum(raw, _sites(links))[0]:x}",
        f"CREATOR = onehop {__version__}",
        *([f"{NOTE} = {' '.join(note.split())}"] if note else []),
        f"FLOATING_POINT = IEEE{precision}BIG",
        "END_HEADER",
    ]
    return ["".join(f"{line}\n" for line in lines).encode(), raw.tobytes()]


def _ildg(links: Links, precision: int, plaquettes: Plaquettes, trace: float, note: str = "") -> list[bytes]:
    raw = _numbers(links, f">f{precision // 8}")
    extents = _extents(links)
    sizes = "".join(f"<l{name}>{extent}</l{name}>" for name, extent in zip("xyzt", extents, strict=True))
    info = (
        f"<usqcdInfo><version>1.0</version><plaq>{3 * plaquettes.all:.12g}</plaq><linktr>{trace:.12g}</linktr>"
        f"<info>{escape(note, quote=False)}</info></usqcdInfo>"
    )
    about = (
        '<ildgFormat xmlns="http://www.lqcd.org/ildg" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xsi:schemaLocation="http://www.lqcd.org/ildg filefmt.xsd"><version>1.0</version>'
        f"<field>su3gauge</field><precision>{precision}</precision>{sizes}</ildgFormat>"
    )
    record = [
        lime.scidac_record("ColorMatrix", precision, 18, 4),
        lime.xml("scidac-record-xml", info),
        lime.xml("ildg-format", about),
        ("ildg-binary-data", raw.tobytes()),
        lime.scidac_checksum(*scidac_checksums(raw, _sites(links))),
    ]
    title = f"gauge configuration, written by onehop {__version__}"
    return [lime.pack([lime.scidac_file(extents, title), record])]


_WRITERS: dict[str, Callable[..., list[bytes]]] = {
    "nersc": _nersc,
    "ildg": _ildg,
    "milc": _milc,
}
FORMATS = tuple(_WRITERS)


def _format(path: str, name: str | None, precision: int | None) -> tuple[str, int]:
    """Return the format, from its name or else from the suffix of the file, and the precision. Refuses unknown ones."""
    if name is None:
        name = {".lime": "ildg", ".ildg": "ildg", ".nersc": "nersc", ".milc": "milc"}.get(Path(path).suffix)
        if name is None:
            raise BadInput(
                f"{path}: expected a file name that ends in .lime, .ildg, .nersc or .milc, found another and no "
                f"format; name one of {', '.join(FORMATS)} (file_format, --format)"
            )
    if name not in _WRITERS:
        raise BadInput(f"expected one of the formats {', '.join(FORMATS)}, found {name!r}")
    if precision not in (None, 32, 64):
        raise BadInput(f"expected a precision of 32 or 64 bits, found {precision}")
    if name == "milc" and precision == 64:
        raise BadInput("expected a precision of 32 bits for MILC version 5, found 64")
    return name, precision or (32 if name == "milc" else 64)


def check_target(path: str, overwrite: bool) -> None:
    """Refuse, before a long computation, a file that exists and may not be replaced, or that cannot be written."""
    # A file that is open already, such as /dev/stdout, is continued.
    check_file_target(path, "output", replaces=open_descriptor(path) is None)
    if not overwrite and Path(path).exists():
        raise BadInput(
            f"{path} exists already; choose another name, or overwrite it (overwrite, --overwrite)"
        )


def check_gauge_target(path: str, file_format: str | None, precision: int | None, overwrite: bool) -> str:
    """Refuse what `write_gauge` would refuse, and return the format that it would use."""
    name, _ = _format(path, file_format, precision)
    check_target(path, overwrite)
    return name


def write_from_one(path: str, group: Group, make: Callable[[], list[bytes]], overwrite: bool) -> None:
    """Write the bytes that `make` returns, on rank 0, under a temporary name first: a crash leaves a whole file.

    An exception there becomes BadInput on the other ranks. Collective.
    """
    require_same(group, "write", path=path, overwrite=overwrite)
    with together(group, f"cannot write {path}"):
        if group.rank == 0:
            parts = make()
            check_target(path, overwrite)
            with unfinished_file(path) as file:
                for part in parts:
                    file.write(part)


def require_memory_to_write(gauge: Gauge) -> None:
    """Raise Error unless there is memory to write a field with `write_gauge`, from copies on rank 0. Collective."""
    group, extents = gauge.group, gauge.geometry.extents
    copies = 2 + (_COPIES_WHILE_WRITING if group.rank == 0 else 0)
    needed = copies * sites_on_a_rank(extents, 1) * LINK_BYTES
    require_memory(group, extents, needed, "writing a gauge field")


def write_gauge(
    path: str,
    gauge: Gauge,
    file_format: str | None = None,
    *,
    precision: int | None = None,
    overwrite: bool = False,
    note: str = "",
) -> None:
    """Write a gauge field of four directions. Collective; rank 0 writes, from a copy of the whole lattice.

    Parameters
    ----------
    path : str
        The file.
    gauge : Gauge
        The field.
    file_format : str, optional
        "nersc" (three rows), "ildg" or "milc" (version 5). Default: by the suffix of the file.
    precision : int, optional
        Bits per number: 32 or 64. Default: 64, or 32 for MILC.
    overwrite : bool
        Whether an existing file may be replaced.
    note : str
        Text to store in the file for `read_note` (ILDG), or in a line of its header (NERSC).

    Raises
    ------
    BadInput
        On all ranks: the format or precision is unknown, the lattice does not have four directions, links are not
        finite, or the file exists or cannot be written.
    Error
        On all ranks: a machine has too little memory left.
    """
    name, bits = _format(str(file_path(path, "path")), file_format, precision)
    if len(gauge.geometry.block) != 4:
        raise BadInput(
            f"expected a lattice of four directions to write to a file, found {len(gauge.geometry.block)}"
        )
    if note and name == "milc":
        raise BadInput(f"expected the format ildg or nersc for a file with a note, found {name}")
    more = (note,) if note else ()
    require_memory_to_write(gauge)
    plaquettes, trace = gauge.plaquettes(), gauge.link_trace()
    if not np.isfinite([plaquettes.all, trace]).all():
        raise BadInput(
            f"cannot write {path}: expected links of finite numbers, found a plaquette of {plaquettes.all}"
        )
    links = gauge.gather()
    write_from_one(
        str(path), gauge.group, lambda: _WRITERS[name](links, bits, plaquettes, trace, *more), overwrite
    )
