"""The staggered hopping term with fat and long links, compared with plain MPI, scalar code and memory bandwidth."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from onehop import _core
from onehop.cores import machine_cores
from onehop.doctor import host
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop_bench import native
from onehop_bench.result import Bench, FlopRow, Samples, extended, make_row, samples_of
from onehop_bench.run import Advance, Settings

__all__ = ["DSLASH_BLOCKS", "IMPROVEMENTS", "begin_bench", "dslash", "improvements", "note_machine"]

DSLASH_BLOCKS = ((8, 8, 8, 8), (12, 12, 12, 12), (16, 16, 16, 16), (24, 24, 24, 24))
IMPROVEMENTS = ("SIMD", "direct put", "mapping", "ordering")

BY_MPI = "plain MPI, the same kernels"
FACES = ": faces, by clocks"

Variant = tuple[str, str, bool, bool, bool, tuple[int, ...], bool]


def begin_bench(bench: str, group: Group, *, with_mpi: bool = True) -> Bench:
    """Make a result without rows, with the machine and its measured peak rates.

    Parameters
    ----------
    bench : str
        The benchmark's name.
    group : Group
        Its ranks, all of them on one machine.
    with_mpi : bool
        Whether the benchmark compares with MPI; a note then says if there is none.
    """
    if len(group.local_ranks) != group.size:
        raise BadInput(f"onehop bench {bench} measures shared memory: start all ranks on one machine")
    why_not = _core.why_no_mpi_peers(group) if with_mpi else ""
    version = None
    if with_mpi and not why_not:
        try:
            version = native.mpi_version()
        except Error as error:
            why_not = str(error)
    about: dict[str, Any] = host(version)
    about["cores"] = machine_cores()
    result = Bench(bench, about)
    if why_not:
        result.notes.append(f"no MPI to compare with: {why_not}")
    note_machine(result, group)
    return result


def note_machine(result: Bench, group: Group) -> None:
    """Measure the memory bandwidth of all ranks at once and the peak arithmetic rate of a thread, and note both."""
    memory = native.Bandwidth(group, (1 << 30) // group.size, 0)
    rate = max(memory.measure(1) for _ in range(3))
    peaks = ", ".join(
        f"{_core.peak_gflops(one == 'single'):.0f} GFLOP/s {one}" for one in ("single", "double")
    )
    result.host["memory_gb_s"] = rate
    result.notes += [
        f"memory, measured: {rate:.1f} GB/s a rank, of {group.size} that read 1 GiB at once",
        f"peak of one thread, measured: {peaks}",
    ]


def dslash(
    group: Group,
    settings: Settings,
    advance: Advance,
    blocks: Sequence[tuple[int, ...]] = DSLASH_BLOCKS,
    precisions: Sequence[str] = ("single", "double"),
    threads: int = 0,
) -> Bench:
    """Measure one application to the sites of one parity.

    `blocks` are those of one rank. The lattice is divided along the last direction.
    """
    result = begin_bench("dslash", group)
    grid = (1, 1, 1, group.size)
    variants: list[Variant] = [("onehop", "ours", True, True, True, grid, True)]
    if group.size > 1:
        variants.append((BY_MPI, "peer", True, False, True, grid, True))
        variants.append(("without faces", "variant", True, True, True, grid, False))
    variants.append(("scalar code", "variant", False, True, True, grid, True))
    # A block is long enough to refill the caches that other candidates have emptied, as in a solver.
    effort = settings.effort(len(blocks) * len(precisions), block_us=20000.0)
    for block in blocks:
        extents = [*block[:3], block[3] * group.size]
        for precision in precisions:
            flops, size, measured = native.dslash(
                group, extents, precision == "single", threads, variants, effort
            )
            samples = samples_of(measured)
            case = f"{'x'.join(map(str, block))} a rank, {precision}"
            result.rows.append(
                extended(make_row(case, round(size), group.size, samples), FlopRow, flop=flops)
            )
            result.notes.append(_rates(case, flops, size, samples))
            advance(1)
    return result


def _rates(case: str, flops: float, size: float, samples: Sequence[Samples]) -> str:
    named = {one.name: one.us for one in samples}
    ours = samples[0].us
    limit = next(one.us for one in samples if one.role == "speed_of_light")
    text = f"{case}: {flops / np.median(ours) / 1e3:.1f} GFLOP/s a rank, "
    text += (
        f"{100 * np.median(limit / ours):.0f} % of the roofline at {size / np.median(limit) / 1e3:.1f} GB/s"
    )
    clocks = {name.removesuffix(FACES): np.median(us) for name, us in named.items() if name.endswith(FACES)}
    if clocks:
        text += f"; faces, by clocks: {clocks['onehop']:.1f} µs"
        text += f" (MPI {clocks[BY_MPI]:.1f} µs)" if BY_MPI in clocks else ""
        text += f"; {np.median(ours / named['without faces']):.2f} of the time without faces"
        text += f", {np.median(ours / named[BY_MPI]):.2f} of MPI's" if BY_MPI in clocks else ""
    text += f"; scalar code takes {np.median(named['scalar code'] / ours):.1f} times as long"
    return text


def improvements(
    group: Group,
    settings: Settings,
    advance: Advance,
    block: tuple[int, ...] = (12, 12, 12, 12),
    precision: str = "single",
) -> Bench:
    """Measure every combination of the four improvements on the same lattice, in GFLOP/s per rank."""
    result = begin_bench("dslash, improvements", group)
    extents = [*block[:3], block[3] * group.size]
    best, worst = (1, 1, 1, group.size), (group.size, 1, 1, 1)
    variants: list[Variant] = []
    for chosen in itertools.product((False, True), repeat=4):
        simd, put, mapping, ordering = chosen
        name = " + ".join(one for one, on in zip(IMPROVEMENTS, chosen, strict=True) if on) or "none"
        variants.append(
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
    variants.reverse()
    effort = settings.effort(1, block_us=8000.0)
    flops, size, measured = native.dslash(group, extents, precision == "single", 0, variants, effort)
    samples = samples_of(measured)
    case = f"{'x'.join(map(str, block))} a rank, {precision}"
    result.rows.append(extended(make_row(case, round(size), group.size, samples), FlopRow, flop=flops))
    none = next((one.us for one in samples if one.name == "none"), None)
    alone = [one for one in samples if one.role != "speed_of_light" and not one.name.endswith(FACES)]
    for one in sorted(alone, key=lambda one: (one.name.count("+") + (one.name != "none"), one.name)):
        faster = "" if none is None else f", {np.median(none / one.us):.2f} times none"
        result.notes.append(f"{one.name}: {flops / np.median(one.us) / 1e3:.2f} GFLOP/s a rank{faster}")
    advance(1)
    return result
