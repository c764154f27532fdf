"""`onehop bench scaling`: circuits on 1, 2, 4 ... ranks."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import JsonOption, check_plot, check_seconds, console, own_rank, progress, write_json
from onehop.cores import usable_cores
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks
from onehop_bench.commands.options import PlotOption, QuickOption, SecondsOption
from onehop_bench.scaling import SCALING_CASES, Scaling, scaling
from onehop_bench.scaling_table import make_scaling_table, save_scaling_plot

__all__ = ["bench_scaling"]


def bench_scaling(
    ranks: Annotated[
        int,
        typer.Option(
            "-n",
            "--ranks",
            metavar="RANKS",
            help="Largest number of ranks, a power of two. 1, 2, 4 ... ranks up to it are compared.",
        ),
    ] = 4,
    qubits: Annotated[
        int | None, typer.Option("--qubits", help="Qubits of the largest state; 24 by default.")
    ] = None,
    cases: Annotated[
        list[str] | None,
        typer.Option(
            "--case",
            metavar="|".join(SCALING_CASES),
            help="Circuit to measure; may be repeated. All by default.",
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="strong,weak",
            help="Kind of scaling: strong (the state is the same) or weak (the share of each rank is the same).",
        ),
    ] = "strong,weak",
    threads: Annotated[
        int, typer.Option("--threads", help="Threads per rank. 0 divides the cores among the ranks.")
    ] = 0,
    precision: Annotated[str, typer.Option(help="Precision of the amplitudes: double or single.")] = "double",
    seconds: SecondsOption = 60,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Run phase estimation and Ising models on 1, 2, 4 ... ranks: time, speedup and bytes moved."""
    check_seconds(seconds)
    if ranks < 1 or threads < 0:
        raise BadInput(
            f"expected --ranks of at least 1 and --threads of 0 or more, found {ranks} and {threads}"
        )
    settings = Scaling(
        cases=tuple(cases or SCALING_CASES),
        kinds=tuple(kind.split(",")),
        qubits=qubits if qubits is not None else (10 if quick else 24),
        threads=threads or max(1, usable_cores() // ranks),
        precision=precision,
        seconds=0.001 if quick else seconds,
    )
    settings.check(ranks)
    check_plot(plot)
    ensure_ranks(ranks)
    with progress("measuring", len(settings.cases)) as advance:
        result = scaling(settings, Group.world(), advance)
    if own_rank() != 0:
        return
    console(json_target).print(make_scaling_table(result))
    write_json(json_target, result.to_dict())
    if plot is not None:
        save_scaling_plot(result, plot)
