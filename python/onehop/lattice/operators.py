"""What the Dirac operators share: fields given to the library, and the parts of a solve's report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.lattice.solver_options import SolverOptions

__all__ = ["complex_memory", "fields_memory", "report_of", "solver_options"]


def solver_options(options: SolverOptions) -> _core.LatticeSolverOptions:
    """Return the options of a solver for the library."""
    core = _core.LatticeSolverOptions()
    for name in ("tolerance", "iterations", "precision", "reproducible", "half_halo"):
        setattr(core, name, getattr(options, name))
    core.sloppy_precision = options.sloppy_precision or options.precision
    return core


def complex_memory(array: NDArray[Any], what: str) -> Any:
    """Return an array as memory of complex numbers in double precision. `what` names it in error messages."""
    return _core.Memory(np.ascontiguousarray(array, np.complex128), False, what)


def fields_memory(fields: NDArray[Any], shape: tuple[int, ...]) -> tuple[Any, bool]:
    """Return fields as memory, and whether there are several.

    Parameters
    ----------
    fields : array
        One field, or several along one axis in front.
    shape : tuple of int
        Shape of one field.

    Raises
    ------
    BadInput
        The array has another shape.
    """
    found = np.shape(fields)
    if found != shape and (found[1:] != shape or found[0] < 1):
        raise BadInput(f"expected a field of shape {shape}, or several with one axis in front, found {found}")
    return complex_memory(fields, "the field"), len(found) > len(shape)


def report_of(report: Any) -> dict[str, Any]:
    """Return what the results of all solves have of the library's report, by name."""
    return {
        "iterations": report.iterations,
        "converged": report.converged,
        "seconds": report.seconds,
        "communication_seconds": report.communication_seconds,
        "flops": report.flops,
        "bytes": report.bytes,
        "reliable_updates": report.reliable_updates,
    }
