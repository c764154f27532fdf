"""`onehop run`: a circuit from an OpenQASM file, simulated on several ranks."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from onehop import __version__
from onehop.cli.common import JsonOption, RanksOption, console, own_rank, progress, write_json
from onehop.cli.plan import PrecisionOption, check_fits, one_line, size
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks
from onehop.launch.supervisor import PATIENCE
from onehop.quantum import (
    Circuit,
    NoiseModel,
    NoisyResult,
    plan,
    simulate,
    simulate_density,
    simulate_trajectories,
)
from onehop.quantum.observables import PauliSum
from onehop.quantum.state_file import check_state_file, save_state
from onehop.quantum.travel import read_circuit

MOST_BARS = 24
PATIENCE_TO_WRITE = 600.0


def _peak_memory(group: Group) -> int:
    """The most memory that a rank has held, in bytes."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return max(int(one) for one in group.allgather(str(own).encode()))


def _measuring(circuit: Circuit) -> Circuit:
    """The circuit, with a measurement of all qubits where it has no classical bits."""
    if circuit.clbits:
        return circuit
    measured = Circuit(circuit.qubits, circuit.qubits, circuit.name)
    for operation in circuit.operations:
        measured.add(operation)
    return measured.measure_all()


def _shown(observed: str | complex | float) -> str:
    if isinstance(observed, complex):
        return f"{observed.real:.12g}{observed.imag:+.12g}i"
    return f"{observed:.12g}"


def _table(screen: Console, report: dict[str, Any], rows: int) -> None:
    counts = sorted(report["counts"].items(), key=lambda one: (-one[1], one[0]))
    shots = max(report["shots"], 1)
    if counts:
        table = Table("outcome", "shots", "", title=f"{len(counts)} outcomes in {report['shots']} shots")
        table.columns[1].justify = "right"
        for outcome, number in counts[:rows]:
            table.add_row(outcome, str(number), "█" * max(round(40 * number / counts[0][1]), 1))
        if len(counts) > rows:
            rest = sum(number for _, number in counts[rows:])
            table.add_row(f"{len(counts) - rows} others", str(rest), f"{100 * rest / shots:.3g} %")
        screen.print(table)
    for observable, value in report["expectations"].items():
        screen.print(f"<{observable}> = {_shown(value)}", markup=False)
    screen.print(
        f"{report['seconds']:.3f} s on {report['ranks']} ranks; {size(report['bytes_moved'])} moved in "
        f"{report['exchanges']} exchanges; peak memory {size(report['peak_memory_per_rank'])} a rank; "
        f"seed {report['seed']}",
        soft_wrap=True,
    )


def _plot(file: str, report: dict[str, Any]) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BadInput("--plot needs matplotlib: `pip install matplotlib`") from error
    counts = sorted(report["counts"].items(), key=lambda one: (-one[1], one[0]))[:MOST_BARS]
    counts.sort()
    figure = Figure(figsize=(max(5.0, 0.4 * len(counts) + 2), 4.5), layout="constrained")
    axes = figure.subplots()
    axes.bar([outcome for outcome, _ in counts], [number for _, number in counts])
    axes.tick_params(axis="x", rotation=90)
    hidden = len(report["counts"]) - len(counts)
    title = f"{report['circuit']}: the {len(counts)} most frequent" if hidden else report["circuit"]
    axes.set(ylabel="shots", title=title)
    try:
        figure.savefig(file)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot write the plot to {file}: {error}") from error


def _check_outputs(plot: str | None, save: str | None) -> None:
    if plot is not None and not Path(plot).resolve().parent.is_dir():
        raise BadInput(f"cannot write the plot to {plot}: there is no folder {Path(plot).parent}")
    if save is not None:
        check_state_file(save)


def _duration(text: str) -> float:
    """Seconds of 90, 30s, 10m, 2h."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in "smh" else (text, "s")
    try:
        seconds = float(number) * {"s": 1, "m": 60, "h": 3600}[unit or "s"]
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise BadInput(f"--every: expected a time above 0 such as 30s, 10m or 2h, found {text!r}")
    return seconds


def _observables(texts: list[str], qubits: int) -> list[PauliSum]:
    found = []
    for text in texts:
        observable = PauliSum.parse(text)
        try:
            observable.require(qubits)
        except BadInput as error:
            raise BadInput(f"--observable {text!r}: {error}") from error
        found.append(observable)
    return found


def _teller(advance: Callable[[float], None]) -> Callable[[int, int, int, int], None]:
    """Moves the bar on by what has been done since it was told last."""
    told = 0.0

    def tell(done: int, total: int, _run: int, _shots: int) -> None:
        nonlocal told
        fraction = done / max(total, 1)
        if fraction < told:  # the next history of outcomes
            told = 0.0
        advance(fraction - told)
        told = fraction

    return tell


def _noise(
    spec: str | None, trajectories: int | None, save: str | None, checkpoint: str | None
) -> NoiseModel | None:
    if spec is None:
        if trajectories is not None:
            raise BadInput("--trajectories needs --noise: without noise all trajectories are the same")
        return None
    if save is not None or checkpoint is not None:
        raise BadInput("--save and --checkpoint are for runs without --noise; leave one of them out")
    return NoiseModel.parse(spec)


def _noisy(
    circuit: Circuit,
    group: Group,
    model: NoiseModel,
    trajectories: int | None,
    shots: int,
    seed: int | None,
    precision: str,
    asked: list[PauliSum],
) -> NoisyResult:
    circuit = _measuring(circuit) if shots else circuit
    if trajectories is not None:
        return simulate_trajectories(
            circuit,
            group,
            noise=model,
            trajectories=trajectories,
            shots=shots,
            seed=seed,
            precision=precision,
            observables=asked,
        )
    return simulate_density(
        circuit, group, noise=model, shots=shots, seed=seed, precision=precision, observables=asked
    )


def _show_noisy(
    screen: Console,
    circuit: Circuit,
    result: NoisyResult,
    observables: list[str],
    rows: int,
    precision: str,
    plot: str | None,
    json_target: str | None,
) -> None:
    report = {
        "version": __version__,
        "circuit": circuit.name,
        "qubits": circuit.qubits,
        "shots": result.shots,
        "counts": result.counts,
        "expectations": dict(zip(observables, result.expectations, strict=True)),
        "seconds": result.seconds,
        "ranks": result.ranks,
        "bytes_moved": result.bytes_moved,
        "exchanges": result.exchanges,
        "peak_memory_per_rank": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "precision": precision,
        "seed": result.seed,
        "standard_errors": dict(zip(observables, result.errors, strict=True)),
        "histories": result.runs,
    }
    _table(screen, report, rows)
    if plot is not None:
        _plot(plot, report)
    report["expectations"] = {text: _number(value) for text, value in report["expectations"].items()}
    write_json(json_target, report)


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An OpenQASM 2 or 3 file.")],
    ranks: RanksOption = None,
    shots: Annotated[int, typer.Option(min=0, help="How often to measure; 0: not at all.")] = 1000,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="The same seed gives the same shots on any number of ranks."),
    ] = None,
    observable: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help='Expectation value of "Z0 Z1 + 0.5*X2", say; may be repeated.'),
    ] = None,
    precision: PrecisionOption = "double",
    save: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the state at the end (HDF5).")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the counts (.png, .svg, .pdf).")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="How many outcomes the table shows.")] = 20,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Keep in this file where the run stands, also at SIGUSR1 and SIGTERM; go on from there if it exists.",
        ),
    ] = None,
    every: Annotated[
        str, typer.Option(metavar="TIME", help="From one checkpoint to the next: 30s, 10m, 2h.")
    ] = "10m",
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help='What follows the gates: "depolarizing=0.01:cx,cz; readout=0.02" (docs/density.md).',
        ),
    ] = None,
    trajectories: Annotated[
        int | None,
        typer.Option(min=1, help="Noise on so many state vectors; a density matrix unless given."),
    ] = None,
    json_target: JsonOption = None,
) -> None:
    """Simulate a circuit on several ranks.

    Outcomes are written as Qiskit does: the last classical bit first. A circuit without classical bits is measured on
    all qubits. Expectation values are those before measurements at the end.
    """
    _check_outputs(plot, save)
    seconds_between = _duration(every)
    model = _noise(noise, trajectories, save, checkpoint)
    # Who is told to end needs time for a checkpoint.
    ensure_ranks(ranks, patience=PATIENCE if checkpoint is None else PATIENCE_TO_WRITE)
    group = Group.world()
    circuit = read_circuit(file, group)
    asked = _observables(observable or [], circuit.qubits)
    screen = console(json_target)
    if model is not None:
        result = _noisy(circuit, group, model, trajectories, shots, seed, precision, asked)
        if own_rank() == 0:
            _show_noisy(screen, circuit, result, observable or [], rows, precision, plot, json_target)
        return
    planned = plan(circuit, group.size, precision, ranks_here=len(group.neighbours_in_memory))
    screen.print(one_line(planned), markup=False, soft_wrap=True)
    check_fits(planned, circuit.name)
    begin = time.perf_counter()
    with progress(circuit.name, 1.0) as advance:
        result = simulate(
            _measuring(circuit) if shots else circuit,
            group,
            shots=shots,
            seed=seed,
            precision=precision,
            observables=asked,
            progress=_teller(advance),
            checkpoint=checkpoint,
            every=seconds_between,
        )
    if result.resumed:
        screen.print(f"went on from {checkpoint}", markup=False, soft_wrap=True)
    seconds = time.perf_counter() - begin
    report = {
        "version": __version__,
        "circuit": circuit.name,
        "qubits": circuit.qubits,
        "shots": shots,
        "counts": result.counts if shots else {},
        "expectations": dict(zip(observable or [], map(_number, result.expectations), strict=True)),
        "seconds": seconds,
        "ranks": result.ranks,
        "bytes_moved": result.bytes_moved,
        "exchanges": result.exchanges,
        "passes": result.passes,
        "peak_memory_per_rank": _peak_memory(group),
        "precision": precision,
        "seed": result.seed,
        "resumed": result.resumed,
    }
    if save is not None:
        save_state(save, result.state, group, {"circuit": circuit.name, "seed": result.seed})
    if own_rank() != 0:
        return
    _table(
        screen,
        {**report, "expectations": dict(zip(observable or [], result.expectations, strict=True))},
        rows,
    )
    if plot is not None:
        _plot(plot, report)
    write_json(json_target, json.loads(json.dumps(report)))
    if checkpoint is not None:
        Path(checkpoint).unlink(missing_ok=True)  # the run is done


def _number(value: complex | float) -> Any:
    """For JSON: complex ones as a pair."""
    return [value.real, value.imag] if isinstance(value, complex) else float(value)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(run)
