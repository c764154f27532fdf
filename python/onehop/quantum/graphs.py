"""Interaction graphs: chains, square and triangular lattices, and random regular graphs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onehop.error import BadInput

Bond = tuple[int, int]
LATTICES = ("grid", "triangular")
MOST_SITES = 1 << 20


def lattice_bonds(extents: Sequence[int], *, lattice: str = "grid", periodic: bool = False) -> list[Bond]:
    """List the nearest neighbours on a lattice, each pair once, in ascending order.

    Parameters
    ----------
    extents : sequence of int
        Number of sites in each of one or two dimensions. Site (x, y) has the number x * extents[1] + y.
    lattice : str
        "grid" (a chain or a square lattice) or "triangular" (with the diagonal from (x, y) to (x + 1, y + 1)).
    periodic : bool
        If True, the boundaries are periodic in every dimension.

    Returns
    -------
    list of (int, int)
        Pairs of site numbers, the smaller one first.

    Raises
    ------
    BadInput
        There is no such lattice.
    """
    if lattice not in LATTICES:
        raise BadInput(f"expected a lattice ({', '.join(LATTICES)}), found {lattice!r}")
    if not 1 <= len(extents) <= 2 or any(extent < 1 for extent in extents):
        raise BadInput(
            f"expected a lattice of one or two dimensions of at least one site each, found {extents}"
        )
    if math.prod(extents) > MOST_SITES:
        raise BadInput(f"expected a lattice of at most {MOST_SITES} sites, found {math.prod(extents)}")
    if lattice == "triangular" and len(extents) != 2:
        raise BadInput(f"a triangular lattice has two dimensions, found {len(extents)}")
    steps = [tuple(int(axis == other) for other in range(len(extents))) for axis in range(len(extents))]
    if lattice == "triangular":
        steps.append((1, 1))
    found: set[Bond] = set()
    for site in np.ndindex(*extents):
        for step in steps:
            other = [place + one for place, one in zip(site, step, strict=True)]
            if periodic:
                other = [place % extent for place, extent in zip(other, extents, strict=True)]
            elif any(place >= extent for place, extent in zip(other, extents, strict=True)):
                continue
            a, b = (int(np.ravel_multi_index(tuple(one), tuple(extents))) for one in (site, other))
            if a != b:
                found.add((min(a, b), max(a, b)))
    return sorted(found)


def random_regular_bonds(sites: int, degree: int, random: np.random.Generator) -> list[Bond]:
    """List the edges of a random graph in which every site has `degree` neighbours, as `lattice_bonds` does.

    Raise BadInput if `sites` times `degree` is odd, or `degree` is not below `sites`.
    """
    if sites * degree % 2 or not 0 <= degree < sites:
        raise BadInput(f"there is no graph of {sites} sites with {degree} neighbours each")
    # Start from a circulant graph, and randomise it by swapping the ends of random pairs of bonds.
    bonds = {(site, (site + step) % sites) for site in range(sites) for step in range(1, degree // 2 + 1)}
    if degree % 2:
        bonds |= {(site, site + sites // 2) for site in range(sites // 2)}
    mixed = {(min(bond), max(bond)) for bond in bonds}
    for _ in range(20 * len(mixed)):
        (a, b), (c, d) = (sorted(mixed)[i] for i in random.integers(len(mixed), size=2))
        if random.integers(2):
            c, d = d, c
        new = {(min(a, c), max(a, c)), (min(b, d), max(b, d))}
        if len({a, b, c, d}) == 4 and not new & mixed:
            mixed -= {(a, b), (min(c, d), max(c, d))}
            mixed |= new
    return sorted(mixed)
