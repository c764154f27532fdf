"""`onehop bench scaling`: circuits on 1, 2, 4 ... ranks, with a fixed state or a fixed part of it per rank.

Times exclude placement and allocation of memory. Further keys of a row are its `kind`, "strong" or "weak"; `qubits` of
the state; `threads` per rank; `seconds`, the median time; `passes` over a rank's amplitudes; `exchanges` between ranks
and `bytes_moved`, what all ranks send in them; `speedup`, gates times amplitudes per second over the same on one rank
with as many threads; and `cores` that ranks and threads can occupy, the limit of `speedup` with one thread per rank.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from onehop.cli.screen import Table
from onehop.cores import usable_cores
from onehop.error import BadInput
from onehop.figure import empty_figure, save_figure
from onehop.group import Group
from onehop.options import LARGEST_INT, option
from onehop.quantum.circuit import Circuit
from onehop.quantum.generators import evolution, qpe, tfim
from onehop.quantum.simulator import Result, simulate
from onehop.text import counted, number
from onehop_bench.measure import Benchmark, Run, run
from onehop_bench.options import BenchOptions, PlotOptions, names_option, seconds_option
from onehop_bench.plot import PEER_COLOURS, PEER_MARKERS, named_axis, title_of
from onehop_bench.result import Bench, Row, Samples, make_row
from onehop_bench.table import Columns, table_of

_STEPS = 10  # steps of the second-order Trotter formula
_KINDS = ("strong", "weak")


def _rectangle(qubits: int) -> tuple[int, int]:
    """The sides of the rectangle nearest to a square."""
    rows = next(side for side in range(int(qubits**0.5), 0, -1) if qubits % side == 0)
    return rows, qubits // rows


SCALING_CASES: dict[str, Callable[[int], Circuit]] = {
    "qpe": lambda qubits: qpe(qubits),
    "tfim-1d": lambda qubits: evolution(tfim((qubits,)), qubits, steps=_STEPS),
    "tfim-2d": lambda qubits: evolution(tfim(_rectangle(qubits), lattice="triangular"), qubits, steps=_STEPS),
}


@dataclass(kw_only=True)
class ScalingBench(PlotOptions, BenchOptions):
    seconds: float = seconds_option(60)
    ranks: int = option(
        4,
        "Largest number of ranks, a power of two. 1, 2, 4 ... ranks up to it are compared.",
        "-n",
        "--ranks",
        metavar="RANKS",
        low=1,
        high=LARGEST_INT,
    )
    qubits: int | None = option(None, "Qubits of the largest state; 24 by default.")
    cases: list[str] | None = option(
        None, "Circuit to measure; may be repeated. All by default.", "--case", choices=tuple(SCALING_CASES)
    )
    kind: list[str] = names_option(
        list(_KINDS),
        "Kind of scaling: strong (the state is the same) or weak (the share of each rank is the same).",
        choices=_KINDS,
    )
    threads: int = option(
        0, "Threads per rank. 0 divides the cores among the ranks.", low=0, high=LARGEST_INT
    )
    precision: str = option("double", "Precision of the amplitudes.", choices=("double", "single"))


@dataclass(frozen=True)
class Turn:
    """One run of a case."""

    kind: str
    qubits: int
    ranks: int
    threads: int


def turns_of(options: ScalingBench, ranks: int) -> Iterator[Turn]:
    """Yield each run of a case on up to so many ranks.

    A weak scaling has one qubit more for each doubling of the ranks. A strong one is also run on one rank with all
    cores.
    """
    cores = usable_cores()
    threads = options.threads or max(1, cores // ranks)
    qubits = options.qubits if options.qubits is not None else (10 if options.quick else 24)
    for kind in options.kind:
        for bits in range(ranks.bit_length()):
            fewer = 0 if kind == "strong" else ranks.bit_length() - 1 - bits
            yield Turn(kind, qubits - fewer, 1 << bits, threads)
        if kind == "strong" and cores != threads:
            yield Turn(kind, qubits, 1, cores)


def _rows(on: Run, case: str, options: ScalingBench, parts: dict[int, Group | None]) -> Iterator[Row]:
    """Measure a case on 1, 2, 4 ... of the ranks in turn. Collective."""
    group = on.group
    turns = list(turns_of(options, group.size))
    circuits = {turn.qubits: SCALING_CASES[case](turn.qubits) for turn in turns}
    times: list[list[float]] = [[] for _ in turns]
    seen: dict[int, Result] = {}
    begin = time.perf_counter()
    while True:
        for i, turn in enumerate(turns):
            group.barrier()
            mine = 0.0
            if (part := parts[turn.ranks]) is not None:
                found = simulate(
                    circuits[turn.qubits], part, precision=options.precision, threads=turn.threads
                )
                mine = found.seconds
                seen[i] = found
                found._state = found._core = None  # the memory of the next one
            times[i].append(max(float(text) for text in group.allgather(repr(mine).encode())))
        spent = time.perf_counter() - begin
        rounds = len(times[0])
        limit = 0.0 if on.quick else on.seconds
        if group.allgather(b"enough" if spent * (rounds + 1) / rounds > limit else b"")[0]:
            break
    if group.rank != 0:
        return
    work = [len(circuits[turn.qubits]) * 2.0**turn.qubits for turn in turns]
    for i, turn in enumerate(turns):
        base = next(j for j, other in enumerate(turns) if other.kind == turn.kind and other.ranks == 1)
        rate = np.array(times[base]) / np.array(times[i]) * (work[i] / work[base])
        result = seen[i]
        yield make_row(
            f"{case}, {turn.kind}",
            result.bytes_moved,
            turn.ranks,
            [Samples("onehop", "ours", np.array(times[i]) * 1e6)],
            kind=turn.kind,
            qubits=turn.qubits,
            threads=turn.threads,
            seconds=float(np.median(times[i])),
            passes=result.passes,
            exchanges=result.exchanges,
            bytes_moved=result.bytes_moved,
            speedup=float(np.median(rate)),
            cores=min(turn.ranks * turn.threads, usable_cores()),
        )


def bench_scaling(options: ScalingBench) -> None:
    """Run phase estimation and Ising models on 1, 2, 4 ... ranks: time, speedup and bytes moved."""
    ranks = options.ranks
    if ranks & (ranks - 1):
        raise BadInput(f"expected a number of ranks that is a power of two, found {ranks}")
    if options.qubits is not None and not ranks.bit_length() + 3 <= options.qubits <= 40:
        raise BadInput(f"expected --qubits from {ranks.bit_length() + 3} to 40, found {options.qubits}")

    def rows(on: Run) -> Iterator[Row]:
        group = on.group
        parts = {
            1 << bits: group.split(0 if group.rank < 1 << bits else -1, group.rank)
            for bits in range(group.size.bit_length())
        }
        for case in on.cases:
            yield from _rows(on, case, options, parts)

    benchmark = Benchmark(name="scaling", cases=options.cases or list(SCALING_CASES), rows=rows, mpi=False)
    run(options, benchmark, flag=False, tables=(make_scaling_table,), draw=save_scaling_plot)


def make_scaling_table(result: Bench) -> Table | None:
    """A table with a line for each row; none on ranks without rows."""
    if not result.rows:
        return None
    caption = (
        f"{result.host['cpu']}, {counted(result.host['cores'], 'core')}; s: seconds, the median of "
        f"{result.rows[0].rounds}; speedup:\n"
        "gates times amplitudes in a second over those of one rank with as many threads;\n"
        "MiB: moved, all ranks"
    )
    columns: Columns = {
        "case": "case",
        "n": "qubits",
        "ranks x threads": lambda row: f"{row.ranks} x {row.threads}",
        "s": "seconds",
        "speedup": "speedup",
        "passes": lambda row: f"{row.passes:g}",
        "exchanges": "exchanges",
        "MiB": lambda row: number(row.bytes_moved / 2**20),
    }
    return table_of(result.rows, "onehop bench scaling", caption, columns)


def save_scaling_plot(result: Bench, file: str) -> None:
    """Draw the speedup over the number of ranks, with a line for each case."""
    figure = empty_figure(8, 5)
    axes = figure.subplots()
    threads = result.rows[0].threads
    shown = [row for row in result.rows if row.threads == threads]
    looks = zip(PEER_COLOURS, PEER_MARKERS, strict=True)
    for (case, group), (colour, marker) in zip(groupby(shown, lambda row: row.case), looks, strict=False):
        rows = list(group)
        look = {"color": colour, "marker": marker, "linestyle": "-" if rows[0].kind == "strong" else "--"}
        axes.plot([row.ranks for row in rows], [row.speedup for row in rows], label=case, **look)
    cores = {row.ranks: row.cores for row in sorted(shown, key=lambda row: row.ranks)}
    ideal = [count / cores[1] for count in cores.values()]
    axes.plot(list(cores), ideal, ":", color="black", label="ideal: cores in use")
    named_axis(axes, {ranks: str(ranks) for ranks in cores})
    axes.set(xlabel=f"ranks, with {counted(threads, 'thread')} each", ylabel="speedup over one rank")
    axes.set_title(title_of(result), fontsize=10, wrap=True)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    save_figure(figure, file, dpi=130)
