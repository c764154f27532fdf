"""Compare chosen maps of random grids with their lower bounds.

Prints a table of how far maps are above the bound, for docs/reference/mapping.md, and the worst cases. Also counts maps
that have more weighted bytes than the best published map, or more bytes of the busiest host. With --repeat N, every map
above 1.05 times its bound is looked for with N more seeds, and the best one counts: this tells a search that is too
short from a bound that is not tight.
"""

from __future__ import annotations

import argparse
import math
import random

from onehop.topology import Grid, HostLayout, MapCost, RankMap

LONGEST = {2: 40, 3: 14, 4: 7}
PER_HOST = (4, 8, 11, 13, 16, 24, 36, 48, 64)
LIMITS = (1.0, 1.02, 1.05, 1.1, 1.2, float("inf"))


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


def best_published(found: RankMap) -> MapCost:
    """Return the cost of the best map that is not the local search's."""
    published = [one.cost for one in found.candidates if one.name != "local search"]
    return min(published, key=lambda cost: (cost.weighted_bytes, cost.busiest_host_bytes))


def main() -> None:
    """Print the survey."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300, help="number of random grids (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="of the random grids (default 1)")
    parser.add_argument(
        "--repeat", type=int, default=0, help="further seeds for maps above 1.05 of the bound (default 0)"
    )
    parser.add_argument("--worst", type=int, default=8, help="number of worst cases to list (default 8)")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    ratios, worst, unknown, above, busier, slowest = [], [], 0, 0, 0, 0.0
    for _ in range(options.cases):
        grid, sizes = random_case(draw)
        found = grid.map(HostLayout.of_sizes(sizes))
        slowest = max(slowest, found.seconds)
        above += found.cost.weighted_bytes > best_published(found).weighted_bytes
        busier += found.cost.busiest_host_bytes > best_published(found).busiest_host_bytes
        ratio = ratio_of(found)
        for seed in range(2, options.repeat + 2):
            if ratio is None or ratio <= 1.05:
                break
            again = grid.map(HostLayout.of_sizes(sizes), seed=seed)
            ratio = min(ratio, again.cost.bytes_between_hosts / (again.lower_bound or 1))
        if ratio is None:
            unknown += 1
            continue
        ratios.append(ratio)
        worst.append((ratio, grid.extents, grid.periodic, sizes[0], len(sizes), found.chosen))
    print("| bytes over the lower bound | maps |\n|---|---|")
    below = 0.0
    for limit in LIMITS:
        count = sum(below < ratio <= limit for ratio in ratios)
        name = "1 (proved optimal)" if limit == 1 else f"up to {limit:g}" if limit < LIMITS[-1] else "more"
        print(f"| {name} | {count} |")
        below = limit
    print(f"| no bound | {unknown} |")
    print(f"mean {sum(ratios) / len(ratios):.4f}, slowest {slowest:.2f} s")
    print(f"more weighted bytes than the best published map: {above}")
    print(f"busiest host above that of the best published map: {busier}")
    for ratio, extents, periodic, size, hosts, chosen in sorted(worst, reverse=True)[: options.worst]:
        print(f"{ratio:.3f}  {extents} periodic {periodic}, {hosts} hosts, the first of {size}: {chosen}")


if __name__ == "__main__":
    main()
