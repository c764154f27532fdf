"""What all formats have in common: where links lie in a file, and checksums that each rank makes a part of."""

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

# A number with fewer digits than this has no more freedom than one with so many.
MOST_ROUNDING = 1e-4

# One number per checksum: those of this rank's block. `combine` makes that of the whole lattice of those of all ranks.
Partial = Callable[[NDArray[Any], NDArray[np.int64]], list[int]]


@dataclass(frozen=True)
class Said:
    """An average over the links that a header has.

    Attributes
    ----------
    what : str
        "plaquette" or "link trace".
    value : float
        As the file has it.
    rounding : float
        How far that may be from what it was made of, for it has so many digits only.
    scales : tuple of float
        Of what traces it may be the average: 1 of Re tr / 3, 3 of Re tr. Writers of USQCD's `<plaq>` differ in it.
    """

    what: str
    value: float
    rounding: float = 0.0
    scales: tuple[float, ...] = (1.0,)

    @staticmethod
    def of_text(what: str, text: str, scales: tuple[float, ...] = (1.0,)) -> Said:
        """Of a number in decimal digits; ValueError if it is none."""
        value = float(text)
        try:
            exponent = Decimal(text).as_tuple().exponent if np.isfinite(value) else 0
        except ArithmeticError:  # an exponent that no number has
            raise ValueError(f"{text[:40]!r} as {what}") from None
        rounding = 0.51 * 10.0**exponent if isinstance(exponent, int) and exponent < 0 else 0.0
        return Said(what, value, min(rounding, MOST_ROUNDING), scales)


@dataclass
class Layout:
    """Where links lie in a file, and what the file says about them.

    Attributes
    ----------
    format : str
        "milc", "nersc", "ildg", "scidac" or "openqcd".
    extents : tuple of int
        (x, y, z, t).
    offset : int
        Of the first number, in bytes.
    dtype : dtype
        Of a number.
    rows : int
        Of a link that are kept: 2 or 3.
    checksums : dict
        What the file says, by name.
    said : list of Said
        The averages that the file has.
    """

    path: str
    format: str
    extents: tuple[int, ...]
    offset: int
    dtype: np.dtype[Any]
    rows: int = 3
    checksums: dict[str, int] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)

    @property
    def bytes_needed(self) -> int:
        """The length of a file that has all links."""
        return self.offset + math.prod(self.extents) * 4 * self.rows * 6 * self.dtype.itemsize

    def check_length(self) -> None:
        """Find out before reading that the file was cut off, or has more links than its header says.

        Raises
        ------
        BadInput
            It is too short; too long, unless other records may follow.
        """
        found = Path(self.path).stat().st_size
        if found < self.bytes_needed:
            raise BadInput(
                f"{self.path} is cut off: expected {self.bytes_needed} bytes for a lattice of "
                f"{'x'.join(map(str, self.extents))} ({self.format}), found {found}; copy it again"
            )

        if found > self.bytes_needed and self.format in ("milc", "nersc"):
            raise BadInput(
                f"{self.path}: its {self.format} header says a lattice of {'x'.join(map(str, self.extents))} with "
                f"{self.rows} rows of {8 * self.dtype.itemsize}-bit numbers, {self.bytes_needed} bytes in all, found "
                f"{found}; the header or the file was altered"
            )

    def raw_block(self, slices: Sequence[slice]) -> NDArray[Any]:
        """The numbers of a block as they lie in the file: shape (t, z, y, x, direction, row, column, 2)."""
        shape = (*self.extents[::-1], 4, self.rows, 3, 2)
        whole = np.memmap(self.path, self.dtype, "r", self.offset, shape)
        return np.array(whole[tuple(slices)])

    def links(self, raw: NDArray[Any]) -> NDArray[np.complex128]:
        """Such numbers as links, a third row from the first two where it is not kept."""
        kept = np.ascontiguousarray(raw, np.float64).view(np.complex128)[..., 0]
        if self.rows == 3:
            return kept
        links = np.empty((*kept.shape[:-2], 3, 3), np.complex128)
        links[..., :2, :] = kept
        links[..., 2, :] = np.cross(kept[..., 0, :], kept[..., 1, :]).conj()
        return links


def check_links_finite(
    path: str, links: NDArray[np.complex128], sites: NDArray[np.int64], extents: Sequence[int], group: Group
) -> None:
    """Links of this rank's block, and the numbers of their sites. Collective.

    Raises
    ------
    BadInput
        On all ranks: some are infinite or no number; the first site of the whole lattice that has such a link is named.
    """
    good = np.isfinite(links).reshape(len(sites), links.shape[-3], -1).all(axis=-1)
    mine: list[int] = []
    if not good.all():
        bad = np.flatnonzero(~good.all(axis=1))
        first = bad[np.argmin(sites[bad])]
        mine = [int(sites[first]), int(np.argmin(good[first]))]
    everybody = [json.loads(part) for part in group.allgather(json.dumps(mine).encode())]
    found = [one for one in everybody if one]
    if found:
        number, direction = min(found)
        site = tuple(int(one) for one in np.unravel_index(number, tuple(extents)[::-1])[::-1])
        raise BadInput(
            f"{path}: expected links of finite numbers, found one with nan or infinity, at (x, y, z, t) = {site} in "
            f"direction {'xyzt'[direction]}; it was altered, or written by a run that failed"
        )


def site_numbers(extents: Sequence[int], slices: Sequence[slice]) -> NDArray[np.int64]:
    """The lexicographic numbers in the whole lattice of a block's sites, in the block's order."""
    return np.arange(np.prod(extents), dtype=np.int64).reshape(tuple(extents)[::-1])[tuple(slices)].ravel()


def _rotated(words: NDArray[np.uint32], by: NDArray[np.int64]) -> NDArray[np.uint32]:
    left = by.astype(np.uint32)
    # A shift by 32 has no meaning in C; rotating by 0 is shifting by 0 both ways.
    return (words << left) | (words >> ((np.uint32(32) - left) % np.uint32(32)))


def milc_checksums(raw: NDArray[Any], sites: NDArray[np.int64]) -> list[int]:
    """MILC's two: 32-bit words, each rotated by its number modulo 29 and modulo 31, all xor."""
    words = _words(raw, len(sites))
    numbers = sites[:, None] * words.shape[1] + np.arange(words.shape[1])
    return [int(np.bitwise_xor.reduce(_rotated(words, numbers % m), axis=None)) for m in (29, 31)]


def _words(raw: NDArray[Any], sites: int) -> NDArray[np.uint32]:
    """The values of the 32-bit words, in whatever order of bytes they are."""
    order = ">" if raw.dtype.str[0] == ">" else "<"
    return np.frombuffer(raw.tobytes(), f"{order}u4").astype(np.uint32).reshape(sites, -1)


def nersc_checksum(raw: NDArray[Any], sites: NDArray[np.int64]) -> list[int]:
    """NERSC's: the sum of all 32-bit words modulo 2^32."""
    return [int(_words(raw, len(sites)).sum(dtype=np.uint64) & np.uint64(0xFFFFFFFF))]


def scidac_checksums(raw: NDArray[Any], sites: NDArray[np.int64]) -> list[int]:
    """SciDAC's two: the CRC-32 of every site, rotated by the site's number modulo 29 and modulo 31, all xor."""
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
    """The checksums of the whole lattice from those of its blocks."""
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
    """The checksums of the whole lattice, of each rank's numbers and the sites that they are of. Collective.

    Raises
    ------
    BadInput
        On all ranks: the file says others.
    """
    if format_name not in CHECKSUMS:
        return {}
    mine = CHECKSUMS[format_name][1](*block)
    parts = [json.loads(part) for part in group.allgather(json.dumps(mine).encode())]
    found = combine(format_name, parts)
    for name, value in expected.items():
        if name in found and found[name] != value:
            raise BadInput(
                f"{path} was altered: it says, as {format_name} files do, that {name} is {value:08x}, its {what} make "
                f"{found[name]:08x}; copy it again"
            )
    return found
