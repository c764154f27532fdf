"""Staggered phases and the boundary condition in time, multiplied into links."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.lattice.geometry import Geometry

__all__ = ["PHASES", "check_phases", "with_staggered_phases"]

# Order of directions in eta: x, y, z, t (standard) or t, x, y, z (MILC).
PHASES = ("standard", "milc")


def check_phases(phases: str) -> None:
    """Raise BadInput for an unknown convention of staggered phases."""
    if phases not in PHASES:
        raise BadInput(f"expected the staggered phases {' or '.join(PHASES)}, found {phases!r}")


def with_staggered_phases(
    links: NDArray[Any],
    geometry: Geometry,
    rank: int,
    *,
    length: int = 1,
    antiperiodic: bool = True,
    phases: str = "standard",
) -> NDArray[np.complex128]:
    """Multiply links with the staggered phases, and with -1 where they cross the end of the time direction.

    The phase is `eta_mu(x) = (-1)^(x_0 + ... + x_(mu-1))`. In MILC's convention time comes first: `eta_t = 1`, and in
    space `eta_i(x) = (-1)^(t + x_0 + ... + x_(i-1))`. Phases do not depend on x_mu, so long links have the same ones.

    Parameters
    ----------
    links : array
        This rank's block, shape (t, z, y, x, direction, row, column).
    length : int
        Length of a link in sites: 1 for fat links, 3 for long links.
    antiperiodic : bool
        Whether the boundary in the last direction is antiperiodic.
    phases : {"standard", "milc"}
        The convention of the phases.

    Raises
    ------
    BadInput
        The convention is unknown.
    """
    check_phases(phases)
    found = np.array(links, np.complex128)
    dims = len(geometry.extents)
    axes = [
        np.arange(part.start, part.stop).reshape([-1 if axis == i else 1 for i in range(dims)])
        for axis, part in enumerate(geometry.block_slices(rank))
    ]
    at = axes[::-1]  # direction 0 first
    for mu in range(dims):
        before = at[:mu] if phases == "standard" else at[:mu] + at[-1:] if mu < dims - 1 else []
        signs = np.ones(geometry.block_shape) * (-1.0) ** sum(before, start=np.zeros(()))
        if antiperiodic and mu == dims - 1:
            signs = signs * (-1.0) ** ((at[mu] + length) // geometry.extents[mu])
        found[..., mu, :, :] *= signs[..., None, None]
    return found
