"""`onehop poisson`: solve the Poisson equation on a grid of ranks and show where the time goes."""

from __future__ import annotations

import json
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from onehop._core import __version__
from onehop.cli.common import (
    LARGEST_INT,
    LARGEST_SEED,
    JsonOption,
    RanksOption,
    check_plot,
    console,
    own_rank,
    progress,
    write_json,
)
from onehop.error import BadInput
from onehop.figure import empty_figure, save_figure
from onehop.group import Group
from onehop.launch import ensure_ranks
from onehop.poisson import Poisson, PoissonResult, poisson_layout, solve_directly
from onehop.text import counted

# Larger lattices are gathered and checked only with --check.
CHECKED_SITES = 1 << 22


def _pair(text: str | None, option: str) -> tuple[int, int] | None:
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise BadInput(
            f"expected {option} as two numbers with an x between them, for example 60x60, found {text!r}"
        )
    return int(parts[0]), int(parts[1])


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


def _show(screen: Console, report: dict[str, Any]) -> None:
    rows, columns = report["extents"]
    first, second = report["grid"]
    us = report["us_per_iteration"]
    table = Table(
        "part",
        "µs per iteration",
        title=f"Poisson {rows}x{columns} on {first}x{second} ranks, mass {report['mass']}",
    )
    table.columns[1].justify = "right"
    parts = {
        "interior": "compute, interior",
        "boundary": "compute, boundary",
        "start": "communication visible: pack and send",
        "wait": "communication visible: wait and unpack",
        "residual": "residual: last sum over the ranks",
    }
    for name, text in parts.items():
        table.add_row(text, f"{us[name]:.3f}")
    table.add_section()
    table.add_row("whole iteration", f"{us['iteration']:.3f}")
    screen.print(table)
    history = Table("iteration", "|b - M x|", title="Residual")
    residuals = report["residuals"]
    chosen = sorted({round(i) for i in np.linspace(0, len(residuals) - 1, min(len(residuals), 9))})
    for index in chosen:
        iteration, norm = residuals[index]
        history.add_row(str(iteration), f"{norm:.6e}")
    screen.print(history)
    ended = "as requested"
    if report["tolerance"] > 0:
        ended = f"tolerance {report['tolerance']:g} {'' if report['reached_tolerance'] else 'NOT '}reached"
    screen.print(
        f"{counted(report['iterations'], 'iteration')} in {report['seconds']:.4f} s ({ended}); "
        f"rank 0 sends {report['bytes_sent']} bytes per iteration"
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


def poisson(
    ranks: RanksOption = None,
    local: Annotated[str, typer.Option(metavar="LxM", help="Sites of the block of each rank.")] = "60x60",
    extents: Annotated[
        str | None,
        typer.Option("--global", metavar="LxM", help="Sites of the whole lattice (instead of --local)."),
    ] = None,
    grid: Annotated[str | None, typer.Option(metavar="PxQ", help="Number of ranks per dimension.")] = None,
    mass: Annotated[float, typer.Option(help="Mass term, above 0. A larger mass converges faster.")] = 0.5,
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the random right-hand side.")
    ] = 1,
    iterations: Annotated[
        int, typer.Option(min=1, max=LARGEST_INT, help="Maximum number of iterations.")
    ] = 1000,
    tolerance: Annotated[
        float, typer.Option(help="Stop when |b - M x| <= tolerance |b|. 0: run all iterations.")
    ] = 0.0,
    residual_every: Annotated[
        int, typer.Option(min=1, max=LARGEST_INT, help="Number of iterations between two residuals.")
    ] = 10,
    enlarge: Annotated[
        int,
        typer.Option(
            min=1, max=1 << 20, metavar="N", help="Lengthen each message to N times the face that it carries."
        ),
    ] = 1,
    buffers: Annotated[
        int, typer.Option(min=1, max=2, help="Number of message buffers: 1 (single) or 2 (double buffering).")
    ] = 2,
    transport: Annotated[str, typer.Option(help="Transport: auto, shared_memory or mpi.")] = "auto",
    check: Annotated[
        bool | None,
        typer.Option(
            "--check/--no-check", help="Compare with a direct solution. Default: for up to 4 million sites."
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Plot the residual and the solution to FILE (.png, .svg, .pdf)."),
    ] = None,
    json_target: JsonOption = None,
) -> None:
    """Solve the Poisson equation by Jacobi's method on a grid of ranks.

    Each iteration sends the faces of each rank's block and updates the interior meanwhile. The result has the same bits
    on every grid of ranks.
    """
    sizes = _pair(local, "--local") or (60, 60), _pair(extents, "--global"), _pair(grid, "--grid")
    check_plot(plot)
    ensure_ranks(ranks)
    group = Group.world()
    whole, chosen_grid = poisson_layout(group.size, sizes[1], local=sizes[0], grid=sizes[2])
    solver = Poisson(
        group,
        whole,
        grid=chosen_grid,
        mass=mass,
        seed=seed,
        buffers=buffers,
        enlargement=enlarge,
        transport=transport,
    )
    done = 0
    with progress("Poisson", total=iterations) as advance:

        def tell(iteration: int, _norm: float) -> None:
            nonlocal done
            advance(iteration - done)
            done = iteration

        result = solver.solve(iterations, residual_every=residual_every, tolerance=tolerance, progress=tell)
    us = _all_times(group, result)
    wanted = whole[0] * whole[1] <= CHECKED_SITES if check is None else check
    error, solution = None, None
    if wanted or plot is not None:
        solution, source = solver.gather(), solver.gather(solver.source)
        if wanted and own_rank() == 0:
            error = float(np.abs(solution - solve_directly(source, mass)).max())
    report = _report(solver, result, tolerance, us, error)
    if own_rank() != 0:
        return
    _show(console(json_target), report)
    if plot is not None and solution is not None:
        _plot(plot, report, solution)
        console(json_target).print(f"plot: {plot}", markup=False)
    write_json(json_target, report)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(poisson)
