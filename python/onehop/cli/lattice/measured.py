"""What `onehop lattice measure` measures on a configuration, and its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop.cli.common import progress
from onehop.cli.lattice.common import (
    GAUGE_FILE,
    GaugeOptions,
    boundary_option,
    convention_option,
    flow_action_option,
    naik_epsilon_option,
    phases_option,
    projection_option,
    report_of,
    staggered_operator,
)
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice import (
    Flow,
    FlowPoint,
    Gauge,
    GaugeFile,
    Wilson,
    field_strength,
    gradient_flow,
    improved_charge,
    mesons,
    polyakov_loop,
    read_gauge,
    wilson_kappa,
    wilson_loops,
)
from onehop.lattice.contractions import momenta_up_to
from onehop.lattice.conventions import Convention, convention
from onehop.lattice.flow import CHARGES, FLOW_STEP, check_flow_tolerance, flow_steps, reference_time
from onehop.lattice.measurements import HADRONS, correlator_key
from onehop.lattice.sources import SourceOptions
from onehop.lattice.staggered import STAGGERED_ACTIONS
from onehop.options import LARGEST_INT, Options, argument, fields_of, file_option, option
from onehop.output import check_file_target


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
    flow_action: str = flow_action_option()


ACTIONS = (*STAGGERED_ACTIONS, "wilson", "clover")


@dataclass(kw_only=True)
class QuarkOptions(SourceOptions):
    """The quarks that are measured."""

    title = "Quarks"

    quarks: str | None = option(
        None,
        "Also measure correlators of hadrons with this quark action.",
        choices=ACTIONS,
    )
    mass: float | None = option(None, "Quark mass; above 0 for staggered quarks.")
    kappa: float | None = option(None, "Hopping parameter in place of a mass (wilson and clover only).")
    u0: float = option(1.0, "Tadpole factor u0 (asqtad only).")
    naik_epsilon: float = naik_epsilon_option()
    projection: str = projection_option()
    boundary: str = boundary_option("Boundary of the quarks in time.")
    csw: float = option(1.0, "Clover coefficient (clover only).")
    phases: str = phases_option("standard", "Staggered phases.")
    noise_vectors: int = option(
        0,
        "Number of noise vectors for the chiral condensate; 0: do not measure it.",
        low=0,
        high=LARGEST_INT,
    )
    one_link: bool = option(
        False,
        "Also measure mesons of staggered quarks that are point-split by one link, from a point source.",
    )
    residual: float = option(1e-9, "Tolerance |b - M x| / |b| of the propagators.", above=0)

    def check_quarks(self) -> None:
        """Check the options before any rank starts."""
        action = self.quarks
        if action is None:
            others = [field.name for field in fields_of(QuarkOptions) if field.name != "quarks"]
            self.refuse(others, "goes with --quarks")
            return
        if self.kappa is not None and action not in STAGGERED_ACTIONS:
            if self.mass is not None or not 0 < self.kappa < 1:
                raise BadInput(
                    f"expected either --mass or --kappa between 0 and 1 with --quarks {action}, found --kappa "
                    f"{self.kappa:g}{' and --mass' if self.mass is not None else ''}"
                )
            self.mass = 1 / (2 * self.kappa) - 4
        elif self.kappa is not None:
            self.refuse(("kappa",), f"is for --quarks wilson and clover, found {action}")
        for name, of in (("u0", "asqtad"), ("naik_epsilon", "hisq"), ("projection", "hisq")):
            if action != of:
                self.refuse((name,), f"is for --quarks {of}, found {action}")
        if self.mass is None or (action in STAGGERED_ACTIONS and not self.mass > 0):
            raise BadInput(
                f"expected --mass with --quarks {action}, above 0 for staggered quarks, found {self.mass}"
            )
        staggered = action in STAGGERED_ACTIONS
        if not staggered:
            self.refuse(("phases", "one_link"), f"is for staggered quarks, found --quarks {action}")
        if action != "clover":
            self.refuse(("csw",), f"is for --quarks clover, found {action}")
        if staggered and (self.source == "gaussian" or self.sink != "point"):
            raise BadInput(
                f"expected a point sink and another source than gaussian with --quarks {action}, found --source "
                f"{self.source} and --sink {self.sink}"
            )
        if self.one_link and self.source != "point":
            raise BadInput(f"expected --source point with --one-link, found {self.source}")
        self.check_sources()
        if "gaussian" not in (self.source, self.sink):
            self.refuse(
                ("width", "smear_steps", "ape_alpha", "ape_steps"), "is for a gaussian --source or --sink"
            )
        elif not self.ape_steps:
            self.refuse(("ape_alpha",), "goes with --ape-steps")
        if not self.has_noise and not self.noise_vectors:
            self.refuse(("seed",), "is for noise: --source z2 or random-wall, or --noise-vectors")

    def solves(self) -> int:
        """Return the number of right-hand sides on a configuration."""
        each = 3 if self.quarks in STAGGERED_ACTIONS else 12
        if self.source == "random-wall":
            each //= 3
        each *= len(momenta_up_to(self.momenta)) if self.has_waves else 1
        return each * (4 if self.one_link else 1) * self.sources + self.noise_vectors


WALL = "the correlators of a wall depend on the gauge: expected links of `onehop lattice fix`"


def quark_report(gauge: Gauge, options: QuarkOptions, mass: float, theirs: Convention) -> dict[str, Any]:
    """Measure correlators with effective masses, and with noise vectors the condensate. Collective."""
    kappa = wilson_kappa(mass) if options.kappa is None else options.kappa
    action = options.quarks or ""
    staggered, antiperiodic = action in STAGGERED_ACTIONS, options.boundary == "antiperiodic"
    sources = options.part(SourceOptions)
    operator: Any
    with progress("propagators", total=options.solves()) as advance:
        how: dict[str, Any] = {"tolerance": options.residual, "progress": lambda _number: advance(1)}
        if staggered:
            signs: dict[str, Any] = {"antiperiodic": antiperiodic, "phases": options.phases}
            operator = staggered_operator(gauge, action, options, **signs)
            how["phases"] = options.phases
            found = mesons.staggered_mesons(
                gauge, operator, mass, one_link=options.one_link, **how, **sources
            )
            del how["phases"]
        else:
            csw = options.csw if action == "clover" else 0.0
            operator = Wilson(gauge, kappa, csw=csw, antiperiodic=antiperiodic)
            found = mesons.wilson_mesons(gauge, operator, **how, **sources)
        factor = theirs.staggered_propagator_factor if staggered else theirs.wilson_factor(kappa)
        report: dict[str, Any] = {"action": action, "mass": mass, "boundary": options.boundary}
        report["source"], report["sink"] = options.source, options.sink
        if "wall" in (options.source, options.sink):
            report["said"] = WALL
        series: dict[str, list[float]] = {}
        for name, values in found.correlators.items():
            power = 3 if name.startswith("nucleon") else 2
            for momentum, one in zip(found.momenta, factor**power * values, strict=False):
                series[correlator_key(name, momentum)] = one.tolist()
        for name in (name for name in HADRONS if name in series):
            report[name] = series[name]
            one = found.correlators[name][0]
            if name == "nucleon":
                masses = mesons.logarithmic_mass(one)
            else:
                masses = mesons.effective_mass(one, 2 if staggered and name == "rho" else 1)
            report[f"{name}_mass"] = [None if np.isnan(one) else float(one) for one in masses]
        report |= {"iterations": found.iterations, "true_residual": found.true_residual}
        report["correlators"] = series
        if options.noise_vectors:
            how |= {"noise_vectors": options.noise_vectors, "seed": options.seed}
            condensate = mesons.chiral_condensate(gauge, operator, mass if staggered else None, **how)
            error = condensate.error
            report["condensate"] = factor * condensate.mean
            report["condensate_error"] = None if error is None else factor * error
    return report


@dataclass(kw_only=True)
class Measure(QuarkOptions, FlowOptions, GaugeOptions):
    file: list[str] = argument(
        "FILE...", f"{GAUGE_FILE} Several files are the configurations of an ensemble."
    )  # type: ignore[assignment]
    output: str | None = file_option(
        "Write the measurements to FILE (HDF5). If FILE exists, add the configurations that it has not.",
        "checkpoint",
        *("-o", "--output"),
    )
    plot: str | None = file_option(
        "Plot t² E and charge over flow time, correlators and masses to FILE.", "the plot"
    )
    charge: str = option(
        "clover", "Definition of the topological charge; 5li takes loops of 1x1 to 3x3.", choices=CHARGES
    )
    wilson_loops: tuple[int, ...] | None = option(
        None,
        "Also measure the Wilson loops of up to R links in space by up to T in time.",
        metavar="RxT",
        high=LARGEST_INT,
        length=2,
    )
    convention: str = convention_option(
        "Program in whose normalisation plaquettes, charges, correlators and condensate are."
    )

    def check(self) -> None:
        """Check the options before any rank starts."""
        self.check_quarks()
        if self.quarks in STAGGERED_ACTIONS:
            convention(self.convention).require_staggered()
        if len(self.file) > 1 or self.output is not None:
            self.refuse(
                ("plot",), "is for one file without --output; `onehop lattice analyse` draws plots of many"
            )
            self.refuse(
                ("flow_tolerance",), "is for one file, because measurements of many need the same flow times"
            )
            if self.output is self.json is None:
                raise BadInput("expected --output or --json with several files, found neither")
        if self.output is not None:
            check_file_target(self.output, "--output", replaces=True)
        if self.flow is None:
            self.refuse(("flow_step", "flow_tolerance", "flow_every", "flow_action"), "goes with --flow")
        else:
            flow_steps(self.flow, self.flow_step)
        if self.flow_tolerance is not None:
            check_flow_tolerance(self.flow_tolerance)
        if self.plot is not None and self.flow is None and self.quarks is None:
            raise BadInput(
                "expected --flow or --quarks with --plot, which draws their results, found neither"
            )


def _flow(gauge: Gauge, options: Measure, time: float) -> tuple[Flow, list[FlowPoint]]:
    step, tolerance = options.flow_step, options.flow_tolerance
    total = max(1, flow_steps(time, step)) if tolerance is None else None
    with progress("flow", total=total) as advance:
        return gradient_flow(
            gauge,
            time,
            step=step,
            tolerance=tolerance,
            every=options.flow_every,
            action=options.flow_action,
            charge=options.charge,
            progress=lambda _number: advance(1),
        )


def read_field(options: Measure, file: str, group: Group) -> tuple[Gauge, GaugeFile]:
    """Read a configuration as it is to be measured. Collective."""
    width = 3 if options.quarks in ("asqtad", "hisq") else 1
    return read_gauge(
        file,
        group,
        options.grid,
        tolerance=options.tolerance,
        width=width,
        accept_open=options.flow is options.quarks is options.wilson_loops is None,
        **options.reading(),
    )


def measured(options: Measure, file: str, group: Group) -> tuple[dict[str, Any], GaugeFile, list[FlowPoint]]:
    """Measure one configuration, and return its report, its file and its flow. Collective."""
    gauge, found = read_field(options, file, group)
    is_open = found.boundary == "open"
    loop, strength = polyakov_loop(gauge), field_strength(gauge)
    if options.charge == "5li":
        strength = strength._replace(charge=improved_charge(gauge))
    flowing, points = (None, []) if options.flow is None else _flow(gauge, options, options.flow)
    quarks = None
    if options.quarks is not None and options.mass is not None:
        quarks = quark_report(gauge, options, options.mass, convention(options.convention))
    report: dict[str, Any] = report_of(found) | {
        "polyakov_loop": None if is_open else [loop.real, loop.imag],
        **{name: None if is_open else value for name, value in strength._asdict().items()},
    }
    if flowing is not None:
        report["flow_step_error"] = flowing.largest_error
        report["flow"] = [point._asdict() for point in points]
        report["charge_after_flow"] = points[-1].charge
        report["reference_time"] = reference_time(points)
    if quarks is not None:
        report["quarks"] = quarks
    if options.charge != "clover":
        report["charge_definition"] = options.charge
    if options.wilson_loops is not None:
        report["wilson_loops"] = wilson_loops(gauge, *options.wilson_loops).tolist()
    _normalise(report, convention(options.convention))
    return report, found, points


def _normalise(report: dict[str, Any], theirs: Convention) -> None:
    """Multiply the plaquettes and charges of a report by the factors of a convention."""
    for names, factor in (
        (("plaquette", "plaquette_space", "plaquette_time"), theirs.plaquette),
        (("charge", "charge_after_flow"), theirs.charge),
    ):
        report |= {name: factor * report[name] for name in names if report.get(name) is not None}
    for point in report.get("flow", []):
        point["charge"] *= theirs.charge
    report["convention"] = theirs.name
