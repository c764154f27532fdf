"""Spinor fields in files of openQCD's export_sfld: extents, the squared norm, and the spinors with z fastest."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.group import Group, together
from onehop.lattice.files.blocks import first_bytes, read_block
from onehop.lattice.files.scidac import write_gathered
from onehop.lattice.geometry import Geometry, require_memory, sites_on_a_rank

_HEAD = struct.Struct("<4id")
_BYTES = 192  # of a site
_TURNED = (0, 1, 4, 3, 2, 5, 6)  # from fields of (t, x, y, z) to those of (t, z, y, x), and back


def read_spinor(path: str, geometry: Geometry, group: Group) -> NDArray[np.complex128]:
    """Read a field as it is, of shape (1, t, z, y, x, spin, colour). Collective: every rank reads its block.

    Raises BadInput for a file of another lattice, of another length, or with another squared norm than its header says.
    """
    extents = tuple(geometry.extents)
    require_memory(group, extents, 2.0 * _BYTES * sites_on_a_rank(extents, group.size), "a spinor field")
    with together(group, f"cannot read {path}"):
        start = first_bytes(path)
        size, expected = Path(path).stat().st_size, _HEAD.size + _BYTES * math.prod(extents)
        *shape, norm = _HEAD.unpack(start[: _HEAD.size].ljust(_HEAD.size, b"\0"))
        found = (*shape[1:], shape[0])
        if found != extents or size != expected:
            raise BadInput(
                f"{path}: expected a SciDAC file, or a spinor field of openQCD on a lattice of "
                f"{'x'.join(map(str, extents))} with {expected} bytes, found the extents "
                f"{'x'.join(map(str, found))} and {size} bytes"
            )
        t, z, y, x = geometry.block_slices(group.rank)
        block = read_block(path, "<c16", _HEAD.size, (*shape, 4, 3), (t, x, y, z))
    mine = np.ascontiguousarray(block[None].transpose(_TURNED), np.complex128)
    total = sum(np.frombuffer(part)[0] for part in group.allgather(np.vdot(mine, mine).real.tobytes()))
    if not abs(total - norm) <= 1e-9 * total < math.inf:
        raise BadInput(
            f"{path}: expected spinors with the squared norm {norm:.12g} of its header, found {total:.12g}; it was "
            "altered"
        )
    return mine


def write_spinor(
    path: str, field: NDArray[np.complex128], geometry: Geometry, group: Group, overwrite: bool
) -> None:
    """Write a field of shape (1, t, z, y, x, spin, colour) as it is. Collective; rank 0 writes."""

    def make(whole: NDArray[np.complex128]) -> list[bytes]:
        turned = np.ascontiguousarray(whole.transpose(_TURNED), "<c16")
        x, y, z, t = geometry.extents
        return [_HEAD.pack(t, x, y, z, float(np.vdot(turned, turned).real)), turned.tobytes()]

    write_gathered(path, field, geometry, group, make, overwrite)
