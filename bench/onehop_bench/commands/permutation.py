"""`onehop bench permutation`."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import parse_numbers
from onehop.group import Group
from onehop_bench.commands.exchanges import RoundingOption, codecs_beside_raw
from onehop_bench.commands.start import Start, on_ranks
from onehop_bench.permutation import QUBITS, permutation, permutation_cases
from onehop_bench.result import Bench
from onehop_bench.run import Advance, Settings


@on_ranks(20, hosts=True)
def bench_permutation(
    start: Start,
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
) -> None:
    """Exchange up to three qubits of the rank number with local qubits."""
    chosen = ([12] if start.quick else QUBITS) if qubits is None else parse_numbers(qubits, "--qubits")
    names = transports.split(",")
    rounding = codecs_beside_raw(codecs)

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return permutation(group, settings, advance, chosen, names, rounding)

    ranks = start.ranks if start.hosts is None else start.hosts * (start.per_host or 1)
    start.run(measure, len(list(permutation_cases(ranks or 2, chosen, names))))
