"""Correlators and the condensate against matrices inverted by NumPy."""

import numpy as np
import pytest

import wilson_reference
from lattice_reference import adjoint, shifted
from onehop import BadInput, Error, Group
from onehop.lattice import Gauge, Staggered, Wilson, mesons, thermalize
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
    assert found.true_residual <= 1e-10
    # Ward identity: the trace at the origin is 2 m times the sum of the pion correlator.
    assert 2 * MASS * found.pion.sum() == pytest.approx(np.trace(propagator[0, 0, 0, 0]).real, rel=1e-9)


def test_condensate_is_the_trace() -> None:
    gauge = field()
    expected = np.trace(np.linalg.inv(staggered_matrix(gauge.links))).real / np.prod(EXTENTS)
    found = mesons.chiral_condensate(gauge, Staggered(gauge), MASS, noise_vectors=40, seed=3)
    assert found.error is not None
    assert 0 < found.error < 0.02 * expected
    assert found.mean == pytest.approx(expected, abs=4 * found.error)
    assert len(set(found.values)) == 40


def test_wilson_mesons_are_those_of_the_inverse_matrix() -> None:
    extents, kappa = (2, 2, 2, 6), 0.11
    gauge = field(extents=extents)
    shape = (*extents[::-1], 4, 3)
    size = int(np.prod(shape))
    matrix = np.empty((size, size), complex)
    for column in range(size):
        vector = np.zeros(size, complex)
        vector[column] = 1
        hopped = wilson_reference.dslash(gauge.links, vector.reshape(shape), True)
        matrix[:, column] = vector - kappa * hopped.ravel()
    propagator = np.linalg.inv(matrix)[:, :12].reshape(*shape[:4], 12, 12)
    found = mesons.wilson_mesons(gauge, Wilson(gauge, kappa), tolerance=1e-12)
    gamma5 = np.kron(wilson_reference.GAMMA5, np.eye(3))
    backwards = gamma5 @ adjoint(propagator) @ gamma5  # G(0, x)
    expected = []
    for gammas in ([wilson_reference.GAMMA5], wilson_reference.GAMMA[:3]):
        traces = 0
        for gamma in gammas:
            wide = np.kron(gamma, np.eye(3))
            traces = traces + np.trace(wide @ propagator @ wide @ backwards, axis1=-2, axis2=-1) / len(gammas)
        assert abs(traces.sum(axis=(1, 2, 3)).imag).max() < 1e-10
        expected.append(traces.real.sum(axis=(1, 2, 3)))
    np.testing.assert_allclose(found.pion, expected[0], rtol=1e-9)
    np.testing.assert_allclose(found.rho, expected[1], rtol=1e-8)
    assert (found.rho > 0).all()
    assert (found.pion > found.rho).all()


def test_the_same_on_two_ranks() -> None:
    def work(group: Group, grid: tuple[int, ...]) -> list[np.ndarray]:
        gauge = field(group, grid)
        operator = Staggered(gauge)
        found = mesons.staggered_mesons(gauge, operator, MASS)
        condensate = mesons.chiral_condensate(gauge, operator, MASS, noise_vectors=2)
        return [found.pion, found.rho, np.array(condensate.values)]

    expected = work(Group.alone(), (1, 1, 1, 1))
    for found in run_threads(2, lambda group: work(group, (2, 1, 1, 1))):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8)


def test_effective_masses() -> None:
    times = np.arange(12)
    wave = np.cosh(0.4 * (times - 6))
    np.testing.assert_allclose(mesons.effective_mass(wave), 0.4, rtol=1e-9)
    np.testing.assert_allclose(mesons.effective_mass(wave, distance=2), 0.4, rtol=1e-9)
    assert np.isnan(mesons.effective_mass((-1.0) ** times)).all()
    assert np.isnan(mesons.effective_mass(np.ones(8))).all()
    with pytest.raises(BadInput, match="even number"):
        mesons.effective_mass(np.ones(5))


def test_bad_input_is_refused() -> None:
    gauge = field()
    with pytest.raises(BadInput, match="1 noise vector or more"):
        mesons.chiral_condensate(gauge, Staggered(gauge), MASS, noise_vectors=0)
    with pytest.raises(Error, match="larger mass or tolerance"):
        mesons.staggered_mesons(gauge, Staggered(gauge), 1e-3, iterations=2)
