"""The Poisson equation on a periodic lattice, solved by Jacobi's method on a grid of ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop._core import PoissonBlock, PoissonResult, PoissonSpec, PoissonTimes, Schedule
from onehop.arguments import instance, whole_numbers
from onehop.error import BadInput
from onehop.group import Group
from onehop.options import LARGEST_SEED, Options, option
from onehop.refusals import make_collective
from onehop.text import counted

if TYPE_CHECKING:
    from onehop._keywords import PoissonKeywords, Unpack

__all__ = [
    "Poisson",
    "PoissonBlock",
    "PoissonResult",
    "PoissonSpec",
    "PoissonTimes",
    "poisson_grid",
    "solve_directly",
]


# Bytes per site: the solution twice, the source and its copy; on the rank that also solves directly, in all.
_BYTES = 32
_BYTES_DIRECTLY = 80


@dataclass(kw_only=True)
class PoissonOptions(Options):
    """The options of `Poisson`, which documents them."""

    local: tuple[int, int] = option((60, 60), "Sites of the block of each rank.", metavar="LxM", length=2)
    grid: tuple[int, int] | None = option(None, "Number of ranks per dimension.", metavar="PxQ", length=2)
    mass: float = option(0.5, "Mass term, above 0. A larger mass converges faster.")
    seed: int = option(1, "Seed of the random right-hand side.", low=0, high=LARGEST_SEED)
    buffers: int = option(2, "Number of message buffers: 1 (single) or 2 (double buffering).", choices=(1, 2))
    enlargement: int = option(
        1,
        "Lengthen each message to N times the face that it carries.",
        "--enlarge",
        low=1,
        high=1 << 20,
    )
    transport: str = option("auto", "Transport of the messages.", metavar="auto|shared_memory|mpi")
    source: Any = None


class Poisson(_core.Poisson):
    """Solver of `(4 + mass²) x(i,j) - x(i+1,j) - x(i-1,j) - x(i,j+1) - x(i,j-1) = b(i,j)`, periodic in i and j.

    The lattice is split over a grid of ranks. The solution and the residuals have the same bits on every grid. The
    constructor and `solve`, `set_source` and `gather` are collective over the group.

    Parameters
    ----------
    group : Group
        The ranks.
    extents : (int, int), optional
        Sites of the whole lattice. If the grid does not divide them, blocks differ by one site.
    local : (int, int)
        Sites of each rank's block; ignored if `extents` is given.
    grid : (int, int), optional
        Ranks per dimension; rank number = first * grid[1] + second. Default: the grid with the shortest faces.
    mass : float
        Mass, from 1e-6 to 1e6. Each iteration of Jacobi's method reduces the error by the factor 4 / (4 + mass²).
    seed : int
        Seed of the right-hand side, whose numbers in [-1, 1) depend only on the seed and the site.
    source : array, optional
        This rank's block of another right-hand side, float64, C-contiguous.
    buffers : int
        Slots per neighbour: 1 is single buffering, 2 double buffering.
    enlargement : int
        Factor by which messages are longer than their faces, to measure the cost of more communication.
    transport : str
        As for `Plan`.

    Attributes
    ----------
    solution, source : array of shape block.extents
        A copy of this rank's block.
    block : PoissonBlock
        The place of this rank's block in the lattice: `start` and `extents`.
    bytes_sent : int
        Bytes that this rank sends to others in one iteration.

    Raises
    ------
    BadInput
        The grid does not fit the group or the lattice, the mass is out of range, or the source has another shape.
    """

    def __init__(
        self,
        group: Group,
        extents: tuple[int, int] | None = None,
        **keywords: Unpack[PoissonKeywords],
    ) -> None:
        options = PoissonOptions.of("Poisson", keywords)
        instance(group, Group, "group")
        extents, grid = poisson_layout(group.size, extents, local=options.local, grid=options.grid)
        spec = PoissonSpec(extents, grid, options.mass, options.seed)
        _require_memory(group, extents, _BYTES * extents[0] * extents[1] // group.size)
        self._group = group
        super().__init__(group, spec, options.buffers, options.enlargement, options.transport)
        if options.source is not None:
            self.set_source(options.source)

    def set_source(self, source: Any) -> None:
        """Replace the right-hand side by this rank's block of another one, float64 and C-contiguous. Collective.

        Raises
        ------
        BadInput
            On all ranks: the block of one rank has another shape, or values that are not finite or exceed 1e140.
        """
        memory = _core.Memory(source, False, "the source")
        dtype = getattr(source, "dtype", None)
        if memory.item_bytes != 8 or (isinstance(dtype, np.dtype) and dtype != np.float64):
            raise BadInput(
                f"expected a source of float64, found {dtype or f'{memory.item_bytes} bytes per element'}"
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
            Largest number of iterations.
        residual_every : int
            Number of iterations between two evaluations of the residual.
        tolerance : float
            Stop when `|b - M x| <= tolerance * |b|`; 0: never.
        progress : callable, optional
            Called on this rank a few times per second with the iteration and the residual.

        Raises
        ------
        PeerLost, Timeout
            A rank has ended or did not arrive in time. The solver cannot be used afterwards.
        """
        return super().solve(iterations, residual_every, tolerance, progress)

    def gather(self, block: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the whole lattice on every rank, gathered from each rank's `block`. Collective.

        Parameters
        ----------
        block : array of shape block.extents, optional
            This rank's part. Default: the solution.
        """
        block = self.solution if block is None else block
        return super().gather(_core.Memory(block, False, "the block"))

    def faces(self) -> Schedule:
        """Return the schedule of the messages of one iteration, without enlargement."""
        return _core.poisson_faces(self.spec)


def poisson_grid(extents: tuple[int, int], ranks: int) -> tuple[int, int]:
    """Return the grid of `ranks` ranks with the shortest faces for a lattice of `extents`.

    Raises
    ------
    BadInput
        Every grid of this number of ranks leaves some rank without a site.
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
    """Return the extents of the whole lattice and the grid of ranks, with defaults for those that are None.

    Parameters are those of `Poisson`. Raises BadInput if the grid is one of another number of ranks.
    """
    extents, grid = (
        None if one is None else _pair(one, name) for one, name in ((extents, "extents"), (grid, "grid"))
    )
    if grid is not None and grid[0] * grid[1] != ranks:
        raise BadInput(
            f"expected a grid of {counted(ranks, 'rank')}, found {grid[0]}x{grid[1]} = {grid[0] * grid[1]}"
        )
    if extents is not None:
        return extents, grid or poisson_grid(extents, ranks)
    if grid is None:
        # The grid nearest to a square, with more ranks in the first dimension.
        second = max(d for d in range(1, ranks + 1) if ranks % d == 0 and d * d <= ranks)
        grid = (ranks // second, second)
    here = _pair(local, "local")
    return (here[0] * grid[0], here[1] * grid[1]), grid


def _require_memory(group: Group, extents: tuple[int, int], needed: int) -> None:
    """Raise Error, on all ranks, if a machine has too little memory for `needed` bytes on this rank. Collective."""
    what = f"a Poisson equation on a lattice of {extents[0]}x{extents[1]}"
    _core.require_memory(group, min(needed, 1 << 62), what, "take a smaller lattice, or more machines")


def require_memory_to_check(group: Group, extents: tuple[int, int]) -> None:
    """Raise Error, on all ranks, unless rank 0 can solve directly and each can gather. Collective."""
    _require_memory(
        group, extents, (_BYTES_DIRECTLY if group.rank == 0 else _BYTES) * extents[0] * extents[1]
    )


def _pair(values: Any, name: str) -> tuple[int, int]:
    numbers = whole_numbers(values, name)
    if len(numbers) != 2:
        raise BadInput(f"{name}: expected 2 numbers, found {len(numbers)}")
    return numbers[0], numbers[1]


def solve_directly(source: NDArray[np.float64], mass: float) -> NDArray[np.float64]:
    """Return the exact solution on the whole lattice by Fourier transform, which diagonalises the operator.

    Parameters
    ----------
    source : array
        The right-hand side on the whole lattice.
    mass : float
        As for `Poisson`.
    """
    rows, columns = (2 * np.cos(2 * np.pi * np.arange(n) / n) for n in source.shape)
    eigenvalues = 4 + mass * mass - rows[:, None] - columns[None, :]
    return np.real(np.fft.ifft2(np.fft.fft2(source) / eigenvalues))


make_collective(globals(), ["Poisson"])
