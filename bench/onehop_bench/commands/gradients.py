"""`onehop bench gradients`: derivatives of expectation values, compared with reference simulators."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import JsonOption
from onehop.error import Error
from onehop_bench.commands.options import QuickOption, SecondsOption
from onehop_bench.commands.simulators import (
    AmplitudesOption,
    PeersOption,
    SimulatorThreadsOption,
    compare,
    numbers_of,
    print_result,
)
from onehop_bench.gradients import GRADIENT_CASES, GradientSettings, gradient_bench, make_gradient_table
from onehop_bench.reference_simulators import GRADIENT_SIMULATORS, GradientSimulator

__all__ = ["bench_gradients"]

_PEERS = ",".join(GRADIENT_SIMULATORS)


def bench_gradients(
    qubits: Annotated[
        str | None,
        typer.Option(
            "--qubits",
            metavar="16,20,...",
            help="Numbers of qubits, separated by commas; 16, 20 and 24 by default.",
        ),
    ] = None,
    cases: Annotated[
        list[str] | None,
        typer.Option(
            "--case",
            metavar="|".join(GRADIENT_CASES),
            help="Observable; may be repeated. Both by default.",
        ),
    ] = None,
    precision: AmplitudesOption = "double",
    peers: PeersOption = _PEERS,
    threads: SimulatorThreadsOption = 0,
    seconds: SecondsOption = 60,
    quick: QuickOption = False,
    json_target: JsonOption = None,
) -> None:
    """Differentiate 10 StronglyEntanglingLayers by all their angles, and compare with other simulators.

    The derivatives of all simulators are compared.
    """
    settings = GradientSettings(
        cases=tuple(cases or GRADIENT_CASES),
        qubits=numbers_of(qubits, [10] if quick else [16, 20, 24]),
        precisions=tuple(precision.split(",")),
        seconds=0.001 if quick else seconds,
        threads=threads,
    )
    result, missing = compare(
        settings, peers, gradient_bench, quiet=quick, kind=GradientSimulator, known=GRADIENT_SIMULATORS
    )
    print_result(result, [make_gradient_table(result)], missing, json_target)
    wrong = [f"{row.case}, {row.qubits} qubits: {name}" for row in result.rows for name in row.wrong]  # type: ignore[attr-defined]
    if wrong:
        raise Error(
            f"expected the same derivatives from all simulators, found different ones: {'; '.join(wrong)}"
        )
