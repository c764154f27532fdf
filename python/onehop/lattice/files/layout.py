"""Layout of links in gauge files, and checksums that the ranks compute in parts."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.group import Group, together
from onehop.lattice.files.blocks import read_block
from onehop.lattice.geometry import Geometry

_SITES_AT_ONCE = 1 << 13

# Upper limit for the rounding error that a number with few digits is granted.
MAX_ROUNDING = 1e-4

# Computes this rank's part of each checksum from the raw numbers and the numbers of their sites; `combine` joins them.
Partial = Callable[[NDArray[Any], NDArray[np.int64]], list[int]]


@dataclass(frozen=True)
class HeaderAverage:
    """An average over the links in a header: "plaquette", "spatial plaquette", "plaquette in time" or "link trace".

    The accepted normalisations are 1 for the average of Re tr / 3, and 3 for that of Re tr: programs that write USQCD's
    `<plaq>` differ in it.
    """

    what: str
    value: float
    rounding: float = 0.0  # the largest error of the number, from its number of digits
    scales: tuple[float, ...] = (1.0,)

    @staticmethod
    def of_text(what: str, text: str, scales: tuple[float, ...] = (1.0,)) -> HeaderAverage:
        """Parse a number in decimal digits. Raises ValueError if the text is not a number."""
        value = float(text)
        try:
            exponent = Decimal(text).as_tuple().exponent if np.isfinite(value) else 0
        except ArithmeticError:  # the exponent is out of Decimal's range
            raise ValueError(f"{text[:40]!r} as {what}") from None
        rounding = 0.51 * 10.0**exponent if isinstance(exponent, int) and exponent < 0 else 0.0
        return HeaderAverage(what, value, min(rounding, MAX_ROUNDING), scales)


@dataclass
class Layout:
    """The place and format of links in a file, and the checksums and averages in its header."""

    path: str
    format: str
    extents: tuple[int, ...]  # x first
    offset: int  # of the first number, in bytes
    dtype: np.dtype[Any]
    rows: int = 3  # stored rows per link
    checksums: dict[str, int] = field(default_factory=dict)
    averages: list[HeaderAverage] = field(default_factory=list)
    accepts_checksum: bool = False  # whether a wrong checksum is noted in `accepted`, rather than an error
    accepted: list[str] = field(default_factory=list)  # what was wrong, now or when the links were first read
    what: ClassVar[str] = "links"

    @property
    def bytes_needed(self) -> int:
        """The length in bytes of a file that contains all links and nothing after them."""
        return self.offset + math.prod(self.extents) * 4 * self.rows * 6 * self.dtype.itemsize

    def read_bytes(self, ranks: int) -> float:
        """The memory in bytes that each of the ranks needs to read its block and convert it to links."""
        sites = math.prod(self.extents) / ranks
        converted = 4 * 9 * 16 * (1 if self.rows == 3 else 2.2)  # with a third row computed from two
        return sites * (4 * self.rows * 6 * self.dtype.itemsize + converted + 80)

    def check_length(self) -> None:
        """Refuse a file that is too short, or one with something after its links in a format that has nothing there."""
        found = Path(self.path).stat().st_size
        if found < self.bytes_needed:
            raise BadInput(
                f"{self.path} is cut off: expected {self.bytes_needed} bytes for a lattice of "
                f"{'x'.join(map(str, self.extents))} ({self.format}), found {found}; copy it again"
            )
        if found > self.bytes_needed and self.format in ("milc", "milc-v1", "nersc"):
            raise BadInput(
                f"{self.path}: expected {self.bytes_needed} bytes for the lattice {'x'.join(map(str, self.extents))} "
                f"of its {self.format} header with {self.rows} rows of {8 * self.dtype.itemsize}-bit numbers, found "
                f"{found}; the header or the file was altered"
            )

    def raw_block(self, slices: Sequence[slice]) -> NDArray[Any]:
        """Return the numbers of a block in the file's dtype, of shape (t, z, y, x, direction, row, column, 2)."""
        shape = (*self.extents[::-1], 4, self.rows, 3, 2)
        return read_block(self.path, self.dtype, self.offset, shape, slices)

    def numbers(self, raw: NDArray[Any]) -> NDArray[np.complex128]:
        """Convert raw numbers, and compute the third row of links from the first two if the file has only two."""
        with np.errstate(invalid="ignore"):  # of a signaling NaN, which is refused later
            kept = np.ascontiguousarray(raw, np.float64).view(np.complex128)[..., 0]
        if self.rows == 3:
            return kept
        links = np.empty((*kept.shape[:-2], 3, 3), np.complex128)
        links[..., :2, :] = kept
        links[..., 2, :] = np.cross(kept[..., 0, :], kept[..., 1, :]).conj()
        return links


@dataclass
class VectorLayout(Layout):
    """The same for colour vectors, spinors or propagators, `count` at each site."""

    count: int = 1
    inner: tuple[int, ...] = (3,)  # shape of the complex numbers of one of them
    what = "vectors"

    @property
    def site_bytes(self) -> int:
        """The bytes of a site in the file."""
        return self.count * 2 * math.prod(self.inner) * self.dtype.itemsize

    def raw_block(self, slices: Sequence[slice]) -> NDArray[Any]:
        """Return the numbers of a block in the file's dtype, of shape (t, z, y, x, vector, *inner, 2)."""
        shape = (*self.extents[::-1], self.count, *self.inner, 2)
        return read_block(self.path, self.dtype, self.offset, shape, slices)


def read_numbers(
    layout: Layout, geometry: Geometry, group: Group
) -> tuple[NDArray[np.complex128], NDArray[np.int64], dict[str, int]]:
    """Read and check this rank's block. Collective.

    Returns the numbers, the lexicographic numbers of their sites in the whole lattice, and the checksums of the whole
    lattice. Raises BadInput, on all ranks, for a checksum that differs from the file's, and for numbers that are not
    finite.
    """
    slices = geometry.block_slices(group.rank)
    with together(group, f"cannot read {layout.path}"):
        raw = layout.raw_block(slices)
    sites = site_numbers(layout.extents, slices)
    sums = _check_sums(layout, raw, sites, group)
    numbers = layout.numbers(raw)
    del raw
    _check_finite(layout, numbers, sites, group)
    return numbers, sites, sums


def _check_finite(
    layout: Layout, numbers: NDArray[np.complex128], sites: NDArray[np.int64], group: Group
) -> None:
    """Raise BadInput, on all ranks, with the first site of the whole lattice that has an infinite number or NaN."""
    good = np.isfinite(numbers).reshape(len(sites), numbers.shape[len(layout.extents)], -1).all(axis=-1)
    mine: list[int] = []
    if not good.all():
        bad = np.flatnonzero(~good.all(axis=1))
        first = bad[np.argmin(sites[bad])]
        mine = [int(sites[first]), int(np.argmin(good[first]))]
    found = [part for part in _from_all(group, mine) if part]
    if found:
        number, which = min(found)
        where = f"direction {'xyzt'[which]}" if layout.what == "links" else f"vector {which}"
        raise BadInput(
            f"{layout.path}: expected finite {layout.what}, found one with NaN or infinity at (x, y, z, t) = "
            f"{site_of(number, layout.extents)} in {where}; the file was altered, or written by a run that failed"
        )


def _from_all(group: Group, mine: Any) -> list[Any]:
    """Return what every rank has. Collective."""
    return [json.loads(part) for part in group.allgather(json.dumps(mine).encode())]


def site_of(number: int, extents: Sequence[int]) -> tuple[int, ...]:
    """Return the site, x first, with a lexicographic number in the whole lattice."""
    return tuple(int(one) for one in np.unravel_index(number, tuple(extents)[::-1])[::-1])


def site_numbers(extents: Sequence[int], slices: Sequence[slice]) -> NDArray[np.int64]:
    """Return the lexicographic numbers, in the whole lattice, of a block's sites, in the order of the block."""
    numbers = np.zeros((1,) * len(slices), np.int64)
    for axis, (one, extent) in enumerate(zip(slices, tuple(extents)[::-1], strict=True)):
        along = np.arange(one.start, one.stop, dtype=np.int64)
        numbers = numbers * extent + along.reshape([-1 if d == axis else 1 for d in range(len(slices))])
    return numbers.ravel()


def _rotated(words: NDArray[np.uint32], by: NDArray[np.int64]) -> NDArray[np.uint32]:
    left = by.astype(np.uint32)
    # A shift of 32 bits is undefined in C, so rotating by 0 shifts by 0 in both directions.
    return (words << left) | (words >> ((np.uint32(32) - left) % np.uint32(32)))


def milc_checksums(raw: NDArray[Any], sites: NDArray[np.int64]) -> list[int]:
    """Return MILC's two checksums: xor of all 32-bit words, each rotated by its number modulo 29 and modulo 31."""
    words = _words(raw, len(sites))
    numbers = sites[:, None] * words.shape[1] + np.arange(words.shape[1])
    return [int(np.bitwise_xor.reduce(_rotated(words, numbers % m), axis=None)) for m in (29, 31)]


def _words(raw: NDArray[Any], sites: int) -> NDArray[np.uint32]:
    """Return the values of the 32-bit words, in the byte order of the numbers."""
    order = ">" if raw.dtype.str[0] == ">" else "<"
    return np.frombuffer(raw.tobytes(), f"{order}u4").astype(np.uint32).reshape(sites, -1)


def nersc_checksum(raw: NDArray[Any], sites: NDArray[np.int64]) -> list[int]:
    """Return NERSC's checksum: the sum of all 32-bit words modulo 2^32."""
    return [int(_words(raw, len(sites)).sum(dtype=np.uint64) & np.uint64(0xFFFFFFFF))]


def scidac_checksums(raw: NDArray[Any], sites: NDArray[np.int64]) -> list[int]:
    """Return SciDAC's two checksums: xor of the CRC-32 of each site, rotated by its number modulo 29 and modulo 31."""
    per_site = memoryview(raw.tobytes())
    length = len(per_site) // max(len(sites), 1)
    crc = np.array([zlib.crc32(per_site[i : i + length]) for i in range(0, len(per_site), length)], np.uint32)
    return [int(np.bitwise_xor.reduce(_rotated(crc, sites % m), axis=None)) for m in (29, 31)]


CHECKSUMS: dict[str, tuple[tuple[str, ...], Partial]] = {
    "milc": (("sum29", "sum31"), milc_checksums),
    "nersc": (("checksum",), nersc_checksum),
    "ildg": (("suma", "sumb"), scidac_checksums),
    "scidac": (("suma", "sumb"), scidac_checksums),
}


def combine(format_name: str, parts: Sequence[Sequence[int]]) -> dict[str, int]:
    """Return the checksums of the whole lattice, from those of its blocks."""
    names, _ = CHECKSUMS[format_name]
    columns = list(zip(*parts, strict=True))
    if format_name == "nersc":
        return {names[0]: sum(columns[0]) & 0xFFFFFFFF}
    return {name: int(np.bitwise_xor.reduce(column)) for name, column in zip(names, columns, strict=True)}


def _check_sums(layout: Layout, raw: NDArray[Any], sites: NDArray[np.int64], group: Group) -> dict[str, int]:
    """Return the checksums of the whole lattice, empty for formats without any. Raises BadInput if one is wrong."""
    if layout.format not in CHECKSUMS:
        return {}
    names, partial = CHECKSUMS[layout.format]
    numbers = raw.reshape(len(sites), -1)
    # In parts, because a checksum needs several times the memory of its numbers.
    of_parts = [
        partial(numbers[first : first + _SITES_AT_ONCE], sites[first : first + _SITES_AT_ONCE])
        for first in range(0, len(sites), _SITES_AT_ONCE)
    ]
    found = combine(layout.format, _from_all(group, list(combine(layout.format, of_parts).values())))
    for name, value in layout.checksums.items():
        if name in found and found[name] != value:
            which = "" if names == ("checksum",) else f" {name}"
            wrong = (
                f"expected the {layout.format} checksum{which} {value:08x} of its header, found {found[name]:08x} "
                f"from its {'links' if layout.what == 'links' else 'numbers'}"
            )
            if not layout.accepts_checksum:
                raise BadInput(f"{layout.path} was altered: {wrong}; copy it again")
            layout.accepted.append(f"{Path(layout.path).name}: {wrong}")
    return found
