"""Wilson quarks on a gauge field that is split over ranks, with or without the clover term."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.arguments import finite_array
from onehop.error import BadInput
from onehop.lattice.gauge import Gauge
from onehop.lattice.operators import (
    METHODS,
    QuarkSolve,
    WilsonSolverOptions,
    complex_memory,
    fields_memory,
    on_fields,
    quark_solve,
    solver_options,
)
from onehop.text import alternatives

if TYPE_CHECKING:
    from onehop._keywords import Unpack, WilsonSolverKeywords

__all__ = ["Wilson", "clover_blocks", "clover_leaves", "wilson_kappa"]


def wilson_kappa(mass: float) -> float:
    """Return kappa for the bare mass m: 1 / (8 + 2 m)."""
    return _core.lattice_kappa(mass)


def clover_leaves(gauge: Gauge) -> NDArray[np.complex128]:
    """Return the clover field strength `(Q - Q^dagger) / 8` of this rank's block, of shape (t, z, y, x, plane, 3, 3).

    Planes are (x, y), (x, z), (x, t), (y, z), (y, t), (z, t). Collective.
    """
    return _core.lattice_clover_leaves(gauge)


def clover_blocks(strength: NDArray[Any], weight: float, *, inverse: bool = False) -> NDArray[np.complex128]:
    """Return the clover term `1 - weight * sum gamma_mu gamma_nu F_mu,nu`, or its inverse, as two blocks per site.

    `strength` is anti-Hermitian, as `clover_leaves` returns it.

    Returns
    -------
    array
        Blocks of shape (t, z, y, x, half, 6, 6); the row is 3 * spin + colour, with the two spins of the half.

    Raises
    ------
    BadInput
        The shape is wrong, the strength is not anti-Hermitian, or a number is not finite.
    Error
        A block is singular (only with `inverse`).
    """
    if np.shape(strength)[-3:] != (6, 3, 3):
        raise BadInput(f"expected a field strength of shape (..., 6, 3, 3), found {np.shape(strength)}")
    fields = finite_array(strength, "the field strength")
    if abs(fields + fields.conj().swapaxes(-1, -2)).max(initial=0) > 1e-6 * abs(fields).max(initial=0):
        raise BadInput(
            "the field strength: expected anti-Hermitian matrices, as of clover_leaves, found others"
        )
    found = _core.lattice_clover_blocks(complex_memory(fields, "the field strength"), weight, inverse)
    return found.reshape(*fields.shape[:-3], 2, 6, 6)


class Wilson(_core.LatticeWilson):
    """The operator M = A - kappa D of Wilson quarks, where A is 1, or with `csw` the clover term.

    `(D v)(x)` is the sum over directions mu of
    `(1 - gamma_mu) U_mu(x) v(x + mu) + (1 + gamma_mu) U_mu(x - mu)^dagger v(x - mu)`.
    A field is this rank's block, of shape (t, z, y, x, spin, colour); several fields are stacked along one more axis in
    front. The constructor and all methods are collective.

    Parameters
    ----------
    gauge : Gauge
        The gauge field, of four directions with even extents. Its links are copied.
    kappa : float
        Hopping parameter; `wilson_kappa` converts a mass.
    csw : float
        Clover coefficient; 0 leaves the clover term out.
    antiperiodic : bool
        Whether the boundary in the last direction is antiperiodic.
    recon : int
        Real numbers kept per link: 18, or 12, where the third row is reconstructed whenever it is used.
    precision : str
        Precision of `dslash`, `apply` and `precondition`: "double", "single" or "half". In half precision links and
        clover term are 16-bit integers, the latter with a scale for every site; spinors are in single precision.
    lanes : int
        Largest number of sites in a SIMD vector; 0: as many as the processor's vectors have.
    threads : int
        Threads of this rank; 0: `ONEHOP_THREADS`, or its share of the cores.

    Raises
    ------
    BadInput
        There are not four directions, an extent is odd, a block has fewer than two sites in a direction that is cut,
        or `recon` is neither 12 nor 18.
    Error
        A block of the clover term is singular.
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
        how: dict[str, Any] = {"antiperiodic": antiperiodic, "recon": recon, "precision": precision}
        how |= {"kappa": kappa, "csw": csw, "lanes": lanes, "threads": threads}
        self._gauge = gauge
        super().__init__(gauge, **how)
        self._shape = (*gauge.geometry.block_shape, 4, 3)
        self.antiperiodic = antiperiodic

    def dslash(self, fields: NDArray[Any], *, dagger: bool = False) -> NDArray[np.complex128]:
        """Return D v, or with `dagger` the adjoint of D applied to v."""
        hop = super().dslash
        return on_fields(fields, self._shape, lambda memory: hop(memory, dagger))

    def apply(self, fields: NDArray[Any], *, dagger: bool = False) -> NDArray[np.complex128]:
        """Return M v, or with `dagger` the adjoint of M applied to v. NaN passes through operators."""
        apply = super().apply
        return on_fields(fields, self._shape, lambda memory: apply(memory, dagger))

    def precondition(self, fields: NDArray[Any], *, dagger: bool = False) -> NDArray[np.complex128]:
        """Return `(A - kappa^2 D A^-1 D) v` on the even sites. Odd sites are ignored, and are 0 in the result."""
        precondition = super().precondition
        return on_fields(fields, self._shape, lambda memory: precondition(memory, dagger))

    def solve(self, source: NDArray[Any], **keywords: Unpack[WilsonSolverKeywords]) -> QuarkSolve:
        """Solve M x = b with even-odd preconditioning.

        Parameters
        ----------
        source : array
            This rank's block of b, or several right-hand sides.

        Other Parameters
        ----------------
        tolerance : float
            The solve has converged when `|b - M x| / |b|` is at most this.
        iterations : int
            Largest number of iterations. A solve that reaches it returns its best solution, with `converged` false.
        method : str
            "bicgstab", "cgnr" for conjugate gradients on the normal equations, or "auto" (the default): BiCGStab, and
            CGNR from where its residual stalls.
        precision, sloppy_precision : str
            Precision of the solution ("double" or "single"), and of most iterations (also "half"; default:
            `precision`).
        reproducible : bool
            Use exact sums, so that the solution is the same, bit for bit, on every grid of ranks.
        half_halo : bool
            Send the halo of sloppy iterations as 16-bit numbers. Needs a `sloppy_precision` below `precision`, and no
            `reproducible`.
        schwarz : int
            Number of Schwarz preconditioner steps (not with "cgnr"), 0 for none. In each step every rank refines the
            solution on its own block, without communication.
        progress : callable, optional
            Called on every rank from time to time with the number of iterations and the relative residual.

        Raises
        ------
        BadInput
            The shape, method or precision is wrong, the tolerance is not above 0, or numbers are not finite.
        """
        options = WilsonSolverOptions.of("solve", keywords)
        if options.method not in METHODS:
            raise BadInput(f"expected the method {alternatives(METHODS)}, found {options.method!r}")
        memory, several = fields_memory(source, self._shape)
        solutions, report = super().solve(
            memory, solver_options(options), options.method, options.schwarz, options.progress
        )
        return quark_solve(solutions if several else solutions[0], report)
