"""`onehop lattice solve`: a quark propagator on a gauge field in a file."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import numpy as np
import typer

from onehop.cli.common import JsonOption, RanksOption, console, own_rank, write_json
from onehop.cli.lattice.common import GridOption, numbers
from onehop.cli.lattice.measure import FileArgument, ToleranceOption
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.lattice import Gauge, Staggered, StaggeredSolve, read_gauge
from onehop.launch import ensure_ranks

# Of the hopping term, per site: eight matrices times vectors, and their sum; eight links, a vector in and one out.
FLOPS = 8 * 66 + 7 * 6
BYTES = 8 * 144 + 2 * 48


def _point_source(gauge: Gauge, colour: int) -> np.ndarray:
    source = np.zeros((*gauge.geometry.block_shape, 3), np.complex128)
    if gauge.group.rank == 0:  # whose block has the origin
        source[(0,) * len(gauge.geometry.block)][colour] = 1
    return source


def _report(gauge: Gauge, mass: float, tolerance: float, result: StaggeredSolve) -> dict[str, Any]:
    mine = [result.seconds, result.communication_seconds]
    everybody = [json.loads(part) for part in gauge.group.allgather(json.dumps(mine).encode())]
    seconds, communication = (max(column) for column in zip(*everybody, strict=True))
    hops = (result.iterations + 2) * math.prod(gauge.geometry.extents)  # sites that were hopped to
    return {
        "action": "staggered",
        "extent": list(gauge.geometry.extents),
        "grid": list(gauge.geometry.grid),
        "mass": mass,
        "tolerance": tolerance,
        "iterations": result.iterations,
        "true_residual": result.true_residual,
        "converged": result.converged,
        "seconds": seconds,
        "communication_seconds": communication,
        "gflops": hops * FLOPS / seconds * 1e-9,
        "gbytes_per_second": hops * BYTES / seconds * 1e-9,
    }


def solve(
    file: FileArgument,
    mass: Annotated[float, typer.Option(help="Above 0; M = 2 m + D.")],
    action: Annotated[
        str, typer.Option(metavar="staggered", help="The operator: one-link staggered.")
    ] = "staggered",
    colour: Annotated[int, typer.Option(min=0, max=2, help="Of the point source at the origin.")] = 0,
    tolerance: Annotated[float, typer.Option(help="Of |b - M x| / |b|.")] = 1e-10,
    iterations: Annotated[int, typer.Option(min=0, help="At most so many.")] = 10000,
    periodic: Annotated[
        bool, typer.Option("--periodic", help="In time too; otherwise antiperiodic there.")
    ] = False,
    lanes: Annotated[int, typer.Option(min=1, help="Sites in a vector, at most.")] = 8,
    grid: GridOption = None,
    ranks: RanksOption = None,
    su3_tolerance: ToleranceOption = 1e-4,
    json_target: JsonOption = None,
) -> None:
    """Solve M x = b for a point source by conjugate gradients, and check the answer with the whole operator.

    Rates count the hopping term alone, over the time of the whole solve. Ends with 1 if it did not converge.
    """
    if action != "staggered":
        raise BadInput(f"expected --action staggered, found {action!r}")
    ensure_ranks(ranks)
    gauge, _ = read_gauge(file, Group.world(), numbers(grid, "--grid"), tolerance=su3_tolerance)
    operator = Staggered(gauge, antiperiodic=not periodic, lanes=lanes)
    result = operator.solve(_point_source(gauge, colour), mass, tolerance=tolerance, iterations=iterations)
    report = _report(gauge, mass, tolerance, result)
    if own_rank() == 0:
        console(json_target).print(
            f"{result.iterations} iterations in {report['seconds']:.4f} s, {report['communication_seconds']:.4f} s of "
            f"them waiting; |b - M x| / |b| = {result.true_residual:.3e}; {report['gflops']:.2f} GFLOP/s",
            markup=False,
        )
        write_json(json_target, report)
    if not result.converged:
        raise Error(
            f"expected a residual of {tolerance:g}, reached {result.true_residual:.3e} in {result.iterations} "
            "iterations; allow more of them, or take a larger mass or tolerance"
        )
