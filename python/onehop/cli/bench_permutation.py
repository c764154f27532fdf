"""`onehop bench permutation`."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.bench.permutation import QUBITS, permutation, permutation_cases
from onehop.bench.result import Bench
from onehop.bench.run import Advance, Settings
from onehop.cli.bench_exchanges import RoundingOption, _rounding, _run
from onehop.cli.bench_hosts import HostsOption, LinksOption, OnHosts, PerHostOption, RateOption
from onehop.cli.bench_options import PlotOption, QuickOption, SecondsOption
from onehop.cli.common import JsonOption, MpiOption, RanksOption, parse_numbers
from onehop.group import Group


def bench_permutation(
    qubits: Annotated[
        str | None,
        typer.Option(
            "--qubits", metavar="22,24,...", help="Numbers of qubits of the state, separated by commas."
        ),
    ] = None,
    transports: Annotated[
        str,
        typer.Option(
            "--transports",
            metavar="auto,mpi",
            help="Transport: auto (in place in shared memory) or mpi (staged through MPI).",
        ),
    ] = "auto",
    codecs: RoundingOption = None,
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    hosts: HostsOption = None,
    per_host: PerHostOption = None,
    rate: RateOption = None,
    links: LinksOption = None,
    seconds: SecondsOption = 20,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Exchange up to three qubits of the rank number with local qubits."""
    on = OnHosts(hosts, per_host, rate, links)
    chosen = ([12] if quick else QUBITS) if qubits is None else parse_numbers(qubits, "--qubits")
    names = transports.split(",")
    rounding = _rounding(codecs)

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return permutation(group, settings, advance, chosen, names, rounding)

    cases = len(list(permutation_cases((hosts * (per_host or 1) if hosts else ranks) or 2, chosen, names)))
    _run(
        measure,
        cases,
        ranks,
        2,
        mpi,
        Settings(seconds, quick),
        json_target,
        plot,
        on=on,
    )
