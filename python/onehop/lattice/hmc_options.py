"""The options of hybrid Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from onehop.options import LARGEST_INT, Options, option

__all__ = ["HmcKeywords", "HmcOptions"]


class HmcKeywords(TypedDict, total=False):
    """The keyword arguments of `hybrid_monte_carlo`; see `HmcOptions`."""

    length: float
    steps: int
    integrator: str
    seed: int
    first: int
    progress: Callable[[int], None] | None


@dataclass(kw_only=True)
class HmcOptions(Options):
    """The options of a trajectory; `Hmc` documents them."""

    title = "Hybrid Monte Carlo (hmc only)"

    length: float = option(1.0, "Length of a trajectory.", above=0)
    steps: int = option(20, "Number of integrator steps per trajectory.", low=1, high=LARGEST_INT)
    integrator: str = option("omelyan", "Integrator of the trajectories.", choices=("omelyan", "leapfrog"))
    seed: int = 1
    first: int = 0
    progress: Callable[[int], None] | None = None
