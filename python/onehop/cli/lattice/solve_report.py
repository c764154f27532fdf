"""The report of `onehop lattice solve`, which is the same for staggered and for Wilson quarks."""

from __future__ import annotations

import json
from typing import Any

from onehop.cli.common import console, own_rank, write_json
from onehop.error import Error
from onehop.group import Group
from onehop.lattice import Geometry, QuarkSolve
from onehop.text import counted


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
    return (
        "the solver stopped early, because its residual did not fall any further, and more iterations do not help; "
        f"take {double}{other} or a larger tolerance"
    )


def finish_solve(report: dict[str, Any], json_target: str | None, advice: str) -> None:
    """Print the report on rank 0, and write its JSON. Raise Error with `advice` if the solve did not converge."""
    iterations, residual = report["iterations"], report["true_residual"]
    if own_rank() == 0:
        console(json_target).print(
            f"{counted(iterations, 'iteration')} in {report['seconds']:.4f} s, "
            f"{report['communication_seconds']:.4f} s of "
            f"them in halo exchanges and sums; |b - M x| / |b| = {residual:.3e}; {report['gflops']:.2f} GFLOP/s"
        )
        write_json(json_target, report)
    if not report["converged"]:
        raise Error(
            f"expected a residual of {report['tolerance']:g}, reached {residual:.3e} in {iterations} "
            f"iterations; {advice}"
        )
