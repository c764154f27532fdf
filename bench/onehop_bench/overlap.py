"""`onehop bench overlap`: asynchronous operations of torch progress while Python computes; with a time line.

`ours_us` is the time from the first start to the last end. Further keys of a row are the `backend` of
torch.distributed; `computing`, "Python" or "torch"; the `niceness` of the thread of the backend onehop, or None;
`works`, the number of all-reduces that were started; `waiting_us`, the same time if the ranks wait instead of
computing; `computing_share`, computing done beside the operations, over that done without them in the same time; and
`timeline`: of the repetition with the median time, on rank 0, in s since the first start, the end of each operation in
`ends`, and in `steps` the end of each step of computing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from onehop.cli.screen import Table
from onehop.collectives import allgather, allreduce, barrier
from onehop.error import BadInput
from onehop.figure import empty_figure, save_figure
from onehop.group import Group
from onehop.options import option
from onehop.text import bytes_text, counted, number, seconds_text
from onehop_bench.measure import Benchmark, Run, run
from onehop_bench.options import PlotOptions, RanksBenchOptions, Size, seconds_option
from onehop_bench.result import Bench, Row, Samples, make_row
from onehop_bench.table import Columns, machine_caption, table_of
from onehop_bench.torch_groups import check_torch, end_torch, process_groups

WORKS = 12
REPETITIONS = 60
NICENESS = (0, 5, 10)
COMPUTING = {
    "Python": "a loop of Python",
    "torch": "products of matrices, which release the interpreter's lock",
}


@dataclass(kw_only=True)
class Overlap(PlotOptions, RanksBenchOptions):
    seconds: float = seconds_option(30)
    size: int = option(4 << 20, "Bytes of each all-reduce.", metavar="4M", kind=Size)


class _Computing:
    """Steps of computing, each of about 0.2 ms."""

    def __init__(self, kind: str) -> None:
        import torch

        self._matrix = torch.rand(160, 160) if kind == "torch" else None
        self._product = torch.empty_like(self._matrix) if self._matrix is not None else None

    def step(self) -> None:
        if self._matrix is None:
            total = 0
            for i in range(4000):
                total += i & 3
        else:
            import torch

            torch.mm(self._matrix, self._matrix, out=self._product)


@dataclass
class _Run:
    """One repetition: the ends of operations and of steps, in s since the beginning."""

    ends: list[float]
    steps: list[float]

    @property
    def seconds(self) -> float:
        return self.ends[-1]

    @property
    def rate(self) -> float:
        """Steps per second while operations were pending."""
        return sum(1 for one in self.steps if one <= self.seconds) / self.seconds


def _run(process_group: Any, tensors: Sequence[Any], computing: _Computing | None) -> _Run:
    """Start the operations, compute until all are done (or wait), and note when each ended."""
    import torch.distributed as dist

    ends: list[float] = []
    steps: list[float] = []
    begin = perf_counter()

    def ended(_: Any) -> None:
        ends.append(perf_counter() - begin)

    works = [dist.all_reduce(one, group=process_group, async_op=True) for one in tensors]
    for work in works:
        work.get_future().then(ended)
    while computing is not None:  # at least a step, also if all operations have ended
        computing.step()
        steps.append(perf_counter() - begin)
        if len(ends) == len(works):
            break
    for work in works:
        work.wait()
    while len(ends) < len(works):  # callbacks follow
        pass
    return _Run(sorted(ends), steps)


def _rate_alone(computing: _Computing, seconds: float) -> float:
    """Steps per second without operations."""
    count, begin = 0, perf_counter()
    while perf_counter() - begin < seconds:
        computing.step()
        count += 1
    return count / (perf_counter() - begin)


def _case(
    group: Group, process_group: Any, kind: str, size: int, seconds: float, repetitions: int
) -> tuple[np.ndarray, float, float, _Run]:
    """Times of the ranks that compute, the median of those that wait, the share of computing, and a typical run."""
    import torch

    computing = _Computing(kind)
    tensors = [torch.zeros(size // 4) for _ in range(WORKS)]
    beside: list[_Run] = []
    waiting, shares = [], []
    begin = perf_counter()
    for _ in range(repetitions):
        barrier(group)
        waiting.append(_run(process_group, tensors, None).seconds)
        barrier(group)
        beside.append(_run(process_group, tensors, computing))
        barrier(group)
        alone = _rate_alone(computing, max(beside[-1].seconds, 0.01))
        shares.append(beside[-1].rate / alone)
        if allgather(group, np.array([perf_counter() - begin]))[0, 0] > seconds and len(beside) >= 3:
            break
    us = 1e6 * allreduce(group, np.array([one.seconds for one in beside]), op="max")
    idle = float(np.median(1e6 * allreduce(group, np.array(waiting), op="max")))
    typical = beside[int(np.argsort(us)[len(us) // 2])]
    share = float(np.median(allreduce(group, np.array(shares), op="mean")))
    return us, idle, share, typical


def make_overlap_table(result: Bench) -> Table:
    """A table with a line for each backend, niceness and kind of computing."""
    columns: Columns = {
        "backend": "backend",
        "niceness": "niceness",
        "computing with": "computing",
        "beside ms": lambda row: number(row.ours_us / 1e3),
        "waiting ms": lambda row: number(row.waiting_us / 1e3),
        "computing": lambda row: f"{100 * row.computing_share:.0f} %",
    }
    size = bytes_text(result.rows[0].bytes // WORKS, exact=True)
    title = f"onehop bench overlap, {counted(result.rows[0].ranks, 'rank')}, {WORKS} all-reduces of {size}"
    caption = (
        f"{machine_caption(result.host)}\n"
        "beside: from the first start to the last end while each rank computes; waiting: while it waits\n"
        "computing: work done beside the operations, over that without them in the same time"
    )
    return table_of(result.rows, title, caption, columns)


def plot_overlap(result: Bench, file: str) -> None:
    """Draw a time line for each row: when each operation ran, and the steps of computing done by then."""
    rows = result.rows
    kinds = list(dict.fromkeys(row.computing for row in rows))
    most = max(sum(1 for row in rows if row.computing == kind) for kind in kinds)
    figure = empty_figure(5.6 * len(kinds), 1.7 * most + 0.4)
    axes = figure.subplots(most, len(kinds), squeeze=False, sharex="col")
    for column, kind in enumerate(kinds):
        for place, row in enumerate(one for one in rows if one.computing == kind):
            _draw(axes[place][column], row)
        axes[0][column].set_title(f"{axes[0][column].get_title()}\ncomputing: {COMPUTING[kind]}", fontsize=9)
        axes[-1][column].set_xlabel("ms since the first start")
    save_figure(figure, file)


def _draw(axes: Any, row: Row) -> None:
    ends = [1e3 * one for one in row.timeline["ends"]]
    begins = [0.0, *ends[:-1]]
    lengths = [end - begin for begin, end in zip(begins, ends, strict=True)]
    colours = ["tab:blue" if number % 2 else "tab:cyan" for number in range(len(ends))]
    axes.barh([1.0] * len(ends), lengths, left=begins, height=0.5, color=colours, edgecolor="none")
    steps = np.array(row.timeline["steps"]) * 1e3
    # The steps that ended in each of 30 slices, as shades: darker is more computing.
    counts, edges = np.histogram(steps, bins=30, range=(0.0, max(ends[-1], 1e-3)))
    shades = counts / max(1, counts.max())
    for count, left, right in zip(shades, edges[:-1], edges[1:], strict=True):
        if count > 0:
            shade = {"color": "tab:orange", "alpha": float(count), "edgecolor": "none"}
            axes.barh(0.0, right - left, left=left, height=0.5, **shade)
    axes.set_yticks([0.0, 1.0], ["main thread\ncomputes", "all-reduces"], fontsize=8)
    axes.set_ylim(-0.4, 1.4)
    axes.set_title(
        f"{row.case.rsplit(', ', 1)[0]}: {seconds_text(row.ours_us * 1e-6, 3)}, "
        f"{100 * row.computing_share:.0f} % of the computing",
        fontsize=9,
    )


def bench_overlap(options: Overlap) -> None:
    """Start asynchronous all-reduces of torch and compute until they are done; --plot draws the time line.

    Each rank computes with one thread.
    """
    if options.size < 4:
        raise BadInput(f"expected --size of at least 4 bytes, found {options.size}")
    check_torch(options)

    def rows(on: Run) -> Iterator[Row]:
        groups = process_groups(on.group, 1)
        limit, repetitions = (0.05, 3) if on.quick else (on.seconds, REPETITIONS)
        for backend, niceness, kind in on.cases:
            if niceness is not None:
                groups["onehop"].niceness = niceness
            us, idle, share, typical = _case(
                on.group, groups[backend], kind, options.size, limit, repetitions
            )
            name = backend if niceness is None else f"{backend}, niceness {niceness}"
            timeline = {
                key: [float(f"{value:.6f}") for value in values] for key, values in vars(typical).items()
            }
            yield make_row(
                f"{name}, {kind}",
                options.size * WORKS,
                on.group.size,
                [Samples(backend, "ours", us)],
                backend=backend,
                computing=kind,
                niceness=niceness,
                works=WORKS,
                waiting_us=idle,
                computing_share=share,
                timeline=timeline,
            )

    # From less nice to nicer: only a privileged process may go back.
    backends = [*(("onehop", niceness) for niceness in NICENESS), ("gloo", None)]
    cases = [(*backend, kind) for backend in backends for kind in COMPUTING]
    benchmark = Benchmark(name="overlap", cases=cases, rows=rows, across=True)
    run(options, benchmark, tables=(make_overlap_table,), draw=plot_overlap)
    end_torch()
