"""`onehop bench bindings`: many values of the parameters of one circuit, compared with reference simulators."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.cli.common import JsonOption
from onehop.error import Error
from onehop_bench.bindings import BindingSettings, binding_bench, make_binding_table
from onehop_bench.commands.options import QuickOption, SecondsOption
from onehop_bench.commands.simulators import (
    AmplitudesOption,
    PeersOption,
    SimulatorThreadsOption,
    compare,
    numbers_of,
    print_result,
)
from onehop_bench.reference_simulators import GRADIENT_SIMULATORS, GradientSimulator

__all__ = ["bench_bindings"]

_PEERS = ",".join(GRADIENT_SIMULATORS)


def bench_bindings(
    qubits: Annotated[
        str | None,
        typer.Option(
            "--qubits", metavar="10,16,...", help="Numbers of qubits, separated by commas; 10 by default."
        ),
    ] = None,
    bindings: Annotated[int, typer.Option(help="Number of values of all parameters.")] = 1000,
    precision: AmplitudesOption = "double",
    peers: PeersOption = _PEERS,
    threads: SimulatorThreadsOption = 0,
    seconds: SecondsOption = 20,
    quick: QuickOption = False,
    json_target: JsonOption = None,
) -> None:
    """Run a hardware-efficient ansatz with many values of its parameters, and compare with other simulators.

    The expectation values of all simulators are compared.
    """
    settings = BindingSettings(
        qubits=numbers_of(qubits, [6 if quick else 10]),
        precisions=tuple(precision.split(",")),
        seconds=0.001 if quick else seconds,
        threads=threads,
        bindings=20 if quick else bindings,
    )
    result, missing = compare(
        settings, peers, binding_bench, quiet=quick, kind=GradientSimulator, known=GRADIENT_SIMULATORS
    )
    print_result(result, [make_binding_table(result)], missing, json_target)
    wrong = [f"{row.qubits} qubits: {name}" for row in result.rows for name in row.wrong]  # type: ignore[attr-defined]
    if wrong:
        raise Error(f"expected the same values from all simulators, found different ones: {'; '.join(wrong)}")
