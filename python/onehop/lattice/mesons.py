"""Observables from quark propagators: meson correlators, effective masses, and the chiral condensate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onehop.arguments import real_numbers, require_seed
from onehop.error import BadInput, Error, explain_public
from onehop.group import require_same
from onehop.lattice.contractions import (
    STAGGERED_MESONS,
    Projection,
    corner_nucleon,
    meson_correlators,
    momenta_up_to,
    nucleon_correlator,
)
from onehop.lattice.gauge import Gauge
from onehop.lattice.geometry import require_memory, sites_on_a_rank
from onehop.lattice.sources import GaussianSmearing, SourceOptions, SpinTaste, noise, quark_sources
from onehop.lattice.staggered import Staggered
from onehop.lattice.wilson import Wilson
from onehop.refusals import make_collective
from onehop.text import counted

if TYPE_CHECKING:
    from onehop._keywords import SourceKeywords, Unpack

__all__ = [
    "Condensate",
    "Mesons",
    "chiral_condensate",
    "effective_mass",
    "logarithmic_mass",
    "staggered_mesons",
    "wilson_mesons",
]

Fields = NDArray[np.complex128]
Momentum = tuple[int, int, int]
Progress = Callable[[int], None]
_AT_ONCE = 4  # noise vectors


class Mesons(NamedTuple):
    """Correlators, one number for each time behind the source.

    Attributes
    ----------
    correlators : dict
        For each name an array of shape (momentum, time); of nucleons with a wall, only that of momentum 0.
    momenta : list of tuple of int
        The momenta, in units of 2 pi / extent; the first is 0.
    iterations : int
        Total number of solver iterations.
    true_residual : float
        The largest residual of all solves.
    """

    correlators: dict[str, NDArray[np.float64]]
    momenta: list[tuple[int, int, int]]
    iterations: int
    true_residual: float

    @property
    def pion(self) -> NDArray[np.float64]:
        """The pion at zero momentum: the sum over space, colours and spins of `|G(x, t)|²`."""
        return self.correlators["pion"][0]

    @property
    def rho(self) -> NDArray[np.float64]:
        """The rho at zero momentum, the mean over the three directions in space."""
        return self.correlators["rho"][0]


class Condensate(NamedTuple):
    """An estimate of tr M^-1 / volume from noise vectors, summed over colours."""

    mean: float
    error: float | None
    values: list[float]


def _solved(result: Any, tolerance: float) -> NDArray[np.complex128]:
    if not result.converged:
        raise Error(
            f"expected propagators with a residual of {tolerance:g}, reached {result.true_residual:.3e} in "
            f"{counted(result.iterations, 'iteration')}; take a larger mass or tolerance"
        )
    return result.solution


class _Solves:
    """Solves for several right-hand sides at once, which count themselves."""

    def __init__(
        self, solve: Callable[..., Any], tolerance: float, iterations: int, progress: Progress | None
    ) -> None:
        self._solve, self._limits = solve, {"tolerance": tolerance, "iterations": iterations}
        self._progress, self._done = progress, 0
        self.iterations, self.true_residual = 0, 0.0

    def __call__(self, sources: Fields) -> Fields:
        """Return the solutions for sources along the first axis. Raises Error if one did not converge."""
        result = self._solve(sources, **self._limits)
        solutions = _solved(result, self._limits["tolerance"])
        self.iterations += result.iterations
        self.true_residual = max(self.true_residual, result.true_residual)
        for _ in range(len(sources)):
            if self._progress is not None:
                self._progress(self._done)
            self._done += 1
        return solutions

    def mesons(self, found: list[dict[str, Fields]], momenta: list[Momentum]) -> Mesons:
        """Return the means of the correlators of all sources."""
        means = {name: np.mean([one[name].real for one in found], axis=0) for name in found[0]}
        return Mesons(means, momenta, self.iterations, self.true_residual)


def staggered_mesons(
    gauge: Gauge,
    operator: Staggered,
    mass: float,
    *,
    tolerance: float = 1e-10,
    iterations: int = 10000,
    one_link: bool = False,
    phases: str = "standard",
    progress: Progress | None = None,
    **keywords: Unpack[SourceKeywords],
) -> Mesons:
    """Measure the local mesons of staggered quarks, and on request those that are point-split by one link. Collective.

    They are those of `contractions.STAGGERED_MESONS`. The pion is Goldstone's. Without noise, `nucleon_corner` is the
    sum of det G over the corners of hypercubes in space, which lie at even distances from the source. The correlators
    also contain a state of opposite parity, which alternates in time.

    Parameters
    ----------
    gauge : Gauge
        Provides the geometry, and the links of point-split operators.
    operator : Staggered
        The operator on this lattice: naive, or with fat and long links.
    one_link : bool
        Whether to measure point-split mesons, which take nine more solves.
    phases : {"standard", "milc"}
        The phases of the operator, which point-split operators have, too.
    progress : callable, optional
        Called with the number of each finished solve.

    Other Parameters
    ----------------
    source, sink, origin, sources, momenta, seed
        As for `wilson_mesons`, without Gaussian smearing; the sink is a point.

    Raises
    ------
    Error
        A solve did not converge.
    """
    options = SourceOptions.of("staggered_mesons", keywords)
    require_same(gauge.group, "staggered_mesons", one_link=one_link, **vars(options))
    options.check_sources(gauge.geometry.extents)
    if options.source == "gaussian" or options.sink != "point" or (one_link and options.source != "point"):
        raise BadInput(
            "expected a point sink and no Gaussian source with staggered quarks, and a point source for point-split "
            f"mesons, found the source {options.source} and the sink {options.sink}"
        )
    momenta = momenta_up_to(options.momenta)
    solves = _Solves(
        lambda source, **how: operator.solve(source, mass, **how), tolerance, iterations, progress
    )
    found = []
    for number, origin in enumerate(options.origins(gauge.geometry.extents[-1])):
        project = Projection(gauge, momenta, origin)
        source = quark_sources(gauge, options.source, origin, seed=options.seed, number=number)
        quark = solves(source)
        one_each = [Projection(gauge, [p], origin) for p in momenta] if options.has_waves else [project]
        density = [(quark.real**2 + quark.imag**2).sum(axis=(0, -1))]
        for one in one_each[1:]:
            density.append((quark.conj() * solves(source * one.waves()[0])).sum(axis=(0, -1)))
        split = {}  # by direction; at a point source all spins have the same sign
        for direction in (1, 2, 4) if one_link else ():
            split[direction] = solves(SpinTaste(gauge, 0, direction, origin, phases=phases)(source))
        means = {}
        for name, operators in STAGGERED_MESONS.items():
            parts = []
            for spin, taste in operators if one_link or operators[0][0] == operators[0][1] else ():
                sink = SpinTaste(gauge, spin, taste, origin, phases=phases)
                if spin == taste:
                    both = zip(one_each, density, strict=True)
                    parts.append(np.concatenate([one.of_sites(sink.signs * sites) for one, sites in both]))
                else:
                    sites = (quark.conj() * sink(split[spin ^ taste])).sum(axis=(0, -1))
                    parts.append(project.of_sites(sites))
            if parts:
                means[name] = np.mean(parts, axis=0)
        if not options.has_noise:
            sites = corner_nucleon(gauge, quark, origin)
            means["nucleon_corner"] = one_each[0].of_sites(sites, antiperiodic=operator.antiperiodic)
        found.append(means)
    return solves.mesons(found, momenta)


def _propagators(solves: _Solves, vectors: Fields, smear: GaussianSmearing | None) -> Fields:
    """Return the propagators of colour vectors with each spin, smeared at the sink on request. Collective."""
    columns = np.empty((4, *vectors.shape[:-1], 4, 3), np.complex128)
    for spin in range(4):
        source = np.zeros(columns.shape[1:], np.complex128)
        source[..., spin, :] = vectors
        columns[spin] = solves(source)
        if smear is not None:
            columns[spin] = np.moveaxis(smear(np.moveaxis(columns[spin], -2, 0)), 0, -2)
    return columns


def wilson_mesons(
    gauge: Gauge,
    operator: Wilson,
    *,
    tolerance: float = 1e-10,
    iterations: int = 10000,
    progress: Progress | None = None,
    **keywords: Unpack[SourceKeywords],
) -> Mesons:
    """Measure mesons with all 16 gamma matrices and the nucleon of Wilson or clover quarks. Collective.

    The names of mesons are those of `contractions.WILSON_MESONS`, and `rho`, the mean over directions.

    Parameters
    ----------
    progress : callable, optional
        Called with the number of each finished solve.

    Other Parameters
    ----------------
    source : {"point", "gaussian", "wall", "z2", "random-wall"}
        A point, a point with `sources.GaussianSmearing`, or all sites of a time: with 1, with Z2 noise, or with random
        colour vectors. A wall needs a fixed gauge. With noise there is no nucleon.
    sink : {"point", "gaussian", "wall"}
        The same for the sink; a wall is the sum over space.
    origin : tuple of int
        The site x, y, z, t of the first source; correlators begin with its time.
    sources : int
        Number of sources at equal distances in time; correlators are their means.
    width, smear_steps, ape_alpha, ape_steps
        Parameters of `sources.GaussianSmearing`.
    momenta : int
        The largest p² of the momenta, in units of (2 pi / extent)². With a source in all of space, each momentum but 0
        takes solves of its own, and with a wall the nucleon has momentum 0 only.
    seed : int
        Seed of the noise, which is the same on every grid of ranks.

    Raises
    ------
    BadInput
        Sources that are outside of the lattice, or whose number does not divide its times.
    Error
        A solve did not converge.
    """
    options = SourceOptions.of("wilson_mesons", keywords)
    require_same(gauge.group, "wilson_mesons", **vars(options))
    geometry = gauge.geometry
    options.check_sources(geometry.extents)
    # All columns, twice while a sink is smeared, and about eight copies of a time slice in the contraction.
    copies = (1 if options.sink == "point" else 2) + 8 / geometry.block_shape[0]
    copies += 2 if options.momenta and (options.has_waves or options.sink == "wall") else 0
    needed = sites_on_a_rank(geometry.extents, gauge.group.size) * 144 * 16 * copies
    require_memory(gauge.group, geometry.extents, needed, "propagators")
    smear = None
    if "gaussian" in (options.source, options.sink):
        ape = {"ape_alpha": options.ape_alpha, "ape_steps": options.ape_steps}
        smear = GaussianSmearing(gauge, options.width, options.smear_steps, **ape)
    momenta = momenta_up_to(options.momenta)
    solves = _Solves(operator.solve, tolerance, iterations, progress)
    found = []
    for number, origin in enumerate(options.origins(geometry.extents[3])):
        project = Projection(gauge, momenta, origin)
        kind = "point" if options.source == "gaussian" else options.source
        vectors = quark_sources(gauge, kind, origin, seed=options.seed, number=number)
        if smear is not None and options.source == "gaussian":
            vectors = smear(vectors)
        to_sink = smear if options.sink == "gaussian" else None
        columns = _propagators(solves, vectors, to_sink)
        parts: list[dict[str, Fields]] = []
        ends = project
        if options.has_waves or options.sink == "wall":
            ends = Projection(gauge, origin=origin)
            at_sink = project.at_one_site(columns) if options.sink == "wall" else columns
            for at, wave in enumerate(project.waves()):
                quark = _propagators(solves, vectors * wave, to_sink) if at and options.has_waves else columns
                if options.sink == "wall":
                    parts.append(meson_correlators(ends, project.at_one_site(quark, at), at_sink))
                else:
                    parts.append(meson_correlators(Projection(gauge, [momenta[at]], origin), quark, columns))
            columns = at_sink
        else:
            parts.append(meson_correlators(project, columns))
        means = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
        means["rho"] = np.mean([means[f"rho_{direction}"] for direction in "xyz"], axis=0)
        if not options.has_noise:
            means["nucleon"] = nucleon_correlator(ends, columns, antiperiodic=operator.antiperiodic)
        found.append(means)
    return solves.mesons(found, momenta)


def effective_mass(correlator: NDArray[Any], distance: int = 1) -> NDArray[np.float64]:
    """Solve cosh(m (t - T/2)) / cosh(m (t + distance - T/2)) = C(t) / C(t + distance) for m, t = 0 ... T/2 - distance.

    Parameters
    ----------
    correlator : array
        A periodic correlator of T times, or several, of shape (..., T); its two halves are averaged.
    distance : int
        Separation of the two times; use 2 if a part of the correlator alternates in time.

    Returns
    -------
    array
        The effective masses, of shape (..., times); NaN where no mass gives the ratio.
    """
    if np.ndim(correlator) < 2:
        correlator = real_numbers(correlator, "correlator")
    correlator = np.asarray(correlator, float)
    times = correlator.shape[-1]
    if times % 2 or not 1 <= distance <= times // 2:
        raise BadInput(
            f"expected an even number of times and a distance up to half of it, found {times} and {distance}"
        )
    folded = (correlator + np.roll(correlator[..., ::-1], 1, axis=-1))[..., : times // 2 + 1] / 2
    first, then = folded[..., : times // 2 + 1 - distance], folded[..., distance:]
    far = times / 2 - np.arange(first.shape[-1])

    def log_ratio(mass: Any) -> Any:
        return (
            mass * distance
            + np.log1p(np.exp(-2 * mass * far))
            - np.log1p(np.exp(-2 * mass * (far - distance)))
        )

    wanted = np.log(np.divide(first, then, out=np.ones_like(first), where=first * then > 0))
    low, high = np.zeros_like(wanted), np.full_like(wanted, 50.0)
    solvable = (wanted > 0) & (wanted < log_ratio(high))
    for _ in range(100):
        middle = (low + high) / 2
        below = log_ratio(middle) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(solvable, (low + high) / 2, np.nan)


def logarithmic_mass(correlator: NDArray[Any], distance: int = 1) -> NDArray[np.float64]:
    """Return log(C(t) / C(t + distance)) / distance for t = 0 ... T/2 - distance, the effective mass of a baryon.

    The correlator has the shape (..., T); the mass is NaN where the ratio is not positive.
    """
    found = np.asarray(correlator, float)
    half = found.shape[-1] // 2
    first, then = found[..., : half + 1 - distance], found[..., distance : half + 1]
    ratio = np.divide(first, then, out=np.full_like(first, np.nan), where=first * then > 0)
    return np.log(ratio) / distance


def chiral_condensate(
    gauge: Gauge,
    operator: Staggered | Wilson,
    mass: float | None = None,
    *,
    noise_vectors: int = 10,
    seed: int = 1,
    tolerance: float = 1e-10,
    iterations: int = 10000,
    progress: Progress | None = None,
) -> Condensate:
    """Estimate tr M^-1 / volume from Z4 noise vectors, the same on every grid. Collective.

    Each noise vector xi contributes Re (xi, M^-1 xi) / volume; for staggered quarks, whose M is 2 m + D, it is
    2 m |M^-1 xi|² / volume, because D is anti-Hermitian.

    Parameters
    ----------
    mass : float, optional
        The mass of staggered quarks.

    Raises
    ------
    BadInput
        `noise_vectors` is below 1, or staggered quarks have no mass.
    Error
        A solve did not converge.
    """
    require_same(gauge.group, "chiral_condensate", noise_vectors=noise_vectors, seed=seed)
    seed = require_seed(seed)
    if noise_vectors < 1:
        raise BadInput(f"expected 1 noise vector or more, found {noise_vectors}")
    wilson = isinstance(operator, Wilson)
    if wilson == (mass is not None):
        raise BadInput(f"expected a mass of staggered quarks, and none of Wilson quarks, found {mass}")
    solve = operator.solve if wilson else lambda source, **how: operator.solve(source, mass, **how)
    solves = _Solves(solve, tolerance, iterations, progress)
    extents = gauge.geometry.extents
    of_a_site = (12 if wilson else 3) * 16 * min(noise_vectors, _AT_ONCE)
    # Noise, solutions, products, and two more while they are stacked.
    needed = 5.0 * of_a_site * sites_on_a_rank(extents, gauge.group.size)
    require_memory(gauge.group, extents, needed, "noise vectors")
    project, volume = Projection(gauge), np.prod(extents)
    values: list[float] = []
    for first in range(0, noise_vectors, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, noise_vectors))
        sources = np.stack([noise(gauge, "z4", (4, 3) if wilson else (3,), seed, one) for one in numbers])
        solutions = solves(sources)
        products = sources.conj() * solutions if wilson else 2 * (mass or 0) * np.abs(solutions) ** 2
        for one in products:
            sites = one.reshape(*gauge.geometry.block_shape, -1).sum(axis=-1)
            values.append(float(project.of_sites(sites).real.sum() / volume))
    error = float(np.std(values, ddof=1) / np.sqrt(noise_vectors)) if noise_vectors > 1 else None
    return Condensate(float(np.mean(values)), error, values)


explain_public(globals())
make_collective(globals(), __all__)
