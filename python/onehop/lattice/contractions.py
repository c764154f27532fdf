"""Contractions of quark propagators to correlators: mesons of all gamma matrices, the nucleon, staggered mesons."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import explain_public
from onehop.group import require_same
from onehop.lattice.gauge import Gauge
from onehop.lattice.operators import complex_memory
from onehop.refusals import make_collective

__all__ = [
    "GAMMA",
    "STAGGERED_MESONS",
    "WILSON_MESONS",
    "Projection",
    "corner_nucleon",
    "gamma_product",
    "meson_correlators",
    "momenta_up_to",
    "nucleon_correlator",
]

Fields = NDArray[np.complex128]
Momentum = tuple[int, int, int]

# The upper right blocks of the gamma matrices in docs/reference/lattice_wilson.md.
_BLOCKS = np.array([[[0, 1j], [1j, 0]], [[0, -1], [1, 0]], [[1j, 0], [0, -1j]], [[1, 0], [0, 1]]])
GAMMA = np.zeros((4, 4, 4), np.complex128)
GAMMA[:, :2, 2:] = _BLOCKS
GAMMA[:, 2:, :2] = _BLOCKS.conj().swapaxes(1, 2)
_GAMMA5 = np.diag([1.0, 1, -1, -1]).astype(np.complex128)

# Names of the 16 products gamma_x^a gamma_y^b gamma_z^c gamma_t^d, by the number a + 2 b + 4 c + 8 d.
WILSON_MESONS = {
    "pion": 15,
    "pion_2": 7,
    "rho_x": 1,
    "rho_y": 2,
    "rho_z": 4,
    "rho_x_2": 9,
    "rho_y_2": 10,
    "rho_z_2": 12,
    "a0": 0,
    "a0_2": 8,
    "a1_x": 14,
    "a1_y": 13,
    "a1_z": 11,
    "b1_x": 6,
    "b1_y": 5,
    "b1_z": 3,
}

# Spin and taste, each the set of directions (x = 1, y = 2, z = 4, t = 8) of a product of gamma matrices. A meson is the
# mean over its operators. Those with spin and taste alike are local, the others point-split by one link.
STAGGERED_MESONS = {
    "pion": ((15, 15),),
    "pion05": ((0, 0),),
    "rho": ((1, 1), (2, 2), (4, 4)),
    "rhoi0": ((9, 9), (10, 10), (12, 12)),
    "pioni5": ((15, 14), (15, 13), (15, 11)),
    "pionij": ((0, 1), (0, 2), (0, 4)),
    "rhois": ((1, 0), (2, 0), (4, 0)),
    "rho0": ((9, 8), (10, 8), (12, 8)),
}


def gamma_product(number: int) -> Fields:
    """Return gamma_x^a gamma_y^b gamma_z^c gamma_t^d for the number a + 2 b + 4 c + 8 d."""
    found = np.eye(4, dtype=np.complex128)
    for direction in range(4):
        if number >> direction & 1:
            found = found @ GAMMA[direction]
    return found


def momenta_up_to(square: int) -> list[Momentum]:
    """Return the momenta with p² up to a number, in units of 2 pi / extent: one of p and -p, the smallest first."""
    most = int(np.sqrt(square))
    found = [
        p
        for p in itertools.product(range(most, -most - 1, -1), repeat=3)
        if sum(one * one for one in p) <= square and p >= (0, 0, 0)
    ]
    return sorted(found, key=lambda p: sum(one * one for one in p))


class Projection:
    """Sums over space with a momentum: of cos(p (x - origin)) f(x), for each time behind the source.

    Attributes
    ----------
    momenta : list of tuple of int
        The momenta, in units of 2 pi / extent.
    """

    def __init__(
        self, gauge: Gauge, momenta: Sequence[Momentum] = ((0, 0, 0),), origin: Sequence[int] = (0, 0, 0, 0)
    ) -> None:
        require_same(gauge.group, "Projection", momenta=momenta, origin=origin)
        geometry = gauge.geometry
        self.momenta = list(momenta)
        self._gauge, self._time = gauge, origin[3]
        self.block = geometry.block_shape
        first = geometry.origin(gauge.group.rank)
        phases: Any = np.zeros((len(self.momenta), *self.block[1:]))
        for axis in range(3):
            places = (first[axis] + np.arange(geometry.block[axis]) - origin[axis]) / geometry.extents[axis]
            turns = np.multiply.outer([p[axis] for p in self.momenta], places)
            phases = phases + turns.reshape(-1, *(len(places) if 2 - axis == at else 1 for at in range(3)))
        self.weights = np.cos(2 * np.pi * phases).reshape(len(self.momenta), -1)

    def over_ranks(self, sums: Fields) -> Fields:
        """Add the numbers of all ranks, of shape (own times, ...), to those of all times. Collective."""
        geometry, group = self._gauge.geometry, self._gauge.group
        whole = np.zeros((geometry.extents[3], *sums.shape[1:]), np.complex128)
        whole[geometry.block_slices(group.rank)[0]] = sums
        parts = group.allgather(whole.tobytes())
        return np.sum([np.frombuffer(one, np.complex128) for one in parts], axis=0).reshape(whole.shape)

    def behind_source(self, sums: Fields, *, antiperiodic: bool = False) -> Fields:
        """Return `over_ranks`, with the source's time first. Collective.

        Times that the boundary separates from the source change their sign with `antiperiodic`.
        """
        found = self.over_ranks(sums)
        if antiperiodic:
            found[: self._time] *= -1
        return np.roll(found, -self._time, axis=0)

    def waves(self) -> NDArray[np.float64]:
        """Return cos(p (x - origin)) over the mean of its square, of shape (momentum, 1, z, y, x, 1).

        A source of noise or a wall times this, and a sink with the cosine, give the mean over p and -p.
        """
        extents = self._gauge.geometry.extents
        is_sign = [
            all(2 * one % size == 0 for one, size in zip(p, extents, strict=False)) for p in self.momenta
        ]
        waves = np.where(is_sign, 1, 2)[:, None] * self.weights
        return waves.reshape(len(waves), 1, *self.block[1:], 1)

    def at_one_site(self, columns: Fields, number: int = 0) -> Fields:
        """Return columns that are 0 but at one site of each time, where they are sums over space. Collective.

        They are those with the momentum of this number. The times are the third axis of the columns.
        """
        own = self._gauge.geometry.block_slices(self._gauge.group.rank)
        summed = np.einsum("abtzyx...,zyx->tab...", columns, self.weights[number].reshape(self.block[1:]))
        total = self.over_ranks(summed)
        found = np.zeros_like(columns)
        if all(part.start == 0 for part in own[1:]):
            found[:, :, :, 0, 0, 0] = np.moveaxis(total[own[0]], 0, 2)
        return found

    def of_sites(self, values: NDArray[Any], *, antiperiodic: bool = False) -> Fields:
        """Return the sums of a number per site of the block, of shape (momentum, time). Collective."""
        sums = values.reshape(self.block[0], -1) @ self.weights.T
        return self.behind_source(sums, antiperiodic=antiperiodic).T


def meson_correlators(
    projection: Projection,
    columns: Fields,
    antiquark: Fields | None = None,
    operators: Mapping[str, tuple[int, int]] | None = None,
) -> dict[str, Fields]:
    """Return correlators tr(Gamma_sink G Gamma_source gamma_5 H^dagger gamma_5) of Wilson quarks. Collective.

    Parameters
    ----------
    projection : Projection
        The momenta and the place of the source.
    columns, antiquark : array
        This rank's block of the propagators G and H, of shape (source spin, source colour, t, z, y, x, spin, colour).
        Default of H: G.
    operators : dict, optional
        The numbers of Gamma_sink and Gamma_source. Default: those of `WILSON_MESONS`.

    Returns
    -------
    dict
        For each name an array of shape (momentum, time).
    """
    times, momenta = projection.block[0], len(projection.momenta)
    products = np.empty((times, momenta, 4, 4, 4, 4), np.complex128)
    for t in range(times):
        quark = by_site(columns, t)
        other = quark if antiquark is None else by_site(antiquark, t)
        for number, weights in enumerate(projection.weights):
            weighted = (quark * weights[:, None]).reshape(16, -1)
            products[t, number] = (weighted @ other.reshape(16, -1).conj().T).reshape(4, 4, 4, 4)
    summed = projection.behind_source(products)
    found = {}
    for name, (sink, source) in (operators or {name: (g, g) for name, g in WILSON_MESONS.items()}).items():
        spins = _GAMMA5 @ gamma_product(sink), gamma_product(source) @ _GAMMA5
        found[name] = np.einsum("tpacbd,ba,cd->pt", summed, *spins, optimize=True)
    return found


def by_site(columns: Fields, time: int) -> Fields:
    """Return the propagators of a time of the block, of shape (spin and source spin, site, colours)."""
    part = np.moveaxis(columns[:, :, time].reshape(4, columns.shape[1], -1, 4, 3), (3, 0, 2, 4, 1), range(5))
    return np.ascontiguousarray(part).reshape(16, part.shape[2], -1)


def nucleon_correlator(
    projection: Projection, columns: Fields, *, antiperiodic: bool = True, parity: int = 1
) -> NDArray[np.float64]:
    """Return the correlator of epsilon (u C gamma_5 d) u with the projector (1 + parity gamma_t) / 2. Collective.

    It has the shape (momentum, time); the parameters are those of `meson_correlators`. States of the other parity
    dominate in the second half of the times.
    """
    sites = _core.lattice_nucleon(complex_memory(columns, "the propagators"), parity)
    return projection.of_sites(sites, antiperiodic=antiperiodic).real


def corner_nucleon(gauge: Gauge, columns: Fields, origin: Sequence[int]) -> Fields:
    """Return the determinant of the propagator of staggered quarks at sites at even distances in space, else 0.

    The columns have the shape (source colour, t, z, y, x, colour).
    """
    first = gauge.geometry.origin(gauge.group.rank)
    corners = (slice(None), *(slice((origin[mu] - first[mu]) % 2, None, 2) for mu in (2, 1, 0)))
    found = np.zeros(columns.shape[1:-1], np.complex128)
    found[corners] = np.linalg.det(np.moveaxis(columns, 0, -2)[corners])
    return found


explain_public(globals())
make_collective(globals(), __all__, but=["corner_nucleon"])
