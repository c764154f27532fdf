"""Compare chosen maps of random grids with their lower bounds.

Prints how far maps are above the bound, for docs/reference/mapping.md, and the worst cases.
"""

from __future__ import annotations

import argparse
import math
import random

from onehop.topology import Grid, HostLayout, RankMap

LONGEST = {2: 40, 3: 14, 4: 7}
PER_HOST = (4, 8, 11, 13, 16, 24, 36, 48, 64)
LIMITS = (1.0, 1.02, 1.05, 1.1, 1.2, math.inf)


def random_case(draw: random.Random) -> tuple[Grid, list[int]]:
    """Return a grid of 2 to 4 dimensions, and the sizes of its hosts: equal, or different for a third."""
    while True:
        dims = draw.randint(2, 4)
        extents = tuple(draw.randint(3, LONGEST[dims]) for _ in range(dims))
        grid = Grid(extents, [draw.random() < 0.25 for _ in extents])
        per_host, equal = draw.choice(PER_HOST), draw.random() < 2 / 3
        sizes: list[int] = []
        left = math.prod(extents)
        while left > 0:
            size = per_host if equal else per_host // 2 + draw.randint(1, per_host)
            sizes.append(min(left, size))
            left -= sizes[-1]
        if len(sizes) > 1:
            return grid, sizes


def ratio_of(found: RankMap) -> float | None:
    """Return the bytes between hosts over the lower bound; none without a bound."""
    if found.lower_bound is None:
        return None
    bytes_between = found.cost.bytes_between_hosts
    return bytes_between / found.lower_bound if found.lower_bound else float(bytes_between > 0) + 1


def main() -> None:
    """Print the survey."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300, help="number of random grids (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="of the random grids (default 1)")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    found = []
    for _ in range(options.cases):
        grid, sizes = random_case(draw)
        chosen = grid.map(HostLayout.of_sizes(sizes))
        about = f"{grid.extents} periodic {grid.periodic}, {len(sizes)} hosts, the first of {sizes[0]}"
        found.append((ratio_of(chosen), f"{about}: {chosen.chosen}"))
    ratios = [(ratio, about) for ratio, about in found if ratio is not None]
    for limit in LIMITS:
        print(f"up to {limit:g} times the lower bound: {sum(ratio <= limit for ratio, _ in ratios)} maps")
    print(f"no bound: {len(found) - len(ratios)} maps")
    for ratio, about in sorted(ratios, reverse=True)[:8]:
        print(f"{ratio:.3f}  {about}")


if __name__ == "__main__":
    main()
