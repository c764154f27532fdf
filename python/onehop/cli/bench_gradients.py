"""`onehop bench gradients`: derivatives of expectation values, compared with reference simulators."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from onehop.bench.gradients import GRADIENT_CASES, GradientSettings, gradient_bench, make_gradient_table
from onehop.bench.reference_simulators import GRADIENT_SIMULATORS, GradientSimulator, find_simulators
from onehop.cli.bench_options import QuickOption, SecondsOption
from onehop.cli.common import JsonOption, check_seconds, console, parse_numbers, progress, write_json
from onehop.doctor import host
from onehop.error import BadInput, Error

__all__ = ["bench_gradients"]


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
    precision: Annotated[
        str,
        typer.Option(
            "--precision", metavar="double,single", help="Precisions of the amplitudes, separated by commas."
        ),
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
    seconds: SecondsOption = 60,
    quick: QuickOption = False,
    json_target: JsonOption = None,
) -> None:
    """Differentiate 10 StronglyEntanglingLayers by all their angles, and compare with other simulators.

    The derivatives of all simulators are compared.
    """
    check_seconds(seconds)
    if threads < 0:
        raise BadInput(f"expected --threads of 0 or more, found {threads}")
    settings = GradientSettings(
        qubits=parse_numbers(qubits, "--qubits") if qubits is not None else [10] if quick else [16, 20, 24],
        precisions=tuple(precision.split(",")),
        cases=tuple(cases or GRADIENT_CASES),
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
        with progress("measuring", len(list(settings.all()))) as advance:
            result = gradient_bench(settings, found, advance, say)
    finally:
        for peer in found:
            peer.close()
    screen = console(json_target)
    screen.print(make_gradient_table(result))
    for note in result.notes:
        screen.print(note, markup=False)
    result.notes += missing
    write_json(json_target, result.to_dict())
    wrong = [f"{row.case}, {row.qubits} qubits: {name}" for row in result.rows for name in row.wrong]  # type: ignore[attr-defined]
    if wrong:
        raise Error(
            f"expected the same derivatives from all simulators, found different ones: {'; '.join(wrong)}"
        )
