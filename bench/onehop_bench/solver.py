"""`onehop bench solver`: solves with the staggered operator in several precisions, beside plain MPI and scalar code."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.lattice import Gauge, Staggered, StaggeredSolve, Wilson, smearing
from onehop.lattice.phases import with_staggered_phases
from onehop.options import option
from onehop.text import counted, rate_text, seconds_text
from onehop_bench import native
from onehop_bench.bars import save_solver_plot
from onehop_bench.hopping import BLOCKS
from onehop_bench.measure import Benchmark, Run, run
from onehop_bench.options import (
    PlotOptions,
    RanksBenchOptions,
    ThreadsOptions,
    blocks_option,
    four_directions,
    seconds_option,
)
from onehop_bench.result import Row, Samples, make_row

_MASSES = (0.01, 0.02, 0.05, 0.1)
_MILC_FLOP = 1205, 15  # per site and iteration: of one mass, and of each further mass
_MANY_SITES = 100_000  # per rank; scalar code takes a third of a second per iteration there
_MAX_ROUNDS = 7
_MAX_ITERATIONS = 10000  # of a whole solve
_WILSON_SITES = 10_000  # per rank; Wilson quarks are solved on blocks up to this
_METHODS = {"auto": "ours", "bicgstab": "variant", "cgnr": "variant"}

_Solve = Callable[[int], StaggeredSolve]  # takes the largest number of iterations


@dataclass(kw_only=True)
class Solver(ThreadsOptions, PlotOptions, RanksBenchOptions):
    seconds: float = seconds_option(60)
    blocks: list[str] | None = blocks_option(BLOCKS)
    mass: float = option(0.05, "Quark mass of the solves for one mass.", above=0)
    kappa: list[float] = option(
        [0.12, 0.14, 0.15, 0.155, 0.16, 0.165], "Hopping parameters of the solves of Wilson quarks."
    )
    tolerance: float = option(1e-10, "Relative residual |b - M x| / |b| at which a solve ends.", above=0)


@dataclass
class _Candidate:
    """A candidate: its way to solve, and its measurements in each round.

    A slow one has `few`: it runs so many iterations, then three times as many, and scales the difference to
    `iterations`.
    """

    name: str
    role: str
    solve: _Solve
    iterations: int
    few: int = 0
    seconds: list[float] = field(default_factory=list)
    communication: list[float] = field(default_factory=list)

    def run(self, on: Run) -> None:
        """Solve once, and record the time of the slowest rank and the mean time in communication."""
        if self.few:
            longer, shorter = self._once(on, 3 * self.few), self._once(on, self.few)
            # If noise makes the shorter solve take as long, use the longer one with its set-up included.
            between = (longer - shorter) / (2 * self.few)
            taken = self.iterations * np.where(between > 0, between, longer / (3 * self.few))
        else:
            taken = self._once(on, self.iterations)
        self.seconds.append(taken[0])
        self.communication.append(taken[1])

    def _once(self, on: Run, iterations: int) -> NDArray[np.float64]:
        """Seconds of the slowest rank, and the mean of those in communication."""
        on.group.barrier()
        self.last = self.solve(iterations)
        mine = np.array([self.last.seconds, self.last.communication_seconds])
        all_ranks = np.array([np.frombuffer(part) for part in on.group.allgather(mine.tobytes())])
        return np.array([all_ranks[:, 0].max(), all_ranks[:, 1].mean()])

    @property
    def samples(self) -> Samples:
        """The times, µs."""
        return Samples(self.name, self.role, 1e6 * np.array(self.seconds))

    @property
    def communication_ms(self) -> float:
        """The median time in faces and sums."""
        return float(1e3 * np.median(self.communication))


class _Block:
    """The operators and the source on one block."""

    def __init__(self, on: Run, block: Sequence[int], options: Solver) -> None:
        self.on = on
        self.options = options
        self.case = f"{'x'.join(map(str, block))} per rank"
        self.sites = int(np.prod(block))
        self.iterations = 8 if on.quick else max(25, min(100, 4_000_000 // self.sites))
        self._make_operators((*block[:3], block[3] * on.group.size), (1, 1, 1, on.group.size))
        random = np.random.default_rng(on.group.rank)
        shape = (*self.ours.geometry.block_shape, 3)
        self.source = random.normal(size=shape) + 1j * random.normal(size=shape)
        parity = sum(np.indices(shape[:-1])) % 2  # with even sites only, all masses share one system
        self.even = np.where(parity[..., None] == 0, self.source, 0)

    def _make_operators(self, extents: tuple[int, ...], grid: tuple[int, ...]) -> None:
        """Make HISQ operators on a random gauge field after some sweeps of the heat bath at beta 6.0."""
        group, threads = self.on.group, self.options.threads
        gauge = Gauge(group, extents, grid)
        for sweep in range(1 if self.on.quick else 4):
            gauge.heat_bath(6.0, 11, sweep)
        smeared = smearing.hisq_links(gauge)
        fat, long = (
            np.ascontiguousarray(
                with_staggered_phases(links, gauge.geometry, group.rank, length=length), np.complex128
            )
            for links, length in ((smeared.fat, 1), (smeared.long_links, 3))
        )
        self.ours = Staggered.of_links(group, extents, fat, long, grid, threads=threads)
        links = _core.Memory(fat, False, "fat links"), _core.Memory(long, False, "long links")

        def other(name: str) -> Staggered:
            core = native.staggered_variant(name, group, extents, grid, *links, threads)
            return Staggered.of_core(core, group, self.ours.geometry)

        peers = group.size > 1 and self.on.peers and not _core.why_no_mpi_peers(group)
        self.by_mpi = other("MPI") if peers else None
        self.scalar = other("scalar")

    def _whole(self, name: str, role: str, sloppy: str) -> _Candidate:
        """A whole solve with iterations in a precision."""
        options = {"sloppy_precision": sloppy, "tolerance": self.options.tolerance}

        def solve(iterations: int) -> StaggeredSolve:
            return self.ours.solve(self.source, self.options.mass, iterations=iterations, **options)

        return _Candidate(name, role, solve, _MAX_ITERATIONS)

    def _alone(self, operator: Staggered, iterations: int) -> StaggeredSolve:
        return operator.solve(self.source, self.options.mass, tolerance=1e-30, iterations=iterations)

    def _several(self, operator: Staggered, iterations: int) -> StaggeredSolve:
        return operator.solve(self.even, _MASSES, precision="single", tolerance=1e-30, iterations=iterations)

    def _beside(self, solve: Callable[[Staggered, int], StaggeredSolve]) -> list[_Candidate]:
        """A number of iterations with each operator."""
        candidates = [_Candidate("onehop", "ours", partial(solve, self.ours), self.iterations)]
        if self.by_mpi is not None:
            name = "plain MPI, the same solver and kernels"
            candidates.append(_Candidate(name, "peer", partial(solve, self.by_mpi), self.iterations))
        few = 1 if self.sites > _MANY_SITES else 3
        name = f"scalar code, {2 * few} iterations scaled"
        candidates.append(_Candidate(name, "variant", partial(solve, self.scalar), self.iterations, few))
        return candidates

    def rows(self) -> Iterator[Row]:
        """Measure for about the time of a case, at least one round, and note what the rows leave out."""
        wholes = [
            self._whole("half inside", "ours", "half"),
            self._whole("single inside", "variant", "single"),
            self._whole("double", "variant", "double"),
        ]
        kinds = {
            f"double, {self.iterations} iterations": ("double", self._beside(self._alone)),
            f"single, {len(_MASSES)} masses, {self.iterations} iterations": (
                "single",
                self._beside(self._several),
            ),
        }
        meters = {name: self._meter(name) for name in ("double", "single")}
        rates: dict[str, list[float]] = {"double": [], "single": []}
        beside = [candidate for _, candidates in kinds.values() for candidate in candidates]
        self._run_rounds([*wholes, *beside], meters, rates)
        case = f"{self.case}, to {self.options.tolerance:g}"
        samples = [candidate.samples for candidate in wholes]
        yield make_row(case, self.sites * 24, self.on.group.size, samples)
        self.on.result.notes += [
            _of_whole(f"{self.case}, {candidate.name}", candidate, wholes[-1]) for candidate in wholes
        ]
        for kind, (precision, candidates) in kinds.items():
            yield self._beside_row(f"{self.case}, {kind}", candidates, np.array(rates[precision]))

    def _run_rounds(
        self, candidates: list[_Candidate], meters: dict[str, native.Bandwidth], rates: dict[str, list[float]]
    ) -> None:
        """Run all candidates in turn, and add the rates of the meters after each round."""
        for candidate in candidates:
            candidate.solve(2)  # does the set-up that is needed once
        begin = time.monotonic()
        rounds, done = 1, 0
        while done < rounds:
            for candidate in candidates:
                candidate.run(self.on)
            for precision, meter in meters.items():
                rates[precision].append(self._least(meter.measure(4)))
            done += 1
            if done == 1:  # the first round shows the duration of a round
                taken = -self._least(begin - time.monotonic())
                rounds = 2 if self.on.quick else max(1, min(_MAX_ROUNDS, int(self.on.seconds / taken)))

    def _meter(self, precision: str) -> native.Bandwidth:
        """A measurement of reading as much memory as a solve uses: links and some vectors of one parity."""
        numbers = 8 if precision == "double" else 4
        size = self.ours.core.link_bytes(precision) + 5 * self.sites * 3 * numbers
        return native.Bandwidth(self.on.group, size, self.options.threads)

    def _least(self, value: float) -> float:
        """The least value of a rank."""
        parts = self.on.group.allgather(np.array([value]).tobytes())
        return min(float(np.frombuffer(part)[0]) for part in parts)

    def _beside_row(self, case: str, candidates: list[_Candidate], rates: np.ndarray) -> Row:
        found = candidates[0].last
        limit = Samples("speed of light: reading as many bytes", "speed_of_light", found.bytes / rates / 1e3)
        samples = [*(candidate.samples for candidate in candidates), limit]
        ours = samples[0].us
        flop, how = found.flops, ""
        if "masses" in case:
            flop = self.sites * found.iterations * (_MILC_FLOP[0] + _MILC_FLOP[1] * len(_MASSES))
            how = " (counted as MILC does)"
        text = f"{case}: {seconds_text(np.median(ours) * 1e-6, 3)}, "
        text += f"{rate_text(flop / np.median(ours) * 1e6, 'FLOP/s', 3)} per rank{how}, "
        share = 100 * np.median(limit.us / ours)
        text += f"{share:.0f} % of reading as many bytes at {rate_text(np.median(rates) * 1e9, digits=3)} per rank"
        text += f"; faces and sums, by clocks: {seconds_text(candidates[0].communication_ms * 1e-3, 3)}"
        for candidate in candidates[1:]:
            times = np.median(candidate.samples.us / ours)
            if candidate.role == "peer":
                text += f" (MPI {seconds_text(candidate.communication_ms * 1e-3, 3)})"
                text += f"; MPI takes {times:.2f} times as long"
            else:
                text += f"; scalar code takes {times:.2f} times as long"
        self.on.result.notes.append(text)
        return make_row(case, round(found.bytes), self.on.group.size, samples)


def _wilson_rows(on: Run, block: Sequence[int], options: Solver) -> Iterator[Row]:
    """Solve for Wilson quarks with each method, and note the iterations."""
    gauge = Gauge(on.group, (*block[:3], block[3] * on.group.size), (1, 1, 1, on.group.size))
    for sweep in range(1 if on.quick else 30):
        gauge.heat_bath(6.0, 11, sweep)
    source = np.zeros((*gauge.geometry.block_shape, 4, 3), complex)
    source[(0,) * 6] = on.group.rank == 0
    for kappa in options.kappa[:1] if on.quick else options.kappa:
        wilson = Wilson(gauge, kappa, threads=options.threads)
        found = {
            name: wilson.solve(source, method=name, tolerance=options.tolerance, iterations=2000)
            for name in _METHODS
        }
        case = f"{'x'.join(map(str, block))} per rank, Wilson, kappa {kappa:g}"
        samples = [
            Samples(name, _METHODS[name], np.array([1e6 * one.seconds])) for name, one in found.items()
        ]
        each = ", ".join(
            f"{counted(one.iterations, 'iteration')} of {name}{'' if one.converged else ' (not converged)'}"
            for name, one in found.items()
        )
        on.result.notes.append(f"{case}: {each}")
        yield make_row(case, int(np.prod(block)) * 96, on.group.size, samples)


def _of_whole(case: str, candidate: _Candidate, double: _Candidate) -> str:
    """A note on a whole solve."""
    found = candidate.last
    taken = np.median(candidate.seconds)
    ratio = np.median(np.array(double.seconds) / np.array(candidate.seconds))
    return (
        f"{case}: {counted(found.iterations, 'iteration')} in {seconds_text(taken, 3)}, "
        f"{seconds_text(candidate.communication_ms * 1e-3, 3)} of them in faces and sums, "
        f"{rate_text(found.flops / taken, 'FLOP/s', 3)} and {rate_text(found.bytes / taken, digits=3)} per rank, "
        f"residual {found.true_residual:.1e}{'' if found.converged else ' (not converged)'}, "
        f"{ratio:.2f} times as fast as all in double"
    )


def bench_solver(options: Solver) -> None:
    """Solve with the HISQ operator in half, single and double precision.

    Whole solves use half, single and double precision inside. A fixed number of iterations, 100 on small blocks and 25
    on large ones, in double precision and with four masses at once in single precision, is compared with plain MPI,
    scalar code (few iterations, scaled), and reading as many bytes. On small blocks Wilson quarks are solved with each
    method at several kappas.
    """
    blocks = four_directions(options.blocks, "8x8x8x8,12x12x12x12,16x16x16x16,24x24x24x24")

    def rows(on: Run) -> Iterator[Row]:
        for block in on.cases:
            yield from _Block(on, block.extents, options).rows()
            if np.prod(block.extents) <= _WILSON_SITES:
                yield from _wilson_rows(on, block.extents, options)

    benchmark = Benchmark(name="solver", cases=blocks, rows=rows, memory=True)
    run(options, benchmark, flag=False, draw=save_solver_plot)
