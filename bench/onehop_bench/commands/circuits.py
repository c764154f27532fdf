"""`onehop bench` of quantum circuits, beside reference simulators and on 1, 2, 4 ... ranks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from onehop.cli.common import console, own_rank, progress, write_json
from onehop.cores import usable_cores
from onehop.doctor import host
from onehop.error import Error
from onehop.group import Group
from onehop.launch import ensure_ranks
from onehop.options import LARGEST_INT, option
from onehop_bench.bindings import BindingSettings, binding_bench, make_binding_table
from onehop_bench.circuits import CircuitSettings, circuits, wrong_answers
from onehop_bench.circuits_cases import CIRCUIT_CASES
from onehop_bench.circuits_table import make_circuit_peer_table, make_circuit_table, save_circuit_plot
from onehop_bench.commands.options import (
    BenchOptions,
    PlotOptions,
    names_option,
    numbers_option,
    seconds_option,
)
from onehop_bench.gradients import GRADIENT_CASES, GradientSettings, gradient_bench, make_gradient_table
from onehop_bench.reference_simulators import (
    GRADIENT_SIMULATORS,
    REFERENCE_SIMULATORS,
    GradientSimulator,
    WorkerSimulator,
    find_simulators,
)
from onehop_bench.result import Bench
from onehop_bench.scaling import SCALING_CASES, Scaling, scaling
from onehop_bench.scaling_table import make_scaling_table, save_scaling_plot
from onehop_bench.simulator_bench import SimulatorSettings

_PRECISIONS = ("double", "single")
_QUBITS = "Numbers of qubits."
_SOON = 0.001  # seconds of --quick


def cases_option(text: str, cases: Iterable[str]) -> list[str] | None:
    """The field of --case."""
    return option(None, f"{text}; may be repeated. All by default.", "--case", choices=tuple(cases))  # type: ignore[no-any-return]


def peers_option(known: Sequence[str]) -> str:
    """The field of --peers."""
    text = "Reference simulators to compare with, if they are installed."
    return option(",".join(known), text, metavar="NAME,...|none")  # type: ignore[no-any-return]


@dataclass(kw_only=True)
class SimulatorOptions(BenchOptions):
    """The options of benchmarks beside reference simulators."""

    qubits: list[int] | None = numbers_option(_QUBITS, "10,24,...")
    precision: list[str] = names_option(
        ["double"], "Precisions of the amplitudes.", "--precision", choices=_PRECISIONS
    )
    threads: int = option(0, "Threads of each simulator. 0 uses one per core.", low=0, high=LARGEST_INT)

    def settings(self, kind: type[SimulatorSettings], qubits: Sequence[int], quick: int, **more: Any) -> Any:
        """The settings of a benchmark, whose default numbers of qubits are these, or one with --quick."""
        return kind(
            qubits=self.qubits or ([quick] if self.quick else qubits),
            precisions=tuple(self.precision),
            seconds=_SOON if self.quick else self.seconds,
            threads=self.threads,
            **more,
        )


def compare(
    options: SimulatorOptions,
    settings: SimulatorSettings,
    bench: Callable[..., Bench],
    tables: Callable[[Bench], Iterable[Any]],
    known: Sequence[str] = REFERENCE_SIMULATORS,
) -> Bench:
    """Start the reference simulators, run the benchmark with them, end them, and show the result.

    Parameters
    ----------
    options : SimulatorOptions
        The options; `peers` names the simulators.
    settings : SimulatorSettings
        What to measure.
    bench : callable
        The benchmark: takes settings, simulators, and callables for the progress and for what is being measured.
    tables : callable
        Makes the tables of a result.
    known : sequence of str
        Names of the simulators.
    """
    settings.check()
    peers: str = options.peers  # type: ignore[attr-defined]
    kind: type[WorkerSimulator] = GradientSimulator if known is GRADIENT_SIMULATORS else WorkerSimulator
    names = [] if peers == "none" else peers.split(",")
    found, missing = find_simulators(names, settings.threads or host()["cores"], kind, known)
    for line in missing:
        print(line, file=sys.stderr)

    def say(text: str) -> None:
        if not sys.stderr.isatty() and not options.quick:
            print(text, file=sys.stderr, flush=True)

    try:
        with progress("measuring", len(list(settings.all()))) as advance:
            result = bench(settings, found, advance, say)
    finally:
        for peer in found:
            peer.close()
    screen = console(options.json)
    for number, table in enumerate(tables(result)):
        if number:
            screen.print()
        screen.print(table)
    for note in result.notes:
        screen.print(note)
    result.notes += missing
    write_json(options.json, result.to_dict())
    return result


def _refuse_wrong(what: str, wrong: Sequence[str]) -> None:
    if wrong:
        raise Error(f"expected the same {what} from all simulators, found different ones: {'; '.join(wrong)}")


@dataclass(kw_only=True)
class Circuits(PlotOptions, SimulatorOptions):
    """The options of `onehop bench circuits`."""

    seconds: float = seconds_option(600)
    cases: list[str] | None = cases_option("Circuit to measure", CIRCUIT_CASES)
    precision: list[str] = names_option(
        ["double", "single"], "Precisions of the amplitudes.", "--precision", choices=_PRECISIONS
    )
    peers: str = peers_option(REFERENCE_SIMULATORS)


def bench_circuits(options: Circuits) -> None:
    """Run circuits on one rank with all its cores, and on reference simulators at their best settings.

    The amplitudes of all simulators are compared.
    """

    def tables(result: Bench) -> list[Any]:
        made = (make_circuit_table(result), make_circuit_peer_table(result))
        return [table for table in made if table is not None]

    settings = options.settings(CircuitSettings, [24], 10, cases=tuple(options.cases or CIRCUIT_CASES))
    result = compare(options, settings, circuits, tables)
    if options.plot is not None:
        save_circuit_plot(result, options.plot)
    _refuse_wrong("amplitudes", wrong_answers(result))


@dataclass(kw_only=True)
class Gradients(SimulatorOptions):
    """The options of `onehop bench gradients`."""

    seconds: float = seconds_option(60)
    cases: list[str] | None = cases_option("Observable", GRADIENT_CASES)
    peers: str = peers_option(GRADIENT_SIMULATORS)


def bench_gradients(options: Gradients) -> None:
    """Differentiate 10 StronglyEntanglingLayers by all their angles, and compare with other simulators.

    The derivatives of all simulators are compared.
    """
    cases = tuple(options.cases or GRADIENT_CASES)
    settings = options.settings(GradientSettings, [16, 20, 24], 10, cases=cases)
    result = compare(
        options, settings, gradient_bench, lambda made: [make_gradient_table(made)], GRADIENT_SIMULATORS
    )
    rows: list[Any] = result.rows
    wrong = [f"{row.case}, {row.qubits} qubits: {name}" for row in rows for name in row.wrong]
    _refuse_wrong("derivatives", wrong)


@dataclass(kw_only=True)
class Bindings(SimulatorOptions):
    """The options of `onehop bench bindings`."""

    bindings: int = option(1000, "Number of values of all parameters.", low=1, high=LARGEST_INT)
    peers: str = peers_option(GRADIENT_SIMULATORS)


def bench_bindings(options: Bindings) -> None:
    """Run a hardware-efficient ansatz with many values of its parameters, and compare with other simulators.

    The expectation values of all simulators are compared.
    """
    bindings = 20 if options.quick else options.bindings
    settings = options.settings(BindingSettings, [10], 6, bindings=bindings)
    result = compare(
        options, settings, binding_bench, lambda made: [make_binding_table(made)], GRADIENT_SIMULATORS
    )
    rows: list[Any] = result.rows
    _refuse_wrong("values", [f"{row.qubits} qubits: {name}" for row in rows for name in row.wrong])


@dataclass(kw_only=True)
class ScalingBench(PlotOptions, BenchOptions):
    """The options of `onehop bench scaling`."""

    seconds: float = seconds_option(60)
    ranks: int = option(
        4,
        "Largest number of ranks, a power of two. 1, 2, 4 ... ranks up to it are compared.",
        "-n",
        "--ranks",
        metavar="RANKS",
        low=1,
        high=LARGEST_INT,
    )
    qubits: int | None = option(None, "Qubits of the largest state; 24 by default.")
    cases: list[str] | None = cases_option("Circuit to measure", SCALING_CASES)
    kind: list[str] = names_option(
        ["strong", "weak"],
        "Kind of scaling: strong (the state is the same) or weak (the share of each rank is the same).",
        "--kind",
        choices=("strong", "weak"),
    )
    threads: int = option(
        0, "Threads per rank. 0 divides the cores among the ranks.", low=0, high=LARGEST_INT
    )
    precision: str = option("double", "Precision of the amplitudes.", choices=_PRECISIONS)


def bench_scaling(options: ScalingBench) -> None:
    """Run phase estimation and Ising models on 1, 2, 4 ... ranks: time, speedup and bytes moved."""
    settings = Scaling(
        cases=tuple(options.cases or SCALING_CASES),
        kinds=tuple(options.kind),
        qubits=options.qubits if options.qubits is not None else (10 if options.quick else 24),
        threads=options.threads or max(1, usable_cores() // options.ranks),
        precision=options.precision,
        seconds=_SOON if options.quick else options.seconds,
    )
    settings.check(options.ranks)
    ensure_ranks(options.ranks)
    with progress("measuring", len(settings.cases)) as advance:
        result = scaling(settings, Group.world(), advance)
    if own_rank() != 0:
        return
    console(options.json).print(make_scaling_table(result))
    write_json(options.json, result.to_dict())
    if options.plot is not None:
        save_scaling_plot(result, options.plot)
