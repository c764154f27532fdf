"""`onehop bench circuits`: quantum circuits, compared with reference simulators."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import JsonOption, check_plot
from onehop.error import Error
from onehop_bench.circuits import CircuitSettings, circuits, wrong_answers
from onehop_bench.circuits_cases import CIRCUIT_CASES
from onehop_bench.circuits_table import make_circuit_peer_table, make_circuit_table, save_circuit_plot
from onehop_bench.commands.options import PlotOption, QuickOption, SecondsOption
from onehop_bench.commands.simulators import (
    AmplitudesOption,
    PeersOption,
    SimulatorThreadsOption,
    compare,
    numbers_of,
    print_result,
)
from onehop_bench.reference_simulators import REFERENCE_SIMULATORS

__all__ = ["bench_circuits"]

_PEERS = ",".join(REFERENCE_SIMULATORS)


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
    precision: AmplitudesOption = "double,single",
    peers: PeersOption = _PEERS,
    threads: SimulatorThreadsOption = 0,
    seconds: SecondsOption = 600,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Run circuits on one rank with all its cores, and on reference simulators at their best settings.

    The amplitudes of all simulators are compared.
    """
    check_plot(plot)
    settings = CircuitSettings(
        cases=tuple(cases or CIRCUIT_CASES),
        qubits=numbers_of(qubits, [10] if quick else [24]),
        precisions=tuple(precision.split(",")),
        seconds=0.001 if quick else seconds,
        threads=threads,
    )
    result, missing = compare(settings, peers, circuits, quiet=quick)
    tables = [make_circuit_table(result), make_circuit_peer_table(result)]
    print_result(result, [one for one in tables if one is not None], missing, json_target)
    if plot is not None:
        save_circuit_plot(result, plot)
    wrong = wrong_answers(result)
    if wrong:
        raise Error(
            "expected the same amplitudes from all simulators, found different ones: " + "; ".join(wrong)
        )
