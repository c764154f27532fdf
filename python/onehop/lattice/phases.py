"""Signs of links: the phases of staggered quarks and the boundary in time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.lattice.geometry import Geometry

__all__ = ["with_staggered_phases"]


def with_staggered_phases(
    links: NDArray[Any], geometry: Geometry, rank: int, *, length: int = 1, antiperiodic: bool = True
) -> NDArray[np.complex128]:
    """Links times `eta_mu(x) = (-1)^(x_0 + ... + x_(mu-1))`, and -1 wherever one leads across the end of time.

    Parameters
    ----------
    links : array
        This rank's block, shape (t, z, y, x, direction, row, column).
    length : int
        How many sites a link goes: 1, or 3 for long ones.
    antiperiodic : bool
        In the last direction.
    """
    found = np.array(links, np.complex128)
    dims = len(geometry.extents)
    axes = [
        np.arange(part.start, part.stop).reshape([-1 if axis == i else 1 for i in range(dims)])
        for axis, part in enumerate(geometry.block_slices(rank))
    ]
    at = axes[::-1]  # direction 0 first
    for mu in range(dims):
        signs = np.ones(geometry.block_shape) * (-1.0) ** sum(at[:mu], start=np.zeros(()))
        if antiperiodic and mu == dims - 1:
            signs = signs * (-1.0) ** ((at[mu] + length) // geometry.extents[mu])
        found[..., mu, :, :] *= signs[..., None, None]
    return found
