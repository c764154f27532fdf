"""How benchmarks on several ranks start, and how their results are shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from onehop.cli.common import console, own_rank, progress, write_json
from onehop.cli.screen import Table
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import current_launch, ensure_ranks_beside_mpi
from onehop.launch.interpreter import python_module
from onehop.text import counted
from onehop_bench.commands.options import BenchOptions, HostsOptions
from onehop_bench.hosts import Unavailable, emulated_hosts, launch_on_hosts
from onehop_bench.hosts.launch import DESCRIPTION
from onehop_bench.plot import save_plot
from onehop_bench.result import Bench
from onehop_bench.run import Advance, Settings, flag_us
from onehop_bench.table import make_peer_table, make_rounding_table, make_table

__all__ = ["SKIPPED", "Measure", "check", "run", "show"]

Measure = Callable[[Group, Settings, Advance], Bench]

# Variables that ranks on hosts get as well.
PASSED = ("ONEHOP_NETWORK", "ONEHOP_TIMEOUT", "ONEHOP_UCX", "UCX_")
SKIPPED = 77  # the exit code of a test that cannot run here


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


def _ensure_hosts(options: Any, per_host: int) -> bool:
    """Whether this command runs on emulated hosts. Outside of those it asks for, it starts again on them and ends."""
    if getattr(options, "hosts", None) is None:
        return False
    if DESCRIPTION in os.environ:
        return True
    try:
        with emulated_hosts(options.hosts, options.rate, options.links or 1) as hosts:
            words = python_module("onehop", *sys.argv[1:])
            passed = {name: value for name, value in os.environ.items() if name.startswith(PASSED)}
            code = launch_on_hosts(hosts, per_host, words, mpi=options.mpi, environment=passed)
    except Unavailable as error:
        print(f"skipped: {error}", file=sys.stderr)
        code = SKIPPED
    raise SystemExit(code)


def _start_ranks(options: Any, default: int, exactly: int | None) -> Group:
    per_host = getattr(options, "per_host", None) or 1
    if exactly is not None and per_host > 1:
        if DESCRIPTION not in os.environ:
            text = f"this benchmark has one rank on each host: --per-host {per_host} is taken as 1"
            print(text, file=sys.stderr)
        per_host = 1
    if not _ensure_hosts(options, per_host):
        ranks, mpi = getattr(options, "ranks", None), getattr(options, "mpi", "none")
        # One rank sends no messages, and an mpiexec would bind it to one core.
        alone = (default if ranks is None else ranks) == 1 and mpi is None
        ensure_ranks_beside_mpi(ranks, "none" if alone else mpi, default=default)
    return Group.world()


def run(
    options: BenchOptions,
    measure: Measure,
    cases: int,
    *,
    default: int = 2,
    exactly: int | None = None,
    flag: bool = False,
    **shown: Any,
) -> None:
    """Start the ranks once the options are checked, measure, and show the result.

    Parameters
    ----------
    options : BenchOptions
        The options.
    measure : callable
        The measurement, from the group, the settings and a function that reports progress.
    cases : int
        How many times it reports progress.
    default : int
        Number of ranks without `-n`.
    exactly : int, optional
        The only number of ranks that the benchmark takes.
    flag : bool
        Whether the time of a flag between two ranks, before and after, says in which state the machine was.
    **shown
        As for `show`.
    """
    check(options, exactly)
    group = _start_ranks(options, default, exactly)
    with progress("measuring", cases) as advance:
        before = flag_us(group) if flag else None
        result = measure(group, Settings(options.seconds, options.quick), advance)
        after = flag_us(group) if flag else None
    if before is not None and after is not None:
        result.host["flag_us"] = [before, after]
    show(options, result, **shown)


def show(
    options: BenchOptions,
    result: Bench,
    table: Callable[[Bench], Table] = make_table,
    draw: Callable[[Any, str], None] = save_plot,
) -> None:
    """Print tables and notes on rank 0, and write JSON and a plot if they are asked for."""
    screen = console(options.json)
    screen.print(table(result))
    for further in (make_rounding_table(result), make_peer_table(result)):
        if further is not None:
            screen.print()
            screen.print(further)
    for note in result.notes:
        screen.print(note)
    write_json(options.json, result.to_dict())
    plot = getattr(options, "plot", None)
    if plot is not None and own_rank() == 0:
        draw(result, plot)
