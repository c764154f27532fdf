"""Observables from quark propagators: meson correlators, effective masses, and the chiral condensate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onehop.arguments import real_numbers, require_seed
from onehop.error import BadInput, Error, explain_public
from onehop.lattice.gauge import Gauge
from onehop.lattice.geometry import require_memory, sites_on_a_rank
from onehop.lattice.staggered import Staggered
from onehop.lattice.wilson import Wilson
from onehop.text import counted

__all__ = [
    "Condensate",
    "Mesons",
    "chiral_condensate",
    "effective_mass",
    "staggered_mesons",
    "wilson_mesons",
]

Progress = Callable[[int], None]

# The upper right blocks of the gamma matrices in docs/reference/lattice_wilson.md.
_BLOCKS = np.array([[[0, 1j], [1j, 0]], [[0, -1], [1, 0]], [[1j, 0], [0, -1j]], [[1, 0], [0, 1]]])


def _gamma(direction: int) -> NDArray[np.complex128]:
    gamma = np.zeros((4, 4), np.complex128)
    gamma[:2, 2:] = _BLOCKS[direction]
    gamma[2:, :2] = _BLOCKS[direction].conj().T
    return gamma


class Mesons(NamedTuple):
    """Correlators at zero momentum from a point source at the origin, one number for each time.

    Attributes
    ----------
    pion : array
        The sum over space, colours and spins of `|G(x, t)|²`.
    rho : array
        The mean over the three directions in space.
    iterations : int
        Total number of solver iterations.
    true_residual : float
        The largest residual of all solves.
    """

    pion: NDArray[np.float64]
    rho: NDArray[np.float64]
    iterations: int
    true_residual: float


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


def _over_space(gauge: Gauge, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum the numbers of all blocks, each of shape (t, ..., x), over space; return one number per time. Collective."""
    part = gauge.geometry.block_slices(gauge.group.rank)[0]
    mine = np.zeros(gauge.geometry.extents[-1])
    mine[part] = values.reshape(values.shape[0], -1).sum(axis=1)
    return np.sum([np.frombuffer(one) for one in gauge.group.allgather(mine.tobytes())], axis=0)


def _point_sources(gauge: Gauge, inner: tuple[int, ...]) -> Iterator[NDArray[np.complex128]]:
    shape = (*gauge.geometry.block_shape, *inner)
    origin = (0,) * len(gauge.geometry.block)
    for index in np.ndindex(inner):
        source = np.zeros(shape, np.complex128)
        if gauge.group.rank == 0:  # the block of rank 0 contains the origin
            source[(*origin, *index)] = 1
        yield source


def staggered_mesons(
    gauge: Gauge,
    operator: Staggered,
    mass: float,
    *,
    tolerance: float = 1e-10,
    iterations: int = 10000,
    progress: Progress | None = None,
) -> Mesons:
    """Measure the Goldstone pion and the local rho (gamma_i x gamma_i) of staggered quarks. Collective.

    The pion has the sign +1 everywhere, the rho (-1)^(x_i). The rho correlator also contains a state of opposite
    parity, which alternates in time.

    Parameters
    ----------
    gauge : Gauge
        Provides the geometry.
    operator : Staggered
        The operator on this lattice: naive, or with fat and long links.
    progress : callable, optional
        Called with the number of each finished solve.

    Raises
    ------
    Error
        A solve did not converge.
    """
    axes = np.indices(gauge.geometry.block_shape)[::-1]
    signs = sum(
        (-1.0) ** (axes[i] + gauge.geometry.origin(gauge.group.rank)[i]) for i in range(len(axes) - 1)
    ) / (len(axes) - 1)
    square, worst, total = np.zeros(gauge.geometry.block_shape), 0.0, 0
    for number, source in enumerate(_point_sources(gauge, (3,))):
        result = operator.solve(source, mass, tolerance=tolerance, iterations=iterations)
        square += (np.abs(_solved(result, tolerance)) ** 2).sum(axis=-1)
        worst, total = max(worst, result.true_residual), total + result.iterations
        if progress is not None:
            progress(number)
    return Mesons(_over_space(gauge, square), _over_space(gauge, square * signs), total, worst)


def wilson_mesons(
    gauge: Gauge,
    operator: Wilson,
    *,
    tolerance: float = 1e-10,
    iterations: int = 10000,
    progress: Progress | None = None,
) -> Mesons:
    """Measure the pion (gamma_5) and the rho (gamma_i) of Wilson or clover quarks. Collective.

    Raises
    ------
    Error
        A solve did not converge.
    """
    block = gauge.geometry.block_shape
    # All columns, and about eight copies of a time slice in the contraction.
    needed = sites_on_a_rank(gauge.geometry.extents, gauge.group.size) * 144 * 16 * (1 + 8 / block[0])
    require_memory(gauge.group, gauge.geometry.extents, needed, "propagators")
    columns, worst, total = [], 0.0, 0
    for number, source in enumerate(_point_sources(gauge, (4, 3))):
        result = operator.solve(source, tolerance=tolerance, iterations=iterations)
        columns.append(_solved(result, tolerance))
        worst, total = max(worst, result.true_residual), total + result.iterations
        if progress is not None:
            progress(number)
    gammas = [_gamma(direction) for direction in range(4)]
    gamma5 = gammas[0] @ gammas[1] @ gammas[2] @ gammas[3]
    pion, rho = np.zeros(block), np.zeros(block)
    for t in range(block[0]):
        propagator = np.stack([one[t] for one in columns], axis=-1).reshape(
            *block[1:], 4, 3, 4, 3
        )  # s, c, s0, c0
        pion[t] = (np.abs(propagator) ** 2).sum(axis=(-4, -3, -2, -1))
        for gamma in gammas[:3]:
            turn = gamma5 @ gamma
            turned = np.einsum("ab,...bcde,fd->...acfe", turn, propagator, turn.conj(), optimize=True)
            rho[t] += (turned * propagator.conj()).sum(axis=(-4, -3, -2, -1)).real / 3
    return Mesons(_over_space(gauge, pion), _over_space(gauge, rho), total, worst)


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


def chiral_condensate(
    gauge: Gauge,
    operator: Staggered,
    mass: float,
    *,
    noise_vectors: int = 10,
    seed: int = 1,
    tolerance: float = 1e-10,
    iterations: int = 10000,
    progress: Progress | None = None,
) -> Condensate:
    """Estimate tr M^-1 / volume with M = 2 m + D from Z4 noise vectors, the same on every grid. Collective.

    Each noise vector xi contributes Re (xi, M^-1 xi) = 2 m |M^-1 xi|², because D is anti-Hermitian.

    Raises
    ------
    BadInput
        `noise_vectors` is below 1.
    Error
        A solve did not converge.
    """
    seed = require_seed(seed)
    if noise_vectors < 1:
        raise BadInput(f"expected 1 noise vector or more, found {noise_vectors}")
    geometry = gauge.geometry
    whole = (
        sites_on_a_rank(geometry.extents, 1) * 3 * (8 + 2 * 16)
    )  # every rank draws the noise of the whole lattice
    require_memory(gauge.group, geometry.extents, whole, "noise vectors")
    slices = geometry.block_slices(gauge.group.rank)
    values = []
    for number in range(noise_vectors):
        random = np.random.Generator(np.random.Philox(key=[seed, number]))
        noise = 1j ** random.integers(0, 4, (*geometry.shape, 3))[slices]
        result = operator.solve(noise, mass, tolerance=tolerance, iterations=iterations)
        square = _over_space(gauge, (np.abs(_solved(result, tolerance)) ** 2).sum(axis=-1))
        values.append(float(2 * mass * square.sum() / np.prod(geometry.extents)))
        if progress is not None:
            progress(number)
    error = float(np.std(values, ddof=1) / np.sqrt(noise_vectors)) if noise_vectors > 1 else None
    return Condensate(float(np.mean(values)), error, values)


explain_public(globals())
