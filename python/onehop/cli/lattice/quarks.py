"""The quark observables of `onehop lattice measure`: mesons and the chiral condensate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop.cli.common import progress
from onehop.cli.lattice.common import phases_option
from onehop.error import BadInput
from onehop.lattice import Gauge, Staggered, Wilson, mesons, wilson_kappa
from onehop.lattice.staggered import STAGGERED_ACTIONS
from onehop.options import LARGEST_INT, Options, option

ACTIONS = (*STAGGERED_ACTIONS, "wilson", "clover")


@dataclass(kw_only=True)
class QuarkOptions(Options):
    """The quarks that are measured."""

    title = "Quarks"

    quarks: str | None = option(
        None,
        "Also measure pion and rho correlators with this quark action, from a point source.",
        choices=ACTIONS,
    )
    mass: float | None = option(None, "Quark mass; above 0 for staggered quarks.")
    csw: float = option(1.0, "Clover coefficient (clover only).")
    phases: str = phases_option("standard", "Staggered phases.")
    noise_vectors: int = option(
        0,
        "Number of noise vectors for the chiral condensate (staggered quarks only); 0: do not measure it.",
        low=0,
        high=LARGEST_INT,
    )
    residual: float = option(1e-9, "Tolerance |b - M x| / |b| of the propagators.", above=0)

    def check_quarks(self) -> None:
        """Check the options before any rank starts."""
        action = self.quarks
        if action is None:
            self.refuse(("mass", "csw", "noise_vectors", "residual", "phases"), "goes with --quarks")
            return
        if self.mass is None or (action in STAGGERED_ACTIONS and not self.mass > 0):
            raise BadInput(
                f"expected --mass with --quarks {action}, above 0 for staggered quarks, found {self.mass}"
            )
        if action not in STAGGERED_ACTIONS:
            self.refuse(("noise_vectors", "phases"), f"is for staggered quarks, found --quarks {action}")
        if action != "clover":
            self.refuse(("csw",), f"is for --quarks clover, found {action}")


def _numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def quark_report(gauge: Gauge, options: QuarkOptions, mass: float) -> dict[str, Any]:
    """Measure correlators with effective masses, and with noise vectors the condensate. Collective."""
    action, noise_vectors = options.quarks or "", options.noise_vectors
    staggered = action in STAGGERED_ACTIONS
    with progress("propagators", total=(3 if staggered else 12) + noise_vectors) as advance:
        how: dict[str, Any] = {"tolerance": options.residual, "progress": lambda _number: advance(1)}
        if staggered:
            operator = Staggered(gauge, action, phases=options.phases)
            found = mesons.staggered_mesons(gauge, operator, mass, **how)
        else:
            csw = options.csw if action == "clover" else 0.0
            found = mesons.wilson_mesons(gauge, Wilson(gauge, wilson_kappa(mass), csw=csw), **how)
        report: dict[str, Any] = {
            "action": action,
            "mass": mass,
            "pion": found.pion.tolist(),
            "rho": found.rho.tolist(),
            "pion_mass": _numbers(mesons.effective_mass(found.pion)),
            "rho_mass": _numbers(mesons.effective_mass(found.rho, 2 if staggered else 1)),
            "iterations": found.iterations,
            "true_residual": found.true_residual,
        }
        if noise_vectors:
            condensate = mesons.chiral_condensate(gauge, operator, mass, noise_vectors=noise_vectors, **how)
            report["condensate"] = condensate.mean
            report["condensate_error"] = condensate.error
    return report


def plot_mesons(left: Any, right: Any, report: dict[str, Any]) -> None:
    """Draw the correlators into the axes `left`, and the effective masses into `right`."""
    for name, marker in (("pion", "o"), ("rho", "s")):
        left.semilogy(np.abs(report[name]), marker, markersize=4, label=name)
        masses = [np.nan if one is None else one for one in report[f"{name}_mass"]]
        right.plot(masses, marker, markersize=4, label=name)
    left.set_ylabel("|C(t)|")
    right.set_ylabel("effective mass, a m")
    for axes in (left, right):
        axes.set_xlabel("t / a")
        axes.locator_params(axis="x", integer=True)
        axes.legend()
    left.set_title(f"{report['action']}, m = {report['mass']:g}", fontsize="medium")
