"""The Wilson hopping term, compared with plain MPI, scalar code and memory bandwidth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onehop.group import Group
from onehop.lattice import Geometry
from onehop_bench import native
from onehop_bench.dslash import BY_MPI, FACES, begin_bench
from onehop_bench.result import Bench, FlopRow, Samples, extended, make_row, samples_of
from onehop_bench.run import Advance, Settings

__all__ = ["WILSON_LATTICES", "WILSON_VARIANTS", "wilson"]

WILSON_LATTICES = ((16, 16, 16, 16), (24, 24, 24, 24))
# Name: (precision, real numbers kept per link, clover term).
WILSON_VARIANTS = {
    f"{name}{suffix}": (precision, recon, name.startswith("clover"))
    for name, precision in (
        ("double", "double"),
        ("single", "single"),
        ("half", "half"),
        ("clover", "single"),
        ("clover-double", "double"),
        ("clover-half", "half"),
    )
    for suffix, recon in (("", 18), ("-12", 12))
}


def wilson(
    group: Group,
    settings: Settings,
    advance: Advance,
    lattices: Sequence[tuple[int, ...]] = WILSON_LATTICES,
    variants: Sequence[str] = ("single", "single-12", "double", "double-12"),
    local: bool = False,
    threads: int = 0,
) -> Bench:
    """Measure one application to the sites of one parity, for each variant on each lattice.

    With `local` the lattices are those of one rank, and the whole is divided along the last direction. GB/s counts the
    bytes that an application must move if nothing is in cache. Notes give GFLOP/s and the share of the roofline.
    """
    result = begin_bench("wilson", group)
    # A block is long enough to refill the caches that other candidates have emptied, as in a solver.
    effort = settings.effort(len(lattices) * len(variants), block_us=20000.0)
    for lattice in lattices:
        extents = [*lattice[:3], lattice[3] * (group.size if local else 1)]
        grid = [1, 1, 1, group.size] if local else list(Geometry(tuple(extents), ranks=group.size).grid)
        for variant in variants:
            precision, recon, clover = WILSON_VARIANTS[variant]
            flops, size, measured = native.wilson(
                group, extents, grid, precision, recon, clover, threads, effort
            )
            samples = samples_of(measured)
            case = f"{'x'.join(map(str, lattice))}{' a rank' if local else ''}, {variant}"
            result.rows.append(
                extended(make_row(case, round(size), group.size, samples), FlopRow, flop=flops)
            )
            result.notes.append(_rates(case, flops, size, samples))
            advance(1)
    return result


def _rates(case: str, flops: float, size: float, samples: Sequence[Samples]) -> str:
    by_name = {one.name: one.us for one in samples}
    ours, reading = samples[0].us, by_name["reading as many bytes from memory"]
    limit = next(one.us for one in samples if one.role == "speed_of_light")
    text = f"{case}: {flops / np.median(ours) / 1e3:.1f} GFLOP/s a rank, {np.median(ours):.1f} µs, "
    share, rate = 100 * np.median(limit / ours), size / np.median(limit) / 1e3
    text += f"{share:.0f} % of the roofline at {rate:.1f} GB/s"
    text += (
        f", {100 * np.median(reading / ours):.0f} % of memory's {size / np.median(reading) / 1e3:.1f} GB/s"
    )
    text += f"; scalar code takes {np.median(by_name['scalar code'] / ours):.1f} times as long"
    clocks = {name.removesuffix(FACES): np.median(us) for name, us in by_name.items() if name.endswith(FACES)}
    if clocks:
        text += f"; faces, by clocks: {clocks['onehop']:.1f} µs"
        text += f" (MPI {clocks[BY_MPI]:.1f} µs)" if BY_MPI in clocks else ""
        text += f"; {np.median(ours / by_name['onehop, without faces']):.2f} of the time without faces"
        text += f", {np.median(ours / by_name[BY_MPI]):.2f} of MPI's" if BY_MPI in clocks else ""
    return text
