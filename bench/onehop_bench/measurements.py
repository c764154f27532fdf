"""`onehop bench measurements`: gauge fixing, smearing, flow, loops, sources, contractions and eigenvectors."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
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


@dataclass(frozen=True)
class _Operation:
    """What a case runs on a gauge field and columns, and what it needs at least for a site: bytes and flop."""

    text: str
    run: Callable[[Gauge, Any], Any]
    size: int
    flop: int = 0


def _fix(gauge: Gauge, _: Any) -> None:
    with suppress(Error):  # so few sweeps do not converge
        fix_gauge(gauge, "landau", theta=1e-24, sweeps=_SWEEPS)


def _hyp(gauge: Gauge, _: Any) -> None:
    smearing.hyp(gauge)


def _loops(gauge: Gauge, _: Any) -> None:
    wilson_loops(gauge, 4, 4)


def _mesons(gauge: Gauge, columns: Any) -> None:
    meson_correlators(Projection(gauge), columns)


def _nucleon(gauge: Gauge, columns: Any) -> None:
    nucleon_correlator(Projection(gauge), columns)


def _flow(action: str) -> _Operation:
    """A step, whose three stages read and write links, with the observables before and after it."""

    def flow(gauge: Gauge, _: Any) -> None:
        gradient_flow(gauge, 0.02, step=0.02, action=action)

    return _Operation(f"{action} flow, one step", flow, 6 * _LINKS)


def _smear(gauge: Gauge, columns: Any) -> None:
    GaussianSmearing(gauge, 2.0, _STEPS)(columns[0, ..., 0, :])


def _eigenvectors(gauge: Gauge, _: Any) -> float:
    """Find eigenvectors, and return the seconds of as many applications of the operator alone."""
    operator = Staggered(gauge, threads=1)
    found = lowest_eigenvectors(operator, count=_VECTORS, residual=1e-6)
    vector = EvenSites(operator).field(found.vectors[0].ravel())
    begin = time.perf_counter()
    operator.filter(vector, found.applications, 1.0, 17.0)
    return time.perf_counter() - begin


_OPERATIONS = {
    "fix": _Operation(f"Landau gauge, {_SWEEPS} sweeps", _fix, _SWEEPS * (2 * _LINKS + 3 * 144)),
    "hyp": _Operation("HYP smearing", _hyp, 2 * _LINKS),
    "wilson": _flow("wilson"),
    "symanzik": _flow("symanzik"),
    "zeuthen": _flow("zeuthen"),
    "loops": _Operation("Wilson loops to 4x4", _loops, _LINKS),
    "source": _Operation(
        f"Gaussian source, {_STEPS} steps", _smear, _STEPS * (3 * 144 + 6 * _FIELD), _STEPS * 18 * 72
    ),
    "mesons": _Operation("16 mesons", _mesons, _COLUMNS, 16 * 16 * 9 * 8),
    "nucleon": _Operation("nucleon", _nucleon, _COLUMNS),
    "eigen": _Operation(f"{_VECTORS} eigenvectors", _eigenvectors, 0),
}


@dataclass(kw_only=True)
class Measurements(AloneOptions):
    seconds: float = seconds_option(20)
    blocks: list[str] | None = blocks_option(BLOCKS)
    operations: list[str] = names_option([*_OPERATIONS], "Operations.", choices=tuple(_OPERATIONS))


def _measure(on: Run, gauge: Gauge, operation: _Operation) -> list[Samples]:
    """The times of an operation on the same links, and the least that the machine allows."""
    links, sites = gauge.links, int(np.prod(gauge.geometry.block))
    columns = np.random.default_rng(1).normal(size=(4, 3, *gauge.geometry.block_shape, 4, 6)).view(complex)
    meter = native.Bandwidth(on.group, max(operation.size * sites, 1 << 16), 1)
    arithmetic = operation.flop * sites / _core.peak_gflops(False) / 1e9
    rounds: list[tuple[float, float]] = []
    begin = time.monotonic()
    while len(rounds) < 2 or (not on.quick and time.monotonic() - begin < on.seconds):
        gauge.set_links(links)
        on.group.barrier()
        start = time.perf_counter()
        alone = operation.run(gauge, columns)
        taken = time.perf_counter() - start
        if alone is None:
            rounds.append((taken, max(arithmetic, operation.size * sites / meter.measure(1) / 1e9)))
        else:
            rounds.append((taken - alone, alone))
    ours, least = 1e6 * np.array(rounds).T
    name = "speed of light: " + (
        "moving as many bytes, or its arithmetic" if operation.size else "the operator alone"
    )
    return [Samples("onehop", "ours", ours), Samples(name, "speed_of_light", least)]


def bench_measurements(options: Measurements) -> None:
    """Fix the gauge, smear, flow, and measure loops, hadrons and eigenvectors, in double precision.

    The speed of light is the time to move links and fields once a sweep, stage or step, or that of the arithmetic; of
    eigenvectors, that of the operator alone.
    """
    blocks = four_directions(options.blocks, "8x8x8x8,12x12x12x12")

    def rows(on: Run) -> Iterator[Row]:
        for block, name in on.cases:
            *space, times = block.extents
            gauge = Gauge(on.group, (*space, times * on.group.size), (1, 1, 1, on.group.size))
            gauge.heat_bath(6.0, 11, 0)
            operation = _OPERATIONS[name]
            samples = _measure(on, gauge, operation)
            sites = int(np.prod(block.extents))
            yield make_row(
                f"{operation.text}, {block} per rank", operation.size * sites, on.group.size, samples
            )

    cases = list(itertools.product(blocks, options.operations))
    benchmark = Benchmark(name="measurements", cases=cases, rows=rows, mpi=False, memory=True)
    run(options, benchmark, default=1, flag=False)
