"""`onehop lattice solve --action wilson|clover`: a propagator of Wilson quarks on a gauge field in a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onehop.cli.lattice.common import say_unverified
from onehop.cli.lattice.solve_report import advice_after, finish_solve, solve_report
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice import Wilson, read_gauge, wilson_kappa
from onehop.lattice.solver_options import WilsonSolverOptions
from onehop.options import option

if TYPE_CHECKING:
    from onehop.cli.lattice.solve import Solve

WILSON_ACTIONS = ("wilson", "clover")


@dataclass(kw_only=True)
class WilsonOptions(WilsonSolverOptions):
    """Options of `onehop lattice solve` that only Wilson quarks have."""

    title = WilsonSolverOptions.title

    kappa: float | None = option(
        None, "Hopping parameter of M = A - kappa D. --mass m sets it to 1 / (8 + 2 m)."
    )
    csw: float = option(1.0, "Clover coefficient (clover only).")
    spin: int = option(0, "Spin of the point source.", low=0, high=3)
    recon: int = option(
        18,
        "Real numbers kept per link. 12 keeps two rows and reconstructs the third.",
        choices=(18, 12),
    )


def check_wilson(options: WilsonOptions, action: str, masses: list[float]) -> None:
    """Check the options before any rank starts.

    Raises
    ------
    BadInput
        There are both or neither of kappa and mass, c_sw with `wilson`, or a preconditioner with `cgnr`.
    """
    if (options.kappa is None) == (len(masses) != 1):
        raise BadInput(
            f"expected either --kappa or one --mass with --action {action}, found {len(masses)} --mass and "
            f"{'no' if options.kappa is None else 'a'} --kappa"
        )
    if action == "wilson":
        options.refuse(("csw",), "is for --action clover, found --action wilson")
    if options.schwarz and options.method != "bicgstab":
        raise BadInput(f"--schwarz goes with --method bicgstab, found {options.method!r}")
    if masses:
        wilson_kappa(masses[0])


def solve_wilson(options: Solve, progress: Callable[[int, float], None] | None) -> None:
    """Solve for a point source at the origin, and print and write the report. Collective."""
    group = Group.world()
    gauge, found = read_gauge(options.file or "", group, options.grid, tolerance=options.su3_tolerance)
    say_unverified(found.path, found.has_checksum, options.json)
    kappa = wilson_kappa(options.mass[0]) if options.kappa is None else options.kappa
    csw = options.csw if options.action == "clover" else 0.0
    antiperiodic = options.boundary == "antiperiodic"
    wilson = Wilson(gauge, kappa, csw=csw, antiperiodic=antiperiodic, recon=options.recon)
    source = np.zeros((*gauge.geometry.block_shape, 4, 3), np.complex128)
    if group.rank == 0:  # the block of rank 0 contains the origin
        source[(0,) * 4][options.spin, options.colour] = 1
    result = wilson.solve(source, **options.part(WilsonSolverOptions), progress=progress)
    chosen = {"action": options.action, "kappa": kappa, "csw": csw, "method": options.method}
    report = solve_report(group, gauge.geometry, wilson, chosen, options.tolerance, result)
    advice = advice_after(result, options.iterations, options.precision, "a smaller kappa")
    finish_solve(report, options.json, advice)
