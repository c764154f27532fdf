"""Layout of links in gauge files, and checksums that the ranks compute in parts."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice.files.blocks import read_block

_SITES_AT_ONCE = 1 << 13

# Upper limit for the rounding error that a number with few digits is granted.
MAX_ROUNDING = 1e-4

# Computes this rank's part of each checksum from the raw numbers and the numbers of their sites; `combine` joins them.
Partial = Callable[[NDArray[Any], NDArray[np.int64]], list[int]]


@dataclass(frozen=True)
class HeaderAverage:
    """An average over the links that a file's header contains.

    Attributes
    ----------
    what : str
        "plaquette", "spatial plaquette", "plaquette in time" or "link trace".
    value : float
        The number in the header.
    rounding : float
        Largest rounding error of the number, from its number of digits.
    scales : tuple of float
        Accepted normalisations: 1 for the average of Re tr / 3, 3 for that of Re tr. Programs that write USQCD's
        `<plaq>` differ in it.
    """

    what: str
    value: float
    rounding: float = 0.0
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
    """The place and format of links in a file, and the checksums and averages in its header.

    Attributes
    ----------
    path : str
        The file.
    format : str
        "milc", "nersc", "ildg", "scidac" or "openqcd".
    extents : tuple of int
        Extents of the lattice, (x, y, z, t).
    offset : int
        Offset of the first number in bytes.
    dtype : dtype
        Type of a number.
    rows : int
        Stored rows per link: 2 or 3.
    checksums : dict
        The checksums in the header, by name.
    averages : list of HeaderAverage
        The averages in the header.
    """

    path: str
    format: str
    extents: tuple[int, ...]
    offset: int
    dtype: np.dtype[Any]
    rows: int = 3
    checksums: dict[str, int] = field(default_factory=dict)
    averages: list[HeaderAverage] = field(default_factory=list)

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
        """Check the length of the file against its header.

        Raises
        ------
        BadInput
            The file is too short; or it is too long, and its format has nothing after the links.
        """
        found = Path(self.path).stat().st_size
        if found < self.bytes_needed:
            raise BadInput(
                f"{self.path} is cut off: expected {self.bytes_needed} bytes for a lattice of "
                f"{'x'.join(map(str, self.extents))} ({self.format}), found {found}; copy it again"
            )

        if found > self.bytes_needed and self.format in ("milc", "nersc"):
            raise BadInput(
                f"{self.path}: expected {self.bytes_needed} bytes for the lattice {'x'.join(map(str, self.extents))} "
                f"of its {self.format} header with {self.rows} rows of {8 * self.dtype.itemsize}-bit numbers, found "
                f"{found}; the header or the file was altered"
            )

    def raw_block(self, slices: Sequence[slice]) -> NDArray[Any]:
        """Return the numbers of a block in the file's dtype, of shape (t, z, y, x, direction, row, column, 2)."""
        shape = (*self.extents[::-1], 4, self.rows, 3, 2)
        return read_block(self.path, self.dtype, self.offset, shape, slices)

    def links(self, raw: NDArray[Any]) -> NDArray[np.complex128]:
        """Convert raw numbers to links, and compute the third row from the first two if the file has only two."""
        kept = np.ascontiguousarray(raw, np.float64).view(np.complex128)[..., 0]
        if self.rows == 3:
            return kept
        links = np.empty((*kept.shape[:-2], 3, 3), np.complex128)
        links[..., :2, :] = kept
        links[..., 2, :] = np.cross(kept[..., 0, :], kept[..., 1, :]).conj()
        return links


def check_finite(
    path: str, numbers: NDArray[np.complex128], sites: NDArray[np.int64], extents: Sequence[int], group: Group
) -> None:
    """Check that all links, or the numbers of all vectors, are finite. Collective.

    Parameters
    ----------
    path : str
        The file, for the error message.
    numbers : array
        The numbers of this rank's block; sites first, then links by direction, or vectors.
    sites : array of int64
        Lexicographic numbers of their sites in the whole lattice.
    extents : sequence of int
        Extents of the whole lattice, x first.
    group : Group
        The ranks.

    Raises
    ------
    BadInput
        On all ranks: a number is infinite or NaN. The message names the first such site of the whole lattice.
    """
    good = np.isfinite(numbers).reshape(len(sites), numbers.shape[len(extents)], -1).all(axis=-1)
    mine: list[int] = []
    if not good.all():
        bad = np.flatnonzero(~good.all(axis=1))
        first = bad[np.argmin(sites[bad])]
        mine = [int(sites[first]), int(np.argmin(good[first]))]
    parts = [json.loads(part) for part in group.allgather(json.dumps(mine).encode())]
    found = [one for one in parts if one]
    if found:
        number, which = min(found)
        matrices = numbers.ndim == len(extents) + 3
        what, where = ("links", f"direction {'xyzt'[which]}") if matrices else ("vectors", f"vector {which}")
        raise BadInput(
            f"{path}: expected finite {what}, found one with NaN or infinity at (x, y, z, t) = "
            f"{site_of(number, extents)} in {where}; the file was altered, or written by a run that failed"
        )


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


def check_sums(
    path: str,
    format_name: str,
    expected: dict[str, int],
    block: tuple[NDArray[Any], NDArray[np.int64]],
    group: Group,
    what: str = "links",
) -> dict[str, int]:
    """Compute the checksums of the whole lattice, and compare them with those in the file. Collective.

    Parameters
    ----------
    path : str
        The file, for the error message.
    format_name : str
        The format; formats without checksums give an empty result.
    expected : dict
        The checksums in the file.
    block : (array, array of int64)
        The raw numbers of this rank's block, and the lexicographic numbers of their sites.
    group : Group
        The ranks.
    what : str
        Names the numbers in the error message.

    Returns
    -------
    dict
        The checksums by name.

    Raises
    ------
    BadInput
        On all ranks: a checksum differs from the file's.
    """
    if format_name not in CHECKSUMS:
        return {}
    names, partial = CHECKSUMS[format_name]
    raw, sites = block
    numbers = raw.reshape(len(sites), -1)
    # In parts, because a checksum needs several times the memory of its numbers.
    of_parts = [
        partial(numbers[first : first + _SITES_AT_ONCE], sites[first : first + _SITES_AT_ONCE])
        for first in range(0, len(sites), _SITES_AT_ONCE)
    ]
    mine = list(combine(format_name, of_parts).values())
    parts = [json.loads(part) for part in group.allgather(json.dumps(mine).encode())]
    found = combine(format_name, parts)
    for name, value in expected.items():
        if name in found and found[name] != value:
            which = "" if names == ("checksum",) else f" {name}"
            raise BadInput(
                f"{path} was altered: expected the {format_name} checksum{which} {value:08x} of its header, found "
                f"{found[name]:08x} from its {what}; copy it again"
            )
    return found
