"""`onehop lattice solve`: quark propagators on a gauge field in a file, or with given fat and long links."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from onehop.cli.common import JsonOption, RanksOption, console, own_rank, stderr_console, write_json
from onehop.cli.lattice.common import (
    GridOption,
    PhasesOption,
    check_finite,
    check_tolerance,
    numbers,
    refuse_without_effect,
)
from onehop.cli.lattice.convert import OverwriteOption
from onehop.cli.lattice.measure import ToleranceOption
from onehop.cli.lattice.smear import NO_PHASES
from onehop.cli.lattice.solve_wilson import WILSON_ACTIONS, solve_wilson, wilson_choice
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.lattice import (
    Staggered,
    StaggeredSolve,
    read_gauge,
    read_links,
    read_vectors,
    smearing,
    write_vectors,
)
from onehop.lattice.files import check_target, read_note
from onehop.lattice.phases import check_phases, with_staggered_phases
from onehop.lattice.staggered import PRECISIONS
from onehop.launch import ensure_ranks

ACTIONS = ("staggered", "asqtad", "hisq", *WILSON_ACTIONS)
SINGLE_REACHES = 1e-6

FileArgument = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="A gauge field: MILC 5, NERSC, ILDG, SciDAC or openQCD."),
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
) -> Staggered:
    group = Group.world()
    cut = numbers(grid, "--grid")
    gauge, _ = read_gauge(file, group, cut, tolerance=tolerance, width=1 if action == "staggered" else 3)
    if action == "staggered":
        return Staggered(gauge, antiperiodic=not periodic, lanes=lanes, phases=phases)
    links = smearing.hisq_links(gauge) if action == "hisq" else smearing.fat_links(gauge, "asqtad", u0=u0)
    fat, long = (
        with_staggered_phases(
            one, gauge.geometry, group.rank, length=length, antiperiodic=not periodic, phases=phases
        )
        for one, length in ((links.fat, 1), (links.long, 3))
    )
    return Staggered.of_links(group, gauge.geometry.extents, fat, long, gauge.geometry.grid, lanes=lanes)


def _of_links(fat: str, long: str | None, lanes: int, grid: str | None) -> Staggered:
    group = Group.world()
    cut = numbers(grid, "--grid")
    for links in (fat, long):
        if links is not None and read_note(links) == NO_PHASES:
            raise BadInput(
                f"{links} has links without the phases of staggered quarks; make it with "
                "`onehop lattice smear --phases`, or solve with --action on the gauge field itself"
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
    return Staggered.of_links(group, geometry.extents, fat_links, long_links, geometry.grid, lanes=lanes)


def _source(operator: Staggered, source: str, file: str | None, colour: int) -> np.ndarray:
    """The block of the right-hand sides: shape (vectors, t, z, y, x, 3)."""
    if file is not None:
        return read_vectors(file, operator.geometry, operator.group)
    point = np.zeros((1, *operator.geometry.block_shape, 3), np.complex128)
    if operator.group.rank == 0:  # whose block has the origin
        point[(0,) * (len(operator.geometry.block) + 1)][colour] = 1
    return point


@contextlib.contextmanager
def _following(tolerance: float) -> Iterator[Any]:
    """How far a long solve is: in a terminal one line that changes, elsewhere nothing."""
    target = stderr_console()
    if own_rank() != 0 or not target.is_terminal:
        yield None
        return
    with Progress(
        TextColumn("{task.description}"), TimeElapsedColumn(), console=target, transient=True
    ) as bar:
        task = bar.add_task("solving")

        def told(iterations: int, residual: float) -> None:
            bar.update(
                task,
                description=f"{iterations} iterations, residual {residual:.1e} on its way to {tolerance:.0e}",
            )

        yield told


def _report(
    operator: Staggered, action: str, masses: list[float], tolerance: float, result: StaggeredSolve
) -> dict[str, Any]:
    mine = [result.seconds, result.communication_seconds, result.flops, result.bytes]
    everybody = [json.loads(part) for part in operator.group.allgather(json.dumps(mine).encode())]
    columns = list(zip(*everybody, strict=True))
    seconds, communication = max(columns[0]), max(columns[1])
    return {
        "action": action,
        "extent": list(operator.geometry.extents),
        "grid": list(operator.geometry.grid),
        "threads": operator.threads,
        "mass": masses[0] if len(masses) == 1 else masses,
        "tolerance": tolerance,
        "iterations": result.iterations,
        "corrections": result.corrections,
        "true_residual": result.true_residual,
        "true_residuals": list(result.residuals),
        "converged": result.converged,
        "seconds": seconds,
        "communication_seconds": communication,
        "gflops": sum(columns[2]) / seconds * 1e-9,
        "gbytes_per_second": sum(columns[3]) / seconds * 1e-9,
    }


def _check(
    action: str, source: str, file: str | None, fat: str | None, precisions: tuple[str | None, ...]
) -> None:
    """What needs no ranks is refused before they are started."""
    if action not in ACTIONS:
        raise BadInput(f"expected --action {', '.join(ACTIONS[:-1])} or {ACTIONS[-1]}, found {action!r}")
    if (file is None) == (fat is None):
        raise BadInput("expected either a gauge field, FILE, or links, --fat (and --long)")
    if source != "point":
        raise BadInput(f"expected --source point, or --source-file with a SciDAC file, found {source!r}")
    for one in precisions:
        if one is not None and one not in PRECISIONS:
            raise BadInput(f"expected half, single or double, found {one!r}")
    if precisions[0] == "half":
        raise BadInput("expected --precision single or double, found 'half', which is for --inner")


def _check_output(output: str | None, bits: int, overwrite: bool) -> None:
    if output is None:
        refuse_without_effect(("--output-bits", "--overwrite"), "is for --output")
        return
    if bits not in (32, 64):
        raise BadInput(f"expected --output-bits 32 or 64, found {bits}")
    check_target(output, overwrite)


def _check_precision(tolerance: float, precision: str, inner: str | None) -> None:
    check_tolerance(tolerance, "--tolerance")
    if precision == "single" and tolerance < SINGLE_REACHES:
        raise BadInput(
            f"expected --tolerance of {SINGLE_REACHES:g} or more with --precision single, found {tolerance:g}; "
            "for less take --precision double --inner single"
        )
    if inner is None or PRECISIONS.index(inner) >= PRECISIONS.index(precision):
        refuse_without_effect(("--half-faces",), "goes with an --inner that is lower than --precision")


def _check_staggered(action: str, masses: list[float], fat: str | None, source_file: str | None) -> None:
    if not masses:
        raise BadInput("expected --mass, at least once")
    for mass in masses:
        if not 1e-100 < mass < 1e100:
            raise BadInput(f"expected a --mass above 0 and below 1e100, found {mass:g}")
    if source_file is not None:
        refuse_without_effect(("--source", "--colour"), "is for a point source, found --source-file")
    if fat is None:
        refuse_without_effect(("--long",), "goes with --fat, not with a gauge field")
    else:
        refuse_without_effect(
            ("--periodic", "--phases"), "is for a gauge field: links of --fat have all signs in them"
        )
        refuse_without_effect(
            ("--su3-tolerance",), "is for a gauge field: links of --fat are not those of SU(3)"
        )
        if action != "staggered":
            raise BadInput(f"--action {action} is made of a gauge field, FILE; with --fat leave it out")
    if action != "asqtad":
        refuse_without_effect(("--u0",), f"is for --action asqtad, found {action!r}")
    refuse_without_effect(
        ("--kappa", "--csw", "--spin", "--method", "--schwarz", "--two-rows"),
        f"is for --action {' and '.join(WILSON_ACTIONS)}, found {action!r}",
    )


def solve(
    file: FileArgument = None,
    mass: Annotated[
        list[float] | None,
        typer.Option(
            help="Above 0; M = 2 m + D. More than once: all of them at once. Of Wilson quarks: the bare one."
        ),
    ] = None,
    action: Annotated[
        str,
        typer.Option(metavar="staggered|asqtad|hisq|wilson|clover", help="What is made of the gauge field."),
    ] = "staggered",
    fat: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Fat links instead of a gauge field, with all phases and signs in them."
        ),
    ] = None,
    long: Annotated[str | None, typer.Option(metavar="FILE", help="Long links, with --fat.")] = None,
    source: Annotated[str, typer.Option(metavar="point", help="At the origin.")] = "point",
    source_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Colour vectors of a SciDAC file; all of them at once.")
    ] = None,
    colour: Annotated[int, typer.Option(min=0, max=2, help="Of the point source.")] = 0,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Where to write the solutions, as a SciDAC file."
        ),
    ] = None,
    overwrite: OverwriteOption = False,
    output_bits: Annotated[int, typer.Option(metavar="32|64", help="Bits of a number there.")] = 32,
    tolerance: Annotated[float, typer.Option(help="Of |b - M x| / |b|.")] = 1e-10,
    iterations: Annotated[int, typer.Option(min=0, help="At most so many.")] = 10000,
    precision: Annotated[str, typer.Option(metavar="double|single", help="Of the solution.")] = "double",
    inner: Annotated[
        str | None,
        typer.Option(metavar="half|single|double", help="Of most iterations; by default the same."),
    ] = None,
    reproducible: Annotated[
        bool, typer.Option("--reproducible", help="The same bits on every number of ranks.")
    ] = False,
    half_faces: Annotated[
        bool, typer.Option("--half-faces", help="With --inner: its faces travel as 16-bit numbers.")
    ] = False,
    u0: Annotated[float | None, typer.Option(help="Of asqtad; by default 1.")] = None,
    phases: PhasesOption = "standard",
    kappa: Annotated[
        float | None, typer.Option(help="Of wilson and clover, M = A - kappa D; or --mass: 1 / (8 + 2 m).")
    ] = None,
    csw: Annotated[float | None, typer.Option(help="Of clover; by default 1.")] = None,
    spin: Annotated[int, typer.Option(min=0, max=3, help="Of the point source of wilson and clover.")] = 0,
    method: Annotated[
        str,
        typer.Option(metavar="bicgstab|normal", help="Of wilson and clover; normal: conjugate gradients."),
    ] = "bicgstab",
    schwarz: Annotated[
        int, typer.Option(min=0, help="Of wilson and clover: steps of the Schwarz preconditioner.")
    ] = 0,
    two_rows: Annotated[
        bool, typer.Option("--two-rows", help="Of wilson and clover: links as 12 numbers instead of 18.")
    ] = False,
    periodic: Annotated[
        bool, typer.Option("--periodic", help="In time too; otherwise antiperiodic there.")
    ] = False,
    lanes: Annotated[int, typer.Option(min=1, help="Sites in a vector, at most.")] = 8,
    grid: GridOption = None,
    ranks: RanksOption = None,
    su3_tolerance: ToleranceOption = 1e-4,
    json_target: JsonOption = None,
) -> None:
    """Solve M x = b, staggered quarks by conjugate gradients, and check the answer with the whole operator.

    Rates count hopping terms and the solver's own sums of vectors, of all ranks. Ends with 1 if it did not converge;
    the best that was found is written all the same.
    """
    _check(action, source, file, fat, (precision, inner))
    check_tolerance(su3_tolerance, "--su3-tolerance")
    check_finite({"--u0": u0, "--kappa": kappa, "--csw": csw})
    check_phases(phases)
    _check_precision(tolerance, precision, inner)
    masses = list(mass or [])
    if action in WILSON_ACTIONS:
        if file is None or source_file is not None or output is not None:
            raise BadInput(
                f"--action {action} takes a gauge field, FILE, and a point source, and writes no solution"
            )
        refuse_without_effect(
            ("--u0", "--phases", "--lanes", "--long", "--output-bits", "--overwrite"),
            f"is for staggered quarks, found --action {action}",
        )
        choice = wilson_choice(
            action,
            kappa,
            masses,
            csw,
            spin=spin,
            colour=colour,
            method=method,
            schwarz=schwarz,
            two_rows=two_rows,
            periodic=periodic,
        )
        ensure_ranks(ranks)
        with _following(tolerance) as told:
            solve_wilson(
                file,
                choice,
                tolerance=tolerance,
                iterations=iterations,
                precision=precision,
                inner=inner,
                reproducible=reproducible,
                half_faces=half_faces,
                grid=numbers(grid, "--grid"),
                su3_tolerance=su3_tolerance,
                json_target=json_target,
                progress=told,
            )
        return
    _check_staggered(action, masses, fat, source_file)
    _check_output(output, output_bits, overwrite)
    ensure_ranks(ranks)
    if fat is not None:
        operator = _of_links(fat, long, lanes, grid)
    else:
        assert file is not None
        operator = _of_gauge(
            file,
            action,
            u0=1.0 if u0 is None else u0,
            phases=phases,
            periodic=periodic,
            lanes=lanes,
            grid=grid,
            tolerance=su3_tolerance,
        )
    vectors = _source(operator, source, source_file, colour)
    with _following(tolerance) as told:
        result = operator.solve(
            vectors[0] if len(vectors) == 1 else vectors,
            masses[0] if len(masses) == 1 else masses,
            tolerance=tolerance,
            iterations=iterations,
            precision=precision,
            inner=inner,
            reproducible=reproducible,
            half_faces=half_faces,
            progress=told,
        )
    report = _report(operator, action, masses, tolerance, result)
    if output is not None:
        solutions = result.solution.reshape(-1, *operator.geometry.block_shape, 3)
        write_vectors(
            output,
            solutions,
            operator.geometry,
            operator.group,
            precision=output_bits,
            note=f"solution of M x = b, mass {report['mass']}, residual {result.true_residual:.3e}",
            overwrite=overwrite,
        )
    if own_rank() == 0:
        console(json_target).print(
            f"{result.iterations} iterations in {report['seconds']:.4f} s, {report['communication_seconds']:.4f} s of "
            f"them in faces and sums; |b - M x| / |b| = {result.true_residual:.3e}; {report['gflops']:.2f} GFLOP/s",
            markup=False,
            soft_wrap=True,
        )
        write_json(json_target, report)
    if not result.converged:
        more = (
            "allow more of them, or take a larger mass or tolerance"
            if result.iterations
            else "take another mass"
        )
        raise Error(
            f"expected a residual of {tolerance:g}, reached {result.true_residual:.3e} in {result.iterations} "
            f"iterations; {more}"
        )
