"""`onehop quantum run`: simulate a circuit from an OpenQASM file on several ranks."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from onehop import _core
from onehop.cli.common import (
    LARGEST_SEED,
    JsonOption,
    RanksOption,
    check_plot,
    console,
    own_rank,
    progress,
    write_json,
)
from onehop.cli.quantum import profile as profiles
from onehop.cli.quantum.gradient import check_gradient, gradient_report, memory_of_gradient
from onehop.cli.quantum.plan import PrecisionOption, check_fits, memory_of_run, one_line, plan_run
from onehop.cli.quantum.run_report import draw, make_report, save_result, show, show_gradient
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import current_launch, ensure_ranks
from onehop.launch.supervisor import SIGKILL_AFTER
from onehop.quantum import (
    Circuit,
    NoiseModel,
    NoisyResult,
    Result,
    simulate,
    simulate_density,
    simulate_trajectories,
)
from onehop.quantum.io.state_file import check_state_file
from onehop.quantum.memory_use import MemoryUse
from onehop.quantum.observables import PauliSum
from onehop.quantum.parameters import values_of
from onehop.quantum.predict import predict
from onehop.quantum.profile import Profile
from onehop.quantum.run.serialization import read_circuit, share_circuit
from onehop.text import counted

SIGKILL_AFTER_CHECKPOINT = 600.0


def _measuring(circuit: Circuit) -> Circuit:
    """Return the circuit; add a measurement of all qubits if it has no classical bits."""
    if circuit.clbits:
        return circuit
    measured = Circuit(circuit.qubits, circuit.qubits, circuit.name)
    for operation in circuit.operations:
        measured.add(operation)
    return measured.measure_all()


def _duration(text: str) -> float:
    """Parse a duration such as 90, 30s, 10m or 2h; return seconds."""
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


def _progress_callback(advance: Callable[[float], None]) -> Callable[[int, int, int, int], None]:
    """Return a callback for `simulate` that advances a progress bar by the operations done since the last call."""
    shown = 0.0

    def update(done: int, total: int, _run: int, _shots: int) -> None:
        nonlocal shown
        fraction = done / max(total, 1)
        if fraction < shown:  # the run of the next measurement record has begun
            shown = 0.0
        advance(fraction - shown)
        shown = fraction

    return update


def _noise(
    spec: str | None, trajectories: int | None, save: str | None, checkpoint: str | None
) -> NoiseModel | None:
    if spec is None:
        if trajectories is not None:
            raise BadInput("--trajectories needs --noise: without noise all trajectories are the same")
        return None
    if checkpoint is not None:
        raise BadInput(
            "--checkpoint does not work with --noise: a noisy run cannot be resumed; leave one of them out"
        )
    if save is not None and trajectories is not None:
        raise BadInput(
            "--save needs one final state, and --trajectories simulates many: leave one of them out"
        )
    return NoiseModel.parse(spec)


def _simulate_noisy(
    circuit: Circuit, group: Group, model: NoiseModel, trajectories: int | None, options: dict[str, Any]
) -> NoisyResult:
    if trajectories is None:
        return simulate_density(circuit, group, noise=model, **options)
    return simulate_trajectories(circuit, group, noise=model, trajectories=trajectories, **options)


def _values(texts: list[str], circuit: Circuit) -> list[float]:
    """Parse values of parameters such as theta=0.3; return them in the order of the circuit's parameters."""
    given: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not equals or not math.isfinite(value) or name.strip() in given:
            raise BadInput(f"--bind: expected NAME=NUMBER, each name once, found {text!r}")
        given[name.strip()] = value
    try:
        return values_of(circuit.parameters, given)
    except BadInput as error:
        raise BadInput(f"--bind: {error}; for example --bind NAME=0.5") from error


def _begin(
    file: str,
    ranks: int | None,
    check: Callable[[Circuit], list[float]],
    check_gradient_fits: Callable[[Circuit, int, int], None],
    observables: list[str],
    model: NoiseModel | None,
    trajectories: int | None,
    precision: str,
    json_target: str | None,
    sigkill_after: float,
) -> None:
    """Start the ranks and return on each of them. Reject wrong input before any rank starts."""
    if ranks is None or ranks <= 1 or current_launch() is not None:
        ensure_ranks(ranks)
        return
    circuit = read_circuit(file, Group.alone())
    _observables(observables, circuit.qubits)
    values = check(circuit)
    needed = memory_of_run(circuit, ranks, model, trajectories, precision)
    check_fits(needed, circuit.name)
    check_gradient_fits(circuit.bind(values) if circuit.parameters else circuit, needed.ranks, needed.ranks)
    arguments = sys.argv[1:]
    if needed.ranks < ranks:
        console(json_target).print(
            f"{circuit.name} is too small for more than {counted(needed.ranks, 'rank')}"
        )
        end = arguments.index("--") if "--" in arguments else len(arguments)
        arguments[end:end] = ["-n", str(needed.ranks)]
    ensure_ranks(
        needed.ranks, arguments, sigkill_after=sigkill_after, environment=share_circuit(file, circuit)
    )


def _show(
    screen: Console, report: dict[str, Any], profile: Profile | None, rows: int, plot: str | None, title: str
) -> None:
    """Print the result and its profile, which becomes a part of the report, and draw one of the two."""
    show(screen, report, rows)
    for text, row in report.get("gradients", {}).items():
        show_gradient(screen, text, row, rows)
    if profile is not None:
        profiles.show(screen, profile, rows)
        report["profile"] = profile.report()
    if plot is not None and profile is not None:
        profiles.plot(plot, profile, title)
    elif plot is not None:
        draw(plot, report)


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="OpenQASM 2 or 3 file.")],
    ranks: RanksOption = None,
    shots: Annotated[int, typer.Option(min=0, help="Number of shots; 0: no sampling.")] = 1000,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=LARGEST_SEED,
            help="Seed of the shots. The same seed gives the same shots on any number of ranks.",
        ),
    ] = None,
    observable: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help='Observable to evaluate, for example "Z0 Z1 + 0.5*X2". The option may be repeated.',
        ),
    ] = None,
    bind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="Value of a parameter (`input float NAME;` in OpenQASM 3). The option may be repeated.",
        ),
    ] = None,
    gradient: Annotated[
        bool,
        typer.Option(
            "--gradient", help="Also compute the derivatives of every observable by every parameter."
        ),
    ] = False,
    precision: PrecisionOption = "double",
    save: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write the final state to FILE (HDF5); with --noise, the density matrix."
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Plot the counts, or the profile, to FILE (.png, .svg or .pdf)."),
    ] = None,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Show the time of each pass and exchange (docs/design/engine.md)."),
    ] = False,
    rows: Annotated[int, typer.Option(min=1, help="Maximum number of rows in a table.")] = 20,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Save progress to FILE periodically and on SIGUSR1 or SIGTERM. If FILE exists, resume from it.",
        ),
    ] = None,
    every: Annotated[
        str, typer.Option(metavar="TIME", help="Time between checkpoints, for example 30s, 10m or 2h.")
    ] = "10m",
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help='Noise model, for example "depolarizing=0.01:cx,cz; readout=0.02" (docs/reference/density.md).',
        ),
    ] = None,
    trajectories: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of noisy state vectors to simulate (default: a density matrix instead)."
        ),
    ] = None,
    json_target: JsonOption = None,
) -> None:
    """Simulate a circuit on several ranks.

    Outcomes have the last classical bit first, as in Qiskit. In a circuit without classical bits, all qubits are
    measured. Expectation values refer to the state before the final measurements.
    """
    check_plot(plot)
    if save is not None:
        check_state_file(save)
    seconds_between = _duration(every)
    model = _noise(noise, trajectories, save, checkpoint)
    if profile and model is not None:
        raise BadInput("--profile does not work with --noise; leave one of them out")
    # After SIGTERM a rank needs time to write its checkpoint.
    sigkill_after = SIGKILL_AFTER if checkpoint is None else SIGKILL_AFTER_CHECKPOINT

    def check(read: Circuit) -> list[float]:
        if gradient:
            check_gradient(read, observable or [], model)
        return _values(bind or [], read)

    def check_gradient_fits(bound: Circuit, ranks: int, ranks_per_node: int) -> None:
        if gradient:
            count = len(observable or [])
            needed = memory_of_gradient(bound, ranks, model, count, precision, ranks_per_node)
            check_fits(needed, bound.name, "the gradient of circuit")

    _begin(
        file,
        ranks,
        check,
        check_gradient_fits,
        observable or [],
        model,
        trajectories,
        precision,
        json_target,
        sigkill_after,
    )
    group = Group.world()
    circuit = unbound = read_circuit(file, group)
    values = check(circuit)
    if circuit.parameters:
        circuit = circuit.bind(values)
    asked = _observables(observable or [], circuit.qubits)
    screen = console(json_target)
    circuit = _measuring(circuit) if shots else circuit
    # `simulate` finds this placement and makes no other. Every rank places the circuit, because all need the placement
    # at the same time and have nothing else to do. For 2,000 random gates this takes 5 ms on 2 ranks and 80 to 110 ms
    # on 64 (QFT of 30 qubits: 0.2 and 1 ms). To take it from the launcher would take 12 ms more: that is the time to
    # encode and decode as many operations.
    hosts = {"ranks_per_node": len(group.local_ranks), "ranks_per_host": _core.ranks_per_host(group)}
    circuit_plan = plan_run(circuit, group.size, model, trajectories, precision, **hosts)
    check_fits(circuit_plan, circuit.name)
    check_gradient_fits(circuit, group.size, len(group.local_ranks))
    predicted = predict(circuit_plan, group)
    screen.print(one_line(circuit_plan, predicted, trajectories), markup=False, soft_wrap=True)
    options: dict[str, Any] = {"shots": shots, "seed": seed, "precision": precision, "observables": asked}
    result: Result | NoisyResult
    time_profile: Profile | None = None
    if model is not None:
        memory, begin = MemoryUse(), time.perf_counter()
        result = _simulate_noisy(circuit, group, model, trajectories, options)
    else:
        with progress(circuit.name, 1.0) as advance:
            memory, begin = MemoryUse(), time.perf_counter()
            result = simulate(
                circuit,
                group,
                progress=_progress_callback(advance),
                checkpoint=checkpoint,
                every=seconds_between,
                profile=profile,
                **options,
            )
        time_profile = result.profile
    report = make_report(circuit, result, observable or [], precision)
    report.update(seconds=time.perf_counter() - begin, predicted_seconds=predicted, **memory.report(group))
    if save is not None:
        save_result(save, result, group, circuit)
    del result  # a gradient needs the memory of the final state
    if gradient:
        report |= gradient_report(unbound, values, observable or [], group, noise=model, precision=precision)
    if own_rank() != 0:
        return
    if report.get("resumed"):
        screen.print(f"resumed from {checkpoint}", markup=False, soft_wrap=True)
    title = f"{circuit.name}: {counted(circuit.qubits, 'qubit')}, {precision} precision"
    _show(screen, report, time_profile, rows, plot, title)
    write_json(json_target, report)
    if checkpoint is not None:
        Path(checkpoint).unlink(missing_ok=True)  # the run is complete


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(run)
