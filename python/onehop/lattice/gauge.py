"""The links of an SU(3) gauge field on a lattice that is split over ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice.geometry import Geometry

__all__ = ["Gauge", "Plaquettes", "thermalize"]


class Plaquettes(NamedTuple):
    """Averages of Re tr / 3 over plaquettes, 1 for unit links; the last direction is time."""

    all: float
    space: float
    time: float


class Gauge(_core.LatticeGauge):
    """An SU(3) matrix for every site and direction, at first the unit matrix.

    Collective over the group, as everything but `links` is.

    Parameters
    ----------
    group : Group
        The ranks.
    extents : sequence of int
        Sites per direction, direction 0 (x) first; 2 to 4 of them.
    grid : sequence of int, optional
        Ranks per direction; by default what cuts shortest.

    Raises
    ------
    BadInput
        A grid that is not one of the group's ranks, or does not divide the extents.
    """

    def __init__(self, group: Group, extents: Sequence[int], grid: Sequence[int] | None = None) -> None:
        self.group = group
        self.geometry = Geometry(extents, grid, ranks=group.size, parities=1)
        super().__init__(group, list(self.geometry.extents), list(self.geometry.grid))

    @property
    def links(self) -> NDArray[np.complex128]:
        """The block of this rank, copied: shape (t, z, y, x, direction, row, column) for four directions."""
        return super().get_links()

    def set_links(self, links: NDArray[Any]) -> None:
        """Take this rank's block from an array of the shape of `links`. Collective.

        Raises
        ------
        BadInput
            Another shape.
        """
        dims = len(self.geometry.block)
        expected = (*self.geometry.block_shape, dims, 3, 3)
        if np.shape(links) != expected:
            raise BadInput(f"expected links of shape {expected}, found {np.shape(links)}")
        links = np.ascontiguousarray(links, np.complex128)
        super().set_links(_core.Memory(links, False, "the links"))

    def gather(self) -> NDArray[np.complex128]:
        """The whole lattice, on every rank. Collective."""
        geometry, dims = self.geometry, len(self.geometry.block)
        whole = np.empty((*geometry.shape, dims, 3, 3), np.complex128)
        for rank, part in enumerate(self.group.allgather(self.links.tobytes())):
            block = np.frombuffer(part, np.complex128).reshape(*geometry.block_shape, dims, 3, 3)
            whole[geometry.block_slices(rank)] = block
        return whole

    def plaquettes(self) -> Plaquettes:
        """The average plaquettes, the same bits for every grid of ranks. Collective."""
        return Plaquettes(*super().plaquettes())


def thermalize(
    gauge: Gauge,
    beta: float,
    sweeps: int,
    *,
    seed: int = 1,
    over_relaxations: int = 4,
    first: int = 0,
    progress: Callable[[int], None] | None = None,
) -> list[float]:
    """Sweep by heat bath for the Wilson action; the same field, bit for bit, for every grid of ranks. Collective.

    Parameters
    ----------
    gauge : Gauge
        Where to start; afterwards where it ended.
    beta : float
        6 / g². Plaquettes begin as beta/18 + beta²/216 where it is small.
    sweeps : int
        Each is one of the heat bath, then `over_relaxations` that keep the action.
    seed : int
        Of the random numbers, which depend on it, the sweep and the place of a link in the whole lattice.
    first : int
        The number of the first sweep: to go on after so many.
    progress : callable, optional
        Called with the number of every sweep done.

    Returns
    -------
    list of float
        The average plaquette after every sweep.

    Raises
    ------
    BadInput
        Odd extents; beta below 0.
    """
    history = []
    for sweep in range(first, first + sweeps):
        gauge.heat_bath(beta, seed, sweep)
        for _ in range(over_relaxations):
            gauge.over_relax()
        history.append(gauge.plaquettes().all)
        if progress is not None:
            progress(sweep)
    return history
