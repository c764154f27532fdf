"""Schedules as data, and the pattern `halo`; the others are in `onehop.patterns`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onehop import _core
from onehop._core import (
    ArraySpec,
    Count,
    PairCount,
    Place,
    RankCount,
    Round,
    Schedule,
    Slice,
    Transfer,
    Violation,
    count,
    merge,
    verify,
    verify_or_throw,
)
from onehop.arguments import is_sequence, items, truth, whole_number, whole_numbers
from onehop.codec import element_type
from onehop.error import BadInput
from onehop.options import LARGEST_INT, LARGEST_SIZE, Options, filled, option
from onehop.rank_map import ranks_of_map
from onehop.text import counted

if TYPE_CHECKING:
    from onehop._keywords import HaloKeywords, Unpack

__all__ = [
    "ArraySpec",
    "Count",
    "HaloBlock",
    "PairCount",
    "Place",
    "RankCount",
    "Round",
    "Schedule",
    "Slice",
    "Transfer",
    "Violation",
    "count",
    "halo",
    "halo_block",
    "merge",
    "verify",
    "verify_or_throw",
]

Width = int | Sequence[int | tuple[int, int]]


@dataclass(kw_only=True)
class HaloOptions(Options):
    """The options of a halo exchange; `halo` documents them."""

    title = "Halo exchange"

    extents: Sequence[int] = option(
        ...,
        "Shape of the global array, without ghost layers.",
        "--extent",
        kind=tuple[int, ...],
        high=LARGEST_SIZE,
    )
    grid: Sequence[int] = option(
        ..., "Number of ranks per dimension.", kind=tuple[int, ...], high=LARGEST_INT
    )
    width: Any = option(
        1,
        "Number of ghost layers: 1, one per dimension (1x2x1), or below:above (1:0x2:2x1).",
        kind=str,
        metavar="W",
    )
    periodic: bool | Sequence[bool] = option(
        True,
        "Periodic boundaries: 1 or 0 (open) for all dimensions, or for each.",
        kind=tuple[bool, ...],
        metavar="1x1x0",
        alone="1",
        default="1",
    )
    corners: bool = option(False, "Also exchange edges and corners.")
    dtype: Any = option("float64", "NumPy dtype of a site.", kind=str, metavar="TYPE")
    fields: int | None = option(
        None, "Number of arrays that are exchanged together.", low=1, high=1024, default="1"
    )
    codec: str = option("raw", "Encoding of the messages (`onehop docs codecs`).", metavar="NAME")
    map: Any = None
    hosts: Any = None


@dataclass(frozen=True)
class HaloBlock:
    """One rank's block of an array that is split over a grid of ranks.

    Attributes
    ----------
    start : tuple of int
        Global index of its first interior site.
    extents : tuple of int
        Interior sites per dimension; where the grid does not divide the array, the first blocks have one more.
    shape : tuple of int
        Shape of the rank's array: the interior and the ghost layers on both sides.
    coords : tuple of int
        Its position in the grid.
    interior : tuple of slice
        The interior in the rank's array: `u[block.interior]`.
    """

    start: tuple[int, ...]
    extents: tuple[int, ...]
    shape: tuple[int, ...]
    coords: tuple[int, ...]
    interior: tuple[slice, ...]


def _per_dimension(value: Any, dims: int, name: str) -> list[Any]:
    """Return one value per dimension, from one value for all or a sequence."""
    if np.ndim(value) == 0:
        return [value] * dims
    values = list(value)
    if len(values) != dims:
        raise BadInput(
            f"expected {name} for {counted(dims, 'dimension')}, as many as extents has, found {len(values)}: {value!r}"
        )
    return values


def _widths(width: Width, dims: int) -> list[tuple[int, int]]:
    values = list(width) if is_sequence(width) else [width] * dims
    if len(values) != dims:
        raise BadInput(
            f"expected a width for each of {counted(dims, 'dimension')}, found {len(values)}: {width!r}; "
            "give one number, one per "
            f"dimension, or a pair (below, above) per dimension"
        )
    pairs = [value if isinstance(value, (tuple, list)) else (value, value) for value in values]
    for pair in pairs:
        if len(pair) != 2:
            raise BadInput(f"expected a width as a number or a pair (below, above), found {pair!r}")
    return [(whole_number(below, "width"), whole_number(above, "width")) for below, above in pairs]


def _element_bytes(dtype: Any, fields: int | None) -> list[int]:
    dtypes = dtype if isinstance(dtype, list) else [dtype]
    try:
        sizes = [np.dtype(one).itemsize for one in dtypes]
    except (TypeError, ValueError, SyntaxError) as error:  # NumPy evaluates parts of a text
        raise BadInput(f"expected a NumPy dtype, or a list with one per field, found {dtype!r}") from error
    if fields is None:
        return sizes
    if len(sizes) == 1:
        return sizes * fields
    if len(sizes) != fields:
        raise BadInput(
            f"expected {counted(fields, 'field')}, found {counted(len(sizes), 'dtype')}: {dtype!r}"
        )
    return sizes


def _types(dtype: Any, fields: int | None) -> list[str]:
    types = [element_type(one) for one in (dtype if isinstance(dtype, list) else [dtype])]
    return types * fields if fields is not None and len(types) == 1 else types


def _spec(options: HaloOptions) -> _core.HaloSpec:
    extents = whole_numbers(options.extents, "extents")
    dims = len(extents)
    grid = whole_numbers(_per_dimension(items(options.grid, "grid"), dims, "a grid"), "grid")
    widths = _widths(options.width, dims)
    periodic = [truth(one, "periodic") for one in _per_dimension(options.periodic, dims, "periodic")]
    if options.fields is not None:
        options.fields = whole_number(options.fields, "fields", 1, 1024)
    element_bytes = _element_bytes(options.dtype, options.fields)
    spec = filled(
        _core.HaloSpec(),
        extents=extents,
        grid=grid,
        widths=widths,
        periodic=periodic,
        corners=truth(options.corners, "corners"),
        element_bytes=element_bytes,
        rank_at=ranks_of_map(
            options.map,
            options.hosts,
            grid,
            periodic,
            _face_bytes(extents, grid, widths, sum(element_bytes)),
        ),
    )
    spec.set_codec(options.codec, _types(options.dtype, options.fields))
    return spec


def _face_bytes(
    extents: Sequence[int], grid: Sequence[int], widths: Sequence[tuple[int, int]], element_bytes: int
) -> list[int]:
    """Return the mean bytes of a message in each dimension, for the largest block."""
    block = [max(1, -(-extent // max(1, ranks))) for extent, ranks in zip(extents, grid, strict=True)]
    volume = math.prod(block) * element_bytes
    return [volume // block[d] * sum(widths[d]) // 2 for d in range(len(block))]


def halo(*, rank: int | None = None, **options: Unpack[HaloKeywords]) -> Schedule:
    """Build the schedule that exchanges the ghost layers of an array that is split over a grid of ranks.

    The schedule has one round: every ghost layer comes directly from the rank that owns it, and all data for one
    neighbour is one message. Building it needs no communication.

    Parameters
    ----------
    rank : int, optional
        Build only the part of this rank.

    Other Parameters
    ----------------
    extents : sequence of int
        Shape of the global array, without ghosts; 1 to 6 dimensions, C order.
    grid : sequence of int
        Ranks per dimension; the last runs fastest in the rank number, unless `map` says otherwise.
    width : int or sequence
        Ghost layers: one number, one per dimension, or a pair (below, above) per dimension.
    periodic : bool or sequence of bool
        Whether boundaries are periodic, for all dimensions or each. At an open boundary ghost layers exist but are not
        written.
    corners : bool
        Whether to exchange edges and corners, too.
    dtype : dtype, or list of dtypes
        Type of a site: "float64", ("float64", 3), ...; a list has one entry per field.
    fields : int, optional
        Number of arrays of the same dtype that are exchanged together.
    codec : str
        Format of the bytes on the wire (docs/reference/codecs.md). Every codec but "raw" rounds and needs a
        floating-point or complex dtype. Transfers inside a rank are not encoded.
    map : "auto", RankMap or sequence of int, optional
        The rank at each position of the grid. "auto" chooses ranks so that few bytes travel between hosts
        (`onehop.topology`); the ranks of a host take its positions in ascending order. Default: rank r is at
        position r.
    hosts : HostLayout or Group, optional
        The hosts of the ranks, for map="auto". Default: those of all ranks of this run, which must be those of the
        grid; the call is then collective.

    Returns
    -------
    Schedule
        The schedule. Array f is field f, with the shape `halo_block(...).shape`.

    Raises
    ------
    BadInput
        The parameters do not fit together.
    """
    return _core.halo(_spec(HaloOptions.of("halo", options)), rank)


def halo_block(*, rank: int, **options: Unpack[HaloKeywords]) -> HaloBlock:
    """Return a rank's part of the global array and the shape of its own array. Parameters as for `halo`.

    Raises
    ------
    BadInput
        The parameters do not fit together, or there is no such rank.
    """
    spec = _spec(HaloOptions.of("halo_block", options))
    block = _core.halo_block(spec, rank)
    interior = tuple(
        slice(below, below + extent) for (below, _), extent in zip(spec.widths, block.extents, strict=True)
    )
    return HaloBlock(
        tuple(block.start), tuple(block.extents), tuple(block.shape), tuple(block.coords), interior
    )
