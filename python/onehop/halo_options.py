"""The options of `halo` and `halo_block`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from onehop.options import LARGEST_INT, LARGEST_SIZE, Options, option

if TYPE_CHECKING:
    from typing_extensions import Required


class HaloKeywords(TypedDict, total=False):
    """The keyword arguments of `halo_block`; see `HaloOptions`."""

    extents: Required[Sequence[int]]
    grid: Required[Sequence[int]]
    width: Any
    periodic: bool | Sequence[bool]
    corners: bool
    dtype: Any
    fields: int | None
    codec: str
    map: Any
    hosts: Any


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
    codec: str = option("raw", "Encoding of the messages (docs/reference/codecs.md).", metavar="NAME")
    map: Any = None
    hosts: Any = None
