"""SU(3) algebra for arrays of sites, compared with code for one site and with the processor's speed of light."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onehop.cores import machine_cores
from onehop.doctor import host
from onehop.group import Group
from onehop_bench import native
from onehop_bench.dslash import note_machine
from onehop_bench.result import Bench, FlopRow, Samples, extended, make_row, samples_of
from onehop_bench.run import Advance, Settings

__all__ = ["SU3_OPERATIONS", "SU3_SITES", "su3"]

SU3_SITES = (64, 1 << 10, 1 << 18)  # data in L1, in L2, in memory
# Real numbers that are read or written per site, and flop.
SU3_OPERATIONS = {
    "vectors": (18 + 6 + 2 * 6, 72),
    "matrices": (3 * 18, 198),
    "exponentials": (2 * 18, None),
    "reunitarise": (2 * 18, None),
}


def su3(
    group: Group,
    settings: Settings,
    advance: Advance,
    sites: Sequence[int] = SU3_SITES,
    operations: Sequence[str] = ("vectors", "matrices"),
) -> Bench:
    """Measure each operation in both precisions. All ranks work at the same time, each on its own arrays.

    GB/s counts each number that is read or written once. Notes give the GFLOP/s.
    """
    about = host(None)
    about["cores"] = machine_cores()
    result = Bench("su3", about)
    note_machine(result, group)
    effort = settings.effort(len(sites) * len(operations) * 2)
    for count in sites:
        for operation in operations:
            numbers, flop = SU3_OPERATIONS[operation]
            for precision in ("double", "single"):
                measured = native.su3(group, operation, precision == "single", count, effort)
                samples = samples_of(measured)
                size = numbers * count * (4 if precision == "single" else 8)
                row = make_row(f"{operation}, {precision}, {count} sites", size, group.size, samples)
                result.rows.append(row if flop is None else extended(row, FlopRow, flop=flop * count))
                if flop is not None:
                    result.notes.append(_rates(row.case, flop * count, samples))
                advance(1)
    return result


def _rates(case: str, flop: int, samples: Sequence[Samples]) -> str:
    rates = (f"{each.name} {flop / np.median(each.us) / 1e3:.1f}" for each in samples)
    return f"{case}, GFLOP/s a rank: " + ", ".join(rates)
