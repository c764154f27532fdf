"""The report of `onehop quantum run`: a table, a bar chart, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onehop._core import __version__
from onehop.cli.screen import Screen, Table
from onehop.figure import empty_figure, save_figure
from onehop.group import Group
from onehop.quantum import Circuit, DensityMatrix, NoisyResult, Result
from onehop.quantum.circuit_plan import levels_of
from onehop.quantum.io.state_file import save_state
from onehop.text import bytes_text, counted

MAX_BARS = 24


def _shown(value: float | list[float]) -> str:
    if isinstance(value, list):
        return f"{value[0]:.12g}{value[1]:+.12g}i"
    return f"{value:.12g}"


def make_report(
    circuit: Circuit, result: Result, observables: Sequence[str], precision: str
) -> dict[str, Any]:
    """Return the results of a run as the JSON shows them."""
    names = ("shots", "seconds", "ranks", "bytes_moved", "exchanges", "seed")
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
        report.update(passes=result.passes, resumed=result.resumed)
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
            table.add_row(outcome, number, "█" * max(round(40 * number / counts[0][1]), 1))
        if len(counts) > rows:
            rest = sum(number for _, number in counts[rows:])
            table.add_row(f"{len(counts) - rows} others", rest, f"{100 * rest / shots:.3g} %")
        screen.print(table)
    for observable, value in report["expectations"].items():
        variance = report.get("variances", {}).get(observable)
        suffix = "" if variance is None else f", variance {_shown(variance)}"
        screen.print(f"<{observable}> = {_shown(value)}{suffix}")
    between = report["bytes_by_level"]["between hosts"]
    screen.print(
        f"{report['seconds']:.3f} s on {counted(report['ranks'], 'rank')}; "
        f"{bytes_text(report['bytes_moved'])} moved in {counted(report['exchanges'], 'exchange')}"
        f"{f', {bytes_text(between)} of them between hosts' if between else ''}; "
        f"peak memory {bytes_text(report['peak_memory_per_rank'])} a rank; "
        f"seed {report['seed']}"
    )


def draw(file: str, report: dict[str, Any]) -> None:
    """Plot the counts as a bar chart."""
    counts = sorted(report["counts"].items(), key=lambda one: (-one[1], one[0]))[:MAX_BARS]
    counts.sort()
    figure = empty_figure(max(5.0, 0.4 * len(counts) + 2), 4.5)
    axes = figure.subplots()
    axes.bar([outcome for outcome, _ in counts], [number for _, number in counts])
    axes.tick_params(axis="x", rotation=90)
    hidden = len(report["counts"]) - len(counts)
    title = f"{report['circuit']}: the {len(counts)} most frequent" if hidden else report["circuit"]
    axes.set(xlabel="outcome", ylabel="shots", title=title)
    axes.locator_params(axis="y", integer=True)
    save_figure(figure, file)


def _number(value: complex | float) -> Any:
    """Convert a number for JSON; a complex number becomes a pair."""
    return [value.real, value.imag] if isinstance(value, complex) else float(value)
