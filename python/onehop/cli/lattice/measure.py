"""`onehop lattice measure`: observables of gauge fields in files."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from onehop.cli.common import console, own_rank, write_json
from onehop.cli.lattice.common import file_rows, say_about
from onehop.cli.lattice.measure_ensemble import measure_ensemble
from onehop.cli.lattice.measured import Measure, measured
from onehop.cli.screen import Table
from onehop.figure import empty_figure, save_figure
from onehop.group import Group
from onehop.lattice import FlowPoint, GaugeFile
from onehop.lattice.measurements import HADRONS, Measurements
from onehop.launch import ensure_ranks


def plot_mesons(left: Any, right: Any, report: dict[str, Any]) -> None:
    """Draw the correlators into the axes `left`, and the effective masses into `right`."""
    for name, marker in (("pion", "o"), ("rho", "s"), ("nucleon", "^")):
        if name not in report:
            continue
        left.semilogy(np.abs(report[name]), marker, markersize=4, label=name)
        masses = [np.nan if one is None else one for one in report[f"{name}_mass"]]
        right.plot(masses, marker, markersize=4, label=name)
    left.set_ylabel("|C(t)|")
    right.set_ylabel("effective mass, a m")
    for axes in (left, right):
        axes.set_xlabel("t / a")
        axes.locator_params(axis="x", integer=True)
        axes.legend()
    left.set_title(f"{report['action']}, m = {report['mass']:g}", fontsize="medium")


def _plot_flow(left: Any, right: Any, points: list[FlowPoint]) -> None:
    times = [point.time for point in points]
    left.plot(times, [point.t2_energy for point in points], label="clover")
    left.plot(times, [point.time**2 * point.energy_plaquette for point in points], "--", label="plaquettes")
    left.axhline(0.3, color="0.5", linestyle=":", linewidth=1, label="0.3, at t₀")
    left.set_ylabel("t² E")
    left.legend()
    right.plot(times, [point.charge for point in points])
    right.set_ylabel("topological charge")
    for axes in (left, right):
        axes.set_xlabel("flow time / a²")
        axes.locator_params(axis="x", nbins=6)


def _plot(file: str, points: list[FlowPoint], quarks: dict[str, Any] | None) -> None:
    rows = (1 if points else 0) + (1 if quarks else 0)
    figure = empty_figure(9, 4 * rows)
    axes = figure.subplots(rows, 2, squeeze=False)
    if points:
        _plot_flow(*axes[0], points)
    if quarks:
        plot_mesons(*axes[-1], quarks)
    save_figure(figure, file)


def _table(report: dict[str, Any], found: GaugeFile) -> Table:
    extents = "x".join(map(str, found.extents))
    table = Table("", "", title=f"{extents}, {found.format}, {found.precision} bits", show_header=False)
    if report["convention"] != "onehop":
        table.add_row("convention", report["convention"])
    for name, text in file_rows(found):
        table.add_row(name, text)
    if found.boundary == "open":
        table.add_row("boundary in time", "open, without its missing plaquettes and links")
    else:
        real, imaginary = report["polyakov_loop"]
        table.add_row("Polyakov loop", f"{real:.9g} {imaginary:+.9g} i")
        for name in ("energy_plaquette", "energy_clover"):
            table.add_row(name.replace("_", " "), f"{report[name]:.9g}")
        table.add_row("topological charge", f"{report['charge']:.6g}")
    if report.get("flow"):
        last = report["flow"][-1]
        table.add_row("flow time", f"{last['time']:g}")
        table.add_row("largest error of a step", f"{report['flow_step_error']:.2g}")
        table.add_row("t² E", f"{last['t2_energy']:.6g}")
        table.add_row("topological charge after the flow", f"{last['charge']:.6g}")
        if report["reference_time"] is not None:
            table.add_row("t0 (t² E = 0.3)", f"{report['reference_time']:.5g}")
    if "quarks" in report:
        quarks = report["quarks"]
        for name in HADRONS:
            known = [one for one in quarks.get(f"{name}_mass", []) if one is not None]
            if known:
                table.add_row(f"a m of the {name}, at the largest time", f"{known[-1]:.5g}")
        if "condensate" in quarks:
            error = quarks["condensate_error"]
            width = "" if error is None else f" ± {error:.2g}"
            table.add_row("tr M⁻¹ / volume", f"{quarks['condensate']:.6g}{width}")
    return table


def _correlators(quarks: dict[str, Any]) -> Table:
    """Tabulate the correlators and effective masses of one configuration, which has no errors."""
    hadrons = [name for name in HADRONS if name in quarks]
    columns = [title for name in hadrons for title in (f">{name} C(t)", ">a m")]
    table = Table(">t / a", *columns, title="Correlators and effective masses, in lattice units")
    table.caption = quarks.get("said")
    names = [one for name in hadrons for one in (name, f"{name}_mass")]
    for time, values in enumerate(itertools.zip_longest(*(quarks[name] for name in names))):
        texts = [
            f"{one:.4{'g' if number % 2 else 'e'}}" if one is not None else ""
            for number, one in enumerate(values)
        ]
        table.add_row(time, *texts)
    return table


def _loops(loops: list[list[float]]) -> Table:
    """Tabulate Wilson loops of r links in space by t in time."""
    table = Table(">r / a", *(f">t = {t}" for t in range(1, len(loops[0]) + 1)), title="Wilson loops")
    for r, values in enumerate(loops, 1):
        table.add_row(r, *(f"{value:.6g}" for value in values))
    return table


def measure(options: Measure) -> None:
    """Read a gauge field, verify it against its header, and measure plaquettes, traces, Polyakov loop and energy.

    Plaquettes and traces are averages of Re tr / 3, so that unit links give 1. --flow adds energy and topological
    charge along the gradient flow, --quarks adds correlators of hadrons with effective masses. Several files are
    measured side by side, by as many ranks each as there are more ranks than files, or as --grid has.
    """
    options.check()
    ensure_ranks(options.ranks)
    if len(options.file) > 1 or options.output is not None:
        measure_ensemble(options)
        return
    report, found, points = measured(options, options.file[0], Group.world())
    if own_rank() != 0:
        return
    screen = console(options.json)
    screen.print(_table(report, found))
    if "quarks" in report:
        screen.print(_correlators(report["quarks"]))
    if "wilson_loops" in report:
        screen.print(_loops(report["wilson_loops"]))
    say_about(found, options.json)
    if options.plot is not None:
        _plot(options.plot, points, report.get("quarks"))
    alone = Measurements({}, found.extents)
    alone.add([report | {"number": None}])
    report.get("quarks", {}).pop("correlators", None)  # they are in the parts
    write_json(options.json, report | alone.parts())
