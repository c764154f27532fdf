"""Gauge files of openQCD, which have neither a magic number nor a checksum."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.lattice.files.blocks import read_block
from onehop.lattice.files.layout import HeaderAverage, Layout

_OWN_DIRECTION = (3, 0, 1, 2)  # openQCD's directions are t, x, y, z


class OpenQcdLayout(Layout):
    """The layout of openQCD: the eight links around every odd site, t slowest and z fastest, directions t, x, y, z."""

    def read_bytes(self, ranks: int) -> float:
        """The memory in bytes that each of the ranks needs to read its block: also a time slice, and its links."""
        return super().read_bytes(ranks) + math.prod(self.extents[:3]) * 4 * 9 * 16 * 2

    def raw_block(self, slices: Any) -> NDArray[Any]:
        """Return the numbers of a block in lexicographic order, read time slice by time slice."""
        times, *others = slices
        x, y, z, t = self.extents
        counts = [one.stop - one.start for one in slices]
        block = np.empty((*counts, 4, 3, 3, 2), self.dtype)
        whole = np.empty((z, y, x, 4, 3, 3, 2), self.dtype)
        for number, time in enumerate(range(times.start, times.stop)):
            self._put(whole, time, behind=False)
            self._put(whole, (time + 1) % t, behind=True)
            block[number] = whole[tuple(others)]
        return block

    def _put(self, whole: NDArray[Any], time: int, *, behind: bool) -> None:
        """Store the links around the odd sites of a time slice that belong to it, or to the slice behind it."""
        x, y, z, t = self.extents
        sites = np.indices((x, y, z)).reshape(3, -1)
        odd = sites[:, (sites.sum(axis=0) + time) % 2 == 1]
        shape = (t, odd.shape[1], 8, 3, 3, 2)
        stored = read_block(self.path, self.dtype, self.offset, shape, (slice(time, time + 1),))[0]
        if behind:
            whole[odd[2], odd[1], odd[0], _OWN_DIRECTION[0]] = stored[:, 1]
            return
        whole[odd[2], odd[1], odd[0], _OWN_DIRECTION[0]] = stored[:, 0]
        for direction in (1, 2, 3):
            own = _OWN_DIRECTION[direction]
            whole[odd[2], odd[1], odd[0], own] = stored[:, 2 * direction]
            at = odd.copy()
            at[own] = (at[own] - 1) % (x, y, z)[own]
            whole[at[2], at[1], at[0], own] = stored[:, 2 * direction + 1]


def openqcd(path: str, start: bytes) -> Layout | None:
    """Read an openQCD header: four extents and Re tr of the plaquette, in little-endian order, without a magic number.

    The links are in double precision.
    """
    if len(start) < 24:
        return None
    t, x, y, z = struct.unpack("<4i", start[:16])
    (plaquette,) = struct.unpack("<d", start[16:24])
    length = Path(path).stat().st_size
    if any(extent < 2 or extent > 1 << 16 or extent % 2 for extent in (t, x, y, z)):
        return None
    if not -3 <= plaquette <= 3:
        return None
    layout = OpenQcdLayout(path, "openqcd", (x, y, z, t), 24, np.dtype("<f8"))
    layout.averages.append(HeaderAverage("plaquette", plaquette, scales=(3.0,)))
    return layout if length <= layout.bytes_needed and length > 24 else None
