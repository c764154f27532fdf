"""`onehop lattice solve --action wilson|clover`: a propagator of Wilson quarks on a gauge field in a file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onehop.cli.lattice.common import say_unverified
from onehop.cli.lattice.solve_options import Solve
from onehop.cli.lattice.solve_report import advice_after, finish_solve, solve_report
from onehop.group import Group
from onehop.lattice import Wilson, read_gauge, wilson_kappa
from onehop.lattice.solver_options import WilsonSolverOptions


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
