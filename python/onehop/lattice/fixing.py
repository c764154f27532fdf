"""Gauge fixing: the gauge transformation of a field with the largest sum of the traces of its links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from onehop import _core
from onehop.arguments import instance, whole_number
from onehop.error import BadInput
from onehop.lattice.gauge import Gauge
from onehop.options import LARGEST_INT, Options, option
from onehop.text import alternatives

if TYPE_CHECKING:
    from onehop._keywords import FixingKeywords, Unpack

__all__ = ["CONDITIONS", "FixedGauge", "fix_gauge"]

CONDITIONS = ("coulomb", "landau")


@dataclass(kw_only=True)
class FixingOptions(Options):
    """The options of `fix_gauge`, which documents them."""

    title = "Gauge fixing"

    theta: float = option(
        1e-14, "Largest theta, the squared divergence of the fixed links.", low=1e-24, high=1
    )
    over_relaxation: float = option(
        1.8, "Factor of over-relaxation, from 1 (none) to less than 2.", low=1, high=1.999
    )
    sweeps: int = option(20000, "Largest number of sweeps.", low=1, high=LARGEST_INT)


class FixedGauge(NamedTuple):
    """The result of gauge fixing, or its state on the way, the same on every grid of ranks.

    Attributes
    ----------
    sweeps : int
        Number of sweeps so far.
    theta : float
        Mean over sites of tr(D²) / 3, where D(x) is the sum of A(x) - A(x - mu) over the directions mu of the
        condition, and A the traceless part of (U - U^dagger) / 2i. Zero in the gauge.
    functional : float
        Mean of Re tr U / 3 over the links of these directions.
    """

    sweeps: int
    theta: float
    functional: float


def fix_gauge(
    gauge: Gauge,
    condition: str = "coulomb",
    *,
    progress: Callable[[FixedGauge], None] | None = None,
    **keywords: Unpack[FixingKeywords],
) -> FixedGauge:
    """Replace the links of a gauge field by those in Coulomb or Landau gauge. Collective.

    The sum of Re tr U over the links of all directions (Landau), or of all but the last, which is time (Coulomb),
    becomes a maximum. There are many maxima, Gribov copies. Equal links lead to the same one, bit for bit, on every
    grid of ranks.

    Parameters
    ----------
    gauge : Gauge
        The field to fix in place; all extents are even.
    condition : {"coulomb", "landau"}
        The gauge.
    progress : callable, optional
        Called with the state after every 10 sweeps.

    Other Parameters
    ----------------
    theta : float
        Largest theta (default 1e-14).
    over_relaxation : float
        From 1, none, to less than 2 (default 1.8).
    sweeps : int
        Largest number of sweeps (default 20000).

    Raises
    ------
    BadInput
        An extent is odd, the condition is unknown, or an option is outside of its range.
    Error
        Theta does not become small enough; the links stay as they were.
    """
    options = FixingOptions.of("fix_gauge", keywords)
    instance(gauge, Gauge, "gauge")
    sweeps = whole_number(options.sweeps, "sweeps", 1, LARGEST_INT)
    if condition not in CONDITIONS:
        raise BadInput(f"expected the gauge {alternatives(CONDITIONS)}, found {condition!r}")

    tell = None if progress is None else lambda *state: progress(FixedGauge(*state))
    found = _core.lattice_fix_gauge(
        gauge, condition == "landau", options.theta, options.over_relaxation, sweeps, tell
    )
    return FixedGauge(*found)
