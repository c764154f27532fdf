"""The links of an SU(3) gauge field on a lattice that is split over ranks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.arguments import finite_array, instance, whole_number, whole_numbers
from onehop.error import BadInput
from onehop.group import Group, require_same, together
from onehop.lattice.geometry import LARGEST_LATTICE, LINK_BYTES, Geometry, require_memory, sites_on_a_rank

__all__ = ["Gauge", "LinkDeviation", "Plaquettes", "thermalize"]


class Plaquettes(NamedTuple):
    """Averages of Re tr / 3 over plaquettes, 1 for unit links; the last direction is time."""

    all: float
    space: float
    time: float


class LinkDeviation(NamedTuple):
    """The link that is furthest from SU(3).

    Attributes
    ----------
    value : float
        Deviation of the link from SU(3).
    site : tuple of int
        Site of the link in the whole lattice.
    direction : int
        Direction of the link.
    """

    value: float
    site: tuple[int, ...]
    direction: int


class Gauge(_core.LatticeGauge):
    """An SU(3) gauge field: one matrix for every site and direction, initially the unit matrix.

    The constructor and all methods but `links` are collective over the group.

    Parameters
    ----------
    group : Group
        The ranks.
    extents : sequence of int
        Number of sites in each direction, direction 0 (x) first; 2 to 4 directions.
    grid : sequence of int, optional
        Number of ranks in each direction. Default: the grid with the smallest surface.
    map, hosts
        Which rank is at which position of the grid, as for `Geometry`.

    Raises
    ------
    BadInput
        The grid does not match the number of ranks, or does not divide the extents.
    Error
        A machine has too little memory left for its ranks.
    """

    def __init__(
        self,
        group: Group,
        extents: Sequence[int],
        grid: Sequence[int] | None = None,
        *,
        map: Any = None,  # noqa: A002, the name that says it
        hosts: Any = None,
    ) -> None:
        self.group = instance(group, Group, "group")
        require_same(group, "Gauge", extents=extents, grid=grid, map=map)
        extents = whole_numbers(extents, "extents")
        if sites_on_a_rank(extents, 1) <= LARGEST_LATTICE:
            needed = _core.LatticeGauge.bytes_on_a_rank(
                extents, [] if grid is None else list(grid), group.size
            )
            require_memory(group, extents, needed, "a gauge field")
        if isinstance(map, str) and hosts is None:
            hosts = group
        self.geometry = Geometry(extents, grid, ranks=group.size, parities=1, map=map, hosts=hosts)
        geometry = self.geometry
        super().__init__(group, list(geometry.extents), list(geometry.grid), list(geometry.rank_at))

    @property
    def links(self) -> NDArray[np.complex128]:
        """A copy of this rank's block, of shape (t, z, y, x, direction, row, column) for four directions."""
        return super().get_links()

    def set_links(self, links: NDArray[Any]) -> None:
        """Set this rank's block from an array of the shape of `links`. Collective.

        Raises
        ------
        BadInput
            On all ranks: an array has another shape, or a number is not finite.
        """
        dims = len(self.geometry.block)
        expected = (*self.geometry.block_shape, dims, 3, 3)
        with together(self.group):
            if np.shape(links) != expected:
                raise BadInput(f"expected links of shape {expected}, found {np.shape(links)}")
            links = finite_array(links, "the links")
        super().set_links(_core.Memory(links, False, "the links"))

    def gather(self) -> NDArray[np.complex128]:
        """Return the links of the whole lattice on every rank. Collective."""
        geometry, dims = self.geometry, len(self.geometry.block)
        blocks = 2 + 2 * self.group.size  # two copies of this rank's links, and two of all links
        needed = blocks * sites_on_a_rank(geometry.extents, self.group.size) * LINK_BYTES
        require_memory(self.group, geometry.extents, needed, "the links of all ranks")
        whole = np.empty((*geometry.shape, dims, 3, 3), np.complex128)
        for rank, part in enumerate(self.group.allgather(self.links.tobytes())):
            block = np.frombuffer(part, np.complex128).reshape(*geometry.block_shape, dims, 3, 3)
            whole[geometry.block_slices(rank)] = block
        return whole

    def sha256(self) -> str:
        """Return the SHA-256 of the links in lexicographic order, the same on every grid of ranks. Collective.

        It is that of all links as an array of shape (t, z, y, x, direction, row, column), of complex numbers in double
        precision and little-endian order.
        """
        geometry, links = self.geometry, self.links
        mine = geometry.block_slices(self.group.rank)
        digest = hashlib.sha256()
        for slowest in range(geometry.shape[0]):
            here = mine[0].start <= slowest < mine[0].stop
            part = links[slowest - mine[0].start] if here else links[:0]
            parts = self.group.allgather(part.tobytes()) if self.group.size > 1 else [part.tobytes()]
            whole = np.empty((*geometry.shape[1:], *links.shape[len(geometry.shape) :]), np.complex128)
            for rank, found in enumerate(parts):
                if found:
                    others = geometry.block_slices(rank)[1:]
                    whole[others] = np.frombuffer(found, np.complex128).reshape(whole[others].shape)
            digest.update(whole)
        return digest.hexdigest()

    def heat_bath(self, beta: float, seed: int, sweep: int) -> None:  # type: ignore[override]
        """Make a heat bath sweep for the Wilson action. The links depend on `seed` and `sweep`. Collective."""
        super().heat_bath(beta, seed, sweep)

    def plaquettes(self) -> Plaquettes:
        """Return the average plaquettes, the same bits on every grid of ranks. Collective."""
        return Plaquettes(*super().plaquettes())

    def deviation(self) -> LinkDeviation:
        """Return the largest deviation of a link from SU(3), with the place of that link. Collective."""
        value, site, direction = super().deviation()
        return LinkDeviation(value, tuple(site), direction)


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
    """Update a gauge field by heat bath sweeps for the Wilson action. Collective.

    The field is the same, bit for bit, on every grid of ranks.

    Parameters
    ----------
    gauge : Gauge
        The field to update in place.
    beta : float
        Inverse coupling 6 / g².
    sweeps : int
        Number of sweeps. Each is one heat bath sweep, followed by `over_relaxations` microcanonical sweeps.
    seed : int
        Random seed. Random numbers depend only on the seed, the sweep and the place of a link in the whole lattice.
    first : int
        Number of the first sweep, to continue an earlier run.
    progress : callable, optional
        Called with the number of each finished sweep.

    Returns
    -------
    list of float
        The average plaquette after each sweep.

    Raises
    ------
    BadInput
        An extent is odd, or beta is below 0.
    """
    first, sweeps = whole_number(first, "first", 0), whole_number(sweeps, "sweeps", 0)
    over_relaxations = whole_number(over_relaxations, "over_relaxations", 0)
    instance(gauge, Gauge, "gauge")
    require_same(gauge.group, "thermalize", sweeps=sweeps, first=first, over_relaxations=over_relaxations)
    history = []
    for sweep in range(first, first + sweeps):
        _core.LatticeGauge.heat_bath(gauge, beta, seed, sweep, sweep == first)
        for _ in range(over_relaxations):
            gauge.over_relax()
        history.append(gauge.plaquettes().all)
        if progress is not None:
            progress(sweep)
    return history
