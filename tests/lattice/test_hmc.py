"""Hybrid Monte Carlo: reversibility, correct distribution, the same bits on every grid."""

import numpy as np
import pytest

from gauge_fields import random_gauge, same_on_grids, thermal_gauge
from lattice_reference import one_plaquette
from onehop import BadInput, Group
from onehop.lattice import Gauge, Hmc, hybrid_monte_carlo, thermalize
from threads import run_threads


@pytest.mark.parametrize("integrator", ["leapfrog", "omelyan"])
def test_reversibility(integrator: str) -> None:
    gauge = thermal_gauge((4, 4, 4, 4), beta=5.7, sweeps=10)
    links = gauge.links
    moving = Hmc(gauge, 5.7, steps=8, integrator=integrator)
    found = moving.reverse(3)
    assert 0 < found.links < 1e-12
    assert abs(found.delta_h) < 1e-9
    moving.copy_to(gauge)
    assert gauge.links.tobytes() == links.tobytes()


@pytest.mark.parametrize("ranks", [1, 2])
def test_links_that_overflow_are_no_reversal(ranks: int) -> None:
    def attempt(group: Group) -> float:
        gauge = Gauge(group, (4, 4, 4, 4))
        return Hmc(gauge, 5.7, length=1e8, steps=2).reverse(0).links

    assert np.isnan(run_threads(ranks, attempt)).all()


@pytest.mark.parametrize("integrator", ["leapfrog", "omelyan"])
def test_error_of_the_energy_goes_with_the_squared_step(integrator: str) -> None:
    gauge = thermal_gauge((4, 4, 4, 4), beta=5.7, sweeps=10)
    few, many = (abs(Hmc(gauge, 5.7, steps=steps, integrator=integrator).run(1)[0]) for steps in (20, 40))
    assert few / many == pytest.approx(4, rel=0.3)


def test_momenta_are_normal() -> None:
    """Without a force links move by exp(P). -tr P² has the mean and variance of eight normal numbers per link."""
    gauge = Gauge(Group.alone(), (6, 6, 6, 6))
    moving = Hmc(gauge, 0.0, length=1e-3, steps=1)
    assert moving.run(0) == (0.0, True)
    moving.copy_to(gauge)
    momenta = (gauge.links - np.eye(3)).reshape(-1, 3, 3) * 1e3
    energy = (np.abs(momenta) ** 2).sum(axis=(1, 2))
    assert energy.mean() == pytest.approx(4, abs=5 * 2 / np.sqrt(len(energy)))
    assert energy.var() == pytest.approx(4, rel=0.2)
    numbers = np.stack(
        [momenta[:, 0, 1].real, momenta[:, 1, 2].imag, momenta[:, 0, 0].imag, momenta[:, 2, 2].imag]
    )
    assert (numbers**2).mean(axis=1) == pytest.approx([0.25, 0.25, 1 / 3, 1 / 3], rel=0.1)
    assert abs(np.corrcoef(numbers)[0, 1:]).max() < 0.05


def test_two_dimensions_against_the_integral_and_exp_of_minus_delta_h() -> None:
    """The plaquette equals the exact integral, and <exp(-dH)> = 1, with many rejected trajectories."""
    beta = 6.0
    gauge = thermal_gauge((12, 12), beta=beta, sweeps=30)
    done = hybrid_monte_carlo(gauge, beta, 300, length=1.0, steps=4, integrator="leapfrog", seed=3)
    weights = np.exp([-one.delta_h for one in done])
    assert weights.mean() == pytest.approx(1, abs=4 * weights.std() / np.sqrt(len(weights)))
    assert weights.std() / np.sqrt(len(weights)) < 0.1
    accepted = np.mean([one.accepted for one in done])
    assert 0.3 < accepted < 0.97
    history = np.array([one.plaquette for one in done])[20:]
    blocks = history.reshape(-1, 20).mean(axis=1)
    width = blocks.std(ddof=1) / np.sqrt(len(blocks))
    assert history.mean() == pytest.approx(one_plaquette(beta), abs=4 * width)
    assert width < 5e-3


def test_four_dimensions_against_the_heat_bath() -> None:
    beta, extents = 5.6, (4, 4, 4, 4)
    bath = Gauge(Group.alone(), extents)
    expected = np.array(thermalize(bath, beta, 1220, seed=2, over_relaxations=2))[20:]
    done = hybrid_monte_carlo(bath, beta, 300, length=1.0, steps=6, seed=4)
    history = np.array([one.plaquette for one in done])
    widths = [np.std(h.reshape(10, -1).mean(axis=1), ddof=1) / np.sqrt(10) for h in (history, expected)]
    assert history.mean() == pytest.approx(expected.mean(), abs=4 * np.hypot(*widths))
    assert np.hypot(*widths) < 4e-3
    assert np.mean([one.accepted for one in done]) > 0.7


def test_the_same_bits_on_every_grid_and_after_an_interruption() -> None:
    extents = (4, 4, 4, 8)

    def one_rank(group: Group, grid: tuple[int, ...], parts: tuple[int, ...] = (3,)) -> tuple[object, ...]:
        gauge = random_gauge(group, extents, grid)
        done, first = [], 0
        for count in parts:
            done += hybrid_monte_carlo(gauge, 5.0, count, length=0.3, steps=3, seed=9, first=first)
            first += count
        return done, gauge.gather().tobytes()

    alone = Group.alone(), (1, 1, 1, 1)
    assert one_rank(*alone, (1, 2)) == one_rank(*alone)
    same_on_grids(one_rank, (2, 1, 1, 1), (1, 1, 2, 2), (2, 1, 2, 2))


def test_bad_input_is_refused() -> None:
    gauge = Gauge(Group.alone(), (4, 4))
    for wrong, message in (
        ({"beta": -1.0}, "beta"),
        ({"beta": 1.0, "steps": 0}, "1 step or more"),
        ({"beta": 1.0, "length": 0.0}, "length above 0"),
        ({"beta": 1.0, "integrator": "euler"}, "expected integrator omelyan or leapfrog, found 'euler'"),
    ):
        with pytest.raises(BadInput, match=message):
            Hmc(gauge, **wrong)
