"""Staggered phases and the boundary condition in time, multiplied into links."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.lattice.geometry import Geometry

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
    `links` is this rank's block, of shape (t, z, y, x, direction, row, column); `length` is 1 for fat links, 3 for long
    links. Raises BadInput.
    """
    check_phases(phases)
    found = np.array(links, np.complex128, order="C")
    _core.lattice_multiply_staggered_phases(found, geometry, rank, length, antiperiodic, phases == "milc")
    return found
