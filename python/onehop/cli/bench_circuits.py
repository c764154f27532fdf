"""`onehop bench circuits`: quantum circuits, compared with reference simulators."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from onehop.bench.circuits import CircuitSettings, circuits, wrong_answers
from onehop.bench.circuits_cases import CIRCUIT_CASES
from onehop.bench.circuits_table import make_circuit_peer_table, make_circuit_table, save_circuit_plot
from onehop.bench.reference_simulators import REFERENCE_SIMULATORS, find_simulators
from onehop.cli.bench_options import PlotOption, QuickOption, SecondsOption
from onehop.cli.common import (
    JsonOption,
    check_plot,
    check_seconds,
    console,
    parse_numbers,
    progress,
    write_json,
)
from onehop.doctor import host
from onehop.error import BadInput, Error

__all__ = ["bench_circuits"]


def bench_circuits(
    qubits: Annotated[
        str | None,
        typer.Option(
            "--qubits", metavar="10,24,...", help="Numbers of qubits, separated by commas; 24 by default."
        ),
    ] = None,
    cases: Annotated[
        list[str] | None,
        typer.Option(
            "--case",
            metavar="|".join(CIRCUIT_CASES),
            help="Circuit to measure; may be repeated. All by default.",
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            "--precision", metavar="double,single", help="Precisions of the amplitudes, separated by commas."
        ),
    ] = "double,single",
    peers: Annotated[
        str,
        typer.Option(
            "--peers",
            metavar="qsim,...|none",
            help="Reference simulators to compare with, if they are installed.",
        ),
    ] = ",".join(REFERENCE_SIMULATORS),
    threads: Annotated[int, typer.Option(help="Threads of each simulator. 0 uses one per core.")] = 0,
    seconds: SecondsOption = 600,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Run circuits on one rank with all its cores, and on reference simulators at their best settings.

    The amplitudes of all simulators are compared.
    """
    check_seconds(seconds)
    if threads < 0:
        raise BadInput(f"expected --threads of 0 or more, found {threads}")
    check_plot(plot)
    settings = CircuitSettings(
        cases=tuple(cases or CIRCUIT_CASES),
        qubits=parse_numbers(qubits, "--qubits") if qubits is not None else [10 if quick else 24],
        precisions=tuple(precision.split(",")),
        seconds=0.001 if quick else seconds,
        threads=threads,
    )
    settings.check()
    found, missing = find_simulators([] if peers == "none" else peers.split(","), threads or host()["cores"])
    for line in missing:
        print(line, file=sys.stderr)

    def say(text: str) -> None:
        if not sys.stderr.isatty() and not quick:
            print(text, file=sys.stderr, flush=True)

    try:
        with progress("measuring", len(list(settings.all()))) as advance:
            result = circuits(settings, found, advance, say)
    finally:
        for peer in found:
            peer.close()
    screen = console(json_target)
    screen.print(make_circuit_table(result))
    table = make_circuit_peer_table(result)
    if table is not None:
        screen.print()
        screen.print(table)
    for note in result.notes:
        screen.print(note, markup=False)
    result.notes += missing
    write_json(json_target, result.to_dict())
    if plot is not None:
        save_circuit_plot(result, plot)
    wrong = wrong_answers(result)
    if wrong:
        raise Error(
            "expected the same amplitudes from all simulators, found different ones: " + "; ".join(wrong)
        )
