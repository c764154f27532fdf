"""Gauge fields: observables against NumPy, equal on every grid, and plaquettes against exact integrals."""

import itertools

import numpy as np
import pytest

from gauge_fields import random_gauge, same_on_grids
from lattice_reference import one_plaquette
from onehop import BadInput, Group
from onehop.lattice import Gauge, thermalize

GRIDS = [(2, 1, 1, 1), (1, 1, 1, 2), (1, 2, 2, 1), (2, 2, 2, 1), (1, 1, 2, 4)]


def plaquettes_by_numpy(links: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """Return Re tr of every plaquette, by rolling the whole lattice."""
    dims = links.ndim - 3
    found = {}
    for mu, nu in itertools.combinations(range(dims), 2):
        first, second = links[..., mu, :, :], links[..., nu, :, :]
        second_ahead = np.roll(second, -1, axis=dims - 1 - mu)
        first_ahead = np.roll(first, -1, axis=dims - 1 - nu)
        product = first @ second_ahead @ np.conj(np.swapaxes(second @ first_ahead, -1, -2))
        found[mu, nu] = np.trace(product, axis1=-2, axis2=-1).real
    return found


@pytest.mark.parametrize("extents", [(4, 2, 6, 4), (3, 5, 2), (4, 7)])
def test_measured_as_by_numpy(extents: tuple[int, ...]) -> None:
    gauge = random_gauge(Group.alone(), extents)
    links = gauge.links
    unit = np.eye(3)
    np.testing.assert_allclose(
        links @ links.conj().swapaxes(-1, -2), np.broadcast_to(unit, links.shape), atol=1e-14
    )
    np.testing.assert_allclose(np.linalg.det(links), 1, atol=1e-14)
    by_pair = plaquettes_by_numpy(links)
    last = len(extents) - 1
    space = [values.mean() / 3 for (_, nu), values in by_pair.items() if nu != last]
    in_time = [values.mean() / 3 for (_, nu), values in by_pair.items() if nu == last]
    found = gauge.plaquettes()
    assert found.all == pytest.approx(np.mean([*space, *in_time]), abs=1e-13)
    assert found.space == pytest.approx(np.mean(space) if space else 0, abs=1e-13)
    assert found.time == pytest.approx(np.mean(in_time), abs=1e-13)
    trace = np.trace(links, axis1=-2, axis2=-1).real.mean() / 3
    assert gauge.link_trace() == pytest.approx(trace, abs=1e-13)


def test_the_same_bits_on_every_grid() -> None:
    extents = (4, 4, 8, 8)

    def one_rank(group: Group, grid: tuple[int, ...]) -> tuple[bytes, list[float], tuple[float, ...]]:
        gauge = random_gauge(group, extents, grid)
        history = thermalize(gauge, 5.5, 2, seed=9, over_relaxations=1)
        return gauge.gather().tobytes(), history, (*gauge.plaquettes(), gauge.link_trace())

    same_on_grids(one_rank, *GRIDS)


def test_a_resumed_run_equals_an_uninterrupted_one() -> None:
    whole, parts = Gauge(Group.alone(), (4, 4, 4)), Gauge(Group.alone(), (4, 4, 4))
    thermalize(whole, 4.0, 3, seed=2)
    thermalize(parts, 4.0, 1, seed=2)
    thermalize(parts, 4.0, 2, seed=2, first=1)
    assert parts.links.tobytes() == whole.links.tobytes()
    thermalize(parts, 4.0, 1, seed=3)
    assert not np.allclose(parts.links, whole.links)


def test_over_relaxation_keeps_the_action() -> None:
    gauge = Gauge(Group.alone(), (4, 4, 4, 4))
    thermalize(gauge, 5.0, 5)
    before, links = gauge.plaquettes().all, gauge.links
    gauge.over_relax()
    assert gauge.plaquettes().all == pytest.approx(before, abs=1e-13)
    assert abs(gauge.links - links).max() > 0.5
    assert gauge.deviation().value < 1e-14


@pytest.mark.parametrize("beta", [0.0, 1.0, 6.0, 12.0])
def test_plaquette_in_two_dimensions(beta: float) -> None:
    """In two dimensions plaquettes are independent, up to finite-size effects that are negligible here."""
    gauge = Gauge(Group.alone(), (24, 24))
    history = thermalize(gauge, beta, 80, seed=4, over_relaxations=1)[20:]
    width = np.std(history) * np.sqrt(4 / len(history))  # the autocorrelation time is at most four sweeps
    assert np.mean(history) == pytest.approx(one_plaquette(beta), abs=5 * width)
    assert width < 4e-3


def test_plaquette_at_strong_coupling() -> None:
    beta = 0.5
    gauge = Gauge(Group.alone(), (8, 8, 8, 8))
    history = thermalize(gauge, beta, 165, over_relaxations=0)[5:]
    width = np.std(history) / np.sqrt(len(history))  # sweeps are uncorrelated here
    assert np.mean(history) == pytest.approx(beta / 18 + beta**2 / 216, abs=4 * width)
    assert width < 1.5e-4


def test_finds_and_mends_links_that_are_not_su3() -> None:
    gauge = random_gauge(Group.alone(), (4, 4, 4, 4))
    links = gauge.links
    links[3, 2, 0, 1, 2] *= 1.01
    gauge.set_links(links)
    value, site, direction = gauge.deviation()
    assert value == pytest.approx(0.0201, rel=0.5)
    assert (site, direction) == ((1, 0, 2, 3), 2)
    gauge.reunitarise()
    assert gauge.deviation().value < 1e-14
    links[0, 0, 0, 0, 0, 0, 0] = 1e200
    gauge.set_links(links)
    assert gauge.deviation().value == np.inf


@pytest.mark.parametrize(
    ("extents", "grid", "message"),
    [
        ((4,), None, "2 to 4 directions"),
        ((4, 4, 4, 1), None, "2 or more"),
        ((4, 4), (2, 1), "group's 1 rank,"),
        ((4, 5), (1, 2), "5 sites on 2 ranks"),
        ((4, 4.7), None, "extents: expected a whole number, found 4.7"),
    ],
)
def test_bad_input_is_refused(extents: tuple[int, ...], grid: tuple[int, ...] | None, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Gauge(Group.alone(), extents, grid)


def test_links_of_another_shape_are_refused() -> None:
    gauge = Gauge(Group.alone(), (3, 4))
    with pytest.raises(BadInput, match="links of shape"):
        gauge.set_links(gauge.links[0])
