"""Hybrid Monte Carlo for the Wilson gauge action."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from onehop import _core
from onehop.error import BadInput, Error
from onehop.lattice.gauge import Gauge

__all__ = ["INTEGRATORS", "Hmc", "Reversal", "Trajectory", "hybrid_monte_carlo"]

INTEGRATORS = ("omelyan", "leapfrog")


class Trajectory(NamedTuple):
    """A trajectory: how much its energy changed, whether it was accepted, the mean plaquette after it."""

    delta_h: float
    accepted: bool
    plaquette: float


class Reversal(NamedTuple):
    """What is left after a trajectory there and back: of the energy, and the largest difference of a link's numbers."""

    delta_h: float
    links: float


class Hmc(_core.LatticeHmc):
    """Trajectories of H = -Σ tr P² - β/3 Σ Re tr U_p on a copy of a gauge field's links.

    Momenta and decisions depend on the seed, the trajectory's number and places in the whole lattice alone, so that
    links are the same bits on every grid of ranks. Collective, as all its methods are.

    Parameters
    ----------
    gauge : Gauge
        Where it starts.
    beta : float
        6 / g².
    length : float
        Of a trajectory.
    steps : int
        Of the integrator in it; one of Omelyan's makes two forces.
    integrator : {"omelyan", "leapfrog"}
        Both of second order; Omelyan's error is about a tenth of leapfrog's with as many steps.
    seed : int
        Of the random numbers.

    Raises
    ------
    BadInput
        A beta below 0, steps below 1, a length that is not above 0, another integrator.
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
            raise BadInput(f"expected an integrator of {', '.join(INTEGRATORS)}, found {integrator!r}")
        super().__init__(gauge, beta, length, steps, integrator == "leapfrog", seed)

    def reverse(self, number: int) -> Reversal:
        """A trajectory there and back, which leaves the field as it was. Collective."""
        return Reversal(*super().reverse(number))


def hybrid_monte_carlo(
    gauge: Gauge,
    beta: float,
    trajectories: int,
    *,
    length: float = 1.0,
    steps: int = 20,
    integrator: str = "omelyan",
    seed: int = 1,
    first: int = 0,
    progress: Callable[[int], None] | None = None,
) -> list[Trajectory]:
    """Trajectories on a gauge field; the same field, bit for bit, for every grid of ranks. Collective.

    Parameters
    ----------
    gauge : Gauge
        Where to start; afterwards where it ended.
    first : int
        The number of the first trajectory: to go on after so many.
    progress : callable, optional
        Called with the number of every trajectory done; the gauge field has its links then.

    Returns
    -------
    list of Trajectory

    Raises
    ------
    BadInput
        As `Hmc`.
    Error
        A trajectory whose energy grows without bound; the gauge field is as it was before it.
    """
    moving = Hmc(gauge, beta, length=length, steps=steps, integrator=integrator, seed=seed)
    # Momenta make 16 a site. Beyond this, sums of energies are out of range, and a change of either sign means nothing.
    most = 1000.0 * float(np.prod(gauge.geometry.extents))
    done = []
    for number in range(first, first + trajectories):
        delta_h, accepted = moving.run(number)
        if not abs(delta_h) <= most:
            raise Error(
                f"trajectory {number} ran away: expected an energy that changes by less than "
                f"{most:.3g}, found {delta_h:.3g}; take more steps, or a shorter length"
            )
        moving.copy_to(gauge)
        done.append(Trajectory(delta_h, accepted, gauge.plaquettes().all))
        if progress is not None:
            progress(number)
    return done
