"""Every way to cut four directions between up to eight ranks, and a small lattice for each."""

import itertools

import numpy as np

Lattice = tuple[tuple[int, ...], tuple[int, ...]]


def grids(ranks: int) -> list[tuple[int, ...]]:
    """All of four directions."""
    cuts = [count for count in range(1, ranks + 1) if ranks % count == 0]
    return [grid for grid in itertools.product(cuts, repeat=4) if np.prod(grid) == ranks]


def lattices(least: int) -> list[Lattice]:
    """Extents and grids of 1, 2, 4 and 8 ranks; where they are cut, blocks have `least` sites or one more."""
    return [
        (
            tuple(
                4 if cuts == 1 else cuts * (least + (number + direction) % 2)
                for direction, cuts in enumerate(grid)
            ),
            grid,
        )
        for ranks in (1, 2, 4, 8)
        for number, grid in enumerate(grids(ranks))
    ]
