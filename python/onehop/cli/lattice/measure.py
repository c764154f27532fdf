"""`onehop lattice measure`: observables of a gauge field in a file."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from onehop.cli.common import (
    LARGEST_INT,
    JsonOption,
    RanksOption,
    check_plot,
    console,
    own_rank,
    progress,
    write_json,
)
from onehop.cli.lattice.common import (
    GridOption,
    PhasesOption,
    check_tolerance,
    numbers,
    refuse_without_effect,
    say_unverified,
)
from onehop.cli.lattice.quarks import check_quarks, plot_mesons, quark_report
from onehop.error import BadInput
from onehop.figure import empty_figure, save_figure
from onehop.group import Group
from onehop.lattice import (
    Flow,
    FlowPoint,
    Gauge,
    GaugeFile,
    field_strength,
    gradient_flow,
    polyakov_loop,
    read_gauge,
)
from onehop.lattice.flow import FLOW_STEP, check_flow_tolerance, flow_steps, reference_time
from onehop.launch import ensure_ranks

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="Gauge field file: MILC 5, NERSC, ILDG, SciDAC or openQCD.")
]
ToleranceOption = Annotated[
    float, typer.Option(help="Largest allowed deviation of a link from SU(3); above 0 and finite.")
]


def report_of(file: GaugeFile) -> dict[str, object]:
    """Return the part of the JSON report that describes the file."""
    return {
        "file": file.path,
        "format": file.format,
        "extent": list(file.extents),
        "precision": file.precision,
        "plaquette": file.plaquettes.all,
        "plaquette_space": file.plaquettes.space,
        "plaquette_time": file.plaquettes.time,
        "link_trace": file.link_trace,
        "checksums": {name: f"{value:08x}" for name, value in file.checksums.items()},
        "verified": list(file.verified),
    }


def _flow(
    gauge: Gauge, time: float, step: float, tolerance: float | None, every: int
) -> tuple[Flow, list[FlowPoint]]:
    total = max(1, flow_steps(time, step)) if tolerance is None else None
    with progress("flow", total=total) as advance:
        return gradient_flow(
            gauge, time, step=step, tolerance=tolerance, every=every, progress=lambda _number: advance(1)
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


def measure(
    file: FileArgument,
    flow: Annotated[
        float | None,
        typer.Option(metavar="TIME", help="Also measure along the gradient flow, up to this flow time."),
    ] = None,
    flow_step: Annotated[
        float, typer.Option(help="Step size of the flow; with --flow-tolerance the size of the first step.")
    ] = FLOW_STEP,
    flow_tolerance: Annotated[
        float | None,
        typer.Option(
            help="Adapt the step size so that the error of each link stays below this in every step, for example 1e-4."
        ),
    ] = None,
    flow_every: Annotated[
        int, typer.Option(min=1, max=LARGEST_INT, help="Number of flow steps between two measurements.")
    ] = 1,
    quarks: Annotated[
        str | None,
        typer.Option(
            metavar="staggered|asqtad|hisq|wilson|clover",
            help="Also measure pion and rho correlators with this quark action, from a point source.",
        ),
    ] = None,
    mass: Annotated[float | None, typer.Option(help="Quark mass (with --quarks).")] = None,
    csw: Annotated[float, typer.Option(help="Clover coefficient (clover only).")] = 1.0,
    phases: PhasesOption = "standard",
    noise_vectors: Annotated[
        int,
        typer.Option(
            min=0,
            max=LARGEST_INT,
            help="Number of noise vectors for the chiral condensate (staggered quarks only); 0: do not measure it.",
        ),
    ] = 0,
    residual: Annotated[float, typer.Option(help="Tolerance |b - M x| / |b| of the propagators.")] = 1e-9,
    plot: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Plot t² E and charge over flow time, correlators and masses to FILE."
        ),
    ] = None,
    grid: GridOption = None,
    ranks: RanksOption = None,
    tolerance: ToleranceOption = 1e-4,
    json_target: JsonOption = None,
) -> None:
    """Read a gauge field, verify it against its header, and measure plaquettes, traces, Polyakov loop and energy.

    Plaquettes and traces are averages of Re tr / 3, so that unit links give 1. --flow adds energy and topological
    charge along the gradient flow, --quarks adds meson correlators with their effective masses.
    """
    check_plot(plot)
    check_tolerance(tolerance, "--tolerance")
    check_quarks(quarks, mass, noise_vectors=noise_vectors, csw=csw, residual=residual, phases=phases)
    if flow is None:
        refuse_without_effect(("--flow-step", "--flow-tolerance", "--flow-every"), "goes with --flow")
    else:
        flow_steps(flow, flow_step)
    if flow_tolerance is not None:
        check_flow_tolerance(flow_tolerance)
    if plot is not None and flow is None and quarks is None:
        raise BadInput("expected --flow or --quarks with --plot, which draws their results, found neither")
    ensure_ranks(ranks)
    width = 3 if quarks in ("asqtad", "hisq") else 1
    gauge, found = read_gauge(file, Group.world(), numbers(grid, "--grid"), tolerance=tolerance, width=width)
    loop, strength = polyakov_loop(gauge), field_strength(gauge)
    flowing, points = (
        (None, []) if flow is None else _flow(gauge, flow, flow_step, flow_tolerance, flow_every)
    )
    of_quarks = None
    if quarks is not None and mass is not None:
        of_quarks = quark_report(gauge, quarks, mass, csw, noise_vectors, residual, phases)
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
    if of_quarks is not None:
        report["quarks"] = of_quarks
    screen = console(json_target)
    screen.print(_table(report, found))
    say_unverified(file, found.has_checksum, json_target)
    if plot is not None:
        _plot(plot, points, of_quarks)
        screen.print(f"plot: {plot}", markup=False)
    write_json(json_target, report)
