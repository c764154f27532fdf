"""`onehop lattice solve`: quark propagators on a gauge field in a file, or with given fat and long links."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.cli.common import console, own_rank, write_json
from onehop.cli.lattice.common import say_about, say_unverified, staggered_operator
from onehop.cli.lattice.smear import NO_PHASES
from onehop.cli.lattice.solve_options import WILSON_ACTIONS, Solve
from onehop.cli.screen import changing_line
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.lattice import (
    Gauge,
    Geometry,
    QuarkSolve,
    Staggered,
    Wilson,
    deflated_solve,
    read_eigenvectors,
    read_gauge,
    read_links,
    read_vectors,
    wilson_kappa,
    write_vectors,
)
from onehop.lattice.conventions import convention
from onehop.lattice.files import links_have_checksum, read_note, vectors_have_checksum
from onehop.lattice.files.propagators import Quark, read_columns, write_columns
from onehop.lattice.operators import SolverOptions, WilsonSolverOptions
from onehop.launch import ensure_ranks
from onehop.text import counted, rate_text, seconds_text

Progress = Callable[[int, float], None]
# Below these residuals it is rounding that stops a solver.
_ROUNDING = {"double": 1e-11, "single": 1e-4}
_NAMES = {"cg": "CG", "bicgstab": "BiCGStab", "cgnr": "CGNR"}


def _read(options: Solve, width: int = 1) -> Gauge:
    gauge, found = read_gauge(
        options.file or "",
        Group.world(),
        options.grid,
        tolerance=options.su3_tolerance,
        width=width,
        accept_open=options.action in ("staggered", "wilson"),
        **options.reading(),
    )
    say_about(found, options.json)
    return gauge


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


def _staggered(options: Solve) -> Staggered:
    if options.fat is not None:
        return _of_links(options, options.fat)
    gauge = _read(options, 1 if options.action == "staggered" else 3)
    signs = {"antiperiodic": options.boundary == "antiperiodic", "phases": options.phases}
    return staggered_operator(gauge, options.action, options, lanes=options.lanes, **signs)


def _sources(options: Solve, geometry: Geometry, group: Group, quark: Quark | None) -> NDArray[np.complex128]:
    """Return this rank's block of the right-hand sides, as in the file or at the origin. Collective.

    Without a `quark` they are colour vectors in an unknown convention.
    """
    if options.source_file is not None:
        if own_rank() == 0:
            say_unverified(options.source_file, vectors_have_checksum(options.source_file), options.json)
        if quark is None:
            return read_vectors(options.source_file, geometry, group)
        return read_columns(
            options.source_file, geometry, group, replace(quark, kappa=None, antiperiodic=None)
        )
    inner = (3,) if quark is None else quark.inner
    count = int(np.prod(inner))
    columns = [options.colour if len(inner) == 1 else 3 * options.spin + options.colour]
    if options.source == "propagator":
        columns = list(range(count))
    sources = np.zeros((len(columns), *geometry.block_shape, count), np.complex128)
    if group.rank == 0:  # the block of rank 0 contains the origin
        sources[:, 0, 0, 0, 0] = np.eye(count)[columns]
    return sources.reshape(*sources.shape[:-1], *inner)


def _alone(fields: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return the only field without the axis of fields, or several as they are."""
    return fields[0] if len(fields) == 1 else fields


@contextlib.contextmanager
def _following(tolerance: float) -> Iterator[Progress | None]:
    """Show the progress of a long solve as one changing line if stderr is a terminal."""
    with changing_line(quiet=own_rank() != 0) as show:
        if show is None:
            yield None
            return
        yield lambda iterations, residual: show(
            f"{counted(iterations, 'iteration')}, residual {residual:.1e}, target {tolerance:.0e}"
        )


def _solve_staggered(options: Solve, progress: Progress | None) -> None:
    """Solve for staggered quarks, write the solution and report. Collective."""
    operator = _staggered(options)
    geometry, group = operator.geometry, operator.group
    chosen_name = options.convention if options.phases == "standard" else options.phases
    quark = Quark(convention(chosen_name), wilson=False, antiperiodic=options.boundary == "antiperiodic")
    sources = _sources(options, geometry, group, None if options.fat is not None else quark)
    factor: Any = 1
    if options.convention != "onehop":
        signs = quark.convention.staggered_signs(geometry, group.rank)[..., None]
        sources, factor = sources * signs, signs * quark.convention.staggered_propagator_factor
    source = _alone(sources)
    mass = options.mass[0] if len(options.mass) == 1 else options.mass
    how: dict[str, Any] = {**options.part(SolverOptions), "progress": progress}
    chosen = {"action": options.action, "mass": mass, "convention": options.convention}
    if options.shift:
        chosen["shifts"] = options.shift
        result = operator.solve_shifts(source, options.mass[0], options.shift, **how)
    elif options.deflate is not None:
        low = read_eigenvectors(options.deflate, operator)
        chosen["eigenvectors"] = len(low.values)
        result = deflated_solve(operator, source, mass, low, **how)
    else:
        result = operator.solve(source, mass, **how)
    report = solve_report(group, geometry, operator.threads, chosen, options.tolerance, result)
    solutions = factor * result.solution.reshape(-1, *geometry.block_shape, 3)
    equation = "(M^dagger M + shift) x = b" if options.shift else "M x = b"
    note = f"solution of {equation}, mass {mass}, residual {result.true_residual:.3e}"
    if options.output is not None and options.fat is not None:
        write_vectors(options.output, solutions, geometry, group, note=note, **options.writing())
    elif options.output is not None:
        _write(options, solutions, geometry, group, quark, note)
    advice = advice_after(result, options.iterations, options.precision, "a larger mass")
    finish_solve(report, options.json, advice)


def _write(
    options: Solve,
    solutions: NDArray[np.complex128],
    geometry: Geometry,
    group: Group,
    quark: Quark,
    note: str,
) -> None:
    """Write the solutions, which are in the convention of `quark`. Collective."""
    of_point = options.source_file is None
    how: dict[str, Any] = {"of_point": of_point, "note": note, **options.writing()}
    write_columns(options.output or "", solutions, geometry, group, quark, **how)


def _solve_wilson(options: Solve, progress: Progress | None) -> None:
    """Solve for Wilson quarks, write the solution and report. Collective."""
    gauge = _read(options)
    geometry, group = gauge.geometry, gauge.group
    kappa = wilson_kappa(options.mass[0]) if options.kappa is None else options.kappa
    csw = options.csw if options.action == "clover" else 0.0
    antiperiodic = options.boundary == "antiperiodic"
    wilson = Wilson(gauge, kappa, csw=csw, antiperiodic=antiperiodic, recon=options.recon)
    theirs = convention(options.convention, options.spin_basis)
    quark = Quark(theirs, wilson=True, kappa=kappa, antiperiodic=antiperiodic)
    sources = theirs.spinors_of_onehop(_sources(options, geometry, group, quark))
    result = wilson.solve(_alone(sources), **options.part(WilsonSolverOptions), progress=progress)
    chosen = {"action": options.action, "kappa": kappa, "csw": csw, "method": options.method}
    chosen["convention"] = options.convention
    report = solve_report(group, geometry, wilson.threads, chosen, options.tolerance, result)
    if options.output is not None:
        note = f"solution of M x = b, kappa {kappa:.9g}, csw {csw:g}, residual {result.true_residual:.3e}"
        solutions = theirs.wilson_factor(kappa) * theirs.spinors(result.solution)
        _write(options, solutions.reshape(sources.shape), geometry, group, quark, note)
    advice = advice_after(result, options.iterations, options.precision, "a smaller kappa")
    finish_solve(report, options.json, advice)


def solve(options: Solve) -> None:
    """Solve M x = b for staggered or Wilson quarks, and verify the solution with the full operator.

    Staggered quarks are solved by conjugate gradients, Wilson quarks by BiCGStab, and by
    CGNR from where that stalls. The rates count the
    operator and the solver's linear algebra of all ranks. If the solve does not converge, the exit status is 1, and
    the best solution found is still written.
    """
    options.check()
    ensure_ranks(options.ranks)
    with _following(options.tolerance) as progress:
        (_solve_wilson if options.action in WILSON_ACTIONS else _solve_staggered)(options, progress)


def solve_report(
    group: Group,
    geometry: Geometry,
    threads: int,
    choice: dict[str, Any],
    tolerance: float,
    result: QuarkSolve,
) -> dict[str, Any]:
    """Make the JSON report. `choice` holds the parameters of the action. Collective.

    Times are those of the slowest rank; flops and bytes are summed over the ranks.
    """
    mine = [result.seconds, result.communication_seconds, result.flops, result.bytes]
    ranks = [json.loads(part) for part in group.allgather(json.dumps(mine).encode())]
    columns = list(zip(*ranks, strict=True))
    seconds, communication = max(columns[0]), max(columns[1])
    return {
        "extent": list(geometry.extents),
        "grid": list(geometry.grid),
        "threads": threads,
        **choice,
        "tolerance": tolerance,
        "iterations": result.iterations,
        "ended_by": result.method,
        "reliable_updates": result.reliable_updates,
        "true_residual": result.true_residual,
        "true_residuals": list(result.residuals),
        "converged": result.converged,
        "seconds": seconds,
        "communication_seconds": communication,
        "gflops": sum(columns[2]) / seconds * 1e-9,
        "gbytes_per_second": sum(columns[3]) / seconds * 1e-9,
    }


def advice_after(result: QuarkSolve, limit: int, precision: str, other: str) -> str:
    """Return what to do about a solve that did not converge within `limit` iterations; `other`: "a larger mass"."""
    if result.iterations >= limit:
        return f"allow more iterations, or take {other} or a larger tolerance"
    double = "--precision double, " if precision == "single" else ""
    if result.true_residual < _ROUNDING[precision]:
        reachable = 10.0 ** math.ceil(math.log10(1.2 * result.true_residual + 1e-300))
        also = ", or take --precision double" if double else ""
        return f"rounding limits this residual to {result.true_residual:.0e}; ask for --tolerance {reachable:.0e}{also}"
    return (
        "the solver stopped early, because its residual did not fall any further, and more iterations do not help; "
        f"take {double}{other} or a larger tolerance"
    )


def finish_solve(report: dict[str, Any], json_target: str | None, advice: str) -> None:
    """Print the report on rank 0, and write its JSON. Raise Error with `advice` if the solve did not converge."""
    iterations, residual = report["iterations"], report["true_residual"]
    if own_rank() == 0:
        waited, last = report["communication_seconds"], ", the last" if report["ended_by"] == "cgnr" else ""
        sums = f", {seconds_text(waited)} of it in halo exchanges and sums" if waited else ""
        console(json_target).print(
            f"{counted(iterations, 'iteration')}{last} of {_NAMES[report['ended_by']]} in "
            f"{seconds_text(report['seconds'])}{sums}; |b - M x| / |b| = {residual:.3e}; "
            f"{rate_text(report['gflops'] * 1e9, 'FLOP/s')}"
        )
        write_json(json_target, report)
    if not report["converged"]:
        raise Error(
            f"expected a residual of {report['tolerance']:g}, reached {residual:.3e} in {iterations} "
            f"iterations; {advice}"
        )
