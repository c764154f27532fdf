"""Gauge fields that tests begin with, and the comparison of what grids of ranks find."""

from collections.abc import Callable
from typing import Any

import numpy as np

from onehop import Group
from onehop.lattice import Gauge, thermalize
from threads import run_threads

Extents = tuple[int, ...]


def random_gauge(group: Group, extents: Extents, grid: Extents | None = None) -> Gauge:
    gauge = Gauge(group, extents, grid)
    gauge.set_random(4)
    return gauge


def thermal_gauge(
    extents: Extents,
    group: Group | None = None,
    grid: Extents | None = None,
    *,
    beta: float = 6,
    sweeps: int = 3,
) -> Gauge:
    """The field after heat bath sweeps, each with an over-relaxation sweep."""
    gauge = Gauge(group or Group.alone(), extents, grid)
    thermalize(gauge, beta, sweeps, over_relaxations=1)
    return gauge


def abelian(angles: np.ndarray) -> Gauge:
    """Links exp(i angle diag(1, -1, 0)), from angles of shape (t, z, y, x, direction)."""
    gauge = Gauge(Group.alone(), angles.shape[-2::-1])
    gauge.set_links(np.exp(1j * angles[..., None] * np.array([1, -1, 0]))[..., None] * np.eye(3))
    return gauge


def constant_flux(extents: Extents, n: int, m: int) -> Gauge:
    """A field of n and m quanta of flux through two planes. Its charge is 2 n m, with sin(angle) in place of angles."""
    angles = np.zeros((*extents[::-1], 4))
    t, z, y, x = np.indices(extents[::-1])
    for along, across, quanta, where in ((0, 1, n, (x, y)), (2, 3, m, (z, t))):
        size = extents[along]
        angle = 2 * np.pi * quanta / (size * extents[across])
        # The last column compensates, so that every plaquette has the same angle modulo 2 pi.
        angles[..., across] = angle * where[0]
        angles[..., along] = np.where(where[0] == size - 1, -angle * size * where[1], 0)
    return abelian(angles)


def same_on_grids(one_rank: Callable[[Group, Extents], Any], *grids: Extents) -> None:
    """Every rank of every grid finds what one rank finds alone."""
    expected = one_rank(Group.alone(), (1,) * len(grids[0]))
    for grid in grids:
        for found in run_threads(int(np.prod(grid)), lambda group, grid=grid: one_rank(group, grid)):
            assert found == expected
