"""The Poisson equation on a periodic lattice, solved by Jacobi's method on a grid of ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop._core import PoissonBlock, PoissonResult, PoissonSpec, PoissonTimes, Schedule
from onehop.error import BadInput
from onehop.group import Group

__all__ = [
    "Poisson",
    "PoissonBlock",
    "PoissonResult",
    "PoissonSpec",
    "PoissonTimes",
    "poisson_grid",
    "solve_directly",
]


class Poisson(_core.Poisson):
    """Solves `(4 + mass²) x(i,j) - x(i+1,j) - x(i-1,j) - x(i,j+1) - x(i,j-1) = b(i,j)`, periodic in both dimensions.

    The lattice is split over a grid of ranks. The solution and the residuals are bitwise the same for every grid.
    Collective over the group.

    Parameters
    ----------
    group : Group
        The ranks.
    extents : (int, int), optional
        Sites of the whole lattice. Ranks whose share does not divide it differ by one site.
    local : (int, int)
        Without `extents`: sites of each rank's block.
    grid : (int, int), optional
        Ranks per dimension, rank number = first * grid[1] + second; by default what makes the faces short.
    mass : float
        Above 0. The larger, the faster Jacobi's method converges: by 4 / (4 + mass²) an iteration.
    seed : int
        Of the right-hand side: numbers in [-1, 1) that depend on the seed and the place in the whole lattice.
    source : array, optional
        This rank's block of another right-hand side, float64, C-contiguous.
    buffers : int
        Slots per neighbour: 1 is single, 2 double buffering.
    enlargement : int
        Messages are so many times as long as the faces in them (to see what more communication would cost).
    transport : str
        As for `Plan`.

    Attributes
    ----------
    solution, source : array of shape block.extents
        This rank's block, copied.
    block : PoissonBlock
        Where it lies: `start` and `extents`.
    bytes_sent : int
        What this rank sends to others in one iteration.

    Raises
    ------
    BadInput
        A grid that does not fit the group or the lattice, a mass of 0, a source of another shape.
    """

    def __init__(
        self,
        group: Group,
        extents: tuple[int, int] | None = None,
        *,
        local: tuple[int, int] = (60, 60),
        grid: tuple[int, int] | None = None,
        mass: float = 0.5,
        seed: int = 1,
        source: Any = None,
        buffers: int = 2,
        enlargement: int = 1,
        transport: str = "auto",
    ) -> None:
        extents, grid = poisson_layout(group.size, extents, local=local, grid=grid)
        spec = PoissonSpec(extents, grid, mass, seed)
        super().__init__(group, spec, buffers, enlargement, transport)
        if source is not None:
            self.set_source(source)

    def set_source(self, source: Any) -> None:
        """Take another right-hand side: this rank's block, float64 and C-contiguous. Collective.

        Raises
        ------
        BadInput
            On all ranks: wrong shape on one, or values that are not finite or beyond 1e140.
        """
        memory = _core.Memory(source, False, "the source")
        dtype = getattr(source, "dtype", None)
        if memory.item_bytes != 8 or (isinstance(dtype, np.dtype) and dtype != np.float64):
            raise BadInput(
                f"expected a source of float64, found {dtype or f'{memory.item_bytes} bytes an element'}"
            )
        super().set_source(memory)

    def solve(
        self,
        iterations: int = 1000,
        *,
        residual_every: int = 10,
        tolerance: float = 0.0,
        progress: Callable[[int, float], None] | None = None,
    ) -> PoissonResult:
        """Solve from x = 0. Collective, with the same arguments on every rank.

        Parameters
        ----------
        iterations : int
            At most so many.
        residual_every : int
            Iterations between two looks at the residual.
        tolerance : float
            Stop when `|b - M x| <= tolerance * |b|`; 0: never.
        progress : callable, optional
            Called with the iteration and the residual some times a second, on this rank.

        Raises
        ------
        PeerLost, Timeout
            The solver cannot be used after that.
        """
        return super().solve(iterations, residual_every, tolerance, progress)

    def gather(self, block: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The whole lattice on every rank, from everybody's `block` (by default the solution). Collective."""
        block = self.solution if block is None else block
        return super().gather(_core.Memory(block, False, "the block"))

    def faces(self) -> Schedule:
        """What one iteration sends, as a schedule (without enlargement)."""
        return _core.poisson_faces(self.spec)


def poisson_grid(extents: tuple[int, int], ranks: int) -> tuple[int, int]:
    """The grid of ranks that cuts a lattice of `extents` with the shortest faces.

    Raises
    ------
    BadInput
        No grid of so many ranks leaves every rank a site.
    """
    first, second = _core.poisson_grid(extents, ranks)
    return first, second


def poisson_layout(
    ranks: int,
    extents: tuple[int, int] | None = None,
    *,
    local: tuple[int, int] = (60, 60),
    grid: tuple[int, int] | None = None,
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The extents of the whole lattice and the grid, from what of them is given.

    Raises
    ------
    BadInput
        The grid is not one of `ranks` ranks.
    """
    if grid is not None and grid[0] * grid[1] != ranks:
        raise BadInput(f"expected a grid of {ranks} ranks, found {grid[0]}x{grid[1]} = {grid[0] * grid[1]}")
    if extents is not None:
        return extents, grid or poisson_grid(extents, ranks)
    if grid is None:
        # As near to a square as can be, more ranks in the first dimension.
        second = max(d for d in range(1, ranks + 1) if ranks % d == 0 and d * d <= ranks)
        grid = (ranks // second, second)
    return (local[0] * grid[0], local[1] * grid[1]), grid


def solve_directly(source: NDArray[np.float64], mass: float) -> NDArray[np.float64]:
    """The exact solution on the whole lattice, by Fourier transform: there the operator is diagonal."""
    rows, columns = (2 * np.cos(2 * np.pi * np.arange(n) / n) for n in source.shape)
    eigenvalues = 4 + mass * mass - rows[:, None] - columns[None, :]
    return np.real(np.fft.ifft2(np.fft.fft2(source) / eigenvalues))
