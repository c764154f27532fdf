"""Solves with the staggered operator in several precisions, compared with plain MPI and scalar code."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.group import Group
from onehop.lattice import Gauge, Staggered, StaggeredSolve, smearing
from onehop.lattice.phases import with_staggered_phases
from onehop.text import counted
from onehop_bench import native
from onehop_bench.dslash import begin_bench
from onehop_bench.result import Bench, Samples, make_row
from onehop_bench.run import Advance, Settings

__all__ = ["SOLVER_BLOCKS", "lattice_solver"]

SOLVER_BLOCKS = ((8, 8, 8, 8), (12, 12, 12, 12), (16, 16, 16, 16), (24, 24, 24, 24))
MASSES = (0.01, 0.02, 0.05, 0.1)
MILC_FLOP = 1205, 15  # per site and iteration: of one mass, and of each further mass
MANY_SITES = 100_000  # per rank; scalar code takes a third of a second per iteration there
BY_MPI = "plain MPI, the same solver and kernels"
MAX_ROUNDS = 7
MAX_ITERATIONS = 10000  # of a whole solve

Solve = Callable[[int], StaggeredSolve]  # takes the largest number of iterations


@dataclass
class Candidate:
    """A candidate: its way to solve, and its measurements in each round.

    Attributes
    ----------
    few : int
        If not 0, the candidate is slow: it runs `few` iterations, then three times as many, and scales the difference
        to `iterations`.
    """

    name: str
    role: str
    solve: Solve
    iterations: int
    few: int = 0
    seconds: list[float] = field(default_factory=list)
    communication: list[float] = field(default_factory=list)
    last: StaggeredSolve | None = None

    def run(self, group: Group) -> None:
        """Solve once, and record the time of the slowest rank and the mean time in communication."""
        if self.few:
            longer, shorter = self._once(group, 3 * self.few), self._once(group, self.few)
            # If noise makes the shorter solve take as long, use the longer one with its set-up included.
            between = (longer - shorter) / (2 * self.few)
            taken = self.iterations * np.where(between > 0, between, longer / (3 * self.few))
        else:
            taken = self._once(group, self.iterations)
        self.seconds.append(taken[0])
        self.communication.append(taken[1])

    def _once(self, group: Group, iterations: int) -> NDArray[np.float64]:
        """Seconds of the slowest rank, and the mean of those in communication."""
        group.barrier()
        self.last = self.solve(iterations)
        mine = np.array([self.last.seconds, self.last.communication_seconds])
        all_ranks = np.array([np.frombuffer(part) for part in group.allgather(mine.tobytes())])
        return np.array([all_ranks[:, 0].max(), all_ranks[:, 1].mean()])

    @property
    def samples(self) -> Samples:
        """The times, µs."""
        return Samples(self.name, self.role, 1e6 * np.array(self.seconds))


def lattice_solver(
    group: Group,
    settings: Settings,
    advance: Advance,
    blocks: Sequence[tuple[int, ...]] = SOLVER_BLOCKS,
    mass: float = 0.05,
    tolerance: float = 1e-10,
    threads: int = 0,
) -> Bench:
    """Measure solves with the HISQ operator. `blocks` are those of one rank; the last direction is divided.

    Whole solves to |b - M x| / |b| = `tolerance` use half, single and double precision inside. Solves of a fixed number
    of iterations, 100 on small blocks and 25 on large ones, in double precision and with four masses at once in single
    precision, are compared with plain MPI, scalar code (few iterations, scaled), and reading as many bytes.
    """
    result = begin_bench("solver", group)
    for block in blocks:
        _Block(group, block, settings, threads).measure(
            result, mass, tolerance, settings.seconds / len(blocks)
        )
        advance(1)
    return result


class _Block:
    """The operators and the source on one block."""

    def __init__(self, group: Group, block: Sequence[int], settings: Settings, threads: int) -> None:
        self.group = group
        self.case = f"{'x'.join(map(str, block))} a rank"
        self.sites = int(np.prod(block))
        self.quick = settings.quick
        self.threads = threads
        self.iterations = 8 if settings.quick else max(25, min(100, 4_000_000 // self.sites))
        self.peers = group.size > 1 and settings.peers and not _core.why_no_mpi_peers(group)
        self._make_operators((*block[:3], block[3] * group.size), (1, 1, 1, group.size))
        random = np.random.default_rng(group.rank)
        shape = (*self.ours.geometry.block_shape, 3)
        self.source = random.normal(size=shape) + 1j * random.normal(size=shape)
        parity = sum(np.indices(shape[:-1])) % 2  # with even sites only, all masses share one system
        self.even = np.where(parity[..., None] == 0, self.source, 0)

    def _make_operators(self, extents: tuple[int, ...], grid: tuple[int, ...]) -> None:
        """Make HISQ operators on a random gauge field after some sweeps of the heat bath at beta 6.0."""
        gauge = Gauge(self.group, extents, grid)
        for sweep in range(1 if self.quick else 4):
            gauge.heat_bath(6.0, 11, sweep)
        smeared = smearing.hisq_links(gauge)
        fat, long = (
            np.ascontiguousarray(
                with_staggered_phases(one, gauge.geometry, self.group.rank, length=length), np.complex128
            )
            for one, length in ((smeared.fat, 1), (smeared.long_links, 3))
        )
        self.ours = Staggered.of_links(self.group, extents, fat, long, grid, threads=self.threads)
        links = _core.Memory(fat, False, "fat links"), _core.Memory(long, False, "long links")

        def other(name: str) -> Staggered:
            core = native.staggered_variant(name, self.group, extents, grid, *links, self.threads)
            return Staggered.of_core(core, self.group, self.ours.geometry)

        self.by_mpi = other("MPI") if self.peers else None
        self.scalar = other("scalar")

    def measure(self, result: Bench, mass: float, tolerance: float, seconds: float) -> None:
        """Add rows and notes of this block to `result`; measure for about `seconds`, at least one round."""

        def whole(sloppy_precision: str) -> Solve:
            return lambda iterations: self.ours.solve(
                self.source,
                mass,
                sloppy_precision=sloppy_precision,
                tolerance=tolerance,
                iterations=iterations,
            )

        wholes = [
            Candidate("half inside", "ours", whole("half"), MAX_ITERATIONS),
            Candidate("single inside", "variant", whole("single"), MAX_ITERATIONS),
            Candidate("double", "variant", whole("double"), MAX_ITERATIONS),
        ]

        def alone(operator: Staggered, iterations: int) -> StaggeredSolve:
            return operator.solve(self.source, mass, tolerance=1e-30, iterations=iterations)

        def several(operator: Staggered, iterations: int) -> StaggeredSolve:
            return operator.solve(
                self.even, MASSES, precision="single", tolerance=1e-30, iterations=iterations
            )

        kinds = {
            f"double, {self.iterations} iterations": ("double", self._beside(alone)),
            f"single, {len(MASSES)} masses, {self.iterations} iterations": ("single", self._beside(several)),
        }
        meters = {name: self._meter(name) for name in ("double", "single")}
        rates: dict[str, list[float]] = {"double": [], "single": []}
        candidates_in_turn = [
            *wholes,
            *(candidate for _, candidates in kinds.values() for candidate in candidates),
        ]
        self._run_rounds(candidates_in_turn, meters, rates, seconds)
        size = self.sites * 24
        result.rows.append(
            make_row(
                f"{self.case}, to {tolerance:g}",
                size,
                self.group.size,
                [candidate.samples for candidate in wholes],
            )
        )
        result.notes += [
            _of_whole(f"{self.case}, {candidate.name}", candidate, wholes[-1]) for candidate in wholes
        ]
        for kind, (precision, candidates) in kinds.items():
            self._add_beside(result, f"{self.case}, {kind}", candidates, np.array(rates[precision]))

    def _run_rounds(
        self,
        candidates: list[Candidate],
        meters: dict[str, native.Bandwidth],
        rates: dict[str, list[float]],
        seconds: float,
    ) -> None:
        """Run all candidates in turn for about `seconds`, and add the rates of the meters after each round."""
        for candidate in candidates:
            candidate.solve(2)  # does the set-up that is needed once
        begin = time.monotonic()
        rounds = 1
        done = 0
        while done < rounds:
            for candidate in candidates:
                candidate.run(self.group)
            for precision, meter in meters.items():
                rates[precision].append(self._slowest(meter.measure(4)))
            done += 1
            if done == 1:  # the first round shows the duration of a round
                taken = -self._slowest(begin - time.monotonic())
                rounds = 2 if self.quick else max(1, min(MAX_ROUNDS, int(seconds / taken)))

    def _beside(self, solve: Callable[[Staggered, int], StaggeredSolve]) -> list[Candidate]:
        candidates = [Candidate("onehop", "ours", partial(solve, self.ours), self.iterations)]
        if self.by_mpi is not None:
            candidates.append(Candidate(BY_MPI, "peer", partial(solve, self.by_mpi), self.iterations))
        few = 1 if self.sites > MANY_SITES else 3
        name = f"scalar code, {2 * few} iterations scaled"
        candidates.append(Candidate(name, "variant", partial(solve, self.scalar), self.iterations, few))
        return candidates

    def _meter(self, precision: str) -> native.Bandwidth:
        """A measurement of reading as much memory as a solve uses: links and some vectors of one parity."""
        numbers = 8 if precision == "double" else 4
        size = self.ours.core.link_bytes(precision) + 5 * self.sites * 3 * numbers
        return native.Bandwidth(self.group, size, self.threads)

    def _slowest(self, value: float) -> float:
        return min(
            float(np.frombuffer(part)[0]) for part in self.group.allgather(np.array([value]).tobytes())
        )

    def _add_beside(self, result: Bench, case: str, candidates: list[Candidate], rates: np.ndarray) -> None:
        found = candidates[0].last
        assert found is not None
        limit = Samples("speed of light: reading as many bytes", "speed_of_light", found.bytes / rates / 1e3)
        samples = [*(candidate.samples for candidate in candidates), limit]
        result.rows.append(make_row(case, round(found.bytes), self.group.size, samples))
        ours = samples[0].us
        median = np.median(ours)
        if "masses" in case:
            flop = self.sites * found.iterations * (MILC_FLOP[0] + MILC_FLOP[1] * len(MASSES))
            rate = f"{flop / median / 1e3:.1f} GFLOP/s a rank (counted as MILC does)"
        else:
            rate = f"{found.flops / median / 1e3:.1f} GFLOP/s a rank"
        text = f"{case}: {median / 1e3:.1f} ms, {rate}, "
        text += (
            f"{100 * np.median(limit.us / ours):.0f} % of the roofline at {np.median(rates):.1f} GB/s a rank"
        )
        text += f"; faces and sums, by clocks: {1e3 * np.median(candidates[0].communication):.2f} ms"
        for candidate in candidates[1:]:
            if candidate.role == "peer":
                text += f" (MPI {1e3 * np.median(candidate.communication):.2f} ms)"
        for candidate in candidates[1:]:
            name = "MPI" if candidate.role == "peer" else "scalar code"
            text += f"; {name} takes {np.median(candidate.samples.us / ours):.2f} times as long"
        result.notes.append(text)


def _of_whole(case: str, candidate: Candidate, double: Candidate) -> str:
    found = candidate.last
    assert found is not None
    taken = np.median(candidate.seconds)
    ratio = np.median(np.array(double.seconds) / np.array(candidate.seconds))
    return (
        f"{case}: {counted(found.iterations, 'iteration')} in {1e3 * taken:.1f} ms, "
        f"{1e3 * np.median(candidate.communication):.1f} ms of them in faces and sums, "
        f"{found.flops / taken * 1e-9:.1f} GFLOP/s and {found.bytes / taken * 1e-9:.1f} GB/s a rank, "
        f"residual {found.true_residual:.1e}{'' if found.converged else ' (not converged)'}, "
        f"{ratio:.2f} times as fast as all in double"
    )
