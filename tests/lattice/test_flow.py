"""Gradient flow, energy, topological charge, Polyakov loop."""

import itertools
import re

import numpy as np
import pytest

import lattice_reference as reference
from gauge_fields import abelian, constant_flux, random_gauge, same_on_grids, thermal_gauge
from onehop import BadInput, Error, Group
from onehop._core import longest_stable_flow_step
from onehop.lattice import Flow, Gauge, field_strength, gradient_flow, polyakov_loop, smearing, thermalize
from onehop.lattice.flow import FLOW_LIMIT, reference_time


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
    gauge = random_gauge(Group.alone(), extents)
    np.testing.assert_allclose(field_strength(gauge), strength_by_numpy(gauge.links), atol=1e-12)


def test_polyakov_loop_as_by_numpy() -> None:
    gauge = random_gauge(Group.alone(), (3, 2, 4, 5))
    product = reference.along(gauge.links, [4] * 5)
    expected = np.trace(product, axis1=-2, axis2=-1).mean() / 3
    assert polyakov_loop(gauge) == pytest.approx(expected, abs=1e-14)


def test_abelian_field_of_one_plaquette_angle() -> None:
    """Flux of n and m quanta through two planes has charge 2 n m, with sin(angle) in place of the angle."""
    extents, n, m = (8, 8, 6, 6), 1, 2
    gauge = constant_flux(extents, n, m)
    first, second = (2 * np.pi * q / s for q, s in ((n, 64), (m, 36)))
    sites = np.prod(extents)
    found = field_strength(gauge)
    expected = 2 * sites * np.sin(first) * np.sin(second) / (4 * np.pi**2)
    assert found.charge == pytest.approx(expected, rel=1e-11)
    assert expected == pytest.approx(2 * n * m, rel=0.03)
    assert found.energy_clover == pytest.approx(2 * (np.sin(first) ** 2 + np.sin(second) ** 2), rel=1e-11)
    # The flow does not change a field of constant strength.
    flowing, _ = gradient_flow(gauge, 0.2, step=0.1)
    assert flowing.field_strength().charge == pytest.approx(expected, rel=1e-10)


def test_abelian_wave_decays_as_it_should() -> None:
    """Links exp(i a cos(k y)) in x: with small `a`, a falls by exp(-t (2 sin(k/2))²), and its energy twice as fast."""
    extents, height = (4, 8, 2, 2), 1e-4
    k = 2 * np.pi / extents[1]
    angles = np.zeros((*extents[::-1], 4))
    angles[..., 0] = height * np.cos(k * np.arange(extents[1]))[None, None, :, None]
    gauge = abelian(angles)
    flowing, points = gradient_flow(gauge, 1.0, step=0.05, every=10)
    rate = (2 * np.sin(k / 2)) ** 2
    assert [point.time for point in points] == pytest.approx([0, 0.5, 1.0])
    for point in points:
        decayed = np.exp(-2 * rate * point.time)
        # The method's error is (rate * step)^4 / 24 per step; rounding energies to 2^-50 contributes 1e-7 here.
        assert point.energy_plaquette / points[0].energy_plaquette == pytest.approx(decayed, rel=2e-5)
    flowing.copy_to(gauge)
    angle = np.angle(gauge.links[0, 0, :, 0, 0, 0, 0])
    expected = height * np.cos(k * np.arange(extents[1])) * np.exp(-rate)
    np.testing.assert_allclose(angle, expected, rtol=1e-5, atol=height * 1e-8)


def test_third_order_and_one_small_step_is_stout() -> None:
    gauge = thermal_gauge((4, 4, 4, 4))
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
        gauge = random_gauge(group, extents, grid)
        loop = polyakov_loop(gauge)
        with pytest.raises(BadInput) as refused:
            gradient_flow(gauge, 1.0, step=0.3)
        flowing, points = gradient_flow(gauge, 0.1, step=0.05)
        adapted, adapted_points = gradient_flow(gauge, 0.1, tolerance=1e-3)
        flowing.copy_to(gauge)
        found = (points, loop, field_strength(gauge), gauge.gather().tobytes(), adapted_points)
        return *found, adapted.largest_error, str(refused.value)

    same_on_grids(one_rank, (1, 1, 1, 2), (2, 1, 2, 1), (1, 2, 2, 2))


def test_reference_time_and_errors() -> None:
    gauge = thermal_gauge((4, 4, 4, 4))
    _, points = gradient_flow(gauge, 0.3, step=0.1)
    middle = (points[1].t2_energy + points[2].t2_energy) / 2
    assert reference_time(points, middle) == pytest.approx(0.15)
    assert reference_time(points, 5.0) is None
    for wrong in (
        {"time": 1, "action": "iwasaki"},
        {"time": 1, "charge": "4li"},
        {"time": -1},
        {"time": 1, "step": 0},
        {"time": 1, "step": 2},
        {"time": 1, "every": 0},
    ):
        with pytest.raises(BadInput, match="expected"):
            gradient_flow(gauge, **wrong)


def test_the_error_of_a_step_is_of_third_order_and_bounds_the_method_s_own() -> None:
    gauge = thermal_gauge((4, 4, 4, 4))
    fine = Flow(gauge)
    for _ in range(80):
        fine.step(0.001)
    fine.copy_to(exact := Gauge(Group.alone(), (4, 4, 4, 4)))
    errors, own = [], []
    for parts in (1, 2):
        flowing = Flow(gauge)
        errors.append(flowing.try_step(0.08 / parts, 1.0))
        for _ in range(parts - 1):
            flowing.step(0.08 / parts)
        flowing.copy_to(ended := Gauge(Group.alone(), (4, 4, 4, 4)))
        own.append(np.sqrt((abs(ended.links - exact.links) ** 2).sum(axis=(-1, -2)).max()))
    assert errors[0] / errors[1] == pytest.approx(8, rel=0.25)
    assert own[0] < errors[0]
    assert own[1] < own[0] / 6


@pytest.mark.parametrize("action", ["wilson", "symanzik", "zeuthen"])
@pytest.mark.parametrize("extents", [(4, 4, 4, 4), (3, 5, 4), (5, 4)])
def test_a_step_of_each_action_as_by_numpy(action: str, extents: tuple[int, ...]) -> None:
    """NumPy computes W = exp(-Z_0 + 2 Z_1) V, with which a step is compared, and the force, all paths one by one."""
    gauge = random_gauge(Group.alone(), extents)
    smearing.stout(gauge, 0.1, 2)
    links, ended = gauge.links, Gauge(Group.alone(), extents)
    flowing = Flow(gauge, action)
    found = flowing.try_step(0.05, 100.0)
    flowing.copy_to(ended)
    embedded = reference.embedded_flow_step(links, 0.05, action)
    expected = np.sqrt((abs(ended.links - embedded) ** 2).sum(axis=(-1, -2)).max())
    assert found == flowing.largest_error == pytest.approx(expected, rel=1e-9)
    tiny = Flow(gauge, action)
    tiny.step(1e-6)
    tiny.copy_to(ended)
    slopes = (ended.links - links) @ reference.adjoint(links) * 1e6
    np.testing.assert_allclose(slopes, reference.flow_slopes(links, action), atol=3e-4)


@pytest.mark.parametrize("action", ["wilson", "symanzik", "zeuthen"])
def test_the_fastest_mode_of_each_action_is_stable_up_to_the_named_step(action: str) -> None:
    """The highest momentum, with its polarisation transverse, decays the fastest; longer steps amplify it."""
    extents = (4, 4, 4, 4)
    t, z, y, x = np.indices(extents)
    angles = np.zeros((*extents, 4))
    angles[..., 0], angles[..., 1] = 1e-5 * (-1.0) ** (x + y + z + t), -1e-5 * (-1.0) ** (x + y + z + t)
    gauge = abelian(angles)
    before, stable = field_strength(gauge).energy_plaquette, longest_stable_flow_step(4, action)
    for factor, grows in ((0.98, False), (1.02, True)):
        flowing = Flow(gauge, action)
        for _ in range(6):
            flowing.step(factor * stable)
        assert (flowing.field_strength().energy_plaquette > before) == grows
    with pytest.raises(BadInput, match=f"unstable in 4 directions with the {action} action"):
        gradient_flow(gauge, 1.02 * stable, step=1.02 * stable, action=action)


def test_a_step_that_is_refused_changes_nothing_and_one_that_is_taken_is_a_step() -> None:
    gauge = thermal_gauge((4, 4, 4, 4))
    tried, stepped = Flow(gauge), Flow(gauge)
    assert tried.try_step(0.3, 1e-3) > 1e-3
    assert tried.time == 0
    tried.copy_to(after := Gauge(Group.alone(), (4, 4, 4, 4)))
    assert after.links.tobytes() == gauge.links.tobytes()
    for _ in range(3):
        assert tried.try_step(0.02, 1.0) < 1e-3
        stepped.step(0.02)
    assert tried.time == stepped.time
    tried.copy_to(after)
    stepped.copy_to(gauge)
    assert after.links.tobytes() == gauge.links.tobytes()


@pytest.mark.parametrize("step", [0.15, 0.2, 0.3, 1.0])
@pytest.mark.parametrize("beta", [5.5, 8.0])
def test_a_coarse_step_is_refused_and_the_one_that_is_named_works(beta: float, step: float) -> None:
    gauge = Gauge(Group.alone(), (4, 4, 4, 4))
    thermalize(gauge, beta, 8)
    right = gradient_flow(gauge, 1.0, step=0.01)[1][-1].t2_energy
    with pytest.raises(BadInput, match="too long for the flow of this field") as caught:
        gradient_flow(gauge, 1.0, step=step)
    found = re.search(r"largest step that works is ([0-9.e-]+) ", str(caught.value))
    assert found is not None
    named = float(found[1])
    assert 0.08 < named < min(step, 2.51 / 16)
    flowing, points = gradient_flow(gauge, 1.0, step=named)
    assert flowing.largest_error <= FLOW_LIMIT
    assert points[-1].t2_energy == pytest.approx(right, rel=1e-3)


def test_steps_adapt_to_a_tolerance() -> None:
    gauge = Gauge(Group.alone(), (4, 4, 4, 4))
    thermalize(gauge, 6.0, 8)
    right = gradient_flow(gauge, 1.0, step=0.002, every=1000)[1][-1].t2_energy
    off = []
    for tolerance in (1e-2, 1e-4, 1e-6):
        flowing, points = gradient_flow(gauge, 1.0, step=0.3, tolerance=tolerance)
        times = np.array([point.time for point in points])
        assert flowing.largest_error <= tolerance
        assert times[-1] == pytest.approx(1.0, abs=1e-12)
        lengths = np.diff(times)
        assert lengths[:-1].max() > 1.5 * lengths[0]  # smoother links allow longer steps
        assert lengths.max() <= 2.51 / 16
        off.append(abs(points[-1].t2_energy / right - 1))
    assert off[0] < 1e-3
    assert off[1] < 1e-4
    assert off[2] < 3e-6
    assert gradient_flow(gauge, 0.0, tolerance=1e-3)[1][-1].time == 0
    assert [p.time for p in gradient_flow(gauge, 0.5, tolerance=1e-3, every=10**6)[1]] == [0, 0.5]
    for wrong in (0, -1, 2, np.nan, np.inf):
        with pytest.raises(BadInput, match="expected a tolerance"):
            gradient_flow(gauge, 1.0, tolerance=wrong)


def test_links_of_any_size_end_the_flow() -> None:
    gauge = thermal_gauge((4, 4, 4, 4))
    links = gauge.links
    links[1, 2, 3, 0, 1] = 1e200
    gauge.set_links(links)
    for how in ({}, {"tolerance": 1e-3}):
        with pytest.raises(Error, match=r"flow: .* check that the links are in SU\(3\)"):
            gradient_flow(gauge, 0.1, **how)
