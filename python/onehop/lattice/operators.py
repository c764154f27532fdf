"""What the Dirac operators share: fields given to the library, options of solvers, and the results of solves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.arguments import complex_array
from onehop.error import BadInput
from onehop.options import LARGEST_INT, Options, option

METHODS = ("auto", "bicgstab", "cgnr")  # of Wilson quarks


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
        "auto",
        "Solver: BiCGStab, conjugate gradients on the normal equations, or (auto) the latter from where BiCGStab "
        "stalls.",
        choices=METHODS,
    )
    schwarz: int = option(0, "Number of Schwarz preconditioner steps.", low=0, high=LARGEST_INT)


class QuarkSolve(NamedTuple):
    """The result of a solve. Times, flops and bytes are those of this rank.

    Attributes
    ----------
    solution : array
        This rank's block, also if the solve did not converge; with several right-hand sides or masses one for each,
        along the first axis.
    iterations : int
        Total number of iterations; with Wilson quarks, each applies the preconditioned operator twice.
    true_residual : float
        `|b - M x| / |b|`, recomputed with the full operator; the largest one if there are several solutions.
    converged : bool
        Whether `true_residual` is at most the tolerance.
    communication_seconds : float
        The part of `seconds` spent in halo exchanges and sums over the ranks.
    flops, bytes : float
        Floating-point operations, and bytes read and written, of the operator and of the solver's linear algebra.
    reliable_updates : int
        How often the residual was recomputed in the outer precision.
    residuals : tuple of float
        `|b - M x| / |b|` of each solution.
    method : str
        The method that ended the solve: "cg", "bicgstab" or "cgnr".
    """

    solution: NDArray[np.complex128]
    iterations: int
    true_residual: float
    converged: bool
    seconds: float
    communication_seconds: float
    flops: float
    bytes: float
    reliable_updates: int
    residuals: tuple[float, ...]
    method: str


def quark_solve(solution: NDArray[np.complex128], report: _core.LatticeSolverReport) -> QuarkSolve:
    """Return the result of a solve from what the library returns."""
    parts = {name: getattr(report, name) for name in QuarkSolve._fields[1:]}
    return QuarkSolve(solution, **parts | {"residuals": tuple(report.residuals)})


def solver_options(options: SolverOptions) -> _core.LatticeSolverOptions:
    """Return the options of a solver for the library."""
    core = _core.LatticeSolverOptions()
    for name in ("tolerance", "iterations", "precision", "reproducible", "half_halo"):
        setattr(core, name, getattr(options, name))
    core.sloppy_precision = options.sloppy_precision or options.precision
    return core


def complex_memory(array: NDArray[Any], what: str) -> Any:
    """Return an array as memory of complex numbers in double precision. `what` names it in error messages."""
    return _core.Memory(complex_array(array, what), False, what)


def fields_memory(fields: NDArray[Any], shape: tuple[int, ...]) -> tuple[Any, bool]:
    """Return a field of this shape, or several along one axis in front, as memory, and whether there are several."""
    found = np.shape(fields)
    if found != shape and (found[1:] != shape or found[0] < 1):
        raise BadInput(f"expected a field of shape {shape}, or several with one axis in front, found {found}")
    return complex_memory(fields, "the field"), len(found) > len(shape)


def on_fields(
    fields: NDArray[Any], shape: tuple[int, ...], work: Callable[[Any], NDArray[np.complex128]]
) -> NDArray[np.complex128]:
    """Return what `work` makes of a field of this shape, or of several."""
    memory, several = fields_memory(fields, shape)
    found = work(memory)
    return found if several else found[0]
