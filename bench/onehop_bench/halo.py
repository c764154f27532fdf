"""`onehop bench halo`: exchanges of the ghost layers of an array.

Rows have the `extents` of the whole array, the `grid` of ranks, `periodic` dimensions and `dtype` as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop import _core
from onehop.options import option
from onehop.plan import Plan
from onehop.schedule import halo, halo_block
from onehop_bench import native
from onehop_bench.ghex import ghex_halo, ghex_version
from onehop_bench.measure import Benchmark, Run, run, slices_if_shared
from onehop_bench.options import Block, HostsOptions, blocks_option, seconds_option
from onehop_bench.result import Row, make_row, samples_of
from onehop_bench.rounding import RoundingOptions, bytes_out, halo_rounding, rounded_row
from onehop_bench.wire import between_hosts, host_numbers, schedule_bytes

_TYPES = ("float64", "complex128")
# The text behind the block's extents, the dimension that is divided, and whether the others are periodic, so that each
# rank also copies faces inside its block.
_ARRANGEMENTS = (("", 0, True), (", crossing only", 0, False), (", last dimension, crossing only", -1, False))
_PLAIN = "onehop from Python"


@dataclass(kw_only=True)
class Halo(HostsOptions, RoundingOptions):
    seconds: float = seconds_option(10)
    blocks: list[str] | None = blocks_option(
        "Blocks of the array per rank, without ghost layers.", "AxBxC,..."
    )
    dtype: str = option(_TYPES[0], "Type of the array's elements.", choices=_TYPES)


def _layout(block: tuple[int, ...], dimension: int, closed: bool, ranks: int) -> dict[str, Any]:
    """The arguments of `halo` for blocks of all ranks along one dimension, which is periodic."""
    extents, grid, periodic = list(block), [1] * len(block), [closed] * len(block)
    extents[dimension] *= ranks
    grid[dimension] = ranks
    periodic[dimension] = True
    return {"extents": extents, "grid": grid, "periodic": periodic}


def _rows(on: Run, case: tuple[Block, tuple[str, int, bool]], options: Halo, ghex: bool) -> Iterator[Row]:
    """The rows of one arrangement of blocks: one without a codec, and one for each codec."""
    block, (text, dimension, closed) = case
    group, dtype = on.group, options.dtype
    layout = _layout(block.extents, dimension, closed, group.size)
    whole = {**layout, "width": 1, "dtype": dtype}
    schedule = halo(**whole)
    array = np.zeros(halo_block(**whole, rank=group.rank).shape, dtype)
    plan = Plan(schedule, group, [array])
    others: list[tuple[str, str, Callable[[], Any], bool]] = [(_PLAIN, "variant", plan.run, True)]
    encoded = {codec: halo(**whole, codec=codec) for codec in options.codecs}
    for codec, rounding in encoded.items():
        others.append((f"{_PLAIN}, {codec}", "variant", Plan(rounding, group, [array]).run, False))
    if ghex:
        others.append(("GHEX from Python", "peer", ghex_halo(group, {**layout, "width": 1}, array), True))
    memory = [_core.Memory(array, True, "array")]
    samples = samples_of(native.halo_exchange(group, schedule, memory, on.effort, on.peers, others))
    name = block + ("" if dtype == _TYPES[0] else f" {dtype}") + text
    rounded = {f"{_PLAIN}, {codec}" for codec in encoded}
    exact = [candidate for candidate in samples if candidate.name not in rounded]
    row = make_row(name, bytes_out(schedule, group.rank), group.size, exact, **layout, dtype=dtype)
    yield between_hosts(row, group, plan.run, schedule_bytes(schedule, host_numbers(group)))
    for codec, rounding in encoded.items():
        error = halo_rounding(group, whole, codec)
        names = (f"{_PLAIN}, {codec}", _PLAIN)
        yield rounded_row(row, samples, names, codec, bytes_out(rounding, group.rank), error)


def halo_exchange(options: Halo) -> Benchmark:
    """Halo exchanges of an array that is divided along one dimension, one ghost layer wide."""
    blocks = options.blocks or [Block("64x32x32"), Block("128x64x64")]

    def rows(on: Run) -> Iterator[Row]:
        # GHEX has no complex numbers.
        ghex = options.dtype == _TYPES[0] and on.peers and ghex_version() is not None
        ghex = ghex and not _core.why_no_mpi_peers(on.group)
        if ghex:
            note = f"GHEX {ghex_version()}, called from Python; edges and corners included"
            on.result.notes.append(note)
        for case in on.cases:
            yield from _rows(on, case, options, ghex)

    cases = [(block, arrangement) for block in blocks for arrangement in _ARRANGEMENTS]
    return Benchmark(name="halo", cases=cases, rows=rows, across=True, block_us=slices_if_shared)


def bench_halo(options: Halo) -> None:
    """Exchange the ghost layers of an array, including packing and unpacking."""
    run(options, halo_exchange(options))
