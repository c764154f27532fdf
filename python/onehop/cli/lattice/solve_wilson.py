"""`onehop lattice solve --action wilson|clover`: a propagator of Wilson quarks on a gauge field in a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onehop.cli.lattice.common import say_unverified
from onehop.cli.lattice.solve_report import advice_after, finish_solve, solve_report
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice import Wilson, read_gauge, wilson_kappa

WILSON_ACTIONS = ("wilson", "clover")
METHODS = ("bicgstab", "cgnr")


@dataclass(frozen=True)
class WilsonChoice:
    """Options of `onehop lattice solve` that only Wilson quarks have."""

    action: str
    kappa: float
    csw: float
    spin: int
    colour: int
    method: str
    schwarz: int
    recon: int
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
    recon: int,
    periodic: bool,
) -> WilsonChoice:
    """Check the options before any rank starts.

    Raises
    ------
    BadInput
        There are both or neither of kappa and mass, or c_sw with `wilson`; the method is unknown; or `recon` is neither
        12 nor 18.
    """
    if (kappa is None) == (len(masses) != 1):
        raise BadInput(
            f"expected either --kappa or one --mass with --action {action}, found {len(masses)} --mass and "
            f"{'no' if kappa is None else 'a'} --kappa"
        )
    if action == "wilson" and csw is not None:
        raise BadInput("--csw is for --action clover, found --action wilson")
    if method not in METHODS:
        raise BadInput(f"expected --method {' or '.join(METHODS)}, found {method!r}")
    if recon not in (12, 18):
        raise BadInput(f"expected --recon 12 or 18, found {recon}")
    if schwarz and method != "bicgstab":
        raise BadInput(f"--schwarz goes with --method bicgstab, found {method!r}")
    chosen = kappa if kappa is not None else wilson_kappa(masses[0])
    strength = 0.0 if action == "wilson" else 1.0 if csw is None else csw
    return WilsonChoice(action, chosen, strength, spin, colour, method, schwarz, recon, periodic)


def solve_wilson(
    file: str,
    choice: WilsonChoice,
    *,
    tolerance: float,
    iterations: int,
    precision: str,
    sloppy_precision: str | None,
    reproducible: bool,
    half_halo: bool,
    grid: tuple[int, ...] | None,
    su3_tolerance: float,
    json_target: str | None,
    progress: Callable[[int, float], None] | None = None,
) -> None:
    """Solve for a point source at the origin, and print and write the report. Collective."""
    group = Group.world()
    gauge, found = read_gauge(file, group, grid, tolerance=su3_tolerance)
    say_unverified(found.path, found.has_checksum, json_target)
    wilson = Wilson(gauge, choice.kappa, csw=choice.csw, antiperiodic=not choice.periodic, recon=choice.recon)
    source = np.zeros((*gauge.geometry.block_shape, 4, 3), np.complex128)
    if group.rank == 0:  # the block of rank 0 contains the origin
        source[(0,) * 4][choice.spin, choice.colour] = 1
    result = wilson.solve(
        source,
        tolerance=tolerance,
        iterations=iterations,
        method=choice.method,
        precision=precision,
        sloppy_precision=sloppy_precision,
        reproducible=reproducible,
        half_halo=half_halo,
        schwarz=choice.schwarz,
        progress=progress,
    )
    chosen = {"action": choice.action, "kappa": choice.kappa, "csw": choice.csw, "method": choice.method}
    report = solve_report(group, gauge.geometry, wilson, chosen, tolerance, result)
    finish_solve(report, json_target, advice_after(result, iterations, precision, "a smaller kappa"))
