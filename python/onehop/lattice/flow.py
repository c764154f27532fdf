"""The gradient flow of a gauge field, and what is measured on smooth fields."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from onehop import _core
from onehop.error import BadInput
from onehop.lattice.gauge import Gauge

__all__ = [
    "FLOW_STEP",
    "FieldStrength",
    "Flow",
    "FlowPoint",
    "field_strength",
    "flow_steps",
    "gradient_flow",
    "polyakov_loop",
    "reference_time",
]

FLOW_STEP = 0.02
MOST_STEPS = 1_000_000


class FieldStrength(NamedTuple):
    """Of the whole lattice, the same bits for every grid of ranks.

    Attributes
    ----------
    energy_plaquette : float
        A site's mean of 2 Re tr(1 - U_p), summed over its plaquettes.
    energy_clover : float
        A site's mean of -tr F², summed over planes, with F of the four plaquettes around the site.
    charge : float
        The topological charge with the same F; 0 unless there are four directions.
    """

    energy_plaquette: float
    energy_clover: float
    charge: float


class FlowPoint(NamedTuple):
    """A flowed field at a time in units of the squared lattice spacing; `t2_energy` is t² times the clover's energy."""

    time: float
    energy_plaquette: float
    energy_clover: float
    t2_energy: float
    charge: float


def field_strength(gauge: Gauge) -> FieldStrength:
    """Energy and topological charge of the links as they are. Collective."""
    return FieldStrength(*_core.lattice_field_strength(gauge))


def polyakov_loop(gauge: Gauge) -> complex:
    """The mean of tr / 3 of the product of all links in time, which is the last direction. Collective."""
    return _core.lattice_polyakov_loop(gauge)


class Flow(_core.LatticeFlow):
    """The Wilson flow of a copy of a gauge field's links.

    dV/dt = P(C V^dagger) V with C the sum of the staples, by the third-order Runge-Kutta method of Lüscher.
    Collective, as all its methods are.

    Parameters
    ----------
    gauge : Gauge
        Where it starts.
    """

    def __init__(self, gauge: Gauge) -> None:
        super().__init__(gauge)

    def field_strength(self) -> FieldStrength:
        """Energy and topological charge now. Collective."""
        return FieldStrength(*super().field_strength())

    def point(self) -> FlowPoint:
        """The same with the time. Collective."""
        found = self.field_strength()
        t2_energy = self.time**2 * found.energy_clover
        return FlowPoint(self.time, found.energy_plaquette, found.energy_clover, t2_energy, found.charge)


def flow_steps(time: float, step: float) -> int:
    """How many steps lead to a flow time, none longer than `step`.

    Raises
    ------
    BadInput
        A time below 0 or without end, a step that is not above 0 and at most 1, more than a million steps.
    """
    if not (np.isfinite(time) and time >= 0):
        raise BadInput(f"expected a flow time of 0 or more, found {time}")
    if not 0 < step <= 1:
        raise BadInput(f"expected a step of the flow above 0 and at most 1, found {step}")
    if time / step > MOST_STEPS:
        raise BadInput(f"expected at most {MOST_STEPS} steps of the flow, found {time / step:.3g}")
    return int(np.ceil(time / step - 1e-9))


def gradient_flow(
    gauge: Gauge,
    time: float,
    *,
    step: float = FLOW_STEP,
    every: int = 1,
    progress: Callable[[int], None] | None = None,
) -> tuple[Flow, list[FlowPoint]]:
    """Flow to a time. The gauge field stays as it is; the flow's `copy_to` gives the smooth links. Collective.

    Parameters
    ----------
    time : float
        In units of the squared lattice spacing.
    step : float
        Of the integration; made a little smaller where it does not divide the time.
    every : int
        Measure after every so many steps, and at both ends.
    progress : callable, optional
        Called with the number of every step done.

    Raises
    ------
    BadInput
        A time below 0, a step that is not above 0 and at most 1, `every` below 1.
    """
    steps = flow_steps(time, step)
    if every < 1:
        raise BadInput(f"expected to measure after every 1 or more steps, found {every}")
    flowing = Flow(gauge)
    points = [flowing.point()]
    for number in range(1, steps + 1):
        flowing.step(time / steps)
        if number % every == 0 or number == steps:
            points.append(flowing.point())
        if progress is not None:
            progress(number)
    return flowing, points


def reference_time(points: list[FlowPoint], value: float = 0.3) -> float | None:
    """The flow time t_0 at which t² E (clover) goes through a value, between two points; None if it does not."""
    for one, other in pairwise(points):
        if one.t2_energy < value <= other.t2_energy:
            part = (value - one.t2_energy) / (other.t2_energy - one.t2_energy)
            return one.time + part * (other.time - one.time)
    return None
