"""The options of solvers of quarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from onehop.options import LARGEST_INT, Options, option

__all__ = ["SolverKeywords", "SolverOptions", "WilsonSolverKeywords", "WilsonSolverOptions"]


class SolverKeywords(TypedDict, total=False):
    """The keyword arguments of `Staggered.solve`; see `SolverOptions`."""

    tolerance: float
    iterations: int
    precision: str
    sloppy_precision: str | None
    reproducible: bool
    half_halo: bool
    progress: Callable[[int, float], None] | None


class WilsonSolverKeywords(SolverKeywords, total=False):
    """The keyword arguments of `Wilson.solve`; see `WilsonSolverOptions`."""

    method: str
    schwarz: int


@dataclass(kw_only=True)
class SolverOptions(Options):
    """The options of a solver; `Staggered.solve` documents them."""

    title = "Solver"

    tolerance: float = option(1e-10, "Relative residual |b - M x| / |b| at which the solve ends.", above=0)
    iterations: int = option(10000, "Largest number of iterations.", low=0, high=LARGEST_INT)
    precision: str = option("double", "Precision of the solution.", choices=("double", "single"))
    sloppy_precision: str | None = option(
        None,
        "Precision of most iterations; reliable updates correct them.",
        choices=("double", "single", "half"),
        default="the same as --precision",
    )
    reproducible: bool = option(False, "Give the same bits on every number of ranks.")
    half_halo: bool = option(
        False, "Send the halo of sloppy iterations as 16-bit numbers (needs --sloppy-precision)."
    )
    progress: Callable[[int, float], None] | None = None


@dataclass(kw_only=True)
class WilsonSolverOptions(SolverOptions):
    """The options of a solver of Wilson quarks; `Wilson.solve` documents them."""

    title = "Wilson and clover quarks"

    method: str = option(
        "bicgstab",
        "Solver: BiCGStab, or conjugate gradients on the normal equations.",
        choices=("bicgstab", "cgnr"),
    )
    schwarz: int = option(0, "Number of Schwarz preconditioner steps.", low=0, high=LARGEST_INT)
