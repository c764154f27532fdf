"""Hybrid Monte Carlo for the Wilson gauge action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onehop import _core
from onehop.arguments import instance, whole_number
from onehop.error import BadInput, Error
from onehop.group import require_same
from onehop.lattice.gauge import Gauge
from onehop.options import LARGEST_INT, Options, option
from onehop.text import alternatives

if TYPE_CHECKING:
    from onehop._keywords import HmcKeywords, Unpack

__all__ = ["INTEGRATORS", "Hmc", "Reversal", "Trajectory", "hybrid_monte_carlo"]

INTEGRATORS = ("omelyan", "leapfrog")


@dataclass(kw_only=True)
class HmcOptions(Options):
    """The options of a trajectory; `Hmc` documents them."""

    title = "Hybrid Monte Carlo (hmc only)"

    length: float = option(1.0, "Length of a trajectory.", above=0)
    steps: int = option(20, "Number of integrator steps per trajectory.", low=1, high=LARGEST_INT)
    integrator: str = option("omelyan", "Integrator of the trajectories.", choices=INTEGRATORS)
    seed: int = 1
    first: int = 0
    progress: Callable[[int], None] | None = None


class Trajectory(NamedTuple):
    """The result of a trajectory: the change of H, whether it was accepted, and the mean plaquette after it."""

    delta_h: float
    accepted: bool
    plaquette: float


class Reversal(NamedTuple):
    """The violation of reversibility: the change of H, and the largest change of a link's numbers."""

    delta_h: float
    links: float


class Hmc(_core.LatticeHmc):
    """Hybrid Monte Carlo with H = -Σ tr P² - β/3 Σ Re tr U_p on a copy of a gauge field's links.

    Random numbers depend only on the seed, the number of the trajectory and the place in the whole lattice, so links
    have the same bits on every grid of ranks. The constructor and all methods are collective.

    Parameters
    ----------
    gauge : Gauge
        The initial field.
    beta : float
        Inverse coupling 6 / g².
    length : float
        Length of a trajectory.
    steps : int
        Number of integrator steps per trajectory; an Omelyan step evaluates two forces.
    integrator : {"omelyan", "leapfrog"}
        Both are of second order; with the same number of steps, Omelyan's error is about a tenth of leapfrog's.
    seed : int
        Random seed.

    Raises
    ------
    BadInput
        Beta is below 0, steps are below 1, the length is not above 0, or the integrator is unknown.
    """

    def __init__(
        self,
        gauge: Gauge,
        beta: float,
        *,
        length: float = 1.0,
        steps: int = 20,
        integrator: str = "omelyan",
        seed: int = 1,
    ) -> None:
        if integrator not in INTEGRATORS:
            raise BadInput(f"expected integrator {alternatives(INTEGRATORS)}, found {integrator!r}")
        super().__init__(
            gauge, beta=beta, length=length, steps=steps, leapfrog=integrator == "leapfrog", seed=seed
        )

    def reverse(self, number: int) -> Reversal:
        """Run a trajectory forth and back to test reversibility. The field does not change. Collective."""
        return Reversal(*super().reverse(number))


def hybrid_monte_carlo(
    gauge: Gauge, beta: float, trajectories: int, **keywords: Unpack[HmcKeywords]
) -> list[Trajectory]:
    """Update a gauge field by hybrid Monte Carlo trajectories. Collective.

    The field is the same, bit for bit, on every grid of ranks.

    Parameters
    ----------
    gauge : Gauge
        The field to update in place.
    beta : float
        Inverse coupling 6 / g².
    trajectories : int
        Number of trajectories.

    Other Parameters
    ----------------
    length, steps, integrator, seed
        As for `Hmc`.
    first : int
        Number of the first trajectory, to continue an earlier run.
    progress : callable, optional
        Called with the number of each finished trajectory, after `gauge` has been updated.

    Returns
    -------
    list of Trajectory

    Raises
    ------
    BadInput
        As for `Hmc`.
    Error
        The energy of a trajectory grows without bound; `gauge` is left as it was before that trajectory.
    """
    options = HmcOptions.of("hybrid_monte_carlo", keywords)
    first = whole_number(options.first, "first", 0)
    trajectories = whole_number(trajectories, "trajectories", 0)
    instance(gauge, Gauge, "gauge")
    require_same(gauge.group, "hybrid_monte_carlo", beta=beta, trajectories=trajectories, **vars(options))
    moving = Hmc(gauge, beta, **options.part(HmcOptions), seed=options.seed)
    # Momenta contribute about 16 per site to H. A far larger change means that the integration diverged. The sign of
    # the change is then meaningless.
    most = 1000.0 * float(np.prod(gauge.geometry.extents))
    done = []
    for number in range(first, first + trajectories):
        delta_h, accepted = moving.run(number)
        if not abs(delta_h) <= most:
            raise Error(
                f"trajectory {number} diverged: expected an energy that changes by at most "
                f"{most:.3g}, found {delta_h:.3g}; take more steps, or a shorter length"
            )
        moving.copy_to(gauge)
        done.append(Trajectory(delta_h, accepted, gauge.plaquettes().all))
        if options.progress is not None:
            options.progress(number)
    return done
