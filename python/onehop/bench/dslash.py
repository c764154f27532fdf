"""The staggered hopping term with fat and long links, against plain MPI, scalar code and memory."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from onehop import _core
from onehop.bench.result import Bench, Samples, make_row
from onehop.bench.run import Advance, Settings
from onehop.doctor import host
from onehop.error import BadInput, Error
from onehop.group import Group

__all__ = ["DSLASH_BLOCKS", "IMPROVEMENTS", "begin_bench", "dslash", "improvements"]

DSLASH_BLOCKS = ((8, 8, 8, 8), (12, 12, 12, 12), (16, 16, 16, 16), (24, 24, 24, 24))
IMPROVEMENTS = ("SIMD", "direct put", "mapping", "ordering")

Way = tuple[str, str, bool, bool, bool, tuple[int, ...], bool]


def begin_bench(bench: str, group: Group) -> Bench:
    """What is known of the machine, its peak among it."""
    if len(group.neighbours_in_memory) != group.size:
        raise BadInput(f"onehop bench {bench} compares with shared memory: start all ranks on one machine")
    why_not = _core.bench_why_no_peers(group)
    version = None
    if not why_not:
        try:
            version = _core.bench_mpi_version()
        except Error as error:
            why_not = str(error)
    about: dict[str, Any] = host(version)
    about["cores"] = os.cpu_count()
    result = Bench(bench, about)
    if why_not:
        result.notes.append(f"no MPI to compare with: {why_not}")
    peaks = {name: _core.bench_peak_gflops(name == "single") for name in ("single", "double")}
    result.notes.append(
        "peak of one thread, measured: "
        + ", ".join(f"{peak:.0f} GFLOP/s {name}" for name, peak in peaks.items())
    )
    return result


def dslash(
    group: Group,
    settings: Settings,
    advance: Advance,
    blocks: Sequence[tuple[int, ...]] = DSLASH_BLOCKS,
    precisions: Sequence[str] = ("single", "double"),
    threads: int = 0,
) -> Bench:
    """One application to the sites of one colour; `blocks` are of one rank, and the last direction is cut."""
    result = begin_bench("dslash", group)
    grid = (1, 1, 1, group.size)
    ways: list[Way] = [("onehop", "ours", True, True, True, grid, True)]
    if group.size > 1:
        ways.append(("plain MPI, the same kernels", "peer", True, False, True, grid, True))
        ways.append(("without faces", "variant", True, True, True, grid, False))
    ways.append(("scalar code", "variant", False, True, True, grid, True))
    # Long enough that caches which others have emptied are full again for most of it, as in a solver.
    effort = settings.effort(len(blocks) * len(precisions), block_us=20000.0)
    for block in blocks:
        extents = [*block[:3], block[3] * group.size]
        for precision in precisions:
            flops, size, measured = _core.bench_dslash(
                group, extents, precision == "single", threads, ways, effort
            )
            samples = [Samples(name, role, np.array(us)) for name, role, us in measured]
            case = f"{'x'.join(map(str, block))} a rank, {precision}"
            result.rows.append(make_row(case, round(size), group.size, samples))
            result.notes.append(_rates(case, flops, size, samples))
            advance(1)
    return result


def _rates(case: str, flops: float, size: float, samples: Sequence[Samples]) -> str:
    named = {one.name: one.us for one in samples}
    ours, limit = samples[0].us, samples[-1].us
    text = f"{case}: {flops / np.median(ours) / 1e3:.1f} GFLOP/s a rank, "
    text += (
        f"{100 * np.median(limit / ours):.0f} % of the roofline at {size / np.median(limit) / 1e3:.1f} GB/s"
    )
    if "without faces" in named:
        without = named["without faces"]
        text += f"; faces take {np.median(ours - without):.1f} us"
        peer = named.get("plain MPI, the same kernels")
        if peer is not None:
            text += f", with plain MPI {np.median(peer - without):.1f} us"
    text += f"; {np.median(named['scalar code'] / ours):.1f} times the scalar code"
    return text


def improvements(
    group: Group,
    settings: Settings,
    advance: Advance,
    block: tuple[int, ...] = (12, 12, 12, 12),
    precision: str = "single",
) -> Bench:
    """Every combination of the four improvements: GFLOP/s a rank, with the same lattice for all."""
    result = begin_bench("dslash, improvements", group)
    extents = [*block[:3], block[3] * group.size]
    best, worst = (1, 1, 1, group.size), (group.size, 1, 1, 1)
    ways: list[Way] = []
    for chosen in itertools.product((False, True), repeat=4):
        simd, put, mapping, ordering = chosen
        name = " + ".join(one for one, on in zip(IMPROVEMENTS, chosen, strict=True) if on) or "none"
        ways.append(
            (
                name,
                "ours" if all(chosen) else "variant",
                simd,
                put,
                ordering,
                best if mapping else worst,
                True,
            )
        )
    ways.reverse()
    effort = settings.effort(1, block_us=8000.0)
    flops, size, measured = _core.bench_dslash(group, extents, precision == "single", 0, ways, effort)
    samples = [Samples(name, role, np.array(us)) for name, role, us in measured]
    result.rows.append(
        make_row(f"{'x'.join(map(str, block))} a rank, {precision}", round(size), group.size, samples)
    )
    none = next((one.us for one in samples if one.name == "none"), None)
    for one in sorted(samples[:-1], key=lambda one: (one.name.count("+") + (one.name != "none"), one.name)):
        faster = "" if none is None else f", {np.median(none / one.us):.2f} times none"
        result.notes.append(f"{one.name}: {flops / np.median(one.us) / 1e3:.2f} GFLOP/s a rank{faster}")
    advance(1)
    return result
