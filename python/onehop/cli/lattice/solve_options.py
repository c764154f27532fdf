"""The options of `onehop lattice solve`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onehop.cli.common import GridOptions, JsonOptions, RanksOptions
from onehop.cli.lattice.common import (
    GAUGE_FILE,
    ReadOptions,
    boundary_option,
    convention_option,
    naik_epsilon_option,
    phases_option,
    projection_option,
)
from onehop.error import BadInput
from onehop.lattice import wilson_kappa
from onehop.lattice.conventions import SPIN_BASES, convention
from onehop.lattice.files import check_target
from onehop.lattice.operators import WilsonSolverOptions
from onehop.lattice.staggered import STAGGERED_ACTIONS
from onehop.options import LARGEST_INT, argument, file_option, option

WILSON_ACTIONS = ("wilson", "clover")
ACTIONS = (*STAGGERED_ACTIONS, *WILSON_ACTIONS)
SINGLE_REACHES = 1e-6
_PRECISIONS = ("half", "single", "double")


@dataclass(kw_only=True)
class WilsonOptions(WilsonSolverOptions):
    """Options of `onehop lattice solve` that only Wilson quarks have."""

    title = WilsonSolverOptions.title

    kappa: float | None = option(
        None, "Hopping parameter of M = A - kappa D. --mass m sets it to 1 / (8 + 2 m)."
    )
    csw: float = option(1.0, "Clover coefficient (clover only).")
    spin: int = option(0, "Spin of the point source.", low=0, high=3)
    spin_basis: str | None = option(
        None,
        "Spin basis of source, solution and --spin.",
        choices=tuple(SPIN_BASES),
        default="that of --convention",
    )
    recon: int = option(
        18,
        "Real numbers kept per link. 12 keeps two rows and reconstructs the third.",
        choices=(18, 12),
    )


@dataclass(kw_only=True)
class Solve(WilsonOptions, ReadOptions, GridOptions, RanksOptions, JsonOptions):
    title = "Options"

    file: str | None = argument("FILE", GAUGE_FILE, None)
    mass: list[float] = option(
        [],
        "Quark mass. Staggered: above 0, with M = 2 m + D; repeat the option to solve for several masses at once. "
        "Wilson and clover: the bare mass.",
    )
    shift: list[float] = option(
        [],
        "Solve (M^dagger M + shift) x = b instead, with one --mass; repeat the option for several shifts at once.",
    )
    deflate: str | None = option(
        None,
        "Begin with the solution in the space of the eigenvectors in FILE, of `onehop lattice eigen`.",
        metavar="FILE",
    )
    action: str = option("staggered", "Quark action to build from the gauge field.", choices=ACTIONS)
    fat: str | None = option(
        None,
        "Read fat links from FILE instead of a gauge field. They must contain all phases and signs.",
        metavar="FILE",
    )
    long: str | None = option(None, "Read long links from FILE (only with --fat).", metavar="FILE")
    source: str = option(
        "point",
        "Kind of source: a point source at the origin, of one spin and colour or of all of them (propagator).",
        choices=("point", "propagator"),
    )
    source_file: str | None = option(
        None,
        "Read the right-hand sides from a SciDAC file of colour vectors (Wilson: spinors or a propagator; with "
        "--convention openqcd also a file of export_sfld), and solve for all at once.",
        metavar="FILE",
    )
    colour: int = option(0, "Colour of the point source.", low=0, high=2)
    output: str | None = file_option(
        "Write the solutions to FILE in SciDAC format, or as openQCD (.sfld).",
        "the solutions",
        "-o",
        "--output",
    )
    output_precision: str = option("single", "Precision of the output file.", choices=("double", "single"))
    overwrite: bool = option(False, "Overwrite an existing file.")
    convention: str = convention_option(
        "Program in whose convention source and solution are: phases, spin basis, signs, 2 kappa."
    )
    u0: float = option(1.0, "Tadpole factor u0 (asqtad only).")
    naik_epsilon: float = naik_epsilon_option()
    projection: str = projection_option()
    phases: str = phases_option("standard", "Staggered phases.")
    boundary: str = boundary_option("Boundary in time.")
    lanes: int = option(8, "Largest number of sites in a SIMD vector.", low=1, high=LARGEST_INT)
    su3_tolerance: float = option(1e-4, "Largest allowed deviation of a link from SU(3).", above=0)

    def writing(self) -> dict[str, Any]:
        """Return the keywords of the functions that write the solution."""
        return {"precision": 64 if self.output_precision == "double" else 32, "overwrite": self.overwrite}

    def check(self) -> None:
        """Check the options before any rank starts."""
        if (self.file is None) == (self.fat is None):
            raise BadInput("expected either a gauge field, FILE, or links, --fat (and --long)")
        if self.precision == "single" and self.tolerance < SINGLE_REACHES:
            raise BadInput(
                f"expected --tolerance of {SINGLE_REACHES:g} or more with --precision single, found "
                f"{self.tolerance:g}; for a smaller one take --precision double --sloppy-precision single"
            )
        sloppy = self.sloppy_precision or self.precision
        if _PRECISIONS.index(sloppy) >= _PRECISIONS.index(self.precision):
            self.refuse(("half_halo",), "needs a --sloppy-precision below --precision")
        if self.source_file is not None:
            self.refuse(("source", "colour", "spin"), "is for a point source, found --source-file")
        if self.source == "propagator":
            self.refuse(("colour", "spin"), "is for one column, found --source propagator")
        if self.output is None:
            self.refuse(("output_precision", "overwrite"), "is for --output")
        else:
            check_target(self.output, self.overwrite)
            plain = self.action in WILSON_ACTIONS and self.convention == "openqcd" and self.source == "point"
            if self.output.endswith(".sfld") and not plain:
                raise BadInput(
                    f"{self.output}: expected one column of Wilson or clover quarks with --convention openqcd, which "
                    "openQCD's spinor fields have; take another name, such as x.lime"
                )
        if self.action in WILSON_ACTIONS:
            self._check_wilson()
        else:
            self._check_staggered()

    def _check_wilson(self) -> None:
        """Refuse options of staggered quarks."""
        if self.file is None:
            raise BadInput(f"--action {self.action} needs a gauge field, FILE, found --fat; leave --fat out")
        self.refuse(
            (
                "u0",
                "naik_epsilon",
                "projection",
                "phases",
                "lanes",
                "long",
                "shift",
                "deflate",
            ),
            f"is for staggered quarks, found --action {self.action}",
        )
        check_wilson(self, self.action, self.mass)

    def _check_staggered(self) -> None:
        """Check masses and files, and refuse options of Wilson quarks."""
        if not self.mass:
            raise BadInput("expected --mass at least once, found none")
        for mass in self.mass:
            if not 1e-100 < mass < 1e100:
                raise BadInput(f"expected a --mass above 0 and below 1e100, found {mass:g}")
        if self.shift:
            self._check_shifts()
        if self.convention != "onehop":
            convention(self.convention).require_staggered()
            self.refuse(("phases",), f"contradicts --convention {self.convention}, which has its own")
        if len(self.mass) > 1 and self.source == "propagator":
            raise BadInput(f"expected one --mass with --source propagator, found {len(self.mass)}")
        if self.fat is None:
            self.refuse(("long",), "goes with --fat, not with a gauge field")
        else:
            self.refuse(
                ("boundary", "phases", "convention"), "is for a gauge field: links of --fat contain all signs"
            )
            self.refuse(
                ("su3_tolerance", "extent", "accept_checksum"),
                "is for a gauge field: links of --fat are not in SU(3)",
            )
            if self.action != "staggered":
                raise BadInput(
                    f"--action {self.action} needs a gauge field, FILE, found --fat; leave --action out"
                )
        if self.action != "asqtad":
            self.refuse(("u0",), f"is for --action asqtad, found {self.action!r}")
        if self.action != "hisq":
            self.refuse(("naik_epsilon", "projection"), f"is for --action hisq, found {self.action!r}")
        self.refuse(
            ("kappa", "csw", "spin", "spin_basis", "method", "schwarz", "recon"),
            f"is for --action {' and '.join(WILSON_ACTIONS)}, found {self.action!r}",
        )

    def _check_shifts(self) -> None:
        if len(self.mass) != 1:
            raise BadInput(f"expected one --mass with --shift, found {len(self.mass)}")
        self.refuse(("deflate", "convention"), "is for M x = b, found --shift")
        for shift in self.shift:
            if not 0 < 4 * self.mass[0] ** 2 + shift < 1e100:
                raise BadInput(
                    f"expected --shift with 4 m^2 + shift above 0 and below 1e100, found {shift:g}"
                )


def check_wilson(options: WilsonOptions, action: str, masses: list[float]) -> None:
    """Check the options of Wilson quarks before any rank starts."""
    if (options.kappa is None) == (len(masses) != 1):
        raise BadInput(
            f"expected either --kappa or one --mass with --action {action}, found {len(masses)} --mass and "
            f"{'no' if options.kappa is None else 'a'} --kappa"
        )
    if action == "wilson":
        options.refuse(("csw",), "is for --action clover, found --action wilson")
    if options.schwarz and options.method == "cgnr":
        raise BadInput("--schwarz goes with --method auto or bicgstab, found cgnr")
    if masses:
        wilson_kappa(masses[0])
