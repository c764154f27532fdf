"""What benchmarks on several ranks share: their options, how their ranks are started, how results are shown."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, get_type_hints

from rich.table import Table

from onehop.cli.common import JsonOption, MpiOption, RanksOption, check_plot, check_seconds, progress
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks_beside_mpi
from onehop.text import counted
from onehop_bench.commands.hosts import (
    HostsOption,
    LinksOption,
    OnHosts,
    PerHostOption,
    RateOption,
    ensure_hosts,
)
from onehop_bench.commands.options import PlotOption, QuickOption, SecondsOption
from onehop_bench.commands.show import show
from onehop_bench.hosts.launch import DESCRIPTION
from onehop_bench.plot import save_plot
from onehop_bench.result import Bench
from onehop_bench.run import Advance, Settings, flag_us
from onehop_bench.table import make_table

__all__ = ["Measure", "Start", "on_ranks"]

Measure = Callable[[Group, Settings, Advance], Bench]


@dataclass(frozen=True)
class Start:
    """The options that all benchmarks on ranks have, as they were given; see `on_ranks`."""

    seconds: float
    ranks: int | None = None
    mpi: str | None = None
    hosts: int | None = None
    per_host: int | None = None
    rate: str | None = None
    links: int | None = None
    quick: bool = False
    json_target: str | None = None
    plot: str | None = None

    @property
    def on(self) -> OnHosts:
        """The options of emulated hosts."""
        return OnHosts(self.hosts, self.per_host, self.rate, self.links)

    def check(self, exactly: int | None = None) -> None:
        """Raise BadInput if the options do not fit together, or with a benchmark of `exactly` so many ranks."""
        check_seconds(self.seconds)
        self.on.check(self.ranks, self.mpi)
        check_plot(self.plot)
        if exactly is None:
            return
        expected = f"expected {counted(exactly, 'rank')} for this benchmark, found"
        if self.hosts not in (None, exactly):
            raise BadInput(f"{expected} --hosts {self.hosts}")
        if self.ranks not in (None, exactly):
            raise BadInput(f"{expected} -n {self.ranks}; leave -n out")

    def run(
        self,
        measure: Measure,
        cases: int,
        *,
        default: int = 2,
        exactly: int | None = None,
        table: Callable[[Bench], Table] = make_table,
        draw: Callable[[Any, str], None] = save_plot,
        peers: bool = True,
    ) -> None:
        """Start the ranks once the options are checked, measure, and show the result.

        Parameters
        ----------
        measure : callable
            The measurement, from the group, the settings and a function that reports progress.
        cases : int
            How many times it reports progress.
        default : int
            Number of ranks without `-n`.
        exactly : int, optional
            The only number of ranks that the benchmark takes.
        table, draw : callable
            Make the table and the plot.
        peers : bool
            Whether other libraries are measured too.
        """
        self.check(exactly)
        on = self.on
        if exactly is not None and (self.per_host or 1) > 1:
            if DESCRIPTION not in os.environ:
                text = f"this benchmark has one rank on each host: --per-host {self.per_host} is taken as 1"
                print(text, file=sys.stderr)
            on = replace(on, per_host=1)
        if not ensure_hosts(on, self.mpi):
            ensure_ranks_beside_mpi(self.ranks, self.mpi, default=default)
        group = Group.world()
        with progress("measuring", cases) as advance:
            before = flag_us(group)
            result = measure(group, Settings(self.seconds, self.quick, peers), advance)
            after = flag_us(group)
        if before is not None and after is not None:
            result.host["flag_us"] = [before, after]
        show(result, self.json_target, self.plot, table, draw)


def _option(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation, default=default
    )


_RANKS = (_option("ranks", RanksOption, None), _option("mpi", MpiOption, None))
_HOSTS = (
    _option("hosts", HostsOption, None),
    _option("per_host", PerHostOption, None),
    _option("rate", RateOption, None),
    _option("links", LinksOption, None),
)
_OUTPUT = (_option("quick", QuickOption, False), _option("json_target", JsonOption, None))
_PLOT = (_option("plot", PlotOption, None),)


def on_ranks(
    seconds: float, *, ranks: bool = True, hosts: bool = False, plot: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that benchmarks share, behind its own; its first argument becomes their `Start`.

    Parameters
    ----------
    seconds : float
        The default of `--seconds`.
    ranks : bool
        Whether it has `-n` and `--mpi`. Without them it runs on one rank, without MPI.
    hosts : bool
        Whether it has the options of emulated hosts.
    plot : bool
        Whether it has `--plot`.
    """
    shared = [
        *(_RANKS if ranks else ()),
        *(_HOSTS if hosts else ()),
        _option("seconds", SecondsOption, seconds),
        *_OUTPUT,
        *(_PLOT if plot else ()),
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        _, *own = inspect.signature(command).parameters.values()
        parameters = [one.replace(annotation=hints[one.name]) for one in own] + shared
        names = {one.name for one in shared}

        @functools.wraps(command)
        def wrapper(**given: Any) -> None:
            options = {name: value for name, value in given.items() if name in names}
            if not ranks:
                options["mpi"] = "none"
            command(Start(**options), **{name: given[name] for name in given if name not in names})

        # Typer reads the options from these two.
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {one.name: one.annotation for one in parameters}
        return wrapper

    return decorate
