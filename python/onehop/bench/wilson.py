"""The Wilson hopping term, against the time in which memory moves its bytes."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from onehop import _core
from onehop.bench.result import Bench, Samples, make_row
from onehop.bench.run import Advance, Settings
from onehop.doctor import host
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice import Geometry

__all__ = ["WILSON_LATTICES", "WILSON_WAYS", "wilson"]

WILSON_LATTICES = ((16, 16, 16, 16), (24, 24, 24, 24))
# By name: single precision, links of two rows, clover term.
WILSON_WAYS = {
    "double": (False, False, False),
    "double-12": (False, True, False),
    "single": (True, False, False),
    "single-12": (True, True, False),
    "clover": (True, False, True),
    "clover-12": (True, True, True),
    "clover-double": (False, False, True),
}


def wilson(
    group: Group,
    settings: Settings,
    advance: Advance,
    lattices: Sequence[tuple[int, ...]] = WILSON_LATTICES,
    ways: Sequence[str] = ("double", "double-12", "single", "single-12"),
    local: bool = False,
    threads: int = 0,
) -> Bench:
    """One application to the sites of one colour, in every way and on every lattice.

    With `local` the lattices are those of one rank, and the last direction is cut. GB/s counts the least bytes
    that an application must move if nothing is in cache; notes have the GFLOP/s and what they are of the limit.
    """
    if len(group.neighbours_in_memory) != group.size:
        raise BadInput("onehop bench wilson compares with shared memory: start all ranks on one machine")
    about = host(None)
    about["cores"] = os.cpu_count()
    result = Bench("wilson", about)
    effort = settings.effort(len(lattices) * len(ways), block_us=4000.0)
    for lattice in lattices:
        extents = [*lattice[:3], lattice[3] * (group.size if local else 1)]
        grid = [1, 1, 1, group.size] if local else list(Geometry(tuple(extents), ranks=group.size).grid)
        for way in ways:
            single, two_rows, clover = WILSON_WAYS[way]
            flops, size, measured = _core.bench_wilson(
                group, extents, grid, single, two_rows, clover, threads, effort
            )
            samples = [Samples(name, role, np.array(us)) for name, role, us in measured]
            case = f"{'x'.join(map(str, extents))} {way}"
            result.rows.append(make_row(case, round(size), group.size, samples))
            result.notes.append(_rates(case, flops, size, samples))
            advance(1)
    return result


def _rates(case: str, flops: float, size: float, samples: Sequence[Samples]) -> str:
    ours, reading, limit = samples[0], samples[-2], samples[-1]
    text = f"{case}: {flops / np.median(ours.us) / 1e3:.1f} GFLOP/s a rank, {np.median(ours.us):.1f} us, "
    share, rate = 100 * np.median(limit.us / ours.us), size / np.median(limit.us) / 1e3
    text += f"{share:.0f} % of the roofline at {rate:.1f} GB/s"
    text += f" ({size / np.median(reading.us) / 1e3:.1f} GB/s if all were read)"
    if len(samples) == 4:
        text += f"; {np.median(ours.us - samples[1].us):.1f} us more than without faces"
    return text
