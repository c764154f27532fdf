"""The gradient flow of a gauge field, and observables of smooth fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.arguments import real_number, whole_number
from onehop.error import BadInput, Error
from onehop.group import require_same
from onehop.lattice.gauge import Gauge
from onehop.options import LARGEST_INT
from onehop.text import alternatives

__all__ = [
    "CHARGES",
    "FLOW_ACTIONS",
    "FLOW_LIMIT",
    "FLOW_STEP",
    "FieldStrength",
    "Flow",
    "FlowPoint",
    "FlowStep",
    "check_flow_tolerance",
    "field_strength",
    "flow_steps",
    "gradient_flow",
    "improved_charge",
    "polyakov_loop",
    "reference_time",
    "wilson_loops",
]

FLOW_ACTIONS = ("wilson", "symanzik", "zeuthen")
CHARGES = ("clover", "5li")  # definitions of the topological charge

FLOW_STEP = 0.02
# The largest error of a step of fixed length. On thermalized fields steps of 0.12 reach it; the relative error of the
# energy at t = 1 is then below 1e-3.
FLOW_LIMIT = 0.1
NO_TOLERANCE = float(np.finfo(float).tiny)
MAX_STEPS = 1_000_000


class FieldStrength(NamedTuple):
    """Energy and topological charge of the whole lattice, the same bits on every grid of ranks.

    Attributes
    ----------
    energy_plaquette : float
        Mean over sites of 2 Re tr(1 - U_p), summed over the plaquettes of a site.
    energy_clover : float
        Mean over sites of -tr F², summed over planes, with F from the four plaquettes around the site.
    charge : float
        Topological charge from the same F; 0 unless there are four directions.
    """

    energy_plaquette: float
    energy_clover: float
    charge: float


class FlowStep(NamedTuple):
    """A step of the flow with error control.

    Attributes
    ----------
    epsilon : float
        Size of the step.
    error : float
        Error of the step, as `Flow.try_step` returns it.
    next_epsilon : float
        Size that is expected to meet the tolerance in the next step.
    """

    epsilon: float
    error: float
    next_epsilon: float


class FlowPoint(NamedTuple):
    """Observables of a flowed field.

    Attributes
    ----------
    time : float
        Flow time in units of the squared lattice spacing.
    energy_plaquette, energy_clover, charge : float
        See `FieldStrength`.
    t2_energy : float
        t² times `energy_clover`.
    """

    time: float
    energy_plaquette: float
    energy_clover: float
    t2_energy: float
    charge: float


def field_strength(gauge: Gauge) -> FieldStrength:
    """Return energy and topological charge of a gauge field. Collective."""
    return FieldStrength(*_core.lattice_field_strength(gauge))


def polyakov_loop(gauge: Gauge) -> complex:
    """Return the mean over space of tr / 3 of the product of all links in time, the last direction. Collective."""
    return _core.lattice_polyakov_loop(gauge)


def improved_charge(gauge: Gauge) -> float:
    """Return the topological charge 5Li, from loops of 1x1 to 3x3 plaquettes; 0 unless there are four directions.

    Its errors begin with the sixth power of the lattice spacing. Collective.
    """
    return _core.lattice_improved_charge(gauge)


def wilson_loops(gauge: Gauge, r: int, t: int) -> NDArray[np.float64]:
    """Return the means of Re tr / 3 of Wilson loops, of shape (r, t). Collective.

    Parameters
    ----------
    r, t : int
        The largest numbers of links in space, along one direction, and in time, the last direction. The entry
        [i, j] is the mean over sites and directions in space of the loops of i + 1 by j + 1 links.

    Raises
    ------
    BadInput
        A loop is longer than the lattice.
    """
    r, t = whole_number(r, "r", 1, LARGEST_INT), whole_number(t, "t", 1, LARGEST_INT)
    return np.reshape(_core.lattice_wilson_loops(gauge, r, t), (r, t))


class Flow(_core.LatticeFlow):
    """The gradient flow of a copy of a gauge field's links.

    It integrates dV/dt = P(C V^dagger) V, where C is the sum of the staples, with Lüscher's third-order Runge-Kutta
    method. The constructor and all methods are collective.

    Parameters
    ----------
    gauge : Gauge
        The initial field.
    action : {"wilson", "symanzik", "zeuthen"}
        The action whose gradient the flow follows.
    charge : {"clover", "5li"}
        The definition of the topological charge.

    Attributes
    ----------
    largest_error : float
        The largest error of all steps with error control so far.
    """

    def __init__(self, gauge: Gauge, action: str = "wilson", *, charge: str = "clover") -> None:
        for what, found, known in (("action", action, FLOW_ACTIONS), ("charge", charge, CHARGES)):
            if found not in known:
                raise BadInput(f"expected the {what} {alternatives(known)}, found {found!r}")
        require_same(gauge.group, "Flow", charge=charge)
        self._gauge = gauge
        super().__init__(gauge, action)
        self.action = action
        self.largest_error = 0.0
        self._smooth: Gauge | None = (
            None  # takes a copy of the links, for charges that are not of the flow itself
        )
        if charge == "5li":
            whole = gauge.geometry
            self._smooth = Gauge(gauge.group, whole.extents, whole.grid, map=whole.rank_at or None)

    def try_step(self, epsilon: float, tolerance: float) -> float:
        """Do one step if its error is at most the tolerance; otherwise leave the links and the time unchanged.

        Returns
        -------
        float
            The error: the largest Frobenius norm, over links, of the difference to the embedded second-order method.
            It scales with the third power of the step, and is the same on every grid of ranks.
        """
        error = super().try_step(epsilon, tolerance)
        if error <= tolerance:
            self.largest_error = max(self.largest_error, error)
        return error

    def step_within(self, epsilon: float, tolerance: float) -> FlowStep:
        """Do one step of at most `epsilon`, shortened until its error is at most the tolerance."""
        step = FlowStep(*super().step_within(epsilon, tolerance))
        self.largest_error = max(self.largest_error, step.error)
        return step

    def field_strength(self) -> FieldStrength:
        """Return energy and topological charge at the current flow time. Collective."""
        found = FieldStrength(*super().field_strength())
        if self._smooth is None:
            return found
        self.copy_to(self._smooth)
        return found._replace(charge=improved_charge(self._smooth))

    def point(self) -> FlowPoint:
        """Return the flow time with energy and topological charge. Collective."""
        found = self.field_strength()
        t2_energy = self.time**2 * found.energy_clover
        time = float(f"{self.time:.12g}")  # a sum of steps, which would end in rounding errors
        return FlowPoint(time, found.energy_plaquette, found.energy_clover, t2_energy, found.charge)


def check_flow_tolerance(tolerance: float) -> None:
    """Raise BadInput unless a tolerance of the flow is between 1e-12 and 1."""
    if not 1e-12 <= tolerance <= 1:
        raise BadInput(f"expected a tolerance of the flow from 1e-12 to 1, found {tolerance}")


def flow_steps(time: float, step: float) -> int:
    """Return the number of equal steps to a flow time, none longer than `step`.

    Raises
    ------
    BadInput
        The time is below 0 or not finite, the step is not above 0 and at most 1, or there are more than a million
        steps.
    """
    time, step = real_number(time, "time"), real_number(step, "step")
    if not (np.isfinite(time) and time >= 0):
        raise BadInput(f"expected a finite flow time of 0 or more, found {time}")
    if not 0 < step <= 1:
        raise BadInput(f"expected a step of the flow above 0 and at most 1, found {step}")
    if time / step > MAX_STEPS:
        raise BadInput(f"expected at most {MAX_STEPS} steps of the flow, found {time / step:.3g}")
    return int(np.ceil(time / step - 1e-9))


def _largest_step(flowing: Flow, below: float, dims: int) -> float:
    """Return the longest step up to `below` whose error is at most FLOW_LIMIT, for the current links. Collective."""

    def works(epsilon: float) -> bool:
        # Every error exceeds this tolerance, so that the links do not change.
        return flowing.try_step(epsilon, NO_TOLERANCE) <= FLOW_LIMIT

    good, bad = 0.0, min(below, _core.longest_stable_flow_step(dims, flowing.action))
    if works(bad):
        good = bad
    while bad - good > 1e-3 * bad and bad > 1e-9:
        middle = (good + bad) / 2
        good, bad = (middle, bad) if works(middle) else (good, middle)
    if good == 0:
        raise Error(
            f"flow: expected a step with an error below {FLOW_LIMIT:g} at t = {flowing.time:g}, found none; "
            "check that the links are in SU(3)"
        )
    unit = 10.0 ** (np.floor(np.log10(good)) - 2)
    return float(f"{np.floor(good / unit) * unit:.6g}")  # three digits, not rounded up


def _fixed_steps(flowing: Flow, time: float, step: float, dims: int) -> Iterator[bool]:
    """Do steps of equal length; yield after each whether it was the last."""
    steps = flow_steps(time, step)
    stable = _core.longest_stable_flow_step(dims, flowing.action)
    for number in range(1, steps + 1):
        epsilon = time / steps
        at = flowing.time
        if epsilon > stable:
            reason = (
                f"steps above {stable:.4g} are unstable in {dims} directions with the {flowing.action} action"
            )
            largest = _largest_step(flowing, epsilon, dims)
        elif (error := flowing.try_step(epsilon, FLOW_LIMIT)) > FLOW_LIMIT:
            reason = f"expected an error of at most {FLOW_LIMIT:g}, found {error:.3g} at t = {at:g}"
            largest = _largest_step(flowing, epsilon, dims)
        else:
            yield number == steps
            continue
        raise BadInput(
            f"a step of {epsilon:.6g} is too long for the flow of this field: {reason}; the largest step that works is "
            f"{largest:g} (step, --flow-step), or let the steps adapt to a tolerance (tolerance, --flow-tolerance)"
        )


def _adapted_steps(flowing: Flow, time: float, step: float, tolerance: float) -> Iterator[bool]:
    """Do steps as long as the tolerance allows; yield after each whether it was the last."""
    flow_steps(time, step)
    wanted, number = step, 0
    while (left := time - flowing.time) > 1e-12 * time:
        if (number := number + 1) > MAX_STEPS:
            raise Error(
                f"flow: expected at most {MAX_STEPS} steps to t = {time:g}, reached t = {flowing.time:g}; "
                "take a larger tolerance"
            )
        done, _, proposed = flowing.step_within(left if wanted > 0.999 * left else wanted, tolerance)
        # Keep the wanted length after a last step that was shortened to end at `time`.
        wanted = proposed if done < left else wanted
        yield done >= left


def gradient_flow(
    gauge: Gauge,
    time: float,
    *,
    step: float = FLOW_STEP,
    tolerance: float | None = None,
    every: int = 1,
    action: str = "wilson",
    charge: str = "clover",
    progress: Callable[[int], None] | None = None,
) -> tuple[Flow, list[FlowPoint]]:
    """Integrate the gradient flow to a time. Collective.

    The gauge field does not change; `Flow.copy_to` returns the smooth links. The error of every step is measured, see
    `Flow.try_step`. Steps of fixed length may have an error of up to `FLOW_LIMIT`.

    Parameters
    ----------
    gauge : Gauge
        The initial field.
    time : float
        Flow time in units of the squared lattice spacing.
    step : float
        Length of a step, in the same units. It is shortened so that equal steps end at `time`. With a tolerance it is
        the length of the first step.
    tolerance : float, optional
        Adapt the length of every step so that its error is at most this, between 1e-12 and 1.
    every : int
        Number of steps between measurements; the field is also measured at both ends.
    action, charge : str
        As for `Flow`.
    progress : callable, optional
        Called with the number of each finished step.

    Returns
    -------
    Flow, list of FlowPoint
        The flowed field, and the measurements.

    Raises
    ------
    BadInput
        The time, step, `every` or tolerance is out of range; or a step of fixed length is unstable or has an error
        above `FLOW_LIMIT`, and the message names the largest step that works.
    Error
        No step has a small enough error, for example because links are not in SU(3).
    """
    require_same(gauge.group, "gradient_flow", time=time, step=step, tolerance=tolerance, every=every)
    dims = len(gauge.geometry.block)
    flow_steps(time, step)
    if every < 1:
        raise BadInput(f"expected to measure after every 1 or more steps, found {every}")
    if tolerance is not None:
        check_flow_tolerance(tolerance)
    flowing = Flow(gauge, action, charge=charge)
    points = [flowing.point()]
    steps = (
        _fixed_steps(flowing, time, step, dims)
        if tolerance is None
        else _adapted_steps(flowing, time, step, tolerance)
    )
    for number, last in enumerate(steps, 1):
        if number % every == 0 or last:
            points.append(flowing.point())
        if progress is not None:
            progress(number)
    return flowing, points


def reference_time(points: list[FlowPoint], value: float = 0.3) -> float | None:
    """Return the flow time at which t² E (clover) first reaches a value from below, by linear interpolation.

    Parameters
    ----------
    points : list of FlowPoint
        The measurements of a flow, in order of time.
    value : float
        The value; 0.3 defines the reference time t_0.

    Returns
    -------
    float or None
        The time in units of the squared lattice spacing; None if t² E does not reach the value.
    """
    for one, other in pairwise(points):
        if one.t2_energy < value <= other.t2_energy:
            part = (value - one.t2_energy) / (other.t2_energy - one.t2_energy)
            return one.time + part * (other.time - one.time)
    return None
