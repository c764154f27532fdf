"""Sources on every grid of ranks, and covariant smearing and point-split operators against NumPy."""

import numpy as np
import pytest

from lattice_reference import adjoint, shifted, transformed
from onehop import BadInput, Group
from onehop.lattice import Gauge, smearing, thermalize
from onehop.lattice.sources import GaussianSmearing, SourceOptions, SpinTaste, noise, quark_sources
from threads import run_threads

EXTENTS, ORIGIN = (2, 4, 2, 6), (1, 3, 0, 2)
SHAPE = EXTENTS[::-1]


def field(group: Group | None = None, grid: tuple[int, ...] | None = None) -> Gauge:
    gauge = Gauge(group or Group.alone(), EXTENTS, grid)
    thermalize(gauge, 5.5, 2, over_relaxations=0)
    return gauge


def vectors(seed: int, *front: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(*front, *SHAPE, 3)) + 1j * rng.normal(size=(*front, *SHAPE, 3))


def neighbours(links: np.ndarray, v: np.ndarray, mu: int) -> np.ndarray:
    """U_mu(x) v(x + mu) + U_mu(x - mu)^dagger v(x - mu)."""
    link, column = links[..., mu, :, :], v[..., None]
    both = link @ shifted(column, mu, 1, 4) + shifted(adjoint(link) @ column, mu, -1, 4)
    return both[..., 0]


def smeared(links: np.ndarray, v: np.ndarray, width: float, steps: int) -> np.ndarray:
    for _ in range(steps):
        v = v + width**2 / (4 * steps) * (sum(neighbours(links, v, mu) for mu in range(3)) - 6 * v)
    return v


def everything(group: Group, grid: tuple[int, ...]) -> list[np.ndarray]:
    """Return what depends on the place in the lattice, gathered over the ranks."""
    gauge = field(group, grid)
    own = gauge.geometry.block_slices(group.rank)
    parts = [noise(gauge, kind, (3,), 5, 2) for kind in ("z2", "z4", "gaussian")]
    for kind in ("point", "wall", "z2", "random-wall"):
        parts += list(quark_sources(gauge, kind, ORIGIN, seed=3, number=1))
    smear = GaussianSmearing(gauge, 1.3, 3, ape_alpha=0.6, ape_steps=1)
    v = vectors(1, 2)
    parts += list(smear(v[(slice(None), *own)]))
    for spin, taste in ((15, 15), (0, 0), (9, 9), (15, 14), (0, 2), (4, 0), (9, 8)):
        for phases in ("standard", "milc"):
            parts.append(SpinTaste(gauge, spin, taste, ORIGIN, phases=phases)(v[0][own]))
    whole = []
    for part in parts:
        found = np.empty((*SHAPE, 3), complex)
        for rank, data in enumerate(group.allgather(np.ascontiguousarray(part).tobytes())):
            slices = gauge.geometry.block_slices(rank)
            found[slices] = np.frombuffer(data, complex).reshape(found[slices].shape)
        whole.append(found)
    return whole


def test_the_same_bits_on_every_grid() -> None:
    expected = everything(Group.alone(), (1, 1, 1, 1))
    for grid in ((1, 2, 1, 1), (1, 1, 1, 2)):
        for found in run_threads(2, lambda group, grid=grid: everything(group, grid)):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)


def test_sources_are_what_they_are_called() -> None:
    gauge = field()
    point, wall, z2 = (quark_sources(gauge, kind, ORIGIN) for kind in ("point", "wall", "z2"))
    x, y, z, t = ORIGIN
    for colour in range(3):
        assert np.flatnonzero(point[colour]) == [np.ravel_multi_index((t, z, y, x, colour), (*SHAPE, 3))]
        assert (wall[colour, t, ..., colour] == 1).all()
        assert wall[colour].sum() == np.prod(EXTENTS[:3])
        np.testing.assert_allclose(abs(z2[colour, t, ..., colour]), 1)
        np.testing.assert_array_equal(z2[colour, ..., colour], z2[0, ..., 0])
        assert np.count_nonzero(z2[colour]) == np.prod(EXTENTS[:3])
    (random,) = quark_sources(gauge, "random-wall", ORIGIN)
    assert np.count_nonzero(random) == 3 * np.prod(EXTENTS[:3])
    large = Gauge(Group.alone(), (8, 8, 8, 8))
    for kind in ("z2", "z4", "gaussian"):
        numbers = noise(large, kind, (3,), 1).ravel()
        several = 4 / np.sqrt(len(numbers))
        assert abs(numbers.mean()) < several
        assert abs((numbers**2).mean()) < several
        assert np.mean(abs(numbers) ** 2) == pytest.approx(1, abs=several)
        if kind != "gaussian":
            np.testing.assert_allclose(numbers**4, {"z2": -1, "z4": 1}[kind])
        for other in (noise(large, kind, (3,), 2), noise(large, kind, (3,), 1, 1)):
            assert abs(np.vdot(numbers, other)) / len(numbers) < several


def test_gaussian_smearing_is_that_of_its_formula() -> None:
    gauge, v = field(), vectors(2)
    np.testing.assert_allclose(
        GaussianSmearing(gauge, 1.5, 4)(v), smeared(gauge.links, v, 1.5, 4), rtol=1e-12, atol=1e-12
    )
    smooth = field()
    smearing.ape(smooth, 0.6, 2, space_only=True)
    found = GaussianSmearing(gauge, 1.5, 4, ape_alpha=0.6, ape_steps=2)(v)
    np.testing.assert_allclose(found, smeared(smooth.links, v, 1.5, 4), rtol=1e-12, atol=1e-12)
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(*SHAPE, 3, 3)) + 1j * rng.normal(size=(*SHAPE, 3, 3)))[0]
    turn /= np.linalg.det(turn)[..., None, None] ** (1 / 3)
    turned = field()
    turned.set_links(transformed(gauge.links, turn))
    expected = (turn @ GaussianSmearing(gauge, 2, 5)(v)[..., None])[..., 0]
    np.testing.assert_allclose(
        GaussianSmearing(turned, 2, 5)((turn @ v[..., None])[..., 0]), expected, atol=1e-11
    )


def test_point_split_operators_have_their_phases() -> None:
    gauge, v = field(), vectors(4)
    t, z, y, x = np.indices(SHAPE)
    x, y, z, t = (at - start for at, start in zip((x, y, z, t), ORIGIN, strict=True))
    minus = -1.0
    # epsilon times the products of eta zeta of the spin, and zeta, written out
    zeta = [minus ** (y + z + t), minus ** (z + t), minus**t]
    eta = [minus**0 * np.ones_like(zeta[0]), minus**x, minus ** (x + y), minus ** (x + y + z)]
    zeta.append(np.ones_like(zeta[0]))
    epsilon = minus ** (x + y + z + t)
    absolute = [np.ones_like(zeta[0]), minus ** (x + ORIGIN[0]), minus ** (x + y + ORIGIN[0] + ORIGIN[1])]
    for spin, taste in ((15, 15), (1, 1), (12, 12), (15, 14), (15, 11), (0, 2), (2, 0), (12, 8)):
        sign = np.ones_like(epsilon)
        for mu in range(4):
            sign = sign * (eta[mu] * zeta[mu] if spin >> mu & 1 else 1)
        expected = sign[..., None] * v
        if spin != taste:
            mu = (spin ^ taste).bit_length() - 1
            moved = neighbours(gauge.links, expected, mu) / 2
            # the links have eta of x, zeta is that of x - origin
            expected = (zeta[mu] * eta[mu] * absolute[mu])[..., None] * moved
        expected = epsilon[..., None] * expected
        np.testing.assert_allclose(SpinTaste(gauge, spin, taste, ORIGIN)(v), expected, atol=1e-13)


def test_bad_sources_are_refused() -> None:
    gauge = field()
    for wrong, says in (
        ({"source": "corner"}, "expected the source point, gaussian"),
        ({"sink": "z2"}, "expected the sink point"),
        ({"origin": (0, 4, 0, 0)}, "inside the lattice of 2x4x2x6, found 0x4x0x0"),
        ({"sources": 4}, "divides the 6 times, found 4"),
    ):
        with pytest.raises(BadInput, match=says):
            SourceOptions.of("f", wrong).check_sources(EXTENTS)
    with pytest.raises(BadInput, match="four directions, found 3"):
        SourceOptions().check_sources((4, 4, 4))
    with pytest.raises(BadInput, match="differ in one of x, y and z, found 15 and 0"):
        SpinTaste(gauge, 15, 0)
    with pytest.raises(BadInput, match="expected the noise"):
        noise(gauge, "z3", (3,), 1)
    with pytest.raises(BadInput, match="a width above 0"):
        GaussianSmearing(gauge, 0, 3)
