"""`onehop lattice solve --action wilson|clover`: a propagator of Wilson quarks on a gauge field in a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop.cli.common import console, own_rank, write_json
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.lattice import Wilson, WilsonSolve, read_gauge, wilson_kappa

WILSON_ACTIONS = ("wilson", "clover")
METHODS = ("bicgstab", "normal")


@dataclass(frozen=True)
class WilsonChoice:
    """What of `onehop lattice solve` is for Wilson quarks alone."""

    action: str
    kappa: float
    csw: float
    spin: int
    colour: int
    method: str
    schwarz: int
    two_rows: bool
    periodic: bool


def wilson_choice(
    action: str,
    kappa: float | None,
    masses: list[float],
    csw: float | None,
    *,
    spin: int,
    colour: int,
    method: str,
    schwarz: int,
    two_rows: bool,
    periodic: bool,
) -> WilsonChoice:
    """Check what needs no ranks.

    Raises
    ------
    BadInput
        Not exactly one of kappa and mass; c_sw with `wilson`, or none with `clover`; an unknown method.
    """
    if (kappa is None) == (len(masses) != 1):
        raise BadInput(f"expected --kappa, or one --mass, with --action {action}")
    if action == "wilson" and csw is not None:
        raise BadInput("--csw is for --action clover, found --action wilson")
    if method not in METHODS:
        raise BadInput(f"expected --method {' or '.join(METHODS)}, found {method!r}")
    if schwarz and method != "bicgstab":
        raise BadInput(f"--schwarz goes with --method bicgstab, found {method!r}")
    chosen = kappa if kappa is not None else wilson_kappa(masses[0])
    strength = 0.0 if action == "wilson" else 1.0 if csw is None else csw
    return WilsonChoice(action, chosen, strength, spin, colour, method, schwarz, two_rows, periodic)


def _report(
    wilson: Wilson,
    group: Group,
    extents: Any,
    grid: Any,
    choice: WilsonChoice,
    tolerance: float,
    result: WilsonSolve,
) -> dict[str, Any]:
    mine = [result.seconds, result.communication_seconds, result.flops, result.bytes]
    everybody = [json.loads(part) for part in group.allgather(json.dumps(mine).encode())]
    columns = list(zip(*everybody, strict=True))
    seconds, communication = max(columns[0]), max(columns[1])
    return {
        "action": choice.action,
        "extent": list(extents),
        "grid": list(grid),
        "threads": wilson.threads,
        "kappa": choice.kappa,
        "csw": choice.csw,
        "method": choice.method,
        "tolerance": tolerance,
        "iterations": result.iterations,
        "corrections": result.corrections,
        "true_residual": result.true_residual,
        "converged": result.converged,
        "seconds": seconds,
        "communication_seconds": communication,
        "gflops": sum(columns[2]) / seconds * 1e-9,
        "gbytes_per_second": sum(columns[3]) / seconds * 1e-9,
    }


def solve_wilson(
    file: str,
    choice: WilsonChoice,
    *,
    tolerance: float,
    iterations: int,
    precision: str,
    inner: str | None,
    reproducible: bool,
    half_faces: bool,
    grid: tuple[int, ...] | None,
    su3_tolerance: float,
    json_target: str | None,
    progress: Callable[[int, float], None] | None = None,
) -> None:
    """Solve for a point source at the origin, and check the answer with the whole operator. Collective."""
    group = Group.world()
    gauge, _ = read_gauge(file, group, grid, tolerance=su3_tolerance)
    wilson = Wilson(
        gauge, choice.kappa, csw=choice.csw, antiperiodic=not choice.periodic, two_rows=choice.two_rows
    )
    source = np.zeros((*gauge.geometry.block_shape, 4, 3), np.complex128)
    if group.rank == 0:  # whose block has the origin
        source[(0,) * 4][choice.spin, choice.colour] = 1
    result = wilson.solve(
        source,
        tolerance=tolerance,
        iterations=iterations,
        method=choice.method,
        precision=precision,
        inner=inner,
        reproducible=reproducible,
        half_faces=half_faces,
        schwarz=choice.schwarz,
        progress=progress,
    )
    report = _report(wilson, group, gauge.geometry.extents, gauge.geometry.grid, choice, tolerance, result)
    if own_rank() == 0:
        console(json_target).print(
            f"{result.iterations} iterations in {report['seconds']:.4f} s, {report['communication_seconds']:.4f} s of "
            f"them in faces and sums; |b - M x| / |b| = {result.true_residual:.3e}; {report['gflops']:.2f} GFLOP/s",
            markup=False,
            soft_wrap=True,
        )
        write_json(json_target, report)
    if not result.converged:
        more = "it gave up; take" if result.iterations < iterations else "allow more of them, or take"
        raise Error(
            f"expected a residual of {tolerance:g}, reached {result.true_residual:.3e} in {result.iterations} "
            f"iterations; {more} a smaller kappa or larger tolerance"
        )
