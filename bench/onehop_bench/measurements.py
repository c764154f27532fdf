"""`onehop bench measurements`: gauge fixing, smearing, flow, loops, sources, contractions and eigenvectors."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop import _core
from onehop.error import Error
from onehop.lattice import Gauge, Staggered, fix_gauge, gradient_flow, smearing, wilson_loops
from onehop.lattice.contractions import Projection, meson_correlators, nucleon_correlator
from onehop.lattice.eigen import EvenSites, lowest_eigenvectors
from onehop.lattice.sources import GaussianSmearing
from onehop_bench import native
from onehop_bench.hopping import BLOCKS
from onehop_bench.measure import Benchmark, Run, run
from onehop_bench.options import AloneOptions, blocks_option, four_directions, names_option, seconds_option
from onehop_bench.result import Row, Samples, make_row

_LINKS, _FIELD, _COLUMNS = 4 * 144, 48, 144 * 16  # bytes of a site: links, a colour vector, a propagator
_SWEEPS, _STEPS, _VECTORS = 10, 10, 8  # of gauge fixing and of sources; eigenvectors


# The text of each operation, and what it needs at least for a site: bytes that move, and flop. A step of a flow has
# three stages, which read and write links.
_OPERATIONS = {
    "fix": (f"Landau gauge, {_SWEEPS} sweeps", _SWEEPS * (2 * _LINKS + 3 * 144), 0),
    "hyp": ("HYP smearing", 2 * _LINKS, 0),
    **{action: (f"{action} flow, one step", 6 * _LINKS, 0) for action in ("wilson", "symanzik", "zeuthen")},
    "loops": ("Wilson loops to 4x4", _LINKS, 0),
    "source": (f"Gaussian source, {_STEPS} steps", _STEPS * (3 * 144 + 6 * _FIELD), _STEPS * 18 * 72),
    "mesons": ("16 mesons", _COLUMNS, 16 * 16 * 9 * 8),
    "nucleon": ("nucleon", _COLUMNS, 0),
    "eigen": (f"{_VECTORS} eigenvectors", 0, 0),
}


def _run(name: str, gauge: Gauge, columns: Any) -> float | None:
    """Run an operation. Returns the seconds of as many applications of the operator alone for eigenvectors."""
    if name == "fix":
        with suppress(Error):  # so few sweeps do not converge
            fix_gauge(gauge, "landau", theta=1e-24, sweeps=_SWEEPS)
    elif name == "hyp":
        smearing.hyp(gauge)
    elif name == "loops":
        wilson_loops(gauge, 4, 4)
    elif name == "source":
        GaussianSmearing(gauge, 2.0, _STEPS)(columns[0, ..., 0, :])
    elif name == "mesons":
        meson_correlators(Projection(gauge), columns)
    elif name == "nucleon":
        nucleon_correlator(Projection(gauge), columns)
    elif name == "eigen":
        operator = Staggered(gauge, threads=1)
        found = lowest_eigenvectors(operator, count=_VECTORS, residual=1e-6)
        vector = EvenSites(operator).field(found.vectors[0].ravel())
        begin = time.perf_counter()
        operator.filter(vector, found.applications, 1.0, 17.0)
        return time.perf_counter() - begin
    else:
        gradient_flow(gauge, 0.02, step=0.02, action=name)
    return None


@dataclass(kw_only=True)
class Measurements(AloneOptions):
    seconds: float = seconds_option(20)
    blocks: list[str] | None = blocks_option(BLOCKS)
    operations: list[str] = names_option([*_OPERATIONS], "Operations.", choices=tuple(_OPERATIONS))


def _measure(on: Run, gauge: Gauge, name: str) -> list[Samples]:
    """The times of an operation on the same links, and the least that the machine allows."""
    links, sites = gauge.links, int(np.prod(gauge.geometry.block))
    _, size, flop = _OPERATIONS[name]
    columns = np.random.default_rng(1).normal(size=(4, 3, *gauge.geometry.block_shape, 4, 6)).view(complex)
    meter = native.Bandwidth(on.group, max(size * sites, 1 << 16), 1)
    arithmetic = flop * sites / _core.peak_gflops(False) / 1e9
    rounds: list[tuple[float, float]] = []
    begin = time.monotonic()
    while len(rounds) < 2 or (not on.quick and time.monotonic() - begin < on.seconds):
        gauge.set_links(links)
        on.group.barrier()
        start = time.perf_counter()
        alone = _run(name, gauge, columns)
        taken = time.perf_counter() - start
        if alone is None:
            rounds.append((taken, max(arithmetic, size * sites / meter.measure(1) / 1e9)))
        else:
            rounds.append((taken - alone, alone))
    ours, least = 1e6 * np.array(rounds).T
    limit = "moving as many bytes, or its arithmetic" if size else "the operator alone"
    return [Samples("onehop", "ours", ours), Samples(f"speed of light: {limit}", "speed_of_light", least)]


def bench_measurements(options: Measurements) -> None:
    """Fix the gauge, smear, flow, and measure loops, hadrons and eigenvectors, in double precision.

    The limit is the time to move links and fields once a sweep, stage or step, or that of the arithmetic; of
    eigenvectors, that of the operator alone.
    """
    blocks = four_directions(options.blocks, "8x8x8x8,12x12x12x12")

    def rows(on: Run) -> Iterator[Row]:
        for block, name in on.cases:
            *space, times = block.extents
            gauge = Gauge(on.group, (*space, times * on.group.size), (1, 1, 1, on.group.size))
            gauge.heat_bath(6.0, 11, 0)
            text, size, _ = _OPERATIONS[name]
            size *= int(np.prod(block.extents))
            yield make_row(f"{text}, {block} per rank", size, on.group.size, _measure(on, gauge, name))

    cases = list(itertools.product(blocks, options.operations))
    benchmark = Benchmark(name="measurements", cases=cases, rows=rows, mpi=False, memory=True)
    run(options, benchmark, default=1, flag=False)
