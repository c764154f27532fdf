"""Staggered quarks on a lattice that is split over ranks: one-link, or with given fat and long links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice.gauge import Gauge
from onehop.lattice.geometry import Geometry
from onehop.lattice.phases import check_phases

__all__ = ["PRECISIONS", "Staggered", "StaggeredSolve"]

PRECISIONS = ("half", "single", "double")
Progress = Callable[[int, float], Any]


class StaggeredSolve(NamedTuple):
    """What a solve came to.

    Attributes
    ----------
    solution : array
        This rank's block, whether or not it converged; one for each right-hand side or mass if there are several.
    true_residual : float
        `|b - M x| / |b|`, made anew with the whole operator, the largest if there are several.
    converged : bool
        Whether that is at most the tolerance.
    communication_seconds : float
        Of `seconds`, what this rank spent in faces and sums: starting them, and waiting for them.
    flops, bytes : float
        What this rank computed, and read and wrote: hopping terms and the solver's own sums of vectors.
    reliable_updates : int
        How often the residual was made anew in the outer precision.
    residuals : tuple of float
        `|b - M x| / |b|` of each solution.
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


def _memory(array: NDArray[Any], what: str) -> Any:
    return _core.Memory(np.ascontiguousarray(array, np.complex128), False, what)


class Staggered:
    """The operator M = 2 m + D with the hopping term D, anti-Hermitian, of links and Kawamoto-Smit phases.

    `(D v)(x)` is the sum over directions mu of `eta_mu(x) [U_mu(x) v(x + mu) - U_mu(x - mu)^dagger v(x - mu)]` with
    `eta_mu(x) = (-1)^(x_0 + ... + x_(mu-1))`. Collective over the gauge field's group, as all its methods are.
    Fields are this rank's block, shape (t, z, y, x, 3) for four directions, or several of them, one axis more in front.

    Parameters
    ----------
    gauge : Gauge
        Its links are copied. All extents must be even.
    antiperiodic : bool
        In the last direction: links across the end of the lattice count negative.
    lanes : int
        Sites in a vector, at most 8; fewer where so many do not fit.
    threads : int
        Of a rank; 0: `ONEHOP_THREADS`, or its share of the cores.
    phases : {"standard", "milc"}
        MILC's begin with time: `eta_t = 1`, and in space `eta_i(x) = (-1)^(t + x_0 + ... + x_(i-1))`. Sources and
        solutions of MILC belong to these.

    Raises
    ------
    BadInput
        Odd extents; other phases.
    """

    def __init__(
        self,
        gauge: Gauge,
        *,
        antiperiodic: bool = True,
        lanes: int = 8,
        threads: int = 0,
        phases: str = "standard",
    ) -> None:
        check_phases(phases)
        core = _core.LatticeStaggered(gauge, antiperiodic, lanes, threads, phases == "milc")
        self._begin(core, gauge.group, gauge.geometry)

    def _begin(self, core: _core.LatticeStaggered, group: Group, geometry: Geometry) -> None:
        self._core = core
        self._shape = (*geometry.block_shape, 3)
        self.group = group
        self.geometry = geometry

    @classmethod
    def of_links(
        cls,
        group: Group,
        extents: Sequence[int],
        fat: NDArray[Any],
        long: NDArray[Any] | None = None,
        grid: Sequence[int] | None = None,
        *,
        lanes: int = 8,
        threads: int = 0,
    ) -> Staggered:
        """Of given fat links and long ones, which go three sites, with all phases and signs in them.

        `(D v)(x)` is the sum over mu of `F_mu(x) v(x + mu) - F_mu(x - mu)^dagger v(x - mu) + L_mu(x) v(x + 3 mu) -
        L_mu(x - 3 mu)^dagger v(x - 3 mu)`.

        Parameters
        ----------
        extents : sequence of int
            Of the whole lattice, x first.
        fat, long : array
            This rank's block: shape (t, z, y, x, direction, row, column) for four directions.
        grid : sequence of int, optional
            Ranks per direction; by default what cuts shortest.

        Raises
        ------
        BadInput
            Odd extents; other shapes; with long links blocks of less than three sites where they are cut.
        """
        width = 1 if long is None else 3
        geometry = Geometry(extents, grid, ranks=group.size, width=width)
        shape = (*geometry.block_shape, len(geometry.block), 3, 3)
        for name, links in (("fat", fat), ("long", long)):
            if links is not None and np.shape(links) != shape:
                raise BadInput(f"expected {name} links of shape {shape}, found {np.shape(links)}")
        given = None if long is None else _memory(long, "the long links")
        core = _core.LatticeStaggered.of_links(
            group, list(extents), list(geometry.grid), _memory(fat, "the fat links"), given, lanes, threads
        )
        return cls.of_core(core, group, geometry)

    @classmethod
    def of_core(cls, core: _core.LatticeStaggered, group: Group, geometry: Geometry) -> Staggered:
        """Of an operator that is made already, on this geometry."""
        made = cls.__new__(cls)
        made._begin(core, group, geometry)
        return made

    @property
    def core(self) -> _core.LatticeStaggered:
        """What does the work."""
        return self._core

    @property
    def lanes(self) -> int:
        """Sites in a vector."""
        return self._core.lanes

    @property
    def threads(self) -> int:
        """Threads of a rank."""
        return self._core.threads

    @property
    def has_long_links(self) -> bool:
        """Whether it hops three sites too."""
        return self._core.has_long_links

    def _given(self, fields: NDArray[Any]) -> tuple[Any, bool]:
        """Fields as memory, and whether they are several."""
        shape = np.shape(fields)
        if shape != self._shape and (shape[1:] != self._shape or shape[0] < 1):
            raise BadInput(f"expected a field of shape {self._shape}, or several of them, found {shape}")
        return _memory(fields, "the field"), len(shape) > len(self._shape)

    def _work(self, fields: NDArray[Any], what: Callable[[Any], Any]) -> NDArray[np.complex128]:
        memory, several = self._given(fields)
        found = what(memory)
        return found if several else found[0]

    def dslash(
        self, fields: NDArray[Any], *, precision: str = "double", parity: int | None = None
    ) -> NDArray[np.complex128]:
        """D v of one field or several; with a parity only to even (0) or odd (1) sites, and 0 on the others.

        Raises
        ------
        BadInput
            Another shape, precision or parity.
        """
        if parity not in (None, 0, 1):
            raise BadInput(f"expected parity 0 (even), 1 (odd) or None, found {parity!r}")
        return self._work(
            fields, lambda memory: self._core.dslash(memory, precision, -1 if parity is None else parity)
        )

    def apply(
        self, fields: NDArray[Any], mass: float, *, dagger: bool = False, precision: str = "double"
    ) -> NDArray[np.complex128]:
        """M v, or its adjoint (2 m - D) v, of one field or several."""
        return self._work(fields, lambda memory: self._core.apply(memory, mass, dagger, precision))

    def apply_mdagm(
        self, fields: NDArray[Any], mass: float, *, precision: str = "double"
    ) -> NDArray[np.complex128]:
        """(4 m^2 - D D) v of one field or several: what is solved, on even and on odd sites by itself."""
        return self._work(fields, lambda memory: self._core.apply_mdagm(memory, mass, precision))

    def solve(
        self,
        source: NDArray[Any],
        mass: float | Sequence[float],
        *,
        tolerance: float = 1e-10,
        iterations: int = 10000,
        precision: str = "double",
        sloppy_precision: str | None = None,
        reproducible: bool = False,
        half_halo: bool = False,
        progress: Progress | None = None,
    ) -> StaggeredSolve:
        """Solve M x = b by conjugate gradients: on the even sites, or with several masses for all of them at once.

        Parameters
        ----------
        source : array
            This rank's block of b, or several right-hand sides, which are solved side by side.
        mass : float or sequence of float
            Above 0. Several masses take one right-hand side.
        tolerance : float
            Of `|b - M x| / |b|`.
        iterations : int
            At most so many. A solve that ends with them gives what it has, with `converged` false.
        precision : str
            "double" or "single".
        sloppy_precision : str, optional
            Precision of most iterations, "half", "single" or "double"; by default that of the whole. What a lower one
            finds is corrected with residuals of the whole precision.
        reproducible : bool
            Sums are exact, so that the solution is the same, bit for bit, for every grid of ranks.
        half_halo : bool
            Send the halo of sloppy iterations as 16-bit numbers. Needs a `sloppy_precision` below `precision`, and no
            `reproducible`.
        progress : callable, optional
            Called on every rank now and then with the iterations and the relative residual so far.

        Raises
        ------
        BadInput
            A mass that is not above 0, without which the operator may be singular; another shape or precision; numbers
            that are not finite.
        """
        memory, several = self._given(source)
        masses = [float(mass)] if np.ndim(mass) == 0 else [float(one) for one in mass]  # type: ignore[union-attr]
        if len(masses) != 1 and several:
            raise BadInput(f"expected one right-hand side for several masses, found {np.shape(source)[0]}")
        solutions, report = self._core.solve(
            memory,
            masses,
            tolerance,
            iterations,
            precision,
            sloppy_precision or precision,
            reproducible,
            half_halo,
            progress,
        )
        alone = not several and np.ndim(mass) == 0
        return StaggeredSolve(
            solution=solutions[0] if alone else solutions,
            iterations=report.iterations,
            true_residual=report.true_residual,
            converged=report.converged,
            seconds=report.seconds,
            communication_seconds=report.communication_seconds,
            flops=report.flops,
            bytes=report.bytes,
            reliable_updates=report.reliable_updates,
            residuals=tuple(report.residuals),
        )
