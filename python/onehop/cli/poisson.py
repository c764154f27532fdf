"""`onehop poisson`: solve the Poisson equation on a grid of ranks and show where the time goes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop._core import __version__
from onehop.cli.common import JsonOptions, RanksOptions, console, own_rank, progress, since_last, write_json
from onehop.cli.screen import Screen, Table
from onehop.figure import empty_figure, save_figure
from onehop.group import Group
from onehop.launch import ensure_ranks
from onehop.options import LARGEST_INT, file_option, option
from onehop.poisson import (
    Poisson,
    PoissonOptions,
    PoissonResult,
    poisson_layout,
    require_memory_to_check,
    solve_directly,
)
from onehop.text import bytes_text, counted, seconds_text

# Larger lattices are gathered and checked only with --check.
CHECKED_SITES = 1 << 22


@dataclass(kw_only=True)
class PoissonCommand(PoissonOptions, RanksOptions, JsonOptions):
    extent: tuple[int, int] | None = option(
        None, "Sites of the whole lattice (instead of --local).", metavar="LxM", length=2
    )
    iterations: int = option(1000, "Maximum number of iterations.", low=1, high=LARGEST_INT)
    tolerance: float = option(0.0, "Stop when |b - M x| <= tolerance |b|. 0: run all iterations.")
    residual_every: int = option(10, "Number of iterations between two residuals.", low=1, high=LARGEST_INT)
    check: bool | None = option(
        None,
        "Compare with a direct solution.",
        "--check",
        off="--no-check",
        default="for up to 4 million sites",
    )
    plot: str | None = file_option(
        "Plot the residual and the solution to FILE (.png, .svg, .pdf).", "the plot"
    )


def _all_times(group: Group, result: PoissonResult) -> dict[str, float]:
    """Return the time of the slowest rank for each part, in µs per iteration. Collective."""
    own = {
        name: getattr(result.times, name) for name in ("start", "interior", "wait", "boundary", "residual")
    }
    own["iteration"] = result.seconds / max(result.iterations, 1)
    ranks = [json.loads(one) for one in group.allgather(json.dumps(own).encode())]
    return {name: 1e6 * max(rank[name] for rank in ranks) for name in own}


def _report(
    poisson: Poisson, result: PoissonResult, tolerance: float, us: dict[str, float], error: float | None
) -> dict[str, Any]:
    spec = poisson.spec
    return {
        "version": __version__,
        "extents": list(spec.extents),
        "grid": list(spec.grid),
        "mass": spec.mass,
        "seed": spec.seed,
        "iterations": result.iterations,
        "tolerance": tolerance,
        "reached_tolerance": result.reached_tolerance,
        "seconds": us["iteration"] * 1e-6 * result.iterations,
        "bytes_sent": poisson.bytes_sent,
        "us_per_iteration": us,
        "residuals": [[iteration, norm] for iteration, norm in result.history],
        "error": error,
    }


def _show(screen: Screen, report: dict[str, Any]) -> None:
    rows, columns = report["extents"]
    first, second = report["grid"]
    us = report["us_per_iteration"]
    title = f"Poisson {rows}x{columns} on {first}x{second} ranks, mass {report['mass']}"
    table = Table("part", ">time per iteration", title=title)
    parts = {
        "interior": "compute, interior",
        "boundary": "compute, boundary",
        "start": "communication visible: pack and send",
        "wait": "communication visible: wait and unpack",
        "residual": "residual: last sum over the ranks",
    }
    for name, text in parts.items():
        table.add_row(text, seconds_text(us[name] * 1e-6))
    table.add_section()
    table.add_row("whole iteration", seconds_text(us["iteration"] * 1e-6))
    screen.print(table)
    history = Table("iteration", "|b - M x|", title="Residual")
    residuals = report["residuals"]
    chosen = sorted({round(i) for i in np.linspace(0, len(residuals) - 1, min(len(residuals), 9))})
    for index in chosen:
        iteration, norm = residuals[index]
        history.add_row(iteration, f"{norm:.6e}")
    screen.print(history)
    ended = "as requested"
    if report["tolerance"] > 0:
        ended = f"tolerance {report['tolerance']:g} {'' if report['reached_tolerance'] else 'NOT '}reached"
    screen.print(
        f"{counted(report['iterations'], 'iteration')} in {seconds_text(report['seconds'])} ({ended}); "
        f"rank 0 sends {bytes_text(report['bytes_sent'])} per iteration"
    )
    if report["error"] is not None:
        screen.print(f"largest difference to the direct solution (Fourier): {report['error']:.3e}")


def _plot(file: str, report: dict[str, Any], solution: np.ndarray) -> None:
    figure = empty_figure(11, 4.5)
    left, right = figure.subplots(1, 2)
    iterations, norms = zip(*report["residuals"], strict=True)
    left.semilogy(iterations, norms)
    left.set(xlabel="iteration", ylabel="residual |b - M x|", title="residual")
    left.locator_params(axis="x", integer=True)
    rows, columns = report["extents"]
    image = right.imshow(solution, origin="lower", interpolation="nearest", aspect="equal")
    right.set(xlabel="j", ylabel="i", title=f"solution, {rows}x{columns}, mass {report['mass']}")
    right.locator_params(integer=True)
    figure.colorbar(image, ax=right, label="x")
    save_figure(figure, file)


def poisson(options: PoissonCommand) -> None:
    """Solve the Poisson equation by Jacobi's method on a grid of ranks.

    Each iteration sends the faces of each rank's block and updates the interior meanwhile. The result has the same bits
    on every grid of ranks.
    """
    ensure_ranks(options.ranks)
    group = Group.world()
    whole, grid = poisson_layout(group.size, options.extent, local=options.local, grid=options.grid)
    solver = Poisson(group, whole, **options.part(PoissonOptions) | {"grid": grid})
    with progress("Poisson", total=options.iterations) as advance:
        tell = since_last(advance)
        result = solver.solve(
            options.iterations,
            residual_every=options.residual_every,
            tolerance=options.tolerance,
            progress=lambda iteration, _norm: tell(iteration),
        )
    us = _all_times(group, result)
    wanted = whole[0] * whole[1] <= CHECKED_SITES if options.check is None else options.check
    error, solution = None, None
    if wanted or options.plot is not None:
        require_memory_to_check(group, whole)
        solution, source = solver.gather(), solver.gather(solver.source)
        if wanted and own_rank() == 0:
            error = float(np.abs(solution - solve_directly(source, options.mass)).max())
    report = _report(solver, result, options.tolerance, us, error)
    if own_rank() != 0:
        return
    _show(console(options.json), report)
    if options.plot is not None and solution is not None:
        _plot(options.plot, report, solution)
    write_json(options.json, report)
