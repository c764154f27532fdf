"""Staggered quarks on a gauge field that is split over ranks: the naive one-link operator."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.lattice.gauge import Gauge

__all__ = ["Staggered", "StaggeredSolve"]


class StaggeredSolve(NamedTuple):
    """What a solve came to.

    Attributes
    ----------
    solution : array
        This rank's block, whether or not it converged.
    true_residual : float
        `|b - M x| / |b|`, made anew with the whole operator.
    converged : bool
        Whether that is at most the tolerance.
    communication_seconds : float
        Of `seconds`, what this rank waited for faces and sums.
    """

    solution: NDArray[np.complex128]
    iterations: int
    true_residual: float
    converged: bool
    seconds: float
    communication_seconds: float


class Staggered(_core.LatticeStaggered):
    """The operator M = 2 m + D with the one-link hopping term D, anti-Hermitian, of links and Kawamoto-Smit phases.

    `(D v)(x)` is the sum over directions mu of `eta_mu(x) [U_mu(x) v(x + mu) - U_mu(x - mu)^dagger v(x - mu)]` with
    `eta_mu(x) = (-1)^(x_0 + ... + x_(mu-1))`. Collective over the gauge field's group, as all its methods are.

    Parameters
    ----------
    gauge : Gauge
        Its links are copied. All extents must be even.
    antiperiodic : bool
        In the last direction: links across the end of the lattice count negative.
    lanes : int
        Sites in a vector, at most 8; fewer where so many do not fit.

    Raises
    ------
    BadInput
        Odd extents; blocks of less than two sites where they are cut.
    """

    def __init__(self, gauge: Gauge, *, antiperiodic: bool = True, lanes: int = 8) -> None:
        super().__init__(gauge, antiperiodic, lanes)
        self._shape = (*gauge.geometry.block_shape, 3)

    def _memory(self, field: NDArray[Any]) -> Any:
        if np.shape(field) != self._shape:
            raise BadInput(f"expected a field of shape {self._shape}, found {np.shape(field)}")
        return _core.Memory(np.ascontiguousarray(field, np.complex128), False, "the field")

    def hop(self, field: NDArray[Any]) -> NDArray[np.complex128]:
        """D v, of this rank's block: shape (t, z, y, x, 3) for four directions.

        Raises
        ------
        BadInput
            Another shape.
        """
        return super().hop(self._memory(field))

    def solve(
        self, source: NDArray[Any], mass: float, *, tolerance: float = 1e-10, iterations: int = 10000
    ) -> StaggeredSolve:
        """Solve M x = b by conjugate gradients on the even sites.

        Parameters
        ----------
        source : array
            This rank's block of b.
        mass : float
            Above 0.
        tolerance : float
            Of `|b - M x| / |b|`.
        iterations : int
            At most so many. A solve that ends with them gives what it has, with `converged` false.

        Raises
        ------
        BadInput
            A mass that is not above 0, without which the operator may be singular; another shape.
        """
        return StaggeredSolve(*super().solve(self._memory(source), mass, tolerance, iterations))
