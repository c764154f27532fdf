"""Options and steps that the benchmarks beside reference simulators share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

import typer

from onehop.cli.common import check_seconds, console, parse_numbers, progress, write_json
from onehop.doctor import host
from onehop.error import BadInput
from onehop_bench.reference_simulators import REFERENCE_SIMULATORS, WorkerSimulator, find_simulators
from onehop_bench.result import Bench
from onehop_bench.simulator_bench import SimulatorSettings

__all__ = [
    "AmplitudesOption",
    "PeersOption",
    "SimulatorThreadsOption",
    "compare",
    "numbers_of",
    "print_result",
]

PeersOption = Annotated[
    str,
    typer.Option(
        "--peers",
        metavar="NAME,...|none",
        help="Reference simulators to compare with, if they are installed.",
    ),
]
SimulatorThreadsOption = Annotated[
    int, typer.Option("--threads", help="Threads of each simulator. 0 uses one per core.")
]
AmplitudesOption = Annotated[
    str,
    typer.Option(
        "--precision", metavar="double,single", help="Precisions of the amplitudes, separated by commas."
    ),
]


def numbers_of(qubits: str | None, default: Sequence[int]) -> list[int]:
    """Parse the value of `--qubits`."""
    return list(default) if qubits is None else parse_numbers(qubits, "--qubits")


def compare(
    settings: SimulatorSettings,
    peers: str,
    bench: Callable[..., Bench],
    *,
    quiet: bool,
    kind: type[WorkerSimulator] = WorkerSimulator,
    known: Sequence[str] = REFERENCE_SIMULATORS,
) -> tuple[Bench, list[str]]:
    """Start the reference simulators, run the benchmark with them, and end them.

    Parameters
    ----------
    settings : SimulatorSettings
    peers : str
        Value of `--peers`.
    bench : callable
        The benchmark: takes settings, simulators, and callables for the progress and for what is being measured.
    quiet : bool
        Print nothing about what is being measured.
    kind, known
        Class and names of the simulators.

    Returns
    -------
    Bench, list of str
        The result, and a line for each simulator that is not installed.
    """
    check_seconds(settings.seconds)
    if settings.threads < 0:
        raise BadInput(f"expected --threads of 0 or more, found {settings.threads}")
    settings.check()
    names = [] if peers == "none" else peers.split(",")
    found, missing = find_simulators(names, settings.threads or host()["cores"], kind, known)
    for line in missing:
        print(line, file=sys.stderr)

    def say(text: str) -> None:
        if not sys.stderr.isatty() and not quiet:
            print(text, file=sys.stderr, flush=True)

    try:
        with progress("measuring", len(list(settings.all()))) as advance:
            result = bench(settings, found, advance, say)
    finally:
        for peer in found:
            peer.close()
    return result, missing


def print_result(
    result: Bench, tables: Iterable[Any], missing: Sequence[str], json_target: str | None
) -> None:
    """Print the tables and the notes, and write the result as JSON if that is asked for."""
    screen = console(json_target)
    for number, table in enumerate(tables):
        if number:
            screen.print()
        screen.print(table)
    for note in result.notes:
        screen.print(note, markup=False)
    result.notes += missing
    write_json(json_target, result.to_dict())
