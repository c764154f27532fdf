"""Gradient flow, energy, topological charge, Polyakov loop."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lattice_reference as reference
from onehop import BadInput, Group
from onehop.lattice import Flow, Gauge, field_strength, gradient_flow, polyakov_loop, smearing, thermalize
from onehop.lattice.flow import reference_time
from threads import run_threads

GENERATOR = np.diag([1.0, -1.0, 0.0])


def abelian(angles: np.ndarray) -> np.ndarray:
    """Links exp(i angle diag(1, -1, 0)) from angles of shape (t, z, y, x, direction)."""
    phases = np.exp(1j * angles[..., None] * np.diag(GENERATOR))
    return phases[..., None] * np.eye(3)


def field_of(links: np.ndarray) -> Gauge:
    dims = links.ndim - 3
    gauge = Gauge(Group.alone(), links.shape[:dims][::-1])
    gauge.set_links(links)
    return gauge


def smooth(extents: tuple[int, ...], seed: int = 1) -> Gauge:
    gauge = Gauge(Group.alone(), extents)
    thermalize(gauge, 6.0, 2, seed=seed, over_relaxations=1)
    return gauge


def strength_by_numpy(links: np.ndarray) -> tuple[float, float, float]:
    dims = links.ndim - 3
    strength, plaquettes = {}, 0.0
    for mu, nu in itertools.combinations(range(dims), 2):
        m, n = mu + 1, nu + 1
        leaves = [[m, n, -m, -n], [n, -m, -n, m], [-m, -n, m, n], [-n, m, n, -m]]
        strength[mu, nu] = reference.algebra(sum(reference.along(links, leaf) for leaf in leaves) / 4)
        trace = np.trace(reference.along(links, leaves[0]), axis1=-2, axis2=-1).real
        plaquettes += 2 * (3 - trace).mean()
    energy = -sum(np.trace(f @ f, axis1=-2, axis2=-1).real.mean() for f in strength.values())
    charge = 0.0
    if dims == 4:
        full = {**strength, **{(nu, mu): -f for (mu, nu), f in strength.items()}}
        for a, b, c, d in itertools.permutations(range(4)):
            sign = np.linalg.det(np.eye(4)[[a, b, c, d]])
            charge -= (
                sign * np.trace(full[a, b] @ full[c, d], axis1=-2, axis2=-1).real.sum() / (32 * np.pi**2)
            )
    return plaquettes, energy, charge


@pytest.mark.parametrize("extents", [(4, 2, 6, 3), (3, 4, 5), (4, 3)])
def test_energy_and_charge_as_by_numpy(extents: tuple[int, ...]) -> None:
    gauge = Gauge(Group.alone(), extents)
    gauge.set_random(4)
    np.testing.assert_allclose(field_strength(gauge), strength_by_numpy(gauge.links), atol=1e-12)


def test_polyakov_loop_as_by_numpy() -> None:
    gauge = Gauge(Group.alone(), (3, 2, 4, 5))
    gauge.set_random(4)
    product = reference.along(gauge.links, [4] * 5)
    expected = np.trace(product, axis1=-2, axis2=-1).mean() / 3
    assert polyakov_loop(gauge) == pytest.approx(expected, abs=1e-14)


def test_nothing_changes_under_gauge_transformations() -> None:
    gauge = smooth((4, 4, 2, 4))
    turn = smooth((4, 4, 2, 4), seed=5).links[..., 2, :, :]
    turned = field_of(reference.transformed(gauge.links, turn))
    one, other = Flow(gauge), Flow(turned)
    assert polyakov_loop(turned) == pytest.approx(polyakov_loop(gauge), abs=1e-13)
    for _ in range(3):
        np.testing.assert_allclose(other.point(), one.point(), atol=1e-12)
        one.step(0.05)
        other.step(0.05)
    one.copy_to(gauge)
    other.copy_to(turned)
    np.testing.assert_allclose(turned.links, reference.transformed(gauge.links, turn), atol=1e-12)


def test_abelian_field_of_one_plaquette_angle() -> None:
    """Fluxes of n quanta through two planes: charge 2 n m, but for sin(angle) in place of the angle."""
    extents, n, m = (8, 8, 6, 6), 1, 2
    angles = np.zeros((*extents[::-1], 4))
    t, z, y, x = np.indices(extents[::-1])
    for along, across, quanta, where in ((0, 1, n, (x, y)), (2, 3, m, (z, t))):
        size, other = extents[along], extents[across]
        angle = 2 * np.pi * quanta / (size * other)
        # The last column takes the angle back, so that every plaquette has the same, up to 2 pi.
        angles[..., across] = angle * where[0]
        angles[..., along] = np.where(where[0] == size - 1, -angle * size * where[1], 0)
    gauge = field_of(abelian(angles))
    first, second = (2 * np.pi * q / s for q, s in ((n, 64), (m, 36)))
    sites = np.prod(extents)
    found = field_strength(gauge)
    expected = 2 * sites * np.sin(first) * np.sin(second) / (4 * np.pi**2)
    assert found.charge == pytest.approx(expected, rel=1e-11)
    assert expected == pytest.approx(2 * n * m, rel=0.03)
    assert found.energy_clover == pytest.approx(2 * (np.sin(first) ** 2 + np.sin(second) ** 2), rel=1e-11)
    # A field of constant strength is at rest.
    flowing, _ = gradient_flow(gauge, 0.2, step=0.1)
    assert flowing.field_strength().charge == pytest.approx(expected, rel=1e-10)


def test_abelian_wave_decays_as_it_should() -> None:
    """Links exp(i a cos(k y)) in x: with small `a`, a falls by exp(-t (2 sin(k/2))²), and its energy twice as fast."""
    extents, height = (4, 8, 2, 2), 1e-4
    k = 2 * np.pi / extents[1]
    angles = np.zeros((*extents[::-1], 4))
    angles[..., 0] = height * np.cos(k * np.arange(extents[1]))[None, None, :, None]
    gauge = field_of(abelian(angles))
    flowing, points = gradient_flow(gauge, 1.0, step=0.05, every=10)
    rate = (2 * np.sin(k / 2)) ** 2
    assert [point.time for point in points] == pytest.approx([0, 0.5, 1.0])
    for point in points:
        decayed = np.exp(-2 * rate * point.time)
        # The method's own error is (rate * step)^4 / 24 a step; rounding of energies to 2^-50 is 1e-7 of this one.
        assert point.energy_plaquette / points[0].energy_plaquette == pytest.approx(decayed, rel=2e-5)
    flowing.copy_to(gauge)
    angle = np.angle(gauge.links[0, 0, :, 0, 0, 0, 0])
    expected = height * np.cos(k * np.arange(extents[1])) * np.exp(-rate)
    np.testing.assert_allclose(angle, expected, rtol=1e-5, atol=height * 1e-8)


def test_third_order_and_one_small_step_is_stout() -> None:
    gauge = smooth((4, 4, 4, 4))
    ends = [gradient_flow(gauge, 0.4, step=step)[1][-1].energy_plaquette for step in (0.1, 0.05, 0.0125)]
    assert abs(ends[0] - ends[2]) / abs(ends[1] - ends[2]) == pytest.approx(8, rel=0.3)
    tiny = Flow(gauge)
    tiny.step(1e-4)
    energy = tiny.field_strength().energy_plaquette
    before = field_strength(gauge).energy_plaquette
    smearing.stout(gauge, 1e-4)
    assert field_strength(gauge).energy_plaquette - before == pytest.approx(energy - before, rel=2e-3)


def test_the_same_bits_on_every_grid() -> None:
    extents = (4, 4, 8, 4)

    def one_rank(group: Group, grid: tuple[int, ...]) -> tuple[object, ...]:
        gauge = Gauge(group, extents, grid)
        gauge.set_random(5)
        loop = polyakov_loop(gauge)
        flowing, points = gradient_flow(gauge, 0.1, step=0.05)
        flowing.copy_to(gauge)
        return points, loop, field_strength(gauge), gauge.gather().tobytes()

    expected = one_rank(Group.alone(), (1, 1, 1, 1))
    for grid in [(1, 1, 1, 2), (2, 1, 2, 1), (1, 2, 2, 2)]:
        for found in run_threads(int(np.prod(grid)), lambda group, grid=grid: one_rank(group, grid)):
            assert found == expected


def test_reference_time_and_errors() -> None:
    gauge = smooth((4, 4, 4, 4))
    _, points = gradient_flow(gauge, 0.3, step=0.1)
    middle = (points[1].t2_energy + points[2].t2_energy) / 2
    assert reference_time(points, middle) == pytest.approx(0.15)
    assert reference_time(points, 5.0) is None
    for wrong in ({"time": -1}, {"time": 1, "step": 0}, {"time": 1, "step": 2}, {"time": 1, "every": 0}):
        with pytest.raises(BadInput, match="expected"):
            gradient_flow(gauge, **wrong)
