"""Wilson quarks on a gauge field that is split over ranks, with or without the clover term."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.lattice.gauge import Gauge

__all__ = ["Wilson", "WilsonSolve", "clover_blocks", "clover_leaves", "wilson_kappa"]

PLANES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


class WilsonSolve(NamedTuple):
    """What a solve came to.

    Attributes
    ----------
    solution : array
        This rank's block, of the source's shape, whether or not it converged.
    iterations : int
        Of all attempts together; one of either method applies the preconditioned operator twice.
    reliable_updates : int
        How often the residual was made anew in the outer precision.
    residuals : list of float
        `|b - M x| / |b|` of each right-hand side, made anew with the whole operator.
    converged : bool
        Whether they are all at most the tolerance.
    communication_seconds : float
        Of `seconds`, what this rank waited for faces and sums.
    flops, bytes : float
        What this rank computed and moved.
    """

    solution: NDArray[np.complex128]
    iterations: int
    reliable_updates: int
    residuals: list[float]
    converged: bool
    seconds: float
    communication_seconds: float
    flops: float
    bytes: float

    @property
    def true_residual(self) -> float:
        """The largest of the residuals."""
        return max(self.residuals)


def wilson_kappa(mass: float) -> float:
    """Kappa for the bare mass m: 1 / (8 + 2 m)."""
    if mass == -4:
        raise BadInput("expected a mass other than -4, where kappa is infinite")
    return 1 / (8 + 2 * mass)


def clover_leaves(gauge: Gauge) -> NDArray[np.complex128]:
    """Field strength from four leaves, `(Q - Q^dagger) / 8`, of this rank's block: shape (t, z, y, x, plane, 3, 3).

    Planes are (x, y), (x, z), (x, t), (y, z), (y, t), (z, t). Collective.
    """
    found = _core.lattice_clover_leaves(gauge)
    return np.asarray(found).reshape(*gauge.geometry.block_shape, len(PLANES), 3, 3)


def clover_blocks(strength: NDArray[Any], weight: float, *, inverse: bool = False) -> NDArray[np.complex128]:
    """The clover term `1 - weight * sum gamma_mu gamma_nu F_mu,nu`, or its inverse, as two blocks a site.

    Returns
    -------
    array
        Shape (t, z, y, x, half, 6, 6); row 3 * spin + colour, of the half's two spins.

    Raises
    ------
    Error
        A block that is singular, with `inverse`.
    """
    memory = _core.Memory(np.ascontiguousarray(strength, np.complex128), False, "the field strength")
    found = _core.lattice_clover_blocks(memory, weight, inverse)
    return np.asarray(found).reshape(*strength.shape[:-3], 2, 6, 6)


class Wilson(_core.LatticeWilson):
    """The operator M = A - kappa D of Wilson quarks; A is 1, or with `csw` the clover term.

    `(D v)(x)` is the sum over directions mu of
    `(1 - gamma_mu) U_mu(x) v(x + mu) + (1 + gamma_mu) U_mu(x - mu)^dagger v(x - mu)`.
    Fields are this rank's block, shape (t, z, y, x, spin, colour), or several of them with one more axis in front.
    Collective over the gauge field's group, as all its methods are.

    Parameters
    ----------
    gauge : Gauge
        Of four directions with even extents. Its links are copied.
    kappa : float
        `wilson_kappa` makes it of a mass.
    csw : float
        The clover term's coefficient; 0 leaves it out.
    antiperiodic : bool
        In the last direction.
    recon : int
        Keep links as 12 numbers instead of 18, and the third row is made anew whenever it is used.
    precision : str
        "double", "single" or "half": that of `dslash`, `apply` and `precondition`. With "half" links and
        the clover term are 16-bit integers, the latter with a scale for every site; spinors are in single precision.
    lanes : int
        Sites in a vector, at most; 0 is as many as the processor's vectors have.
    threads : int
        0 is as many as this rank has cores.

    Raises
    ------
    BadInput
        Other than four directions, odd extents, blocks of less than two sites where they are cut.
    Error
        A block of the clover term that is singular.
    """

    def __init__(
        self,
        gauge: Gauge,
        kappa: float = 0.125,
        *,
        csw: float = 0.0,
        antiperiodic: bool = True,
        recon: int = 18,
        precision: str = "double",
        lanes: int = 0,
        threads: int = 0,
    ) -> None:
        super().__init__(gauge, kappa, csw, antiperiodic, recon, precision, lanes, threads)
        self._shape = (*gauge.geometry.block_shape, 4, 3)

    def _memory(self, fields: NDArray[Any]) -> Any:
        shape = np.shape(fields)
        if shape[-len(self._shape) :] != self._shape or len(shape) > len(self._shape) + 1:
            raise BadInput(
                f"expected a field of shape {self._shape}, or several with one axis in front, found {shape}"
            )
        return _core.Memory(np.ascontiguousarray(fields, np.complex128), False, "the field")

    def dslash(self, fields: NDArray[Any], *, dagger: bool = False) -> NDArray[np.complex128]:
        """D v, or with the adjoint of D."""
        return np.asarray(super().dslash(self._memory(fields), dagger)).reshape(np.shape(fields))

    def apply(self, fields: NDArray[Any], *, dagger: bool = False) -> NDArray[np.complex128]:
        """M v, or with the adjoint of M."""
        return np.asarray(super().apply(self._memory(fields), dagger)).reshape(np.shape(fields))

    def precondition(self, fields: NDArray[Any], *, dagger: bool = False) -> NDArray[np.complex128]:
        """`(A - kappa^2 D A^-1 D) v` on even sites; odd ones are not looked at, and 0 in the result."""
        return np.asarray(super().precondition(self._memory(fields), dagger)).reshape(np.shape(fields))

    def solve(
        self,
        source: NDArray[Any],
        *,
        tolerance: float = 1e-10,
        iterations: int = 10000,
        method: str = "bicgstab",
        precision: str = "double",
        sloppy_precision: str | None = None,
        reproducible: bool = False,
        half_halo: bool = False,
        schwarz: int = 0,
        progress: Callable[[int, float], None] | None = None,
    ) -> WilsonSolve:
        """Solve M x = b through the even sites.

        Parameters
        ----------
        source : array
            This rank's block of b, or several of them.
        tolerance : float
            Of `|b - M x| / |b|`.
        iterations : int
            At most so many. A solve that ends with them gives what it has, with `converged` false.
        method : str
            "bicgstab", or "cgnr" for conjugate gradients on the normal equations.
        precision, sloppy_precision : str
            "double" or "single" of the whole; the same or "half" of most iterations, by default as `precision`.
        reproducible : bool
            Sums that do not depend on the grid of ranks.
        half_halo : bool
            Send the halo of sloppy iterations as 16-bit numbers. Needs a `sloppy_precision` below `precision`, and no
            `reproducible`.
        schwarz : int
            Steps of the Schwarz preconditioner, with BiCGStab: every rank improves its own block so many times
            without communication. 0 is none.
        progress : callable, optional
            Called now and then on every rank with the iterations done and the residual on its way.

        Raises
        ------
        BadInput
            Another shape, method or precision; a tolerance that is not above 0; numbers that are not finite.
        """
        if method not in ("bicgstab", "cgnr"):
            raise BadInput(f"expected the method bicgstab or cgnr, found {method!r}")
        solution, report = super().solve(
            self._memory(source),
            tolerance,
            iterations,
            precision,
            sloppy_precision or precision,
            reproducible,
            half_halo,
            method == "cgnr",
            schwarz,
            progress,
        )
        return WilsonSolve(
            solution=np.asarray(solution).reshape(np.shape(source)),
            iterations=report.iterations,
            reliable_updates=report.reliable_updates,
            residuals=list(report.residuals),
            converged=report.converged,
            seconds=report.seconds,
            communication_seconds=report.communication_seconds,
            flops=report.flops,
            bytes=report.bytes,
        )
