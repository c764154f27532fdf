"""`onehop bench smearing` and `su3`: links beside scalar code, and memory or the processor.

Rows have `flop` as well, the floating-point operations of one rank, where they are counted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from onehop.error import BadInput
from onehop.text import rate_text
from onehop_bench import native
from onehop_bench.bars import save_rate_plot
from onehop_bench.hopping import BLOCKS, cache_blocks
from onehop_bench.measure import Benchmark, Run, run
from onehop_bench.options import (
    AloneOptions,
    blocks_option,
    four_directions,
    names_option,
    precisions_option,
    seconds_option,
    sizes_option,
)
from onehop_bench.result import Row, make_row, samples_of

_KINDS = ("fat7", "asqtad", "hisq")
# Real numbers that are read or written per site, and flop.
_OPERATIONS = {
    "vectors": (18 + 6 + 2 * 6, 72),
    "matrices": (3 * 18, 198),
    "exponentials": (2 * 18, None),
    "reunitarise": (2 * 18, None),
}


@dataclass(kw_only=True)
class Smearing(AloneOptions):
    seconds: float = seconds_option(16)
    blocks: list[str] | None = blocks_option(BLOCKS)
    kinds: list[str] = names_option(list(_KINDS), "Kinds of links.", choices=_KINDS)
    precisions: list[str] = precisions_option(["single", "double"])


def bench_smearing(options: Smearing) -> None:
    """Compute the fat and long links of staggered quarks.

    Beside it stands the time to read and write all links once.
    """
    blocks = four_directions(options.blocks, "8x8x8x8,12x12x12x12")
    if any(extent < 2 or extent % 2 for block in blocks for extent in block.extents):
        raise BadInput(f"expected --blocks of even extents, found {','.join(blocks)}")

    def rows(on: Run) -> Iterator[Row]:
        for block, kind, precision in on.cases:
            extents = [*block.extents[:3], block.extents[3] * on.group.size]
            flops, size, measured = native.smearing(
                on.group, extents, _KINDS.index(kind), precision == "single", on.effort
            )
            samples = samples_of(measured)
            case = f"{kind}, {block} per rank, {precision}"
            ours, scalar, limit = (candidate.us for candidate in samples)
            on.result.notes.append(
                f"{case}: {rate_text(flops / np.median(ours) * 1e6, 'FLOP/s', 3)} per rank by MILC's count, "
                f"{np.median(scalar / ours):.1f} times the scalar code; "
                f"memory moves {rate_text(size / np.median(limit) * 1e6, digits=3)}"
            )
            yield make_row(case, round(size), on.group.size, samples, flop=flops)

    cases = list(itertools.product(blocks, options.kinds, options.precisions))
    benchmark = Benchmark(
        name="smearing", cases=cases, rows=rows, mpi=False, memory=True, block_us=cache_blocks
    )
    run(options, benchmark, default=1, flag=False, draw=save_rate_plot)


@dataclass(kw_only=True)
class Su3(AloneOptions):
    seconds: float = seconds_option(12)
    sites: list[int] | None = sizes_option("Numbers of sites of the arrays; multiples of 16.", "64,1K,...")
    operations: list[str] = names_option(["vectors", "matrices"], "Operations.", choices=tuple(_OPERATIONS))


def bench_su3(options: Su3) -> None:
    """Multiply 3x3 matrices by vectors and matrices.

    The peer is code for one site; the limit is the processor's. All ranks work at the same time, each on its
    own arrays.
    """
    sites = options.sites or [64, 1 << 10, 1 << 18]  # data in L1, in L2, in memory
    if any(count < 16 or count % 16 for count in sites):
        raise BadInput(f"expected --sites as multiples of 16, found {','.join(map(str, sites))}")

    def rows(on: Run) -> Iterator[Row]:
        for count, operation, precision in on.cases:
            single = precision == "single"
            which = [*_OPERATIONS].index(operation)
            samples = samples_of(native.su3(on.group, which, single, count, on.effort))
            numbers, flop = _OPERATIONS[operation]
            case = f"{operation}, {precision}, {count} sites"
            more = {} if flop is None else {"flop": flop * count}
            row = make_row(case, numbers * count * (4 if single else 8), on.group.size, samples, **more)
            if flop is not None:
                rates = (f"{one.name} {row.gflops(float(np.median(one.us))):.1f}" for one in samples)
                on.result.notes.append(f"{case}, GFLOP/s per rank: " + ", ".join(rates))
            yield row

    cases = list(itertools.product(sites, options.operations, ("double", "single")))
    benchmark = Benchmark(name="su3", cases=cases, rows=rows, across=True, mpi=False, memory=True)
    run(options, benchmark, default=1, flag=False, draw=save_rate_plot)
