"""The frame of every benchmark: its ranks, its cases in turn, and how its result is shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop import _core
from onehop.cli.busy import Load, load_text
from onehop.cli.common import console, own_rank, progress, write_json
from onehop.cli.screen import Table
from onehop.cores import machine_cores
from onehop.doctor import host
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.launch import current_launch, ensure_ranks_beside_mpi
from onehop.launch.interpreter import python_module
from onehop.text import counted, rate_text
from onehop_bench import native
from onehop_bench.hosts import Unavailable, emulated_hosts, launch_on_hosts
from onehop_bench.hosts.launch import DESCRIPTION
from onehop_bench.options import BenchOptions, HostsOptions
from onehop_bench.plot import save_plot
from onehop_bench.result import Bench, Row
from onehop_bench.table import make_peer_table, make_rounding_table, make_table
from onehop_bench.wire import host_numbers

# Variables that ranks on hosts get as well.
PASSED = ("ONEHOP_NETWORK", "ONEHOP_TIMEOUT", "ONEHOP_UCX", "UCX_")
SKIPPED = 77  # the exit code of a test that cannot run here


@dataclass
class Run:
    """What a benchmark needs to measure its cases.

    A case of `cases` counts as done when the next one is taken. `result` takes notes, and remarks on the machine.
    `effort` is that for one case, and `seconds` the same as a time. `quick` measures as briefly as possible, which
    shows that everything works; the figures mean little. `peers` compares with MPI, if there is one.
    """

    group: Group
    cases: Iterator[Any]
    result: Bench
    effort: _core.MeasureEffort
    seconds: float
    quick: bool
    peers: bool


@dataclass(kw_only=True)
class Benchmark:
    """A benchmark on several ranks; `rows` yields the rows of all cases of a Run.

    `exactly` is the only number of ranks that it takes. `across` says that it can also measure between hosts, `mpi`
    that it compares with MPI (a note then says if there is none), and `memory` that the bandwidth of memory and the
    peak of a thread are measured and noted. `block_us` says how long a candidate runs on a number of ranks before the
    next one takes its turn. With more ranks than cores this must be longer than the time slices of the scheduler.
    """

    name: str
    cases: Sequence[Any]
    rows: Callable[[Run], Iterator[Row]]
    exactly: int | None = None
    across: bool = False
    mpi: bool = True
    memory: bool = False
    block_us: Callable[[int], float] = lambda _ranks: 400.0

    def measure(
        self,
        group: Group,
        seconds: float,
        *,
        quick: bool = False,
        peers: bool = True,
        advance: Callable[[float], None] = lambda _amount: None,
    ) -> Bench:
        """Measure all cases in `seconds`. Collective."""
        result = self._begin(group)
        count = max(len(self.cases), 1)
        block = self.block_us(group.size)
        effort = _core.MeasureEffort(seconds=seconds / count, block_us=block)
        if quick:
            effort = _core.MeasureEffort(seconds=0.02, block_us=min(block, 50.0), min_rounds=3)

        def cases() -> Iterator[Any]:
            for case in self.cases:
                yield case
                advance(1)

        run = Run(group, cases(), result, effort, seconds / count, quick, peers)
        result.rows += self.rows(run)
        return result

    def _begin(self, group: Group) -> Bench:
        """An empty result, after checks."""
        if self.exactly is not None and group.size != self.exactly:
            raise BadInput(
                f"onehop bench {self.name} measures {counted(self.exactly, 'rank')}, but this launch has "
                f"{group.size}: use -n {self.exactly}"
            )
        far = len(group.local_ranks) != group.size
        if far and not self.across:
            raise BadInput(f"onehop bench {self.name} measures shared memory: start all ranks on one machine")
        why_not, version = _core.why_no_mpi_peers(group) if self.mpi else "", None
        if self.mpi and not why_not:
            try:
                version = native.mpi_version()
            except Error as error:
                why_not = str(error)
        result = Bench(self.name, {**host(version), "cores": machine_cores()})
        if far:
            result.notes.append(f"between {counted(max(host_numbers(group)) + 1, 'host')}")
            if DESCRIPTION in os.environ:
                result.host["emulated_hosts"] = os.environ[DESCRIPTION]
                result.notes.append(f"the hosts are emulated: {os.environ[DESCRIPTION]}")
        if why_not:
            result.notes.append(f"no MPI to compare with: {why_not}")
        if self.memory:
            _note_machine(result, group)
        return result


def slices_if_shared(ranks: int) -> float:
    """How long a candidate runs: several time slices of the scheduler with more ranks than cores."""
    return 400.0 if ranks <= machine_cores() else 20000.0


def longer_blocks(ranks: int) -> float:
    """How long a candidate of a collective operation runs."""
    return 400.0 if ranks <= 2 else 4000.0


def _note_machine(result: Bench, group: Group) -> None:
    """Measure the memory bandwidth of all ranks at once and the peak arithmetic rate of a thread, and note both."""
    memory = native.Bandwidth(group, (1 << 30) // group.size, 0)
    rate = max(memory.measure(1) for _ in range(3))
    peaks = ", ".join(
        f"{rate_text(_core.peak_gflops(name == 'single') * 1e9, 'FLOP/s', 3)} {name}"
        for name in ("single", "double")
    )
    result.host["memory_gb_s"] = rate
    result.notes += [
        f"memory, measured: {rate_text(rate * 1e9, digits=3)} per rank, of {group.size} that read 1 GiB at once",
        f"peak of one thread, measured: {peaks}",
    ]


def _flag_us(group: Group) -> float | None:
    """The time of a bare flag between two ranks, µs; None unless there are two, on one machine.

    It shows the state of a machine on which the distance between cores changes.
    """
    if group.size != 2 or len(group.local_ranks) != 2:
        return None
    effort = _core.MeasureEffort(seconds=0.05, block_us=100.0, min_rounds=3)
    measured = native.ping_pong(group, 0, effort, False, False)
    return float(np.median(next(us for _, role, us in measured if role == "speed_of_light")))


def check(options: Any, exactly: int | None = None) -> None:
    """Raise BadInput if the options of ranks do not fit together, or with a benchmark of `exactly` so many ranks."""
    ranks, hosts = getattr(options, "ranks", None), getattr(options, "hosts", None)
    if isinstance(options, HostsOptions):
        options.check_hosts(ranks, options.mpi)  # type: ignore[attr-defined]
        if hosts is not None and current_launch() is not None and DESCRIPTION not in os.environ:
            raise BadInput("--hosts starts its own ranks: run it by itself, without a launcher")
    if exactly is None:
        return
    expected = f"expected {counted(exactly, 'rank')} for this benchmark, found"
    if hosts not in (None, exactly):
        raise BadInput(f"{expected} --hosts {hosts}")
    if ranks not in (None, exactly):
        raise BadInput(f"{expected} -n {ranks}; leave -n out")


def _ensure_hosts(options: Any, per_host: list[int]) -> bool:
    """Whether this command runs on emulated hosts. Outside of those it asks for, it starts again on them and ends."""
    if getattr(options, "hosts", None) is None:
        return False
    if DESCRIPTION in os.environ:
        return True
    try:
        with emulated_hosts(options.hosts, options.rate, options.links or 1) as hosts:
            words = python_module("onehop", *sys.argv[1:])
            passed = {name: value for name, value in os.environ.items() if name.startswith(PASSED)}
            code = launch_on_hosts(
                hosts, per_host, words, by_node=options.by_node, mpi=options.mpi, environment=passed
            )
    except Unavailable as error:
        print(f"skipped: {error}", file=sys.stderr)
        code = SKIPPED
    raise SystemExit(code)


def _start_ranks(options: Any, default: int, exactly: int | None) -> Group:
    per_host = getattr(options, "per_host", None) or [1]
    if exactly is not None and max(per_host) > 1:
        if DESCRIPTION not in os.environ:
            given = ",".join(map(str, per_host))
            text = f"this benchmark has one rank on each host: --per-host {given} is taken as 1"
            print(text, file=sys.stderr)
        per_host = [1]
    if not _ensure_hosts(options, per_host):
        ranks, mpi = getattr(options, "ranks", None), getattr(options, "mpi", "none")
        # One rank sends no messages, and an mpiexec would bind it to one core.
        alone = (default if ranks is None else ranks) == 1 and mpi is None
        ensure_ranks_beside_mpi(ranks, "none" if alone else mpi, default=default)
    return Group.world()


def run(
    options: BenchOptions, benchmark: Benchmark, *, default: int = 2, flag: bool = True, **shown: Any
) -> None:
    """Start the ranks once the options are checked, measure, and show the result.

    `default` is the number of ranks without `-n`. `flag` says whether the time of a flag between two ranks, before and
    after, tells in which state the machine was. `shown` is as for `show`.
    """
    check(options, benchmark.exactly)
    group = _start_ranks(options, default, benchmark.exactly)
    load = Load(group)
    with progress("measuring", len(benchmark.cases)) as advance:
        before = _flag_us(group) if flag else None
        result = benchmark.measure(group, options.seconds, quick=options.quick, advance=advance)
        after = _flag_us(group) if flag else None
    result.host["busy"] = load.found()
    result.notes.append(load_text(result.host["busy"]))
    if before is not None and after is not None:
        result.host["flag_us"] = [before, after]
    show(options, result, **shown)


def show(
    options: BenchOptions,
    result: Bench,
    tables: Sequence[Callable[[Bench], Table | None]] = (make_table, make_rounding_table, make_peer_table),
    draw: Callable[[Any, str], None] = save_plot,
) -> None:
    """Print tables and notes on rank 0, and write JSON and a plot if they are asked for."""
    screen = console(options.json)
    for number, make in enumerate(tables):
        made = make(result)
        if made is not None:
            if number:
                screen.print()
            screen.print(made)
    for note in result.notes:
        screen.print(note)
    write_json(options.json, result.to_dict())
    plot = getattr(options, "plot", None)
    if plot is not None and own_rank() == 0:
        draw(result, plot)
