"""`onehop lattice solve`: quark propagators on a gauge field in a file, or with given fat and long links."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop.cli.common import GridOptions, JsonOptions, RanksOptions, own_rank
from onehop.cli.lattice.common import GAUGE_FILE, boundary_option, phases_option, say_unverified
from onehop.cli.lattice.smear import NO_PHASES
from onehop.cli.lattice.solve_report import advice_after, finish_solve, solve_report
from onehop.cli.lattice.solve_wilson import WILSON_ACTIONS, WilsonOptions, check_wilson, solve_wilson
from onehop.cli.screen import changing_line
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice import Staggered, read_gauge, read_links, read_vectors, smearing, write_vectors
from onehop.lattice.files import check_target, links_have_checksum, read_note, vectors_have_checksum
from onehop.lattice.phases import with_staggered_phases
from onehop.lattice.solver_options import SolverOptions
from onehop.launch import ensure_ranks
from onehop.options import LARGEST_INT, argument, option
from onehop.text import counted

ACTIONS = ("staggered", "asqtad", "hisq", *WILSON_ACTIONS)
SINGLE_REACHES = 1e-6
_PRECISIONS = ("half", "single", "double")


@dataclass(kw_only=True)
class Solve(WilsonOptions, GridOptions, RanksOptions, JsonOptions):
    """The options of `onehop lattice solve`."""

    title = "Options"

    file: str | None = argument("FILE", GAUGE_FILE, None)
    mass: list[float] = option(
        [],
        "Quark mass. Staggered: above 0, with M = 2 m + D; repeat the option to solve for several masses at once. "
        "Wilson and clover: the bare mass.",
    )
    action: str = option("staggered", "Quark action to build from the gauge field.", choices=ACTIONS)
    fat: str | None = option(
        None,
        "Read fat links from FILE instead of a gauge field. They must contain all phases and signs.",
        metavar="FILE",
    )
    long: str | None = option(None, "Read long links from FILE (only with --fat).", metavar="FILE")
    source: str = option("point", "Kind of source: a point source at the origin.", choices=("point",))
    source_file: str | None = option(
        None,
        "Read the right-hand sides from a SciDAC file of colour vectors; solve for all at once.",
        metavar="FILE",
    )
    colour: int = option(0, "Colour of the point source.", low=0, high=2)
    output: str | None = option(
        None,
        "Write the solutions to FILE in SciDAC format.",
        *("-o", "--output"),
        metavar="FILE",
        writes="the solutions",
    )
    output_precision: str = option("single", "Precision of the output file.", choices=("double", "single"))
    overwrite: bool = option(False, "Overwrite an existing file.")
    u0: float = option(1.0, "Tadpole factor u0 (asqtad only).")
    phases: str = phases_option("standard", "Staggered phases.")
    boundary: str = boundary_option("Boundary in time.")
    lanes: int = option(8, "Largest number of sites in a SIMD vector.", low=1, high=LARGEST_INT)
    su3_tolerance: float = option(1e-4, "Largest allowed deviation of a link from SU(3).", above=0)

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
        if self.action in WILSON_ACTIONS:
            self._check_wilson()
        else:
            self._check_staggered()

    def _check_wilson(self) -> None:
        """Refuse options of staggered quarks."""
        if self.file is None or self.source_file is not None or self.output is not None:
            raise BadInput(
                f"--action {self.action} needs a gauge field, FILE, and a point source, and writes no solution; leave "
                "out --fat, --source-file and --output"
            )
        self.refuse(
            ("u0", "phases", "lanes", "long", "output_precision", "overwrite"),
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
        if self.source_file is not None:
            self.refuse(("source", "colour"), "is for a point source, found --source-file")
        if self.fat is None:
            self.refuse(("long",), "goes with --fat, not with a gauge field")
        else:
            self.refuse(("boundary", "phases"), "is for a gauge field: links of --fat contain all signs")
            self.refuse(("su3_tolerance",), "is for a gauge field: links of --fat are not in SU(3)")
            if self.action != "staggered":
                raise BadInput(
                    f"--action {self.action} needs a gauge field, FILE, found --fat; leave --action out"
                )
        if self.action != "asqtad":
            self.refuse(("u0",), f"is for --action asqtad, found {self.action!r}")
        self.refuse(
            ("kappa", "csw", "spin", "method", "schwarz", "recon"),
            f"is for --action {' and '.join(WILSON_ACTIONS)}, found {self.action!r}",
        )
        if self.output is None:
            self.refuse(("output_precision", "overwrite"), "is for --output")
        else:
            check_target(self.output, self.overwrite)


def _of_gauge(options: Solve, file: str) -> Staggered:
    group, action = Group.world(), options.action
    width = 1 if action == "staggered" else 3
    gauge, found = read_gauge(file, group, options.grid, tolerance=options.su3_tolerance, width=width)
    say_unverified(file, found.has_checksum, options.json)
    how = {"antiperiodic": options.boundary == "antiperiodic", "phases": options.phases}
    if action == "staggered":
        return Staggered(gauge, lanes=options.lanes, **how)
    hisq = action == "hisq"
    links = smearing.hisq_links(gauge) if hisq else smearing.fat_links(gauge, "asqtad", u0=options.u0)
    fat, long = (
        with_staggered_phases(part, gauge.geometry, group.rank, length=length, **how)
        for part, length in ((links.fat, 1), (links.long_links, 3))
    )
    return Staggered.of_links(
        group, gauge.geometry.extents, fat, long, gauge.geometry.grid, lanes=options.lanes
    )


def _of_links(options: Solve, fat: str) -> Staggered:
    group, long = Group.world(), options.long
    for links in (fat, long):
        if links is not None and read_note(links) == NO_PHASES:
            raise BadInput(
                f"{links}: expected links with the phases of staggered quarks, found links without; make the file with "
                "`onehop lattice smear --phases`, or use --action with the gauge field itself"
            )
    fat_links, geometry = read_links(fat, group, options.grid, width=1 if long is None else 3)
    long_links = None
    if long is not None:
        long_links, other = read_links(long, group, geometry.grid, width=3)
        if other.extents != geometry.extents:
            raise BadInput(
                f"expected fat and long links of one lattice, found {'x'.join(map(str, geometry.extents))} in {fat} "
                f"and {'x'.join(map(str, other.extents))} in {long}"
            )
    for links in (fat, long):
        if links is not None and own_rank() == 0:
            say_unverified(links, links_have_checksum(links), options.json)
    return Staggered.of_links(
        group, geometry.extents, fat_links, long_links, geometry.grid, lanes=options.lanes
    )


def _source(operator: Staggered, options: Solve) -> np.ndarray:
    """Return this rank's block of the right-hand sides, of shape (vectors, t, z, y, x, 3)."""
    if options.source_file is not None:
        return read_vectors(options.source_file, operator.geometry, operator.group)
    point = np.zeros((1, *operator.geometry.block_shape, 3), np.complex128)
    if operator.group.rank == 0:  # the block of rank 0 contains the origin
        point[(0,) * (len(operator.geometry.block) + 1)][options.colour] = 1
    return point


@contextlib.contextmanager
def _following(tolerance: float) -> Iterator[Callable[[int, float], None] | None]:
    """Show the progress of a long solve as one changing line if stderr is a terminal."""
    with changing_line(quiet=own_rank() != 0) as show:
        if show is None:
            yield None
            return
        yield lambda iterations, residual: show(
            f"{counted(iterations, 'iteration')}, residual {residual:.1e}, target {tolerance:.0e}"
        )


def _write_solution(options: Solve, output: str, operator: Staggered, result: Any, mass: object) -> None:
    group, geometry = operator.group, operator.geometry
    write_vectors(
        output,
        result.solution.reshape(-1, *geometry.block_shape, 3),
        geometry,
        group,
        note=f"solution of M x = b, mass {mass}, residual {result.true_residual:.3e}",
        precision=64 if options.output_precision == "double" else 32,
        overwrite=options.overwrite,
    )


def _solve_staggered(options: Solve) -> None:
    """Solve for staggered quarks, write the solution and report. Collective."""
    fat = options.fat
    operator = _of_gauge(options, options.file or "") if fat is None else _of_links(options, fat)
    vectors = _source(operator, options)
    file = options.source_file
    if file is not None and own_rank() == 0:
        say_unverified(file, vectors_have_checksum(file), options.json)
    mass = options.mass[0] if len(options.mass) == 1 else options.mass
    with _following(options.tolerance) as show:
        source = vectors[0] if len(vectors) == 1 else vectors
        result = operator.solve(source, mass, **options.part(SolverOptions), progress=show)
    chosen = {"action": options.action, "mass": mass}
    report = solve_report(operator.group, operator.geometry, operator, chosen, options.tolerance, result)
    if options.output is not None:
        _write_solution(options, options.output, operator, result, report["mass"])
    advice = advice_after(result, options.iterations, options.precision, "a larger mass")
    finish_solve(report, options.json, advice)


def solve(options: Solve) -> None:
    """Solve M x = b for staggered or Wilson quarks, and verify the solution with the full operator.

    Staggered quarks are solved by conjugate gradients, Wilson quarks by BiCGStab or CGNR. The rates count the
    operator and the solver's linear algebra of all ranks. If the solve does not converge, the exit status is 1, and
    the best solution found is still written.
    """
    options.check()
    ensure_ranks(options.ranks)
    if options.action not in WILSON_ACTIONS:
        _solve_staggered(options)
        return
    with _following(options.tolerance) as show:
        solve_wilson(options, show)
