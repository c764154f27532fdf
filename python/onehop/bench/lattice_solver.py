"""Solves with the staggered operator in several precisions, in turn in one run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from onehop.bench.dslash import begin_bench
from onehop.bench.result import Bench, Samples, make_row
from onehop.bench.run import Advance, Settings
from onehop.group import Group
from onehop.lattice import Gauge, Staggered, StaggeredSolve, smearing
from onehop.lattice.phases import with_staggered_phases

__all__ = ["SOLVER_BLOCKS", "lattice_solver"]

SOLVER_BLOCKS = ((8, 8, 8, 8), (12, 12, 12, 12), (16, 16, 16, 16))
MASSES = (0.01, 0.02, 0.05, 0.1)
MILC_FLOP = 1205, 15  # of an iteration, per site: one of them, and more for each mass


def hisq_operator(group: Group, block: Sequence[int], sweeps: int) -> Staggered:
    """HISQ on a gauge field that is random at first, and then has so many sweeps of the heat bath at beta 6.0."""
    extents = (*block[:3], block[3] * group.size)
    grid = (1, 1, 1, group.size)
    gauge = Gauge(group, extents, grid)
    for sweep in range(sweeps):
        gauge.heat_bath(6.0, 11, sweep)
    links = smearing.hisq_links(gauge)
    fat, long = (
        with_staggered_phases(one, gauge.geometry, group.rank, length=length)
        for one, length in ((links.fat, 1), (links.long, 3))
    )
    return Staggered.of_links(group, extents, fat, long, grid)


def lattice_solver(
    group: Group,
    settings: Settings,
    advance: Advance,
    blocks: Sequence[tuple[int, ...]] = SOLVER_BLOCKS,
    mass: float = 0.05,
    tolerance: float = 1e-10,
) -> Bench:
    """Solves of |b - M x| / |b| = tolerance, and 100 iterations of a multi-mass solve in single precision."""
    result = begin_bench("solver", group)
    for block in blocks:
        operator = hisq_operator(group, block, 1 if settings.quick else 4)
        ways = _ways(operator, mass, tolerance)
        _measure(result, group, block, ways, settings)
        advance(1)
    return result


def _ways(operator: Staggered, mass: float, tolerance: float) -> dict[str, Callable[[], StaggeredSolve]]:
    random = np.random.default_rng(operator.group.rank)
    shape = (*operator.geometry.block_shape, 3)
    source = random.normal(size=shape) + 1j * random.normal(size=shape)
    parity = sum(np.indices(shape[:-1])) % 2  # even sites alone: then there is one system for all masses
    even = np.where(parity[..., None] == 0, source, 0)

    def in_precision(inner: str) -> Callable[[], StaggeredSolve]:
        return lambda: operator.solve(source, mass, inner=inner, tolerance=tolerance)

    def several_masses() -> StaggeredSolve:
        return operator.solve(even, MASSES, precision="single", tolerance=1e-30, iterations=100)

    return {
        "half inside": in_precision("half"),
        "single inside": in_precision("single"),
        "double": in_precision("double"),
        "100 iterations, 4 masses, single": several_masses,
    }


def _measure(
    result: Bench,
    group: Group,
    block: tuple[int, ...],
    ways: dict[str, Callable[[], StaggeredSolve]],
    settings: Settings,
) -> None:
    for solve in ways.values():
        solve()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    last: dict[str, StaggeredSolve] = {}
    rounds = 2 if settings.quick else 7
    for _ in range(rounds):
        for name, solve in ways.items():
            group.barrier()
            last[name] = solve()
            everybody = [
                json.loads(part) for part in group.allgather(json.dumps(last[name].seconds).encode())
            ]
            seconds[name].append(max(everybody))
    roles = ["ours", *["variant"] * (len(ways) - 1)]
    samples = [
        Samples(name, role, 1e6 * np.array(seconds[name])) for name, role in zip(ways, roles, strict=True)
    ]
    case = f"{'x'.join(map(str, block))} a rank"
    sites = int(np.prod(block))
    result.rows.append(make_row(case, sites * 24, group.size, samples))
    all_double = np.array(seconds["double"])
    for name, found in last.items():
        taken = np.median(seconds[name])
        text = f"{case}, {name}: {found.iterations} iterations in {1e3 * taken:.1f} ms, "
        text += f"{1e3 * found.communication_seconds:.1f} ms of them waiting"
        if "masses" in name:
            flop = sites * found.iterations * (MILC_FLOP[0] + MILC_FLOP[1] * len(MASSES))
            text += f", {flop / taken * 1e-9:.1f} GFLOP/s a rank (counted as MILC does)"
        else:
            ratio = np.median(all_double / np.array(seconds[name]))
            text += f", {found.flops / found.seconds * 1e-9:.1f} GFLOP/s and "
            text += (
                f"{found.bytes / found.seconds * 1e-9:.1f} GB/s a rank, residual {found.true_residual:.1e}, "
            )
            text += f"{ratio:.2f} times as fast as all in double"
        result.notes.append(text)
