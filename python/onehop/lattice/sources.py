"""Sources of quarks, the same on every grid of ranks, and covariant smearing of sources and sinks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.arguments import require_seed, whole_numbers
from onehop.error import BadInput, explain_public
from onehop.group import require_same
from onehop.lattice.gauge import Gauge
from onehop.lattice.phases import with_staggered_phases
from onehop.lattice.smearing import ape
from onehop.lattice.staggered import Staggered
from onehop.options import LARGEST_INT, LARGEST_SEED, Options, option
from onehop.refusals import make_collective
from onehop.text import alternatives

__all__ = [
    "NOISES",
    "SINKS",
    "SOURCES",
    "GaussianSmearing",
    "SourceOptions",
    "SpinTaste",
    "noise",
    "quark_sources",
]

Fields = NDArray[np.complex128]

SOURCES = ("point", "gaussian", "wall", "z2", "random-wall")
SINKS = ("point", "gaussian", "wall")
NOISES = ("z2", "z4", "gaussian")


@dataclass(kw_only=True)
class SourceOptions(Options):
    """The options of sources and sinks of quarks; `mesons.wilson_mesons` documents them."""

    title = "Sources and sinks of quarks"

    source: str = option(
        "point",
        "Source: a point, a point with covariant Gaussian smearing, or all sites of a time, with 1 (wall), with noise "
        "(z2) or with random colour vectors (random-wall). A wall needs a fixed gauge.",
        choices=SOURCES,
    )
    sink: str = option("point", "Sink, as for --source; a wall is the sum over space.", choices=SINKS)
    origin: tuple[int, ...] = option(
        (0, 0, 0, 0),
        "Site x, y, z, t of the first source; walls have its time.",
        "--source-at",
        low=0,
        high=LARGEST_INT,
        length=4,
    )
    sources: int = option(
        1,
        "Number of sources, at equal distances in time; correlators are their means.",
        low=1,
        high=LARGEST_INT,
    )
    width: float = option(2.0, "Width w of gaussian sources and sinks.", above=0)
    smear_steps: int = option(
        10, "Number N of steps of gaussian: each is 1 + w^2/(4 N) Laplace.", low=1, high=LARGEST_INT
    )
    ape_alpha: float = option(0.5, "Parameter of APE smearing of the links of gaussian.", low=0, high=1)
    ape_steps: int = option(0, "Number of steps of it, in space.", low=0, high=LARGEST_INT)
    momenta: int = option(0, "Largest p^2 of the momenta, in units of (2 pi / extent)^2.", low=0, high=50)
    seed: int = option(1, "Random seed of noise.", low=0, high=LARGEST_SEED)

    @property
    def has_noise(self) -> bool:
        """Whether the source is a random one, which two quarks may have in common, but not three."""
        return self.source in ("z2", "random-wall")

    @property
    def has_waves(self) -> bool:
        """Whether each momentum takes a source of its own, because the source covers all of space."""
        return self.source == "wall" or self.has_noise

    def check_sources(self, extents: Sequence[int] | None = None) -> None:
        """Raise BadInput for unknown sources, and for those that do not fit each other or the lattice, if given."""
        for name, found, known in (("source", self.source, SOURCES), ("sink", self.sink, SINKS)):
            if found not in known:
                raise BadInput(f"expected the {name} {alternatives(known)}, found {found!r}")
        whole_numbers(self.origin, "origin", 0)
        if extents is None:
            return
        if len(extents) != 4:
            raise BadInput(f"expected a lattice of four directions, found {len(extents)}")
        if len(self.origin) != 4 or any(at >= size for at, size in zip(self.origin, extents, strict=True)):
            raise BadInput(
                f"expected a source inside the lattice of {'x'.join(map(str, extents))}, found "
                f"{'x'.join(map(str, self.origin))}"
            )
        if extents[3] % self.sources:
            raise BadInput(
                f"expected a number of sources that divides the {extents[3]} times, found {self.sources}"
            )

    def origins(self, times: int) -> list[tuple[int, ...]]:
        """Return the site of each source on a lattice of so many times."""
        x, y, z, t = self.origin
        return [(x, y, z, (t + number * times // self.sources) % times) for number in range(self.sources)]


def noise(
    gauge: Gauge, kind: str, inner: Sequence[int], seed: int, number: int = 0, time: int | None = None
) -> Fields:
    """Return this rank's block of noise with mean 0 and variance 1, the same on every grid of ranks.

    The random numbers of a time are those of a Philox generator, whose key is the seed and the number of the vector,
    and whose counter begins with the time.

    Parameters
    ----------
    kind : {"z2", "z4", "gaussian"}
        (+-1 +- i) / sqrt 2, powers of i, or complex normal numbers.
    inner : sequence of int
        The shape of the noise at a site.
    time : int, optional
        The only time with noise; the others are 0.
    """
    if kind not in NOISES:
        raise BadInput(f"expected the noise {alternatives(NOISES)}, found {kind!r}")
    geometry, key = gauge.geometry, [require_seed(seed), number]
    found = np.zeros((*geometry.block_shape, *inner), np.complex128)
    own, *space = geometry.block_slices(gauge.group.rank)
    for t in range(own.start, own.stop):
        if time is not None and t != time:
            continue
        random = np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, t]))
        shape = (*geometry.shape[1:], *inner)
        if kind == "gaussian":
            whole = random.standard_normal((*shape, 2)) @ (np.sqrt(0.5) * np.array([1, 1j]))
        else:
            whole = 1j ** random.integers(0, 4, shape) * (np.sqrt(0.5) * (1 + 1j) if kind == "z2" else 1)
        found[t - own.start] = whole[tuple(space)]
    return found


def quark_sources(
    gauge: Gauge, kind: str, origin: Sequence[int] = (0, 0, 0, 0), *, seed: int = 1, number: int = 0
) -> Fields:
    """Return this rank's block of the colour vectors of a source, of shape (source colour, t, z, y, x, colour).

    Parameters
    ----------
    kind : {"point", "wall", "z2", "random-wall"}
        The number 1 at one site or at all sites of a time, a Z2 number at each of these sites, or one source of complex
        normal colour vectors.
    origin : sequence of int
        The site x, y, z, t; a wall has its time.
    number : int
        Makes the noise of one seed different for each source.
    """
    geometry, time = gauge.geometry, origin[3]
    if kind == "random-wall":
        return noise(gauge, "gaussian", (3,), seed, number, time)[None]
    if kind == "z2":
        field = noise(gauge, "z2", (), seed, number, time)
    else:
        field = np.zeros(geometry.block_shape, np.complex128)
        mine = [at - first for at, first in zip(origin, geometry.origin(gauge.group.rank), strict=True)]
        inside = [0 <= at < size for at, size in zip(mine, geometry.block, strict=True)]
        if kind == "wall" and inside[3]:
            field[mine[3]] = 1
        elif kind == "point" and all(inside):
            field[tuple(mine[::-1])] = 1
    return np.multiply.outer(np.eye(3), field).transpose(0, 2, 3, 4, 5, 1)


def hop_of(gauge: Gauge, links: Fields, directions: Sequence[int]) -> Staggered:
    """Return an operator that is i times the sum of the covariant neighbours in some directions. Collective.

    The hopping term of staggered quarks is a difference; links of i U turn it into i times a sum.
    """
    geometry, chosen = gauge.geometry, np.zeros_like(links)
    for direction in directions:
        chosen[..., direction, :, :] = 1j * links[..., direction, :, :]
    how: dict[str, Any] = {"map": geometry.rank_at or None}
    return Staggered.of_links(gauge.group, geometry.extents, chosen, grid=geometry.grid, **how)


class GaussianSmearing:
    """Covariant Gaussian smearing in space: N times v + w² / (4 N) (sum of the six covariant neighbours - 6 v).

    Parameters
    ----------
    gauge : Gauge
        The links of the neighbours.
    width : float
        The width w.
    steps : int
        The number N of steps.
    ape_alpha, ape_steps
        APE smearing in space of a copy of these links.
    """

    def __init__(
        self, gauge: Gauge, width: float, steps: int, *, ape_alpha: float = 0.5, ape_steps: int = 0
    ) -> None:
        how = {"width": width, "steps": steps, "ape_alpha": ape_alpha, "ape_steps": ape_steps}
        require_same(gauge.group, "GaussianSmearing", **how)
        if not 0 < width * width < 1e100 or steps < 1:
            raise BadInput(f"expected a width above 0 and 1 step or more, found {width} and {steps}")
        links = gauge.links
        if ape_steps:
            geometry = gauge.geometry
            smooth = Gauge(gauge.group, geometry.extents, geometry.grid, map=geometry.rank_at or None)
            smooth.set_links(links)
            ape(smooth, ape_alpha, ape_steps, space_only=True)
            links = smooth.links
        self._hop = hop_of(gauge, links, (0, 1, 2))
        self._weight, self._steps = width * width / (4 * steps), steps

    def __call__(self, vectors: Fields) -> Fields:
        """Return smeared colour vectors of shape (..., t, z, y, x, colour). Collective."""
        shape, block = vectors.shape, self._hop.geometry.block_shape
        found = np.ascontiguousarray(vectors).reshape(-1, *block, 3)
        for _ in range(self._steps):
            found = (1 - 6 * self._weight) * found - 1j * self._weight * self._hop.dslash(found)
        return found.reshape(shape)


class SpinTaste:
    """A meson operator of staggered quarks between an antiquark and a quark: local, or point-split by one link.

    It multiplies by the product of (-1)^(x_mu) epsilon over the directions of the spin, shifts symmetrically in the
    direction in which spin and taste differ, with zeta, and multiplies by epsilon; all signs are those of x - origin.

    Parameters
    ----------
    gauge : Gauge
        The links of the shift.
    spin, taste : int
        Products of gamma matrices: the sum of 1 for x, 2 for y, 4 for z and 8 for t.
    phases : str
        The phases of the quarks' operator, as for `Staggered`.
    """

    def __init__(
        self,
        gauge: Gauge,
        spin: int,
        taste: int,
        origin: Sequence[int] = (0, 0, 0, 0),
        *,
        phases: str = "standard",
    ) -> None:
        require_same(gauge.group, "SpinTaste", spin=spin, taste=taste, origin=origin, phases=phases)
        geometry, rank = gauge.geometry, gauge.group.rank
        signs = []
        for mu, (first, size) in enumerate(zip(geometry.origin(rank), geometry.block, strict=True)):
            places = first + np.arange(size) - origin[mu]
            signs.append((1.0 - 2 * (places & 1)).reshape(-1, *[1] * mu))
        epsilon = math.prod(signs)
        of_spin = [sign * epsilon for mu, sign in enumerate(signs) if spin >> mu & 1]
        self._before, self._after = math.prod(of_spin, start=np.ones_like(epsilon)), epsilon
        self._hop = None
        if spin != taste:
            if spin ^ taste not in (1, 2, 4):
                raise BadInput(
                    f"expected a spin and a taste that differ in one of x, y and z, found {spin} and {taste}"
                )
            mu = (spin ^ taste).bit_length() - 1
            self._hop = hop_of(
                gauge, with_staggered_phases(gauge.links, geometry, rank, phases=phases), (mu,)
            )
            self._after = signs[mu]

    @property
    def signs(self) -> NDArray[np.float64]:
        """The factors of a local operator at the sites."""
        return self._before * self._after

    def __call__(self, vectors: Fields) -> Fields:
        """Return the operator applied to colour vectors of shape (..., t, z, y, x, colour). Collective."""
        found = self._before[..., None] * vectors
        if self._hop is not None:
            found = -0.5j * self._hop.dslash(found)
        return self._after[..., None] * found


explain_public(globals())
make_collective(globals(), __all__, but=["noise", "quark_sources"])
