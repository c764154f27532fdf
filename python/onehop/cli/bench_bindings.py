"""`onehop bench bindings`: many values of the parameters of one circuit, compared with reference simulators."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from onehop.bench.bindings import BindingSettings, binding_bench, make_binding_table
from onehop.bench.reference_simulators import GRADIENT_SIMULATORS, GradientSimulator, find_simulators
from onehop.cli.bench_options import QuickOption, SecondsOption
from onehop.cli.common import JsonOption, check_seconds, console, parse_numbers, progress, write_json
from onehop.doctor import host
from onehop.error import BadInput, Error

__all__ = ["bench_bindings"]


def bench_bindings(
    qubits: Annotated[
        str, typer.Option("--qubits", metavar="10,16,...", help="Numbers of qubits, separated by commas.")
    ] = "10",
    bindings: Annotated[int, typer.Option(help="Number of values of all parameters.")] = 1000,
    precision: Annotated[
        str, typer.Option("--precision", metavar="double|single", help="Precision of the amplitudes.")
    ] = "double",
    peers: Annotated[
        str,
        typer.Option(
            "--peers",
            metavar="qulacs,...|none",
            help="Reference simulators to compare with, if they are installed.",
        ),
    ] = ",".join(GRADIENT_SIMULATORS),
    threads: Annotated[int, typer.Option(help="Threads of each simulator. 0 uses one per core.")] = 0,
    seconds: SecondsOption = 20,
    quick: QuickOption = False,
    json_target: JsonOption = None,
) -> None:
    """Run a hardware-efficient ansatz with many values of its parameters, and compare with other simulators.

    The expectation values of all simulators are compared.
    """
    check_seconds(seconds)
    if threads < 0:
        raise BadInput(f"expected --threads of 0 or more, found {threads}")
    settings = BindingSettings(
        qubits=[6] if quick else parse_numbers(qubits, "--qubits"),
        bindings=20 if quick else bindings,
        precision=precision,
        seconds=0.001 if quick else seconds,
        threads=threads,
    )
    settings.check()
    names = [] if peers == "none" else peers.split(",")
    found, missing = find_simulators(
        names, threads or host()["cores"], GradientSimulator, GRADIENT_SIMULATORS
    )
    for line in missing:
        print(line, file=sys.stderr)

    def say(text: str) -> None:
        if not sys.stderr.isatty() and not quick:
            print(text, file=sys.stderr, flush=True)

    try:
        with progress("measuring", len(settings.qubits)) as advance:
            result = binding_bench(settings, found, advance, say)
    finally:
        for peer in found:
            peer.close()
    screen = console(json_target)
    screen.print(make_binding_table(result))
    for note in result.notes:
        screen.print(note, markup=False)
    result.notes += missing
    write_json(json_target, result.to_dict())
    wrong = [f"{row.qubits} qubits: {name}" for row in result.rows for name in row.wrong]  # type: ignore[attr-defined]
    if wrong:
        raise Error(f"expected the same values from all simulators, found different ones: {'; '.join(wrong)}")
