"""`onehop lattice measure`: observables of a gauge field in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop.cli.common import console, own_rank, progress, write_json
from onehop.cli.lattice.common import GaugeOptions, averages, phases_option, say_unverified
from onehop.cli.screen import Table
from onehop.error import BadInput
from onehop.figure import empty_figure, save_figure
from onehop.group import Group
from onehop.lattice import (
    Flow,
    FlowPoint,
    Gauge,
    GaugeFile,
    Staggered,
    Wilson,
    field_strength,
    gradient_flow,
    mesons,
    polyakov_loop,
    read_gauge,
    wilson_kappa,
)
from onehop.lattice.flow import FLOW_STEP, check_flow_tolerance, flow_steps, reference_time
from onehop.lattice.staggered import STAGGERED_ACTIONS
from onehop.launch import ensure_ranks
from onehop.options import LARGEST_INT, Options, file_option, option


@dataclass(kw_only=True)
class FlowOptions(Options):
    """The gradient flow along which is measured."""

    title = "Gradient flow"

    flow: float | None = option(
        None, "Also measure along the gradient flow, up to this flow time.", metavar="TIME"
    )
    flow_step: float = option(
        FLOW_STEP, "Step size of the flow; with --flow-tolerance the size of the first step."
    )
    flow_tolerance: float | None = option(
        None,
        "Adapt the step size so that the error of each link stays below this in every step, for example 1e-4.",
    )
    flow_every: int = option(1, "Number of flow steps between two measurements.", low=1, high=LARGEST_INT)


ACTIONS = (*STAGGERED_ACTIONS, "wilson", "clover")


@dataclass(kw_only=True)
class QuarkOptions(Options):
    """The quarks that are measured."""

    title = "Quarks"

    quarks: str | None = option(
        None,
        "Also measure pion and rho correlators with this quark action, from a point source.",
        choices=ACTIONS,
    )
    mass: float | None = option(None, "Quark mass; above 0 for staggered quarks.")
    csw: float = option(1.0, "Clover coefficient (clover only).")
    phases: str = phases_option("standard", "Staggered phases.")
    noise_vectors: int = option(
        0,
        "Number of noise vectors for the chiral condensate (staggered quarks only); 0: do not measure it.",
        low=0,
        high=LARGEST_INT,
    )
    residual: float = option(1e-9, "Tolerance |b - M x| / |b| of the propagators.", above=0)

    def check_quarks(self) -> None:
        """Check the options before any rank starts."""
        action = self.quarks
        if action is None:
            self.refuse(("mass", "csw", "noise_vectors", "residual", "phases"), "goes with --quarks")
            return
        if self.mass is None or (action in STAGGERED_ACTIONS and not self.mass > 0):
            raise BadInput(
                f"expected --mass with --quarks {action}, above 0 for staggered quarks, found {self.mass}"
            )
        if action not in STAGGERED_ACTIONS:
            self.refuse(("noise_vectors", "phases"), f"is for staggered quarks, found --quarks {action}")
        if action != "clover":
            self.refuse(("csw",), f"is for --quarks clover, found {action}")


def _numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def quark_report(gauge: Gauge, options: QuarkOptions, mass: float) -> dict[str, Any]:
    """Measure correlators with effective masses, and with noise vectors the condensate. Collective."""
    action, noise_vectors = options.quarks or "", options.noise_vectors
    staggered = action in STAGGERED_ACTIONS
    with progress("propagators", total=(3 if staggered else 12) + noise_vectors) as advance:
        how: dict[str, Any] = {"tolerance": options.residual, "progress": lambda _number: advance(1)}
        if staggered:
            operator = Staggered(gauge, action, phases=options.phases)
            found = mesons.staggered_mesons(gauge, operator, mass, **how)
        else:
            csw = options.csw if action == "clover" else 0.0
            found = mesons.wilson_mesons(gauge, Wilson(gauge, wilson_kappa(mass), csw=csw), **how)
        report: dict[str, Any] = {
            "action": action,
            "mass": mass,
            "pion": found.pion.tolist(),
            "rho": found.rho.tolist(),
            "pion_mass": _numbers(mesons.effective_mass(found.pion)),
            "rho_mass": _numbers(mesons.effective_mass(found.rho, 2 if staggered else 1)),
            "iterations": found.iterations,
            "true_residual": found.true_residual,
        }
        if noise_vectors:
            condensate = mesons.chiral_condensate(gauge, operator, mass, noise_vectors=noise_vectors, **how)
            report["condensate"] = condensate.mean
            report["condensate_error"] = condensate.error
    return report


def plot_mesons(left: Any, right: Any, report: dict[str, Any]) -> None:
    """Draw the correlators into the axes `left`, and the effective masses into `right`."""
    for name, marker in (("pion", "o"), ("rho", "s")):
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


@dataclass(kw_only=True)
class Measure(QuarkOptions, FlowOptions, GaugeOptions):
    plot: str | None = file_option(
        "Plot t² E and charge over flow time, correlators and masses to FILE.", "the plot"
    )

    def check(self) -> None:
        """Check the options before any rank starts."""
        self.check_quarks()
        if self.flow is None:
            self.refuse(("flow_step", "flow_tolerance", "flow_every"), "goes with --flow")
        else:
            flow_steps(self.flow, self.flow_step)
        if self.flow_tolerance is not None:
            check_flow_tolerance(self.flow_tolerance)
        if self.plot is not None and self.flow is None and self.quarks is None:
            raise BadInput(
                "expected --flow or --quarks with --plot, which draws their results, found neither"
            )


def report_of(file: GaugeFile) -> dict[str, object]:
    """Return the part of the JSON report that describes the file."""
    return {
        "file": file.path,
        "format": file.format,
        "extent": list(file.extents),
        "precision": file.precision,
        **averages(file.plaquettes, file.link_trace),
        "checksums": {name: f"{value:08x}" for name, value in file.checksums.items()},
        "verified": list(file.verified),
    }


def _flow(gauge: Gauge, options: FlowOptions, time: float) -> tuple[Flow, list[FlowPoint]]:
    step, tolerance = options.flow_step, options.flow_tolerance
    total = max(1, flow_steps(time, step)) if tolerance is None else None
    with progress("flow", total=total) as advance:
        return gradient_flow(
            gauge,
            time,
            step=step,
            tolerance=tolerance,
            every=options.flow_every,
            progress=lambda _number: advance(1),
        )


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
    averages = {
        "plaquette": "plaquette",
        "plaquette_space": "spatial plaquette",
        "plaquette_time": "plaquette in time",
        "link_trace": "link trace",
    }
    for name, average in averages.items():
        said = "  verified" if average in found.verified else ""
        table.add_row(name.replace("_", " "), f"{report[name]:.9g}{said}")
    real, imaginary = report["polyakov_loop"]
    table.add_row("Polyakov loop", f"{real:.9g} {imaginary:+.9g} i")
    for name in ("energy_plaquette", "energy_clover"):
        table.add_row(name.replace("_", " "), f"{report[name]:.9g}")
    table.add_row("topological charge", f"{report['charge']:.6g}")
    for name, value in found.checksums.items():
        table.add_row(name, f"{value:08x}  {'verified' if name in found.verified else 'computed'}")
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
        for name in ("pion", "rho"):
            known = [one for one in quarks[f"{name}_mass"] if one is not None]
            if known:
                table.add_row(f"{name} effective mass at the largest time", f"{known[-1]:.5g}")
        if "condensate" in quarks:
            error = quarks["condensate_error"]
            width = "" if error is None else f" ± {error:.2g}"
            table.add_row("tr M⁻¹ / volume", f"{quarks['condensate']:.6g}{width}")
    return table


def measure(options: Measure) -> None:
    """Read a gauge field, verify it against its header, and measure plaquettes, traces, Polyakov loop and energy.

    Plaquettes and traces are averages of Re tr / 3, so that unit links give 1. --flow adds energy and topological
    charge along the gradient flow, --quarks adds meson correlators with their effective masses.
    """
    options.check()
    ensure_ranks(options.ranks)
    width = 3 if options.quarks in ("asqtad", "hisq") else 1
    gauge, found = read_gauge(
        options.file, Group.world(), options.grid, tolerance=options.tolerance, width=width
    )
    loop, strength = polyakov_loop(gauge), field_strength(gauge)
    flowing, points = (None, []) if options.flow is None else _flow(gauge, options, options.flow)
    quarks = None
    if options.quarks is not None and options.mass is not None:
        quarks = quark_report(gauge, options, options.mass)
    if own_rank() != 0:
        return
    report: dict[str, Any] = report_of(found) | {
        "polyakov_loop": [loop.real, loop.imag],
        "energy_plaquette": strength.energy_plaquette,
        "energy_clover": strength.energy_clover,
        "charge": strength.charge,
    }
    if flowing is not None:
        report["flow_step_error"] = flowing.largest_error
        report["flow"] = [point._asdict() for point in points]
        report["charge_after_flow"] = points[-1].charge
        report["reference_time"] = reference_time(points)
    if quarks is not None:
        report["quarks"] = quarks
    screen = console(options.json)
    screen.print(_table(report, found))
    say_unverified(options.file, found.has_checksum, options.json)
    if options.plot is not None:
        _plot(options.plot, points, quarks)
        screen.print(f"plot: {options.plot}")
    write_json(options.json, report)
