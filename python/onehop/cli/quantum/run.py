"""`onehop quantum run`: simulate a circuit from an OpenQASM file on several ranks."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from onehop import _core
from onehop._core import __version__
from onehop.cli.common import console, own_rank, progress, since_last, write_json
from onehop.cli.quantum import profile as profiles
from onehop.cli.quantum.memory import check_fits, gradient_report, memory_of_run, one_line, plan_run
from onehop.cli.quantum.run_options import Run
from onehop.cli.screen import Screen, Table
from onehop.cli.waiting import waiting
from onehop.figure import save_figure
from onehop.group import Group
from onehop.launch import current_launch, ensure_ranks
from onehop.quantum import (
    Circuit,
    CircuitPlan,
    DensityMatrix,
    NoisyResult,
    Result,
    simulate,
    simulate_density,
    simulate_trajectories,
)
from onehop.quantum.circuit_plan import keep_rate, levels_of, predict
from onehop.quantum.gradients import is_pure
from onehop.quantum.io.state_file import save_state
from onehop.quantum.memory_use import MemoryUse
from onehop.quantum.notebook import counts_figure
from onehop.quantum.observables import PauliSum
from onehop.quantum.precision import PRECISIONS
from onehop.quantum.profile import Profile
from onehop.quantum.run.checkpoint import remove_checkpoint
from onehop.quantum.run.serialization import read_circuit, share_circuit
from onehop.text import bytes_text, counted, rate_text, seconds_text


def _start_ranks(options: Run) -> None:
    """Start the ranks and return on each of them. Reject wrong input before any rank starts."""
    ranks = options.ranks
    if ranks is None or ranks <= 1 or current_launch() is not None:
        ensure_ranks(ranks)
        return
    circuit = read_circuit(options.file, Group.alone())
    options.observables_for(circuit)
    values = options.values_for(circuit)
    if options.is_clifford(circuit.bind(values) if circuit.parameters else circuit, Group.alone()):
        console(options.json).print(f"{circuit.name} is a Clifford circuit, which needs no more than 1 rank")
        return
    asked = (options.model, options.trajectories, options.precision)
    needed = memory_of_run(circuit, ranks, *asked, **options.storage(circuit))
    check_fits(needed, circuit.name)
    options.check_extras_fit(
        circuit.bind(values) if circuit.parameters else circuit, needed.ranks, needed.ranks
    )
    arguments = sys.argv[1:]
    if needed.ranks < ranks:
        console(options.json).print(
            f"{circuit.name} is too small for more than {counted(needed.ranks, 'rank')}"
        )
        end = arguments.index("--") if "--" in arguments else len(arguments)
        arguments[end:end] = ["-n", str(needed.ranks)]
    ensure_ranks(
        needed.ranks,
        arguments,
        grace=options.grace,
        environment=share_circuit(options.file, circuit),
    )


def _place(options: Run, circuit: Circuit, group: Group, screen: Screen) -> tuple[CircuitPlan, float]:
    """Place the circuit, check that its run fits into memory, and print its plan. Return it and the predicted seconds.

    `simulate` finds this placement and makes no other. Every rank places the circuit, because all need the placement
    at the same time and have nothing else to do. For 2,000 random gates this takes 5 ms on 2 ranks and 80 to 110 ms
    on 64 (QFT of 30 qubits: 0.2 and 1 ms). To take it from the launcher would take 12 ms more: that is the time to
    encode and decode as many operations.
    """
    hosts: dict[str, Any] = {
        "ranks_per_node": len(group.local_ranks),
        "ranks_per_host": _core.ranks_per_host(group),
    }
    noise, trajectories = options.model, options.trajectories
    hosts |= options.storage(circuit)
    circuit_plan = plan_run(circuit, group.size, noise, trajectories, options.precision, **hosts)
    if options.device == "cpu":  # the memory of a device is checked when the state is made
        if options.state_folder is None:
            check_fits(circuit_plan, circuit.name)
        options.check_extras_fit(circuit, group.size, len(group.local_ranks))
    predicted = predict(circuit_plan)
    screen.print(one_line(circuit_plan, predicted, trajectories))
    return circuit_plan, predicted


def _simulate(
    options: Run, circuit: Circuit, observables: list[PauliSum], group: Group
) -> tuple[Result, dict[str, Any]]:
    """Simulate the circuit. Return the result and its report, with the seconds and the memory that it took."""
    asked: dict[str, Any] = {
        "shots": options.number_of_shots,
        "seed": options.seed,
        "precision": options.precision,
        "observables": observables,
        "device": options.device,
    }
    squared = options.variance and not options.has_variances_of_state(circuit)
    if squared:
        asked["observables"] = [*observables, *(one.squared() for one in observables)]
    result: Result
    if options.model is not None:
        memory, begin = MemoryUse(), time.perf_counter()
        if options.trajectories is None:
            result = simulate_density(circuit, group, noise=options.model, **asked)
        else:
            asked["trajectories"] = options.trajectories
            result = simulate_trajectories(circuit, group, noise=options.model, **asked)
    else:
        with progress(circuit.name, 1.0) as advance:
            memory, begin = MemoryUse(), time.perf_counter()
            method = "statevector" if options.needs_state else options.method
            names = ("checkpoint", "every", "profile", "state_folder", "state_memory")
            asked |= {name: getattr(options, name) for name in names}
            asked["method"] = method
            tell = since_last(advance)
            result = simulate(
                circuit, group, progress=lambda done, total, *_: tell(done / max(total, 1)), **asked
            )
    variances = []
    if squared:
        means, squares = np.split(np.real(result.expectations), 2)
        variances = np.maximum(squares - means**2, 0).tolist()
        result.expectations = result.expectations[: len(observables)]
        if isinstance(result, NoisyResult):
            result.errors = result.errors[: len(observables)]
    elif options.variance:
        variances = result.state.variances(observables)
    report = make_report(circuit, result, options.observable, options.precision)
    if options.variance:
        report["variances"] = dict(zip(options.observable, variances, strict=True))
    report.update(seconds=time.perf_counter() - begin, **memory.report(group))
    return result, report


def _show(
    options: Run, circuit: Circuit, report: dict[str, Any], profile: Profile | None, screen: Screen
) -> None:
    """Print the result and its profile, which becomes a part of the report, and draw one of the two."""
    if report.get("resumed"):
        screen.print(f"resumed from {options.checkpoint}")
    show(screen, report, options.rows)
    for text, row in report.get("gradients", {}).items():
        show_gradient(screen, text, row, options.rows)
    if profile is not None:
        profiles.show(screen, profile, options.rows)
        report["profile"] = profile.report()
    if options.plot is not None and profile is not None:
        title = f"{circuit.name}: {counted(circuit.qubits, 'qubit')}, {options.precision} precision"
        profiles.plot(options.plot, profile, title)
    elif options.plot is not None:
        draw(options.plot, report)


def _run(options: Run, group: Group) -> None:
    """Simulate the circuit on the ranks of a group, and report the result. Collective."""
    unbound = read_circuit(options.file, group)
    values = options.values_for(unbound)
    circuit = unbound.bind(values) if unbound.parameters else unbound
    observables = options.observables_for(circuit)
    screen = console(options.json)
    clifford = options.is_clifford(circuit, group)
    circuit_plan, predicted = (None, None) if clifford else _place(options, circuit, group, screen)
    # A step has thousands of gates, and passes over all of a large state. Checkpoints are written to their end.
    with waiting(None) if options.checkpoint is None else nullcontext():
        result, report = _simulate(options, circuit, observables, group)
    report["predicted_seconds"] = predicted
    time_profile = result.profile
    owns_checkpoint = bool(result.resumed or result.checkpoints)
    if options.save is not None:
        save_result(options.save, result, group, circuit)
    del result  # a gradient needs the memory of the final state
    if options.gradient:
        with waiting(None):
            report |= gradient_report(
                unbound,
                values,
                options.observable,
                group,
                noise=options.model,
                precision=options.precision,
                reproducible=options.reproducible,
                device=options.device,
            )
    if own_rank() != 0:
        return
    plain = circuit_plan is not None and options.precision in PRECISIONS[:2] and options.state_folder is None
    plain = plain and options.device == "cpu"
    if plain and options.model is None and not report["resumed"] and is_pure(circuit):
        keep_rate(circuit_plan, report["seconds"])
    _show(options, circuit, report, time_profile, screen)
    write_json(options.json, report)
    if options.checkpoint is not None and owns_checkpoint:
        remove_checkpoint(options.checkpoint)  # the run is complete


def run(options: Run) -> None:
    """Simulate a circuit on several ranks.

    Outcomes have the last classical bit first, as in Qiskit. In a circuit without classical bits, all qubits are
    measured. Expectation values refer to the state before the final measurements.
    """
    options.check()
    _start_ranks(options)
    _run(options, Group.world())


def _shown(value: float | list[float]) -> str:
    if isinstance(value, list):
        return f"{value[0]:.12g}{value[1]:+.12g}i"
    return f"{value:.12g}"


def make_report(
    circuit: Circuit, result: Result, observables: Sequence[str], precision: str
) -> dict[str, Any]:
    """Return the results of a run as the JSON shows them."""
    names = (
        "method",
        "largest_state_qubits",
        "measures_early",
        "shots",
        "seconds",
        "ranks",
        "bytes_moved",
        "exchanges",
        "seed",
    )
    report: dict[str, Any] = {
        "version": __version__,
        "circuit": circuit.name,
        "qubits": circuit.qubits,
        "precision": precision,
        "counts": result.counts if result.shots else {},
        "expectations": dict(zip(observables, map(_number, result.expectations), strict=True)),
        "bytes_by_level": levels_of(
            result.bytes_moved - result.bytes_between_hosts, result.bytes_between_hosts
        ),
        **{name: getattr(result, name) for name in names},
    }
    if isinstance(result, NoisyResult):
        report["standard_errors"] = dict(zip(observables, result.errors, strict=True))
        report["runs"] = result.runs
    else:
        report.update(
            passes=result.passes,
            disk_passes=result.disk_passes,
            resumed=result.resumed,
            fidelity_estimate=result.fidelity_estimate,
            bytes_per_amplitude=_core.bytes_per_amplitude(precision),
        )
        read, written, busy = result.disk
        if busy:
            report["disk"] = {"bytes_read": read, "bytes_written": written, "busy_seconds": busy}
            report["disk"] |= {
                "bytes_per_second": (read + written) / busy,
                "seconds_over_busy": result.seconds / busy,
            }
    return report


def show_gradient(screen: Screen, observable: str, derivatives: dict[str, float], rows: int) -> None:
    """Print the derivatives of an observable, the largest ones first."""
    table = Table("parameter", ">derivative", title=f"derivatives of <{observable}>")
    largest = sorted(derivatives.items(), key=lambda one: -abs(one[1]))
    for name, value in largest[:rows]:
        table.add_row(name, f"{value:.12g}")
    if len(largest) > rows:
        table.add_row("", f"{len(largest) - rows} more")
    screen.print(table)


def save_result(file: str, result: Result, group: Group, circuit: Circuit) -> None:
    """Write the final state or density matrix. Collective; errors as for `save_state`."""
    about = {"circuit": circuit.name, "seed": result.seed}
    if isinstance(result.state, DensityMatrix):
        save_state(file, result.state.state, group, {**about, "kind": "density matrix"})
    else:
        save_state(file, result.state, group, about)


def show(screen: Screen, report: dict[str, Any], rows: int) -> None:
    """Print the counts as a table with bars, the expectation values, and the time and memory of the run."""
    counts = sorted(report["counts"].items(), key=lambda one: (-one[1], one[0]))
    shots = max(report["shots"], 1)
    if counts:
        title = f"{counted(len(counts), 'outcome')} in {counted(report['shots'], 'shot')}"
        table = Table("outcome", ">shots", "", title=title)
        for outcome, number in counts[:rows]:
            bar = "█" * max(round(40 * number / counts[0][1]), 1)
            table.add_row(outcome, number, bar if counts[0][1] > 1 or len(counts) == 1 else "")
        if len(counts) > rows:
            rest = sum(number for _, number in counts[rows:])
            table.add_row(f"{len(counts) - rows} others", rest, f"{100 * rest / shots:.3g} %")
        screen.print(table)
    for observable, value in report["expectations"].items():
        variance = report.get("variances", {}).get(observable)
        suffix = "" if variance is None else f", variance {_shown(variance)}"
        screen.print(f"<{observable}> = {_shown(value)}{suffix}")
    if report["precision"] in PRECISIONS[2:]:
        screen.print(
            f"rounding to {report['bytes_per_amplitude']:g} bytes per amplitude has left a fidelity of about "
            f"{report['fidelity_estimate']:.6f}"
        )
    if "disk" in report:
        disk = report["disk"]
        screen.print(
            f"disk: {bytes_text(disk['bytes_read'])} read, {bytes_text(disk['bytes_written'])} written in "
            f"{report['disk_passes']:.4g} passes over the file, {rate_text(disk['bytes_per_second'])}; the run took "
            f"{disk['seconds_over_busy']:.2f} times as long as these transfers"
        )
    between = report["bytes_by_level"]["between hosts"]
    screen.print(
        f"{seconds_text(report['seconds'])} on {counted(report['ranks'], 'rank')}; "
        f"{bytes_text(report['bytes_moved'])} moved in {counted(report['exchanges'], 'exchange')}"
        f"{f', {bytes_text(between)} of them between hosts' if between else ''}; "
        f"peak memory {bytes_text(report['peak_memory_per_rank'])} per rank; "
        f"seed {report['seed']}"
        f"{'; method clifford (stim)' if report['method'] == 'clifford' else ''}"
        f"{'; qubits were measured early, because their state does not fit' if report['measures_early'] else ''}"
    )


def draw(file: str, report: dict[str, Any]) -> None:
    """Plot the counts as a bar chart."""
    title = f"{report['circuit']}: {counted(report['qubits'], 'qubit')}"
    save_figure(counts_figure(report["counts"], title), file)


def _number(value: complex | float) -> Any:
    """Convert a number for JSON; a complex number becomes a pair."""
    return [value.real, value.imag] if isinstance(value, complex) else float(value)
