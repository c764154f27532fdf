"""`onehop lattice eigen`: the lowest eigenvectors of the staggered operator on a gauge field in a file."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from onehop.cli.common import console, own_rank, progress, write_json
from onehop.cli.lattice.common import GaugeOptions, boundary_option, phases_option, say_about
from onehop.cli.screen import Table
from onehop.group import Group
from onehop.lattice import Staggered, read_gauge
from onehop.lattice.eigen import EigenOptions, lowest_eigenvectors
from onehop.lattice.eigenvectors import write_eigenvectors
from onehop.lattice.files import check_target
from onehop.lattice.staggered import STAGGERED_ACTIONS
from onehop.launch import ensure_ranks
from onehop.options import file_option, option
from onehop.text import seconds_text


@dataclass(kw_only=True)
class Eigen(EigenOptions, GaugeOptions):
    action: str = option(
        "staggered", "Quark action to build from the gauge field.", choices=STAGGERED_ACTIONS
    )
    u0: float = option(1.0, "Tadpole factor u0 (asqtad only).")
    phases: str = phases_option("standard", "Staggered phases.")
    boundary: str = boundary_option("Boundary in time.")
    output: str | None = file_option("Write the eigenvectors to FILE.", "the eigenvectors", "-o", "--output")
    output_precision: str = option("double", "Precision of the output file.", choices=("double", "half"))
    overwrite: bool = option(False, "Overwrite an existing file.")

    def check(self) -> None:
        """Check the options before any rank starts."""
        if self.action != "asqtad":
            self.refuse(("u0",), f"is for --action asqtad, found {self.action!r}")
        if self.output is None:
            self.refuse(("output_precision", "overwrite"), "is for --output")
        else:
            check_target(self.output, self.overwrite)


def eigen(options: Eigen) -> None:
    """Compute the lowest eigenvectors of -D D on the even sites, for `onehop lattice solve --deflate`.

    M^dagger M has the eigenvalues 4 m^2 + those that are printed, at every mass m.
    """
    options.check()
    ensure_ranks(options.ranks)
    width = 1 if options.action == "staggered" else 3
    gauge, file = read_gauge(
        options.file,
        Group.world(),
        options.grid,
        tolerance=options.tolerance,
        width=width,
        **options.reading(),
    )
    operator = Staggered(
        gauge,
        options.action,
        u0=options.u0,
        antiperiodic=options.boundary == "antiperiodic",
        phases=options.phases,
    )
    begin = monotonic()
    with progress("eigenvectors", total=options.count) as advance:
        shown = 0

        def follow(_applications: int, converged: int) -> None:
            nonlocal shown
            advance(max(0, converged - shown))
            shown = max(shown, converged)

        found = lowest_eigenvectors(operator, **options.part(EigenOptions), progress=follow)
    seconds = monotonic() - begin
    if options.output is not None:
        write_eigenvectors(
            options.output, found, operator, precision=options.output_precision, overwrite=options.overwrite
        )
    if own_rank() != 0:
        return
    table = Table(
        "", "eigenvalue", "residual", title=f"{found.applications} applications in {seconds_text(seconds)}"
    )
    for number, (value, residual) in enumerate(zip(found.values, found.residuals, strict=True)):
        table.add_row(str(number), f"{value:.10g}", f"{residual:.1e}")
    console(options.json).print(table)
    say_about(file, options.json)
    report = {
        "file": options.file,
        "extent": list(gauge.geometry.extents),
        "action": options.action,
        "eigenvalues": found.values.tolist(),
        "residuals": found.residuals.tolist(),
        "applications": found.applications,
        "seconds": seconds,
        "output": options.output,
    }
    write_json(options.json, report)
