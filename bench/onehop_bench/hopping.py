"""`onehop bench dslash` and `wilson`: hopping terms beside plain MPI, scalar code and memory's bandwidth.

Rows have `flop` as well, the floating-point operations of one rank.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop.lattice import Geometry
from onehop.options import option
from onehop.text import rate_text, seconds_text
from onehop_bench import native
from onehop_bench.bars import save_rate_plot
from onehop_bench.measure import Benchmark, Run, run
from onehop_bench.options import (
    Block,
    PlotOptions,
    RanksBenchOptions,
    ThreadsOptions,
    blocks_option,
    four_directions,
    names_option,
    precisions_option,
    seconds_option,
)
from onehop_bench.result import Row, Samples, make_row, samples_of

BLOCKS = "Lattice blocks of a rank. The lattice is divided along the last direction."
_IMPROVEMENTS = ("SIMD", "direct put", "mapping", "ordering")
_BY_MPI = "plain MPI, the same kernels"
_FACES = ": faces, by clocks"
_WITHOUT_FACES = {"without faces", "onehop, without faces"}

# Name: (precision, real numbers kept per link, clover term).
_WILSON_VARIANTS = {
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

_Variant = tuple[str, str, bool, bool, bool, tuple[int, ...], bool]


def cache_blocks(_ranks: int) -> float:
    """How long a candidate runs: long enough to refill the caches that others have emptied, as in a solver."""
    return 20000.0


def _rates(case: str, flops: float, size: float, samples: Sequence[Samples]) -> str:
    """A note with the rates of a case, and what faces, MPI and scalar code cost."""
    us = {candidate.name: candidate.us for candidate in samples}
    ours = samples[0].us
    name, limit = next(
        (one.name.partition(": ")[2], one.us) for one in samples if one.role == "speed_of_light"
    )
    text = f"{case}: {rate_text(flops / np.median(ours) * 1e6, 'FLOP/s', 3)} per rank, "
    text += f"{seconds_text(np.median(ours) * 1e-6, 3)}, "
    rate = size / np.median(limit) / 1e3
    text += f"{100 * np.median(limit / ours):.0f} % of {name} at {rate_text(rate * 1e9, digits=3)}"
    if (reading := us.get("reading as many bytes from memory")) is not None:
        rate = size / np.median(reading) / 1e3
        text += f", {100 * np.median(reading / ours):.0f} % of memory's {rate_text(rate * 1e9, digits=3)}"
    text += f"; scalar code takes {np.median(us['scalar code'] / ours):.1f} times as long"
    clocks = {name.removesuffix(_FACES): np.median(us[name]) for name in us if name.endswith(_FACES)}
    if clocks:
        alone = next(us[name] for name in us if name in _WITHOUT_FACES)
        text += f"; faces, by clocks: {seconds_text(clocks['onehop'] * 1e-6, 3)}"
        text += f" (MPI {seconds_text(clocks[_BY_MPI] * 1e-6, 3)})" if _BY_MPI in clocks else ""
        text += f"; {np.median(ours / alone):.2f} of the time without faces"
        text += f", {np.median(ours / us[_BY_MPI]):.2f} of MPI's" if _BY_MPI in clocks else ""
    return text


def _row(on: Run, case: str, measured: tuple[float, float, Any]) -> Row:
    """The row of a case, whose rates are noted."""
    flops, size, candidates = measured
    samples = samples_of(candidates)
    on.result.notes.append(_rates(case, flops, size, samples))
    return make_row(case, round(size), on.group.size, samples, flop=flops)


@dataclass(kw_only=True)
class Dslash(ThreadsOptions, PlotOptions, RanksBenchOptions):
    seconds: float = seconds_option(16)
    blocks: list[str] | None = blocks_option(BLOCKS)
    precisions: list[str] = precisions_option(["single", "double"])
    improvements: bool = option(
        False, "Measure all combinations of SIMD, direct put, mapping and ordering instead."
    )


def _dslash(on: Run, block: Block, precision: str, threads: int, variants: Sequence[_Variant]) -> Any:
    """Measure one application to the sites of one parity."""
    extents = [*block.extents[:3], block.extents[3] * on.group.size]
    return native.dslash(on.group, extents, precision == "single", threads, variants, on.effort)


def _improvements(on: Run, block: Block, precision: str) -> Row:
    """Measure every combination of the four improvements on the same lattice, in GFLOP/s per rank."""
    best, worst = (1, 1, 1, on.group.size), (on.group.size, 1, 1, 1)
    variants: list[_Variant] = []
    for chosen in itertools.product((True, False), repeat=4):
        simd, put, mapping, ordering = chosen
        name = " + ".join(itertools.compress(_IMPROVEMENTS, chosen)) or "none"
        role = "ours" if all(chosen) else "variant"
        variants.append((name, role, simd, put, ordering, best if mapping else worst, True))
    flops, size, measured = _dslash(on, block, precision, 0, variants)
    samples = samples_of(measured)
    none = next((candidate.us for candidate in samples if candidate.name == "none"), None)
    alone = [one for one in samples if one.role != "speed_of_light" and not one.name.endswith(_FACES)]
    for one in sorted(alone, key=lambda one: (one.name.count("+") + (one.name != "none"), one.name)):
        faster = "" if none is None else f", {np.median(none / one.us):.2f} times none"
        on.result.notes.append(
            f"{one.name}: {rate_text(flops / np.median(one.us) * 1e6, 'FLOP/s', 3)} per rank{faster}"
        )
    return make_row(f"{block} per rank, {precision}", round(size), on.group.size, samples, flop=flops)


def bench_dslash(options: Dslash) -> None:
    """Apply the HISQ hopping term to the sites of one parity.

    Beside it stands the time to read as many bytes as it must move.
    """
    default = "12x12x12x12" if options.improvements else "8x8x8x8,12x12x12x12,16x16x16x16,24x24x24x24"
    blocks = four_directions(options.blocks, default)

    def rows(on: Run) -> Iterator[Row]:
        grid = (1, 1, 1, on.group.size)
        variants: list[_Variant] = [("onehop", "ours", True, True, True, grid, True)]
        if on.group.size > 1:
            variants.append((_BY_MPI, "peer", True, False, True, grid, True))
            variants.append(("without faces", "variant", True, True, True, grid, False))
        variants.append(("scalar code", "variant", False, True, True, grid, True))
        for block, precision in on.cases:
            if options.improvements:
                yield _improvements(on, block, precision)
            else:
                measured = _dslash(on, block, precision, options.threads, variants)
                yield _row(on, f"{block} per rank, {precision}", measured)

    cases = list(itertools.product(blocks, options.precisions))
    benchmark = Benchmark(name="dslash", cases=cases, rows=rows, memory=True, block_us=cache_blocks)
    if options.improvements:
        benchmark = Benchmark(
            name="dslash, improvements", cases=cases[:1], rows=rows, memory=True, block_us=lambda _: 8000.0
        )
    run(options, benchmark, flag=False, draw=save_rate_plot)


@dataclass(kw_only=True)
class Wilson(ThreadsOptions, PlotOptions, RanksBenchOptions):
    seconds: float = seconds_option(16)
    lattices: list[str] | None = blocks_option("Lattices, shared by all ranks.", "16x16x16x16,...")
    local: bool = option(
        False, "Read --lattices as those of one rank. The lattice is divided along the last direction."
    )
    variants: list[str] = names_option(
        ["single", "single-12", "double", "double-12"],
        "Variants: precision or clover term, with -12 for 12 real numbers per link instead of 18.",
        metavar="double,single-12,...",
        choices=tuple(_WILSON_VARIANTS),
    )


def bench_wilson(options: Wilson) -> None:
    """Apply the Wilson hopping term to the sites of one parity.

    Beside it stands the time to move as many bytes as the term must move.
    """
    lattices = four_directions(options.lattices, "16x16x16x16,24x24x24x24", "--lattices")

    def rows(on: Run) -> Iterator[Row]:
        ranks = on.group.size
        for lattice, variant in on.cases:
            extents = [*lattice.extents[:3], lattice.extents[3] * (ranks if options.local else 1)]
            grid = [1, 1, 1, ranks] if options.local else list(Geometry(tuple(extents), ranks=ranks).grid)
            parameters = (*_WILSON_VARIANTS[variant], options.threads, on.effort)
            measured = native.wilson(on.group, extents, grid, *parameters)
            yield _row(on, f"{lattice}{' per rank' if options.local else ''}, {variant}", measured)

    cases = list(itertools.product(lattices, options.variants))
    benchmark = Benchmark(name="wilson", cases=cases, rows=rows, memory=True, block_us=cache_blocks)
    run(options, benchmark, default=1, flag=False, draw=save_rate_plot)
