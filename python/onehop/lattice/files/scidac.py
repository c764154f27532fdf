"""Read and write SciDAC files of colour vectors, and read links that are not in SU(3), such as fat and long links."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from onehop._core import __version__
from onehop.arguments import complex_array
from onehop.error import BadInput
from onehop.group import Group, require_same, together
from onehop.lattice.files import lime
from onehop.lattice.files.blocks import first_bytes
from onehop.lattice.files.headers import read_header
from onehop.lattice.files.layout import VectorLayout, read_numbers, scidac_checksums
from onehop.lattice.files.lime_headers import check_scidac_record, scidac_dims, scidac_sums, tag, text_of
from onehop.lattice.files.parsing import what_it_is, whole_number
from onehop.lattice.files.write import write_from_one
from onehop.lattice.geometry import LINK_BYTES, TABLE_BYTES, Geometry, require_memory, sites_on_a_rank
from onehop.output import file_path


def read_links(
    path: str, group: Group, grid: Sequence[int] | None = None, *, width: int = 1
) -> tuple[NDArray[np.complex128], Geometry]:
    """Read links that need not be in SU(3), from any format of gauge fields. Collective: every rank reads its block.

    Parameters
    ----------
    path : str
        A file that every rank can read.
    group : Group
        The ranks.
    grid : sequence of int, optional
        Number of ranks in each direction. Default: the grid with the smallest surface whose blocks have at least
        `width` sites in each direction.
    width : int
        Width of the halo of operators on these links.

    Returns
    -------
    links : array
        This rank's block, shape (t, z, y, x, direction, row, column).
    geometry : Geometry
        The decomposition of the lattice.

    Raises
    ------
    BadInput
        The file does not exist, is cut off, or has an unknown format; its header contradicts itself; or the links are
        not finite or do not have the checksums of the file.
    Error
        A machine has too little memory left.
    """
    require_same(group, "read_links", path=str(path), grid=grid, width=width)
    with together(group, f"cannot read {path}"):
        layout = read_header(str(path))
    sites_here = sites_on_a_rank(layout.extents, group.size)
    needed = layout.read_bytes(group.size) + sites_here * (LINK_BYTES + TABLE_BYTES)
    require_memory(group, layout.extents, needed, f"reading {path}, links")
    try:
        geometry = Geometry(layout.extents, grid, ranks=group.size, width=width)
    except BadInput as error:  # invalid extents, or a grid that does not fit them
        raise BadInput(f"{path}: {error}") from error
    return read_numbers(layout, geometry, group)[0], geometry


_HEADER = "scidac-private-record-xml"


def _put_once(path: str, known: dict[str, lime.Record], record: lime.Record) -> None:
    """Add a record that describes a field; raise BadInput if a SciDAC record of this name is there and differs."""
    other = known.setdefault(record.name, record)
    if record.name.startswith("scidac-") and text_of(path, other) != text_of(path, record):
        raise BadInput(
            f"{path}: its header contradicts itself: it has two records {record.name} of one field that differ; it was "
            "altered"
        )


def messages(path: str) -> list[dict[str, lime.Record]]:
    """Return the fields of a file: for each its binary record and the records that describe it, by name."""
    start = first_bytes(path)
    if not lime.is_lime(start):
        raise BadInput(f"{path}: expected a SciDAC file (LIME), found {what_it_is(start)}")
    fields: list[dict[str, lime.Record]] = []
    of_file: dict[str, lime.Record] = {}
    texts: dict[str, lime.Record] = {}  # of the next field
    lost: list[str] = []  # records of a field without numbers
    for record in lime.records(path):
        of_grid = record.name == "ildg-binary-data" and "grid-format" in texts and "ildg-format" not in texts
        if record.name == "scidac-binary-data" or of_grid:
            fields.append({**of_file, **texts, "scidac-binary-data": record})
            texts = {}
        elif record.name == "scidac-checksum" and fields and _HEADER not in texts:
            _put_once(path, fields[-1], record)
        else:
            _put_once(path, of_file if record.name.startswith("scidac-private-file") else texts, record)
            if record.name == "scidac-checksum" or (record.name == _HEADER and texts[_HEADER] is not record):
                lost += texts
                texts = {}
    if not fields:
        raise BadInput(
            f"{path}: expected a LIME record scidac-binary-data, found {', '.join({**of_file, **texts}) or 'none'}"
        )
    if lost or _HEADER in texts:
        raise BadInput(
            f"{path}: expected a LIME record scidac-binary-data behind each {_HEADER}, found "
            f"{', '.join(dict.fromkeys(lost or texts))}; it was altered"
        )
    return fields


# The complex numbers of a site of each kind of field, and the name of the kind in messages.
SITES = {
    "ColorVector": ((3,), "colour vectors"),
    "DiracFermion": ((4, 3), "spinors"),
    "DiracPropagator": ((4, 4, 3, 3), "propagators of Wilson quarks"),
    "ColorMatrix": ((3, 3), "propagators of staggered quarks"),
}


def field_layout(
    path: str, records: dict[str, lime.Record], geometry: Geometry, kind: str = "ColorVector"
) -> VectorLayout:
    """Read the headers of a field. Raises BadInput for another kind or lattice, and for contradictions."""
    inner, plural = SITES[kind]
    about = text_of(path, records.get("scidac-private-record-xml"))
    file_about = text_of(path, records.get("scidac-private-file-xml"))
    try:
        bits = {"F": 32, "D": 64}[tag(about, "precision") or ""]
        extents = scidac_dims(path, file_about) or ()
        count, colours = whole_number(path, tag(about, "datacount") or "", "datacount"), tag(about, "colors")
        data = records["scidac-binary-data"]
        if extents != tuple(geometry.extents):
            raise BadInput(
                f"{path}: expected a lattice of {'x'.join(map(str, geometry.extents))}, found one of "
                f"{'x'.join(map(str, extents)) or 'no extents'}"
            )
        needed = math.prod(extents) * count * 2 * math.prod(inner) * bits // 8
        if colours != "3" or count < 1 or data.length != needed:
            raise BadInput(
                f"{path}: expected {count} {plural} per site in {needed} bytes, found "
                f"{tag(about, 'datatype') or '?'} with {colours} colours in {data.length} bytes"
            )
        check_scidac_record(path, about, bits, 2 * math.prod(inner) * count, kind)
    except KeyError as error:
        raise BadInput(f"{path}: expected the precision F or D in its header, found {error}") from error
    except BadInput:  # BadInput is a ValueError
        raise
    except ValueError as error:
        raise BadInput(f"{path}: expected numbers in its header, found {error}; it was altered") from error
    sums = scidac_sums(path, records.get("scidac-checksum"))
    dtype = np.dtype(f">f{bits // 8}")
    return VectorLayout(path, "scidac", extents, data.offset, dtype, checksums=sums, count=count, inner=inner)


def links_have_checksum(path: str) -> bool:
    """Whether a file of links has a checksum, which the readers verify."""
    return bool(read_header(path).checksums)


def vectors_have_checksum(path: str) -> bool:
    """Whether all records of a SciDAC file of vectors have a checksum, which `read_vectors` verifies."""
    return lime.is_lime(first_bytes(path)) and all("scidac-checksum" in one for one in messages(path))


def read_vectors(path: str, geometry: Geometry, group: Group) -> NDArray[np.complex128]:
    """Read all colour vectors of a SciDAC file. Collective: every rank reads its block.

    Parameters
    ----------
    path : str
        A file that every rank can read.
    geometry : Geometry
        The expected lattice and its decomposition.
    group : Group
        The ranks.

    Returns
    -------
    array
        The vectors of all records in order, of shape (vectors, t, z, y, x, 3).

    Raises
    ------
    BadInput
        The file does not exist, is cut off or altered, or is not a SciDAC file; or it has another kind of field or
        another lattice; or a number is not finite.
    Error
        A machine has too little memory left.
    """
    with together(group, f"cannot read {path}"):
        headers = [field_layout(str(path), one, geometry) for one in messages(str(path))]
    return np.concatenate(read_fields(headers, geometry, group))


def read_fields(
    headers: Sequence[VectorLayout], geometry: Geometry, group: Group
) -> list[NDArray[np.complex128]]:
    """Read this rank's block of each field, of shape (count, t, z, y, x, *inner). Collective."""
    # The numbers as read, converted, and joined.
    of_site = sum(2 * 16 * math.prod(one.inner) * one.count for one in headers)
    of_site += max(one.site_bytes for one in headers)
    needed = sites_on_a_rank(geometry.extents, group.size) * of_site
    require_memory(group, geometry.extents, needed, f"reading {headers[0].path}, vectors")
    return [np.moveaxis(read_numbers(one, geometry, group)[0], len(one.extents), 0) for one in headers]


def field_record(field: NDArray[np.complex128], kind: str, bits: int, about: str) -> list[tuple[str, bytes]]:
    """Return the records of a whole field, of shape (t, z, y, x, *inner). `about` is the XML that describes it."""
    with np.errstate(over="ignore"):
        raw = np.stack([field.real, field.imag], axis=-1).astype(f">f{bits // 8}")
    if not np.isfinite(raw).all():
        raise BadInput(
            f"expected vectors of numbers that are finite in {bits} bits, found NaN, an infinity or one beyond them"
        )
    sums = scidac_checksums(raw, np.arange(np.prod(field.shape[:4]), dtype=np.int64))
    return [
        lime.scidac_record(kind, bits, 2 * math.prod(field.shape[4:]), 1),
        lime.xml("scidac-record-xml", about),
        ("scidac-binary-data", raw.tobytes()),
        lime.scidac_checksum(*sums),
    ]


def write_vectors(
    path: str,
    vectors: NDArray[np.complex128],
    geometry: Geometry,
    group: Group,
    *,
    precision: int = 32,
    note: str = "colour vector",
    overwrite: bool = False,
) -> None:
    """Write colour vectors to a SciDAC file, one record each. Collective; rank 0 writes.

    Parameters
    ----------
    path : str
        The file.
    vectors : array
        This rank's block, shape (vectors, t, z, y, x, 3).
    geometry : Geometry
        The lattice and its decomposition.
    group : Group
        The ranks.
    precision : int
        Bits per number: 32 or 64.
    note : str
        Description of the records, stored with each of them.
    overwrite : bool
        Whether an existing file may be replaced.

    Raises
    ------
    BadInput
        On all ranks: the precision is neither 32 nor 64, a number is not finite in it, or the file exists or cannot be
        written.
    """
    mine = complex_array(vectors, "vectors")
    if mine.shape[1:] != (*geometry.block_shape, 3):
        raise BadInput(
            f"expected vectors of shape (vectors, {', '.join(map(str, geometry.block_shape))}, 3), found "
            f"{mine.shape}"
        )
    about = f"<note>{escape(note, quote=False)}</note>"

    def make(whole: NDArray[np.complex128]) -> list[list[tuple[str, bytes]]]:
        return [field_record(one, "ColorVector", precision, about) for one in whole]

    write_fields(path, mine, geometry, group, make, precision=precision, overwrite=overwrite)


def write_fields(
    path: str,
    fields: NDArray[np.complex128],
    geometry: Geometry,
    group: Group,
    make: Callable[[NDArray[np.complex128]], list[list[tuple[str, bytes]]]],
    *,
    precision: int,
    about: str = "",
    overwrite: bool = False,
) -> None:
    """Write the messages that `make` returns for the fields of the whole lattice. Collective; rank 0 writes.

    `fields` is this rank's block, of shape (fields, t, z, y, x, ...); `about` is XML that describes the file.
    """
    if precision not in (32, 64):
        raise BadInput(f"expected a precision of 32 or 64 bits, found {precision}")

    def packed(whole: NDArray[np.complex128]) -> list[bytes]:
        head = lime.scidac_file(geometry.extents, f"written by onehop {__version__}", about)
        return [lime.pack([head, *make(whole)])]

    write_gathered(path, fields, geometry, group, packed, overwrite)


def write_gathered(
    path: str,
    fields: NDArray[np.complex128],
    geometry: Geometry,
    group: Group,
    make: Callable[[NDArray[np.complex128]], list[bytes]],
    overwrite: bool,
) -> None:
    """Write the bytes that `make` returns for the fields of the whole lattice. Collective; rank 0 writes."""
    require_same(group, "write", path=str(path), shape=fields.shape)
    # The bytes of all ranks on each of them; on rank 0 also the whole fields, their records, and the file.
    of_site = 16 * len(fields) * math.prod(fields.shape[5:])
    whole = sites_on_a_rank(geometry.extents, 1) * of_site
    require_memory(group, geometry.extents, (1 + 5 * (group.rank == 0)) * whole, "writing vectors")
    parts = group.allgather(fields.tobytes())

    def joined() -> list[bytes]:
        whole = np.empty((len(fields), *geometry.shape, *fields.shape[5:]), np.complex128)
        for rank, part in enumerate(parts):
            block = np.frombuffer(part, np.complex128).reshape(fields.shape)
            whole[(slice(None), *geometry.block_slices(rank))] = block
        return make(whole)

    write_from_one(str(file_path(path, "path")), group, joined, overwrite)
