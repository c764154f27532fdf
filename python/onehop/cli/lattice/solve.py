"""`onehop lattice solve`: quark propagators on a gauge field in a file, or with given fat and long links."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from onehop.cli.common import LARGEST_INT, JsonOption, RanksOption, own_rank, stderr_console
from onehop.cli.lattice.common import (
    GridOption,
    PhasesOption,
    check_finite,
    check_tolerance,
    numbers,
    refuse_without_effect,
    say_unverified,
)
from onehop.cli.lattice.convert import OverwriteOption
from onehop.cli.lattice.measure import ToleranceOption
from onehop.cli.lattice.smear import NO_PHASES
from onehop.cli.lattice.solve_report import advice_after, finish_solve, solve_report
from onehop.cli.lattice.solve_wilson import WILSON_ACTIONS, solve_wilson, wilson_choice
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice import Staggered, read_gauge, read_links, read_vectors, smearing, write_vectors
from onehop.lattice.files import check_target, links_have_checksum, read_note, vectors_have_checksum
from onehop.lattice.phases import check_phases, with_staggered_phases
from onehop.lattice.staggered import PRECISIONS
from onehop.launch import ensure_ranks
from onehop.text import alternatives, counted

ACTIONS = ("staggered", "asqtad", "hisq", *WILSON_ACTIONS)
SINGLE_REACHES = 1e-6

FileArgument = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="Gauge field file: MILC 5, NERSC, ILDG, SciDAC or openQCD."),
]


def _of_gauge(
    file: str,
    action: str,
    *,
    u0: float,
    phases: str,
    periodic: bool,
    lanes: int,
    grid: str | None,
    tolerance: float,
    json_target: str | None,
) -> Staggered:
    group = Group.world()
    cut = numbers(grid, "--grid")
    gauge, found = read_gauge(file, group, cut, tolerance=tolerance, width=1 if action == "staggered" else 3)
    say_unverified(file, found.has_checksum, json_target)
    if action == "staggered":
        return Staggered(gauge, antiperiodic=not periodic, lanes=lanes, phases=phases)
    links = smearing.hisq_links(gauge) if action == "hisq" else smearing.fat_links(gauge, "asqtad", u0=u0)
    fat, long = (
        with_staggered_phases(
            one, gauge.geometry, group.rank, length=length, antiperiodic=not periodic, phases=phases
        )
        for one, length in ((links.fat, 1), (links.long_links, 3))
    )
    return Staggered.of_links(group, gauge.geometry.extents, fat, long, gauge.geometry.grid, lanes=lanes)


def _of_links(fat: str, long: str | None, lanes: int, grid: str | None, json_target: str | None) -> Staggered:
    group = Group.world()
    cut = numbers(grid, "--grid")
    for links in (fat, long):
        if links is not None and read_note(links) == NO_PHASES:
            raise BadInput(
                f"{links}: expected links with the phases of staggered quarks, found links without; make the file with "
                "`onehop lattice smear --phases`, or use --action with the gauge field itself"
            )
    fat_links, geometry = read_links(fat, group, cut, width=1 if long is None else 3)
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
            say_unverified(links, links_have_checksum(links), json_target)
    return Staggered.of_links(group, geometry.extents, fat_links, long_links, geometry.grid, lanes=lanes)


def _source(operator: Staggered, source: str, file: str | None, colour: int) -> np.ndarray:
    """Return this rank's block of the right-hand sides, of shape (vectors, t, z, y, x, 3)."""
    if file is not None:
        return read_vectors(file, operator.geometry, operator.group)
    point = np.zeros((1, *operator.geometry.block_shape, 3), np.complex128)
    if operator.group.rank == 0:  # the block of rank 0 contains the origin
        point[(0,) * (len(operator.geometry.block) + 1)][colour] = 1
    return point


@contextlib.contextmanager
def _following(tolerance: float) -> Iterator[Any]:
    """Show the progress of a long solve as one changing line if stderr is a terminal."""
    target = stderr_console()
    if own_rank() != 0 or not target.is_terminal:
        yield None
        return
    with Progress(
        TextColumn("{task.description}"), TimeElapsedColumn(), console=target, transient=True
    ) as bar:
        task = bar.add_task("solving")

        def show(iterations: int, residual: float) -> None:
            bar.update(
                task,
                description=f"{counted(iterations, 'iteration')}, residual {residual:.1e}, target {tolerance:.0e}",
            )

        yield show


def _check(
    action: str, source: str, file: str | None, fat: str | None, precisions: tuple[str | None, ...]
) -> None:
    """Check the options before any rank starts."""
    if action not in ACTIONS:
        raise BadInput(f"expected --action {alternatives(ACTIONS)}, found {action!r}")
    if (file is None) == (fat is None):
        raise BadInput("expected either a gauge field, FILE, or links, --fat (and --long)")
    if source != "point":
        raise BadInput(f"expected --source point, or --source-file with a SciDAC file, found {source!r}")
    for one in precisions:
        if one is not None and one not in PRECISIONS:
            raise BadInput(f"expected a precision of half, single or double, found {one!r}")
    if precisions[0] == "half":
        raise BadInput("expected --precision single or double, found 'half', which is for --sloppy-precision")


def _check_output(output: str | None, bits: int, overwrite: bool) -> None:
    if output is None:
        refuse_without_effect(("--output-bits", "--overwrite"), "is for --output")
        return
    if bits not in (32, 64):
        raise BadInput(f"expected --output-bits 32 or 64, found {bits}")
    check_target(output, overwrite)


def _check_precision(tolerance: float, precision: str, sloppy_precision: str | None) -> None:
    check_tolerance(tolerance, "--tolerance")
    if precision == "single" and tolerance < SINGLE_REACHES:
        raise BadInput(
            f"expected --tolerance of {SINGLE_REACHES:g} or more with --precision single, found {tolerance:g}; "
            "for a smaller one take --precision double --sloppy-precision single"
        )
    if sloppy_precision is None or PRECISIONS.index(sloppy_precision) >= PRECISIONS.index(precision):
        refuse_without_effect(("--half-halo",), "needs a --sloppy-precision below --precision")


def _check_staggered(action: str, masses: list[float], fat: str | None, source_file: str | None) -> None:
    if not masses:
        raise BadInput("expected --mass at least once, found none")
    for mass in masses:
        if not 1e-100 < mass < 1e100:
            raise BadInput(f"expected a --mass above 0 and below 1e100, found {mass:g}")
    if source_file is not None:
        refuse_without_effect(("--source", "--colour"), "is for a point source, found --source-file")
    if fat is None:
        refuse_without_effect(("--long",), "goes with --fat, not with a gauge field")
    else:
        refuse_without_effect(
            ("--periodic", "--phases"), "is for a gauge field: links of --fat contain all signs"
        )
        refuse_without_effect(("--su3-tolerance",), "is for a gauge field: links of --fat are not in SU(3)")
        if action != "staggered":
            raise BadInput(f"--action {action} needs a gauge field, FILE, found --fat; leave --action out")
    if action != "asqtad":
        refuse_without_effect(("--u0",), f"is for --action asqtad, found {action!r}")
    refuse_without_effect(
        ("--kappa", "--csw", "--spin", "--method", "--schwarz", "--recon"),
        f"is for --action {' and '.join(WILSON_ACTIONS)}, found {action!r}",
    )


def _wilson_file(action: str, file: str | None, source_file: str | None, output: str | None) -> str:
    """Return the gauge field of Wilson quarks; refuse options of staggered quarks."""
    if file is None or source_file is not None or output is not None:
        raise BadInput(
            f"--action {action} needs a gauge field, FILE, and a point source, and writes no solution; leave out "
            "--fat, --source-file and --output"
        )
    refuse_without_effect(
        ("--u0", "--phases", "--lanes", "--long", "--output-bits", "--overwrite"),
        f"is for staggered quarks, found --action {action}",
    )
    return file


def _operator(options: Mapping[str, Any]) -> Staggered:
    """Make the staggered operator from a gauge field, or from fat and long links."""
    if options["fat"] is not None:
        return _of_links(*(options[name] for name in ("fat", "long", "lanes", "grid", "json_target")))
    assert options["file"] is not None
    return _of_gauge(
        options["file"],
        options["action"],
        u0=1.0 if options["u0"] is None else options["u0"],
        tolerance=options["su3_tolerance"],
        **{name: options[name] for name in ("phases", "periodic", "lanes", "grid", "json_target")},
    )


def _write_solution(
    output: str, bits: int, overwrite: bool, operator: Staggered, result: Any, mass: object
) -> None:
    note = f"solution of M x = b, mass {mass}, residual {result.true_residual:.3e}"
    group, geometry = operator.group, operator.geometry
    solutions = result.solution.reshape(-1, *geometry.block_shape, 3)
    write_vectors(output, solutions, geometry, group, note=note, precision=bits, overwrite=overwrite)


def _solve_staggered(given: Mapping[str, Any], masses: list[float], options: dict[str, Any]) -> None:
    """Solve for staggered quarks with the options of the command, write the solution and report. Collective."""
    operator = _operator(given)
    vectors = _source(operator, given["source"], given["source_file"], given["colour"])
    if given["source_file"] is not None and own_rank() == 0:
        say_unverified(
            given["source_file"], vectors_have_checksum(given["source_file"]), given["json_target"]
        )
    mass = masses[0] if len(masses) == 1 else masses
    with _following(options["tolerance"]) as show:
        source = vectors[0] if len(vectors) == 1 else vectors
        result = operator.solve(source, mass, **options, progress=show)
    chosen = {"action": given["action"], "mass": mass}
    report = solve_report(operator.group, operator.geometry, operator, chosen, options["tolerance"], result)
    if given["output"] is not None:
        _write_solution(
            given["output"], given["output_bits"], given["overwrite"], operator, result, report["mass"]
        )
    advice = advice_after(result, options["iterations"], options["precision"], "a larger mass")
    finish_solve(report, given["json_target"], advice)


def solve(
    context: typer.Context,
    file: FileArgument = None,
    mass: Annotated[
        list[float] | None,
        typer.Option(
            help="Quark mass. Staggered: above 0, with M = 2 m + D; repeat the option to solve for several masses at "
            "once. Wilson and clover: the bare mass."
        ),
    ] = None,
    action: Annotated[
        str,
        typer.Option(
            metavar="staggered|asqtad|hisq|wilson|clover", help="Quark action to build from the gauge field."
        ),
    ] = "staggered",
    fat: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Read fat links from FILE instead of a gauge field. They must contain all phases and signs.",
        ),
    ] = None,
    long: Annotated[
        str | None, typer.Option(metavar="FILE", help="Read long links from FILE (only with --fat).")
    ] = None,
    source: Annotated[
        str, typer.Option(metavar="point", help="Kind of source: a point source at the origin.")
    ] = "point",
    source_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Read the right-hand sides from a SciDAC file of colour vectors; solve for all at once.",
        ),
    ] = None,
    colour: Annotated[int, typer.Option(min=0, max=2, help="Colour of the point source.")] = 0,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the solutions to FILE in SciDAC format."),
    ] = None,
    overwrite: OverwriteOption = False,
    output_bits: Annotated[
        int, typer.Option(metavar="32|64", help="Bits per number in the output file.")
    ] = 32,
    tolerance: Annotated[
        float, typer.Option(help="Relative residual |b - M x| / |b| at which the solve ends.")
    ] = 1e-10,
    iterations: Annotated[
        int, typer.Option(min=0, max=LARGEST_INT, help="Largest number of iterations.")
    ] = 10000,
    precision: Annotated[
        str, typer.Option(metavar="double|single", help="Precision of the solution.")
    ] = "double",
    sloppy_precision: Annotated[
        str | None,
        typer.Option(
            metavar="half|single|double",
            help="Precision of most iterations; reliable updates correct them. Default: the same as --precision.",
        ),
    ] = None,
    reproducible: Annotated[
        bool, typer.Option("--reproducible", help="Give the same bits on every number of ranks.")
    ] = False,
    half_halo: Annotated[
        bool,
        typer.Option(
            "--half-halo",
            help="Send the halo of sloppy iterations as 16-bit numbers (needs --sloppy-precision).",
        ),
    ] = False,
    u0: Annotated[float | None, typer.Option(help="Tadpole factor u0 (asqtad only). Default: 1.")] = None,
    phases: PhasesOption = "standard",
    kappa: Annotated[
        float | None,
        typer.Option(
            help="Hopping parameter of M = A - kappa D (Wilson and clover only). --mass m sets it to 1 / (8 + 2 m)."
        ),
    ] = None,
    csw: Annotated[float | None, typer.Option(help="Clover coefficient (clover only). Default: 1.")] = None,
    spin: Annotated[
        int, typer.Option(min=0, max=3, help="Spin of the point source (Wilson and clover only).")
    ] = 0,
    method: Annotated[
        str,
        typer.Option(
            metavar="bicgstab|cgnr",
            help="Solver (Wilson and clover only): BiCGStab, or conjugate gradients on the normal equations.",
        ),
    ] = "bicgstab",
    schwarz: Annotated[
        int,
        typer.Option(
            min=0, max=LARGEST_INT, help="Number of Schwarz preconditioner steps (Wilson and clover only)."
        ),
    ] = 0,
    recon: Annotated[
        int,
        typer.Option(
            metavar="18|12",
            help="Real numbers kept per link (Wilson and clover only). 12 keeps two rows and reconstructs the third.",
        ),
    ] = 18,
    periodic: Annotated[
        bool, typer.Option("--periodic", help="Use periodic instead of antiperiodic boundaries in time.")
    ] = False,
    lanes: Annotated[
        int, typer.Option(min=1, max=LARGEST_INT, help="Largest number of sites in a SIMD vector.")
    ] = 8,
    grid: GridOption = None,
    ranks: RanksOption = None,
    su3_tolerance: ToleranceOption = 1e-4,
    json_target: JsonOption = None,
) -> None:
    """Solve M x = b for staggered or Wilson quarks, and verify the solution with the full operator.

    Staggered quarks are solved by conjugate gradients, Wilson quarks by BiCGStab or CGNR. The rates count the
    operator and the solver's linear algebra of all ranks. If the solve does not converge, the exit status is 1, and
    the best solution found is still written.
    """
    _check(action, source, file, fat, (precision, sloppy_precision))
    check_tolerance(su3_tolerance, "--su3-tolerance")
    check_finite({"--u0": u0, "--kappa": kappa, "--csw": csw})
    check_phases(phases)
    _check_precision(tolerance, precision, sloppy_precision)
    masses = list(mass or [])
    options: dict[str, Any] = {
        "tolerance": tolerance,
        "iterations": iterations,
        "precision": precision,
        "sloppy_precision": sloppy_precision,
        "reproducible": reproducible,
        "half_halo": half_halo,
    }
    if action in WILSON_ACTIONS:
        field = _wilson_file(action, file, source_file, output)
        names = ("periodic", "spin", "colour", "method", "schwarz", "recon")
        wilson = {name: context.params[name] for name in names}
        choice = wilson_choice(action, kappa, masses, csw, **wilson)
        ensure_ranks(ranks)
        with _following(tolerance) as show:
            solve_wilson(
                field,
                choice,
                **options,
                grid=numbers(grid, "--grid"),
                su3_tolerance=su3_tolerance,
                json_target=json_target,
                progress=show,
            )
        return
    _check_staggered(action, masses, fat, source_file)
    _check_output(output, output_bits, overwrite)
    ensure_ranks(ranks)
    _solve_staggered(context.params, masses, options)
