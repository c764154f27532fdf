"""Staggered quarks on a lattice that is split over ranks: naive, or with fat and long links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.arguments import finite_array, instance, real_number, real_numbers
from onehop.error import BadInput
from onehop.group import Group, together
from onehop.lattice.gauge import Gauge
from onehop.lattice.geometry import Geometry
from onehop.lattice.operators import (
    QuarkSolve,
    SolverOptions,
    complex_memory,
    fields_memory,
    on_fields,
    quark_solve,
    solver_options,
)
from onehop.lattice.phases import check_phases, with_staggered_phases
from onehop.lattice.smearing import FatLinks, hisq_links
from onehop.options import Options
from onehop.text import alternatives

if TYPE_CHECKING:
    from onehop._keywords import LinksKeywords, SolverKeywords, Unpack

__all__ = ["STAGGERED_ACTIONS", "Staggered"]

STAGGERED_ACTIONS = ("staggered", "asqtad", "hisq")


@dataclass(kw_only=True)
class LinksOptions(Options):
    """The options of `Staggered.of_links`, which documents them."""

    lanes: int = 8
    threads: int = 0
    map: Any = None
    hosts: Any = None


class Staggered:
    """The staggered operator M = 2 m + D with the anti-Hermitian hopping term D.

    `(D v)(x)` is the sum over directions mu of `eta_mu(x) [U_mu(x) v(x + mu) - U_mu(x - mu)^dagger v(x - mu)]` with
    `eta_mu(x) = (-1)^(x_0 + ... + x_(mu-1))`. The constructor and all methods that take
    fields are collective. A field is this rank's block, of shape (t, z, y, x, 3) for four directions; several
    fields are stacked along one more axis in front.

    Parameters
    ----------
    gauge : Gauge
        The gauge field, with even extents. Its links are copied.
    action : {"staggered", "asqtad", "hisq"}
        The links: those of the gauge field, or fat and long links, which the constructor computes.
    u0 : float
        Tadpole factor (asqtad only).
    antiperiodic : bool
        Whether the boundary in the last direction is antiperiodic.
    lanes : int
        Largest number of sites in a SIMD vector, at most 8; fewer are used if they do not fit.
    threads : int
        Threads of this rank; 0: `ONEHOP_THREADS`, or its share of the cores.
    phases : {"standard", "milc"}
        Convention of the phases. In MILC's, time comes first: `eta_t = 1`, and in space
        `eta_i(x) = (-1)^(t + x_0 + ... + x_(i-1))`. Use it with sources and solutions of MILC.
    naik_epsilon : float
        Correction of Naik's weight for heavy quarks (hisq only).

    Raises
    ------
    BadInput
        An extent is odd, the action or the convention of phases is unknown, or `naik_epsilon` is not 0 with another
        action than hisq; with long links, a block has fewer than
        three sites in a direction that is cut.
    """

    antiperiodic = True  # what links contain is not known

    def __init__(
        self,
        gauge: Gauge,
        action: str = "staggered",
        *,
        u0: float = 1.0,
        antiperiodic: bool = True,
        lanes: int = 8,
        threads: int = 0,
        phases: str = "standard",
        naik_epsilon: float = 0.0,
    ) -> None:
        how: dict[str, Any] = {
            "antiperiodic": antiperiodic,
            "phases": phases,
            "lanes": lanes,
            "threads": threads,
        }
        check_phases(phases)
        self.antiperiodic = antiperiodic
        if action not in STAGGERED_ACTIONS:
            raise BadInput(f"expected the action {alternatives(STAGGERED_ACTIONS)}, found {action!r}")
        if naik_epsilon == 0:
            core = _core.LatticeStaggered.from_gauge(
                gauge, action, u0, antiperiodic, lanes, threads, phases == "milc"
            )
            self._begin(core, gauge.group, gauge.geometry)
            return
        if action != "hisq":
            raise BadInput(f"expected the action hisq with naik_epsilon {naik_epsilon:g}, found {action!r}")
        made = hisq_links(gauge, naik_epsilon=naik_epsilon)
        self._begin(Staggered.of_fat_links(gauge, made, **how).core, gauge.group, gauge.geometry)

    @classmethod
    def of_fat_links(
        cls,
        gauge: Gauge,
        links: FatLinks,
        *,
        antiperiodic: bool = True,
        phases: str = "standard",
        lanes: int = 8,
        threads: int = 0,
    ) -> Staggered:
        """Create the operator from fat and long links without phases, such as those of `smearing.hisq_links`.

        The geometry is that of `gauge`; the other parameters are those of `Staggered`. Collective.
        """
        geometry = gauge.geometry
        signs: dict[str, Any] = {"antiperiodic": antiperiodic, "phases": phases}
        fat, long = (
            with_staggered_phases(one, geometry, gauge.group.rank, length=length, **signs)
            for one, length in ((links.fat, 1), (links.long_links, 3))
        )
        keywords: dict[str, Any] = {"lanes": lanes, "threads": threads, "map": geometry.rank_at or None}
        found = cls.of_links(gauge.group, geometry.extents, fat, long, geometry.grid, **keywords)
        operator = cls.of_core(found.core, gauge.group, geometry)
        operator.antiperiodic = antiperiodic
        return operator

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
        **keywords: Unpack[LinksKeywords],
    ) -> Staggered:
        """Create the operator from fat and long links that contain all phases and signs.

        `(D v)(x)` is the sum over mu of `F_mu(x) v(x + mu) - F_mu(x - mu)^dagger v(x - mu) + L_mu(x) v(x + 3 mu) -
        L_mu(x - 3 mu)^dagger v(x - 3 mu)`.

        Parameters
        ----------
        extents : sequence of int
            Extents of the whole lattice, x first.
        fat, long : array
            This rank's block: shape (t, z, y, x, direction, row, column) for four directions.
        grid : sequence of int, optional
            Number of ranks in each direction. Default: the grid with the smallest surface.

        Other Parameters
        ----------------
        lanes, threads
            As for `Staggered`.
        map, hosts
            Which rank is at which position of the grid, as for `Geometry`.

        Raises
        ------
        BadInput
            An extent is odd, an array has another shape, a number is not finite, or with long links a block has fewer
            than three sites in a direction that is cut.
        """
        options, group = LinksOptions.of("of_links", keywords), instance(group, Group, "group")
        width = 1 if long is None else 3
        hosts = group if isinstance(options.map, str) and options.hosts is None else options.hosts
        geometry = Geometry(extents, grid, ranks=group.size, width=width, map=options.map, hosts=hosts)
        shape = (*geometry.block_shape, len(geometry.block), 3, 3)
        memory = {}
        with together(group):
            for name, links in (("fat", fat), ("long", long)):
                if links is not None and np.shape(links) != shape:
                    raise BadInput(f"expected {name} links of shape {shape}, found {np.shape(links)}")
                if links is not None:
                    memory[name] = complex_memory(
                        finite_array(links, f"the {name} links"), f"the {name} links"
                    )
        core = _core.LatticeStaggered.of_links(
            group,
            list(extents),
            list(geometry.grid),
            memory.get("fat"),
            memory.get("long"),
            options.lanes,
            options.threads,
            list(geometry.rank_at),
        )
        return cls.of_core(core, group, geometry)

    @classmethod
    def of_core(cls, core: _core.LatticeStaggered, group: Group, geometry: Geometry) -> Staggered:
        """Wrap an existing operator of `_core` on this geometry."""
        made = cls.__new__(cls)
        made._begin(core, group, geometry)
        return made

    @property
    def core(self) -> _core.LatticeStaggered:
        """The wrapped operator of `_core`."""
        return self._core

    @property
    def lanes(self) -> int:
        """Number of sites in a SIMD vector."""
        return self._core.lanes

    @property
    def threads(self) -> int:
        """Number of threads of this rank."""
        return self._core.threads

    @property
    def has_long_links(self) -> bool:
        """Whether the operator has long links."""
        return self._core.has_long_links

    def dslash(
        self, fields: NDArray[Any], *, precision: str = "double", parity: int | None = None
    ) -> NDArray[np.complex128]:
        """Return D v for one field or several. With a parity, other sites than even (0) or odd (1) are 0.

        Raises
        ------
        BadInput
            The shape, precision or parity is wrong.
        """
        if parity not in (None, 0, 1):
            raise BadInput(f"expected parity 0 (even), 1 (odd) or None, found {parity!r}")
        parity = -1 if parity is None else parity
        return on_fields(fields, self._shape, lambda memory: self._core.dslash(memory, precision, parity))

    def apply(
        self, fields: NDArray[Any], mass: float, *, dagger: bool = False, precision: str = "double"
    ) -> NDArray[np.complex128]:
        """Return M v, or with `dagger` (2 m - D) v, for one field or several. NaN passes through operators."""
        return on_fields(
            fields, self._shape, lambda memory: self._core.apply(memory, mass, dagger, precision)
        )

    def apply_mdagm(
        self, fields: NDArray[Any], mass: float, *, precision: str = "double"
    ) -> NDArray[np.complex128]:
        """Return M^dagger M v = (4 m^2 - D D) v for one field or several. It does not mix the two parities."""
        return on_fields(fields, self._shape, lambda memory: self._core.apply_mdagm(memory, mass, precision))

    def solve(
        self, source: NDArray[Any], mass: float | Sequence[float], **keywords: Unpack[SolverKeywords]
    ) -> QuarkSolve:
        """Solve M x = b by conjugate gradients on the even sites, or for several masses at once (multi-shift).

        Parameters
        ----------
        source : array
            This rank's block of b, or several right-hand sides, which are solved together.
        mass : float or sequence of float
            Quark mass, above 0. Several masses need a single right-hand side.

        Other Parameters
        ----------------
        tolerance : float
            The solve has converged when `|b - M x| / |b|` is at most this.
        iterations : int
            Largest number of iterations. A solve that reaches it returns its best solution, with `converged` false.
        precision : str
            Precision of the solution: "double" or "single".
        sloppy_precision : str, optional
            Precision of most iterations: "half", "single" or "double". Default: `precision`. If it is lower, reliable
            updates recompute the residual in `precision`.
        reproducible : bool
            Use exact sums, so that the solution is the same, bit for bit, on every grid of ranks.
        half_halo : bool
            Send the halo of sloppy iterations as 16-bit numbers. Needs a `sloppy_precision` below `precision`, and no
            `reproducible`.
        progress : callable, optional
            Called on every rank from time to time with the number of iterations and the relative residual.

        Raises
        ------
        BadInput
            A mass is not above 0 (the operator may be singular then), a shape or precision is wrong, or numbers are not
            finite.
        """
        options = SolverOptions.of("solve", keywords)
        memory, several = fields_memory(source, self._shape)
        masses = [real_number(mass, "mass")] if np.ndim(mass) == 0 else real_numbers(mass, "mass")
        if len(masses) != 1 and several:
            raise BadInput(f"expected one right-hand side for several masses, found {np.shape(source)[0]}")
        solutions, report = self._core.solve(memory, masses, [], solver_options(options), options.progress)
        alone = not several and np.ndim(mass) == 0
        return quark_solve(solutions[0] if alone else solutions, report)

    def solve_shifts(
        self, source: NDArray[Any], mass: float, shifts: Sequence[float], **keywords: Unpack[SolverKeywords]
    ) -> QuarkSolve:
        """Solve `(M^dagger M + shift) x = b` for one right-hand side and several shifts at once (multi-shift).

        The solutions are along the first axis, and the residuals are those of these systems. The keywords are those of
        `solve`.

        Raises
        ------
        BadInput
            There is no shift, or `4 m^2 + shift` is not above 0; and as `solve`.
        """
        options = SolverOptions.of("solve_shifts", keywords)
        memory, several = fields_memory(source, self._shape)
        if several or len(shifts) == 0:
            raise BadInput(
                f"expected one right-hand side and one shift or more, found {np.shape(source)} and {shifts}"
            )
        chosen = [float(shift) for shift in shifts]
        solutions, report = self._core.solve(
            memory, [float(mass)], chosen, solver_options(options), options.progress
        )
        return quark_solve(solutions, report)

    def filter(self, field: NDArray[Any], degree: int, low: float, high: float) -> NDArray[np.complex128]:
        """Return T(-D D) v on the even sites, 0 on the odd ones, with a Chebyshev polynomial.

        The polynomial is between -1 and 1 on the interval from `low` to `high`, and grows outside, so that it
        amplifies eigenvectors with eigenvalues below `low`. Each degree applies -D D once.
        """
        return on_fields(field, self._shape, lambda memory: self._core.filter(memory, degree, low, high))
