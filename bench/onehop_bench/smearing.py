"""The fat and long links of staggered quarks, compared with scalar code and memory bandwidth."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from onehop.group import Group
from onehop_bench import native
from onehop_bench.dslash import begin_bench
from onehop_bench.result import Bench, FlopRow, extended, make_row, samples_of
from onehop_bench.run import Advance, Settings

__all__ = ["SMEARING_BLOCKS", "SMEARING_KINDS", "smearing"]

SMEARING_BLOCKS = ((8, 8, 8, 8), (12, 12, 12, 12))
SMEARING_KINDS = ("fat7", "asqtad", "hisq")


def smearing(
    group: Group,
    settings: Settings,
    advance: Advance,
    blocks: Sequence[tuple[int, ...]] = SMEARING_BLOCKS,
    kinds: Sequence[str] = SMEARING_KINDS,
    precisions: Sequence[str] = ("single", "double"),
) -> Bench:
    """Measure one call including its allocations, in each precision of the arithmetic.

    `blocks` are those of one rank. The lattice is divided along the last direction.
    """
    result = begin_bench("smearing", group, with_mpi=False)
    effort = settings.effort(len(blocks) * len(kinds) * len(precisions), block_us=20000.0)
    for block in blocks:
        extents = [*block[:3], block[3] * group.size]
        for kind, precision in itertools.product(kinds, precisions):
            flops, size, measured = native.smearing(group, extents, kind, precision == "single", effort)
            samples = samples_of(measured)
            case = f"{kind}, {'x'.join(map(str, block))} a rank, {precision}"
            result.rows.append(
                extended(make_row(case, round(size), group.size, samples), FlopRow, flop=flops)
            )
            ours, scalar, limit = (one.us for one in samples)
            result.notes.append(
                f"{case}: {flops / np.median(ours) / 1e3:.1f} GFLOP/s a rank by MILC's count, "
                f"{np.median(scalar / ours):.1f} times the scalar code; "
                f"memory moves {size / np.median(limit) / 1e3:.1f} GB/s"
            )
            advance(1)
    return result
