"""The layout of a periodic lattice: which rank owns a site, and where in memory it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop._core import Schedule
from onehop.arguments import quoted, whole_numbers
from onehop.codec import element_type
from onehop.error import BadInput
from onehop.group import Group
from onehop.rank_map import ranks_of_map
from onehop.text import counted

__all__ = ["Geometry"]


LARGEST_LATTICE = 2**40  # sites


class Geometry(_core.LatticeGeometry):
    """The decomposition of a periodic lattice into one block per rank, ordered so that faces are contiguous.

    Direction 0 (x) runs fastest: an array of a lattice of extents (x, y, z, t) has the shape
    (t, z, y, x, ...). Ranks are numbered alike: rank number = c0 + grid[0] * (c1 + grid[1] * ...).

    Parameters
    ----------
    extents : sequence of int
        Number of sites of the whole lattice in each of 1 to 4 directions.
    grid : sequence of int, optional
        Number of ranks in each direction, dividing the extents. Default: the grid of `ranks` ranks with the smallest
        surface.
    ranks : int
        Number of ranks; ignored if `grid` is given.
    lanes : int
        Number of sites in a SIMD vector, a power of two. A rank's block is cut into one sub-block per lane.
    width : int
        Width of the halo in sites, 1 to 3.
    parities : int
        2: even and odd sites are stored apart, and all extents must be even. 1: all sites are stored together.
    map : "auto", RankMap or sequence of int, optional
        The rank at each position of the grid, direction 0 fastest. "auto" chooses ranks so that few bytes travel
        between hosts (`onehop.topology`). Default: rank r is at position r.
    hosts : HostLayout or Group, optional
        The hosts of the ranks, for map="auto". Default: those of all ranks of this run.

    Attributes
    ----------
    sites : array of int64, shape (vectors, lanes)
        The lexicographic number, within the block, of the site in each vector and lane.
    vectors, ghosts : int
        Number of own vectors of a rank, and of ghost vectors, which follow them.
    block, sub_block, lane_grid : tuple of int
        Sites of a rank, sites of a lane, and number of sub-blocks of a rank, in each direction.

    Raises
    ------
    BadInput
        The grid does not divide the extents, blocks are too thin, or the lanes do not fit.
    """

    def __init__(
        self,
        extents: Sequence[int],
        grid: Sequence[int] | None = None,
        *,
        ranks: int = 1,
        lanes: int = 1,
        width: int = 1,
        parities: int = 2,
        map: Any = None,  # noqa: A002, the name that says it
        hosts: Any = None,
    ) -> None:
        if grid is None:
            grid = Geometry.best_grid(extents, ranks, width)
        self._check_memory(extents, grid)
        rank_at = [] if map is None and hosts is None else self._ranks(extents, grid, width, map, hosts)
        super().__init__(extents, grid, lanes, width, parities, rank_at)

    @staticmethod
    def _check_memory(extents: Sequence[int], grid: Sequence[int]) -> None:
        try:
            sites = sites_on_a_rank(extents, math.prod(grid))
        except (TypeError, ValueError, OverflowError):  # the constructor says what is wrong
            return
        if sites > _SMALL:
            require_memory(Group.alone(), extents, _OWN_BYTES * sites, "the order of the sites")

    @staticmethod
    def _ranks(
        extents: Sequence[int], grid: Sequence[int], width: int, rank_map: Any, hosts: Any
    ) -> list[int]:
        extents, grid = whole_numbers(extents, "extents"), whole_numbers(grid, "grid")
        if len(grid) != len(extents):
            raise BadInput(f"expected a grid of {counted(len(extents), 'direction')}, found {quoted(grid)}")
        block = [max(1, extent // max(1, ranks)) for extent, ranks in zip(extents, grid, strict=True)]
        faces = [width * math.prod(block) // sites for sites in block]
        # The last dimension runs fastest in a map, direction 0 here.
        return ranks_of_map(rank_map, hosts, grid[::-1], [True] * len(grid), faces[::-1])

    @staticmethod
    def best_grid(extents: Sequence[int], ranks: int, width: int = 1) -> tuple[int, ...]:
        """Return the grid of ranks whose blocks have the smallest surface.

        Raises
        ------
        BadInput
            No grid fits the extents.
        """
        return tuple(_core.lattice_geometry_grid(extents, ranks, width))

    @staticmethod
    def max_lanes(
        extents: Sequence[int], grid: Sequence[int], limit: int, *, width: int = 1, parities: int = 2
    ) -> int:
        """Return the largest number of lanes that fits, at most `limit`."""
        return _core.lattice_geometry_lanes(extents, grid, width, parities, limit)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an array of the whole lattice: its extents, the last direction first."""
        return self.extents[::-1]

    @property
    def block_shape(self) -> tuple[int, ...]:
        """The shape of an array of one rank's block."""
        return self.block[::-1]

    def block_slices(self, rank: int) -> tuple[slice, ...]:
        """Return the slices that select a rank's block in an array of the whole lattice."""
        return tuple(
            slice(first, first + sites)
            for first, sites in reversed(list(zip(self.origin(rank), self.block, strict=True)))
        )

    def to_vectors(self, block: NDArray[Any]) -> NDArray[Any]:
        """Convert an array of one rank's block from lexicographic order to vectors.

        Parameters
        ----------
        block : array of shape block_shape + (...)
            The numbers of each site may have any shape.

        Returns
        -------
        array of shape (vectors, ..., lanes)
            The numbers of each vector.

        Raises
        ------
        BadInput
            The array has another shape.
        """
        dims = len(self.block)
        if block.shape[:dims] != self.block_shape:
            raise BadInput(f"expected an array of {self.block_shape} sites, found shape {block.shape}")
        flat = block.reshape(-1, *block.shape[dims:])
        return np.ascontiguousarray(np.moveaxis(flat[self.sites], 1, -1))

    def from_vectors(self, vectors: NDArray[Any]) -> NDArray[Any]:
        """Convert vectors back to lexicographic order, the inverse of `to_vectors`. Ghosts are ignored.

        Raises
        ------
        BadInput
            The array has another shape.
        """
        if len(vectors) not in (self.vectors, self.vectors + self.ghosts) or vectors.shape[-1] != self.lanes:
            raise BadInput(
                f"expected an array of shape ({self.vectors}, ..., {self.lanes}), found {vectors.shape}"
            )
        own = np.moveaxis(vectors[: self.vectors], -1, 1)
        block = np.empty((self.vectors * self.lanes, *own.shape[2:]), vectors.dtype)
        block[self.sites] = own
        return block.reshape(*self.block_shape, *own.shape[2:])

    def halo(
        self,
        dtype: Any = np.float64,
        count: int = 1,
        *,
        parity: int | None = None,
        only_rank: int | None = None,
    ) -> Schedule:
        """Return the halo exchange, which copies faces to the ghosts of neighbouring ranks, as a schedule.

        Parameters
        ----------
        dtype : dtype
            The dtype of the numbers of a field.
        count : int
            How many numbers a site has.
        parity : int, optional
            Exchange only the sites whose global coordinates have this parity.
        only_rank : int, optional
            Contain only what this rank sends and receives. The whole exchange of many ranks takes much memory.
        """
        bytes_of_vector = np.dtype(dtype).itemsize * count * self.lanes
        return super().halo(bytes_of_vector, element_type(dtype), parity, only_rank)


LINK_BYTES = 4 * 9 * 16  # the links of a site in four directions, in double precision
_MARGIN = 1.1  # for what an estimate leaves out: tables, stacks of threads, the heap's own memory
_OF_A_RANK = 24 << 20  # of each of several ranks: slots of its channels, and code that it loads later
TABLE_BYTES = 80  # of a site: its place and its neighbours in a `Geometry`
_OWN_BYTES = 36  # of a site: its place alone
_SMALL = 1 << 15  # sites of a block that always fits


def sites_on_a_rank(extents: Sequence[int], ranks: int) -> float:
    """Return the number of sites that each of the ranks has."""
    return float(np.prod([float(one) for one in extents])) / max(ranks, 1)


def require_memory(group: Group, extents: Sequence[int], needed: float, what: str) -> None:
    """Raise Error, on all ranks, if a machine has too little memory left for `needed` bytes on this rank. Collective.

    `what` names the computation in the message.
    """
    needed *= _MARGIN
    if group.size > 1 and needed > _OF_A_RANK / 24:
        needed += _OF_A_RANK
    lattice = "x".join(map(str, extents))
    advice = "take a smaller lattice, or more machines"
    _core.require_memory(group, int(min(needed, 2.0**62)), f"{what} on a lattice of {lattice}", advice)
