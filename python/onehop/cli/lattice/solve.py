"""`onehop lattice solve`: quark propagators on a gauge field in a file, or with given fat and long links."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onehop.cli.common import own_rank
from onehop.cli.lattice.common import say_unverified
from onehop.cli.lattice.smear import NO_PHASES
from onehop.cli.lattice.solve_options import WILSON_ACTIONS, Solve
from onehop.cli.lattice.solve_report import advice_after, finish_solve, solve_report
from onehop.cli.lattice.solve_wilson import solve_wilson
from onehop.cli.screen import changing_line
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice import Staggered, read_gauge, read_links, read_vectors, smearing, write_vectors
from onehop.lattice.files import links_have_checksum, read_note, vectors_have_checksum
from onehop.lattice.phases import with_staggered_phases
from onehop.lattice.solver_options import SolverOptions
from onehop.launch import ensure_ranks
from onehop.text import counted


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
