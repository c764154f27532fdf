"""Where the sites of a periodic lattice lie: on which rank, and where in its memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop._core import Schedule
from onehop.codec import element_type
from onehop.error import BadInput

__all__ = ["Geometry"]


class Geometry(_core.LatticeGeometry):
    """Cuts a periodic lattice into a block per rank, and orders its sites such that faces are contiguous.

    Direction 0 (x) runs fastest: an array of a lattice of extents (x, y, z, t) has the shape
    (t, z, y, x, ...). That holds for ranks too: rank number = c0 + grid[0] * (c1 + grid[1] * ...).

    Parameters
    ----------
    extents : sequence of int
        Sites of the whole lattice, 1 to 4 directions.
    grid : sequence of int, optional
        Ranks per direction; each must divide its extent. By default that of `ranks` ranks with the least surface.
    ranks : int
        Without `grid`: the number of ranks.
    lanes : int
        Sites in a vector, a power of two: sites of as many sub-blocks of a rank's block.
    width : int
        How far the neighbours are that a site needs: 1 to 3.
    parities : int
        2: even and odd sites lie apart, for which all extents must be even. 1: all together.

    Attributes
    ----------
    sites : array of int64, shape (vectors, lanes)
        The lexicographic number within the block of the site in every vector and lane.
    vectors, ghosts : int
        Own vectors of a rank; those of other ranks that are kept behind them.
    block, sub_block, lane_grid : tuple of int
        Sites of a rank, sites of a lane, sub-blocks of a rank, each per direction.

    Raises
    ------
    BadInput
        A grid that does not divide the extents, blocks that are too thin, lanes that do not fit.
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
    ) -> None:
        extents = [int(extent) for extent in extents]
        if grid is None:
            grid = _core.lattice_geometry_grid(extents, ranks, width)
        super().__init__(extents, [int(one) for one in grid], lanes, width, parities)

    @staticmethod
    def most_lanes(
        extents: Sequence[int], grid: Sequence[int], most: int, *, width: int = 1, parities: int = 2
    ) -> int:
        """The largest number of lanes up to `most` that fits."""
        return _core.lattice_geometry_lanes(list(extents), list(grid), width, parities, most)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an array of the whole lattice: its extents, the last direction first."""
        return self.extents[::-1]

    @property
    def block_shape(self) -> tuple[int, ...]:
        """The shape of an array of one rank's block."""
        return self.block[::-1]

    def block_slices(self, rank: int) -> tuple[slice, ...]:
        """A rank's block as slices of an array of the whole lattice."""
        return tuple(
            slice(first, first + sites)
            for first, sites in reversed(list(zip(self.origin(rank), self.block, strict=True)))
        )

    def to_vectors(self, block: NDArray[Any]) -> NDArray[Any]:
        """An array of one rank's block in lexicographic order, as vectors.

        Parameters
        ----------
        block : array of shape block_shape + (...)
            The numbers of each site may have any shape.

        Returns
        -------
        array of shape (vectors, ..., lanes)

        Raises
        ------
        BadInput
            Another shape.
        """
        dims = len(self.block)
        if block.shape[:dims] != self.block_shape:
            raise BadInput(f"expected an array of {self.block_shape} sites, found shape {block.shape}")
        flat = block.reshape(-1, *block.shape[dims:])
        return np.ascontiguousarray(np.moveaxis(flat[self.sites], 1, -1))

    def from_vectors(self, vectors: NDArray[Any]) -> NDArray[Any]:
        """The inverse of `to_vectors`; ghosts, where they are given too, are left away.

        Raises
        ------
        BadInput
            Another shape.
        """
        if len(vectors) not in (self.vectors, self.vectors + self.ghosts) or vectors.shape[-1] != self.lanes:
            raise BadInput(
                f"expected an array of shape ({self.vectors}, ..., {self.lanes}), found {vectors.shape}"
            )
        own = np.moveaxis(vectors[: self.vectors], -1, 1)
        block = np.empty((self.vectors * self.lanes, *own.shape[2:]), vectors.dtype)
        block[self.sites] = own
        return block.reshape(*self.block_shape, *own.shape[2:])

    def halo(self, dtype: Any = np.float64, count: int = 1, *, parity: int | None = None) -> Schedule:
        """The faces of all ranks to the ghosts of those beside, as a schedule.

        Parameters
        ----------
        dtype : dtype
            Of the numbers of a field.
        count : int
            So many of them at a site.
        parity : int, optional
            Only the sites whose global coordinates have this parity.
        """
        bytes_of_vector = np.dtype(dtype).itemsize * count * self.lanes
        return super().halo(bytes_of_vector, element_type(dtype), parity)
