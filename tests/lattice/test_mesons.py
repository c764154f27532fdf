"""Correlators and the condensate against matrices inverted by NumPy."""

import numpy as np
import pytest

import wilson_reference
from lattice_reference import adjoint, shifted, transformed
from onehop import BadInput, Error, Group
from onehop.lattice import Gauge, Staggered, Wilson, mesons, thermalize
from onehop.lattice.contractions import STAGGERED_MESONS
from onehop.lattice.sources import GaussianSmearing, SpinTaste, quark_sources
from threads import run_threads

EXTENTS, MASS = (4, 2, 2, 6), 0.3


def field(
    group: Group | None = None, grid: tuple[int, ...] | None = None, extents: tuple[int, ...] = EXTENTS
) -> Gauge:
    gauge = Gauge(group or Group.alone(), extents, grid)
    thermalize(gauge, 5.5, 2, over_relaxations=1)
    return gauge


def staggered_matrix(links: np.ndarray) -> np.ndarray:
    """Return 2 m + D as one matrix, column by column; antiperiodic in time."""
    t, z, y, x = np.indices(links.shape[:4])
    phases = [np.ones_like(x), (-1) ** x, (-1) ** (x + y), (-1) ** (x + y + z)]
    signed = links.copy()
    for mu, phase in enumerate(phases):
        signed[..., mu, :, :] *= phase[..., None, None]
    signed[-1, ..., 3, :, :] *= -1
    size = t.size * 3
    vectors = np.eye(size).reshape(*t.shape, 3, size).astype(complex)
    hopped = np.zeros_like(vectors)
    for mu in range(4):
        link = signed[..., mu, :, :]
        hopped += link @ shifted(vectors, mu, 1, 4)
        hopped -= shifted(adjoint(link) @ vectors, mu, -1, 4)
    return 2 * MASS * np.eye(size) + hopped.reshape(size, size)


def test_staggered_mesons_are_those_of_the_inverse_matrix() -> None:
    gauge = field()
    inverse = np.linalg.inv(staggered_matrix(gauge.links))
    propagator = inverse[:, :3].reshape(*EXTENTS[::-1], 3, 3)
    square = (np.abs(propagator) ** 2).sum(axis=(-2, -1))
    found = mesons.staggered_mesons(gauge, Staggered(gauge), MASS)
    np.testing.assert_allclose(found.pion, square.sum(axis=(1, 2, 3)), rtol=1e-9)
    _, z, y, x = np.indices(EXTENTS[::-1])
    signs = ((-1.0) ** x + (-1.0) ** y + (-1.0) ** z) / 3
    np.testing.assert_allclose(found.rho, (square * signs).sum(axis=(1, 2, 3)), atol=1e-10)
    corners = np.linalg.det(propagator) * (x % 2 + y % 2 + z % 2 == 0)
    np.testing.assert_allclose(
        found.correlators["nucleon_corner"][0], corners.sum(axis=(1, 2, 3)).real, rtol=1e-8
    )
    assert found.true_residual <= 1e-10
    # Ward identity: the trace at the origin is 2 m times the sum of the pion correlator.
    assert 2 * MASS * found.pion.sum() == pytest.approx(np.trace(propagator[0, 0, 0, 0]).real, rel=1e-9)


def test_condensate_is_the_trace() -> None:
    gauge = field()
    expected = np.trace(np.linalg.inv(staggered_matrix(gauge.links))).real / np.prod(EXTENTS)
    found = mesons.chiral_condensate(gauge, Staggered(gauge), MASS, noise_vectors=15, seed=3)
    assert found.error is not None
    assert 0 < found.error < 0.03 * expected
    assert found.mean == pytest.approx(expected, abs=4 * found.error)
    assert len(set(found.values)) == 15


WILSON, KAPPA = (2, 2, 2, 6), 0.11


@pytest.fixture(scope="module")
def inverse() -> np.ndarray:
    """The inverse of the operator of Wilson quarks on `field(extents=WILSON)`."""
    gauge = field(extents=WILSON)
    shape = (*WILSON[::-1], 4, 3)
    size = int(np.prod(shape))
    matrix = np.empty((size, size), complex)
    for column in range(size):
        vector = np.zeros(size, complex)
        vector[column] = 1
        hopped = wilson_reference.dslash(gauge.links, vector.reshape(shape), True)
        matrix[:, column] = vector - KAPPA * hopped.ravel()
    return np.linalg.inv(matrix)


def traces(quark: np.ndarray, gammas: list, antiquark: np.ndarray | None = None) -> np.ndarray:
    """Return the mean over gammas of tr(Gamma G Gamma gamma_5 H^dagger gamma_5), summed over space."""
    wide5 = np.kron(wilson_reference.GAMMA5, np.eye(3))
    found = 0
    for gamma in gammas:
        wide = np.kron(gamma, np.eye(3))
        product = wide @ quark @ wide @ wide5 @ adjoint(quark if antiquark is None else antiquark) @ wide5
        found = found + np.trace(product, axis1=-2, axis2=-1) / len(gammas)
    return np.sum(found, axis=(1, 2, 3))


def test_wilson_mesons_are_those_of_the_inverse_matrix(inverse: np.ndarray) -> None:
    gauge = field(extents=WILSON)
    propagator = inverse[:, :12].reshape(*WILSON[::-1], 12, 12)
    found = mesons.wilson_mesons(gauge, Wilson(gauge, KAPPA), tolerance=1e-12, momenta=1)
    for name, gammas in (("pion", [wilson_reference.GAMMA5]), ("rho", wilson_reference.GAMMA[:3])):
        expected = traces(propagator, gammas)
        assert abs(expected.imag).max() < 1e-10
        np.testing.assert_allclose(found.correlators[name][0], expected.real, rtol=1e-8)
    assert (found.rho > 0).all()
    assert (found.pion > found.rho).all()
    assert found.momenta == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    assert len(found.correlators) == 16 + 2
    assert all(one.shape == (4, 6) for one in found.correlators.values())
    assert (found.correlators["nucleon"][0, :4] > 0).all()


def test_free_mesons_are_sums_over_the_momenta_of_two_quarks() -> None:
    """C(p, t) = 3 / V sum_k tr(Gamma S(k + p, t) Gamma gamma_5 S(k, t)^dagger gamma_5) with S in closed form.

    A wall at one of both ends has k = 0 only, and a wall as source V² times that.
    """
    extents, kappa = (4, 2, 4, 8), 0.115
    gauge = Gauge(Group.alone(), extents)
    found, from_wall, on_wall = (
        mesons.wilson_mesons(gauge, Wilson(gauge, kappa), momenta=2, origin=(1, 0, 2, 0), **how)
        for how in ({}, {"source": "wall"}, {"sink": "wall"})
    )
    assert {len(one.correlators["nucleon"]) for one in (from_wall, on_wall)} == {1}
    k = [2 * np.pi * (np.arange(n) + (0.5 if mu == 3 else 0)) / n for mu, n in enumerate(extents)]
    kx, ky, kz, kt = np.meshgrid(*k, indexing="ij")
    matrix = np.zeros((*extents, 4, 4), complex) + np.eye(4)
    for mu, one in enumerate((kx, ky, kz, kt)):
        one = one[..., None, None]
        matrix -= kappa * (2 * np.cos(one) * np.eye(4) - 2j * np.sin(one) * wilson_reference.GAMMA[mu])
    quark = np.linalg.inv(matrix)
    waves = np.exp(1j * np.outer(np.arange(extents[3]), k[3])) / extents[3]
    quark = np.einsum("tw,xyzwab->txyzab", waves, quark)  # S(k, t)
    back = wilson_reference.GAMMA5 @ adjoint(quark) @ wilson_reference.GAMMA5
    for number, p in enumerate(found.momenta):
        moved = np.roll(quark, [-one for one in p], axis=(1, 2, 3))
        for name, gamma in (("pion", wilson_reference.GAMMA5), ("rho_z", wilson_reference.GAMMA[2])):
            product = np.trace(gamma @ moved @ gamma @ back, axis1=-2, axis2=-1)
            expected = 3 * product.sum(axis=(1, 2, 3)).real / np.prod(extents[:3])
            np.testing.assert_allclose(found.correlators[name][number], expected, rtol=1e-7, atol=1e-11)
            expected = 3 * (product[:, 0, 0, 0] + product[:, -p[0], -p[1], -p[2]]).real / 2
            np.testing.assert_allclose(on_wall.correlators[name][number], expected, rtol=1e-7, atol=1e-11)
            expected *= np.prod(extents[:3])
            np.testing.assert_allclose(from_wall.correlators[name][number], expected, rtol=1e-7, atol=1e-9)


def test_other_sources_and_sinks(inverse: np.ndarray) -> None:
    gauge = field(extents=WILSON)
    operator, shape = Wilson(gauge, KAPPA), WILSON[::-1]
    smear = GaussianSmearing(gauge, 1.5, 3)

    def quark(vectors: np.ndarray) -> np.ndarray:
        wide = np.einsum("st,c...k->stc...k", np.eye(4), vectors)
        columns = np.moveaxis(wide, 0, -2)
        flat = columns.reshape(-1, np.prod(shape) * 12).T
        return (inverse @ flat).reshape(*shape, 12, -1)

    how = {"tolerance": 1e-12, "origin": (1, 0, 1, 2)}
    point, wall, z2, random = (
        quark_sources(gauge, kind, how["origin"], seed=4) for kind in ("point", "wall", "z2", "random-wall")
    )

    def smeared_sink(propagator: np.ndarray) -> np.ndarray:
        columns = np.moveaxis(propagator.reshape(*shape, 4, 3, -1), (-1, 4), (0, 1))
        return np.moveaxis(smear(columns), (0, 1), (-1, 4)).reshape(propagator.shape)

    def on_wall(propagator: np.ndarray) -> np.ndarray:
        return propagator.sum(axis=(1, 2, 3), keepdims=True)

    for source, sink, vectors, at_sink in (
        ("point", "gaussian", point, smeared_sink),
        ("gaussian", "wall", smear(point), on_wall),
        ("wall", "point", wall, np.asarray),
        ("z2", "point", z2, np.asarray),
        ("random-wall", "point", random, np.asarray),
    ):
        more = {"width": 1.5, "smear_steps": 3} if "gaussian" in (source, sink) else {}
        found = mesons.wilson_mesons(
            gauge, operator, source=source, sink=sink, seed=4, momenta=1, **more, **how
        )
        assert ("nucleon" in found.correlators) == (source not in ("z2", "random-wall"))
        if source != "random-wall":  # whose columns have no colour
            expected = np.roll(traces(at_sink(quark(vectors)), [wilson_reference.GAMMA[1]]).real, -2)
            np.testing.assert_allclose(found.correlators["rho_y"][0], expected, rtol=1e-8, atol=1e-12)
            signs = (-1.0) ** (np.arange(2) - 1)[:, None]  # of the momentum (1, 0, 0) at x
            on_site = signs[..., None] if sink != "wall" else 1  # else that of the antiquark
            spread = quark(vectors * (signs if source in ("wall", "z2") else 1))
            moved = at_sink(spread * (signs[..., None] if sink == "wall" else 1)) * on_site
            expected = np.roll(traces(moved, [wilson_reference.GAMMA[1]], at_sink(quark(vectors))).real, -2)
            np.testing.assert_allclose(found.correlators["rho_y"][1], expected, rtol=1e-8, atol=1e-12)
        square = (abs(at_sink(quark(vectors))) ** 2).sum(axis=(1, 2, 3, 4, 5))
        np.testing.assert_allclose(found.pion, np.roll(square, -2), rtol=1e-8)


def test_several_sources_give_their_mean() -> None:
    gauge = field(extents=WILSON)
    both = mesons.wilson_mesons(gauge, Wilson(gauge, KAPPA), sources=2, origin=(0, 1, 0, 4))
    each = [
        mesons.wilson_mesons(gauge, Wilson(gauge, KAPPA), origin=(0, 1, 0, time)).correlators
        for time in (4, 1)
    ]
    for name, values in both.correlators.items():
        np.testing.assert_allclose(values, (each[0][name] + each[1][name]) / 2, rtol=1e-7, atol=1e-12)


def test_point_split_mesons_are_those_of_the_inverse_matrix_and_gauge_invariant() -> None:
    gauge, origin = field(), (1, 1, 0, 3)
    inverse = np.linalg.inv(staggered_matrix(gauge.links))
    source = quark_sources(gauge, "point", origin)
    found = mesons.staggered_mesons(gauge, Staggered(gauge), MASS, one_link=True, origin=origin)

    def solved(vectors: np.ndarray) -> np.ndarray:
        return (inverse @ vectors.reshape(3, -1).T).T.reshape(source.shape)

    for name, operators in STAGGERED_MESONS.items():
        expected = 0
        for spin, taste in operators:
            split = SpinTaste(gauge, spin, taste, origin)
            product = solved(source).conj() * split(solved(split(source)))
            expected = expected + product.sum(axis=(0, 2, 3, 4, 5)) / len(operators)
        np.testing.assert_allclose(
            found.correlators[name][0], np.roll(expected.real, -3), rtol=1e-7, atol=1e-10
        )
    rng = np.random.default_rng(3)
    shape = (*EXTENTS[::-1], 3, 3)
    turn = np.linalg.qr(rng.normal(size=shape) + 1j * rng.normal(size=shape))[0]
    turned = field()
    turned.set_links(transformed(gauge.links, turn / np.linalg.det(turn)[..., None, None] ** (1 / 3)))
    milc = Staggered(turned, phases="milc")
    again = mesons.staggered_mesons(turned, milc, MASS, one_link=True, origin=origin, phases="milc")
    for name, values in found.correlators.items():
        np.testing.assert_allclose(again.correlators[name], values, rtol=1e-7, atol=1e-10)


def test_the_condensate_of_wilson_quarks_is_the_trace(inverse: np.ndarray) -> None:
    gauge = field(extents=WILSON)
    found = mesons.chiral_condensate(gauge, Wilson(gauge, KAPPA), noise_vectors=12)
    assert found.error is not None
    expected = np.trace(inverse).real / np.prod(WILSON)
    assert 0 < found.error < 0.02 * expected
    assert found.mean == pytest.approx(expected, abs=4 * found.error)


def test_the_same_on_two_ranks() -> None:
    def work(group: Group, grid: tuple[int, ...]) -> list[np.ndarray]:
        gauge = field(group, grid)
        operator = Staggered(gauge)
        found = mesons.staggered_mesons(gauge, operator, MASS)
        condensate = mesons.chiral_condensate(gauge, operator, MASS, noise_vectors=2)
        wilson = mesons.wilson_mesons(gauge, Wilson(gauge, 0.11), source="gaussian", sink="wall", sources=2)
        z2 = mesons.staggered_mesons(gauge, operator, MASS, source="z2", momenta=1).correlators["rho"]
        wall = mesons.wilson_mesons(gauge, Wilson(gauge, 0.11), source="wall", sink="wall", momenta=1)
        found_all = [*wilson.correlators.values(), *wall.correlators.values()]
        return [found.pion, found.rho, np.array(condensate.values), *z2, *found_all]

    expected = work(Group.alone(), (1, 1, 1, 1))
    for found in run_threads(2, lambda group: work(group, (2, 1, 1, 1))):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-8 * abs(other).max())


def test_effective_masses() -> None:
    times = np.arange(12)
    wave = np.cosh(0.4 * (times - 6))
    np.testing.assert_allclose(mesons.effective_mass(wave), 0.4, rtol=1e-9)
    np.testing.assert_allclose(mesons.effective_mass(wave, distance=2), 0.4, rtol=1e-9)
    assert np.isnan(mesons.effective_mass((-1.0) ** times)).all()
    assert np.isnan(mesons.effective_mass(np.ones(8))).all()
    found = mesons.logarithmic_mass([8, 4, -1, 1, 1, 1])
    np.testing.assert_allclose(found, [np.log(2), np.nan, np.nan])
    with pytest.raises(BadInput, match="even number"):
        mesons.effective_mass(np.ones(5))


def test_bad_input_is_refused() -> None:
    gauge = field()
    with pytest.raises(BadInput, match="1 noise vector or more"):
        mesons.chiral_condensate(gauge, Staggered(gauge), MASS, noise_vectors=0)
    with pytest.raises(BadInput, match="expected a mass of staggered quarks, and none of Wilson"):
        mesons.chiral_condensate(gauge, Staggered(gauge))
    for wrong in ({"source": "gaussian"}, {"sink": "wall"}, {"source": "z2", "one_link": True}):
        with pytest.raises(BadInput, match="a point sink and no Gaussian source"):
            mesons.staggered_mesons(gauge, Staggered(gauge), MASS, **wrong)
    with pytest.raises(Error, match="larger mass or tolerance"):
        mesons.staggered_mesons(gauge, Staggered(gauge), 1e-3, iterations=2)
