"""The staggered operator against plain NumPy on the whole lattice, on every grid and with any lanes."""

import numpy as np
import pytest

from gauge_fields import random_gauge
from grids import lattices
from onehop import BadInput, Group, _core
from onehop.lattice import Gauge, Geometry, Staggered
from staggered_reference import (
    coordinates,
    dslash_of_links,
    random_links,
    some_field,
    with_phases,
)
from threads import run_threads

ERRORS = {"double": 1e-13, "single": 2e-5, "half": 2e-3}  # for fields and links of order one


@pytest.mark.parametrize(
    ("extents", "lanes", "long"),
    [
        ((8, 8, 8, 8), 8, True),
        ((8, 8, 4, 6), 4, True),
        ((6, 8, 2), 2, True),
        ((4, 2, 6, 4), 1, True),
        ((8, 4, 8, 4), 8, False),
    ],
)
def test_fat_and_long_links_as_by_numpy(extents: tuple[int, ...], lanes: int, long: bool) -> None:
    fat, far = random_links(extents, 1), random_links(extents, 2) if long else None
    staggered = Staggered.of_links(Group.alone(), extents, fat, far, lanes=lanes)
    assert (staggered.lanes, staggered.has_long_links) == (lanes, long)
    fields = np.stack([some_field(extents, seed) for seed in range(6)])
    expected = np.stack([dslash_of_links(fat, far, field) for field in fields])
    odd = sum(coordinates(extents)) % 2 == 1
    for precision, error in ERRORS.items():
        close = {"rtol": 0, "atol": error * abs(expected).max()}
        for several in (1, 4, 6):
            np.testing.assert_allclose(
                staggered.dslash(fields[:several], precision=precision), expected[:several], **close
            )
        one = staggered.dslash(fields[0], precision=precision, parity=1)
        np.testing.assert_allclose(one, np.where(odd[..., None], expected[0], 0), **close)
        applied = staggered.apply(fields[0], 0.3, precision=precision)
        np.testing.assert_allclose(applied, 0.6 * fields[0] + expected[0], **close)
        adjoint = staggered.apply(fields[0], 0.3, dagger=True, precision=precision)
        np.testing.assert_allclose(adjoint, 0.6 * fields[0] - expected[0], **close)
        normal = staggered.apply_mdagm(fields[:2], 0.3, precision=precision)
        twice = np.stack([dslash_of_links(fat, far, field) for field in expected[:2]])
        wanted = 0.36 * fields[:2] - twice
        np.testing.assert_allclose(normal, wanted, rtol=0, atol=3 * error * abs(wanted).max())


@pytest.mark.parametrize(
    ("extents", "grid", "lanes"),
    [
        ((8, 4, 4, 12), (1, 1, 1, 2), 8),
        ((4, 4, 4, 8), (1, 1, 1, 2), 4),  # blocks thinner than two hops
        ((6, 6, 2, 4), (2, 2, 1, 1), 1),  # odd blocks
        ((6, 8, 6, 2), (2, 2, 2, 1), 2),
    ],
)
def test_fat_and_long_links_on_every_grid(
    extents: tuple[int, ...], grid: tuple[int, ...], lanes: int
) -> None:
    fat, long = random_links(extents, 3), random_links(extents, 4)
    fields = np.stack([some_field(extents, seed) for seed in (5, 6)])
    expected = np.stack([dslash_of_links(fat, long, field) for field in fields])
    alone = Staggered.of_links(Group.alone(), extents, fat, long)
    how = {"reproducible": True, "sloppy_precision": "half", "tolerance": 1e-9}
    solved = alone.solve(fields, 0.5, **how)
    assert solved.converged

    def one_rank(group: Group) -> tuple:
        mine = Geometry(extents, grid).block_slices(group.rank)
        here = (slice(None), *mine)
        staggered = Staggered.of_links(group, extents, fat[mine], long[mine], grid, lanes=lanes)
        hops = {precision: staggered.dslash(fields[here], precision=precision) for precision in ERRORS}
        return here, hops, staggered.solve(fields[here], 0.5, **how)

    for here, hops, result in run_threads(int(np.prod(grid)), one_rank):
        for precision, error in ERRORS.items():
            atol = error * abs(expected).max()
            np.testing.assert_allclose(hops[precision], expected[here], rtol=0, atol=atol)
        # Bit for bit.
        assert (result.iterations, result.residuals) == (solved.iterations, solved.residuals)
        np.testing.assert_array_equal(result.solution, solved.solution[here])


@pytest.mark.parametrize("target", _core.lattice_targets())
def test_every_kind_of_processor(target: str) -> None:
    """Operators with 1 to 16 lanes, and the sums of a solve."""
    _core.lattice_use_target(target)
    try:
        for extents, lanes in (((4, 4, 4, 8), 16), ((8, 4, 4, 4), 8), ((4, 2, 4, 6), 2), ((2, 2, 2, 6), 1)):
            fat, long = random_links(extents, 1), 0.2 * random_links(extents, 2)
            staggered = Staggered.of_links(Group.alone(), extents, fat, long, lanes=lanes, threads=2)
            fields = np.stack([some_field(extents, seed) for seed in range(5)])
            expected = np.stack([dslash_of_links(fat, long, field) for field in fields])
            for precision, error in ERRORS.items():
                found = staggered.dslash(fields, precision=precision)
                np.testing.assert_allclose(found, expected, rtol=0, atol=error * abs(expected).max())
            for how in (
                {},
                {"sloppy_precision": "half"},
                {"reproducible": True, "sloppy_precision": "single"},
            ):
                solved = staggered.solve(fields, 0.5, tolerance=1e-9, **how)
                rest = fields - staggered.apply(solved.solution, 0.5)
                assert np.linalg.norm(rest) <= 1e-9 * np.linalg.norm(fields)
            shifted = staggered.solve(fields[0], (0.5, 0.9), tolerance=1e-9)
            assert shifted.converged
    finally:
        _core.lattice_use_target("")


@pytest.mark.parametrize(("extents", "grid"), lattices(3))
def test_every_operator_on_every_grid(extents: tuple[int, ...], grid: tuple[int, ...]) -> None:
    """All divisions of four directions into blocks of three and four sites; both parities, every precision."""
    fat, long = random_links(extents, 3), random_links(extents, 4)
    field = some_field(extents, 5)
    odd = (sum(coordinates(extents)) % 2)[..., None]
    hopped = dslash_of_links(fat, long, field)
    squared = 0.36 * field - dslash_of_links(fat, long, hopped)
    expected = (hopped, np.where(odd, 0, hopped), np.where(odd, hopped, 0), 0.6 * field - hopped, squared)

    def one_rank(group: Group) -> tuple[tuple[slice, ...], dict[str, tuple[np.ndarray, ...]]]:
        mine = Geometry(extents, grid).block_slices(group.rank)
        own = field[mine]
        staggered = Staggered.of_links(group, extents, fat[mine], long[mine], grid, threads=1)
        return mine, {
            precision: (
                staggered.dslash(own, precision=precision),
                staggered.dslash(own, precision=precision, parity=0),
                staggered.dslash(own, precision=precision, parity=1),
                staggered.apply(own, 0.3, dagger=True, precision=precision),
                staggered.apply_mdagm(own, 0.3, precision=precision),
            )
            for precision in ERRORS
        }

    for mine, found in run_threads(int(np.prod(grid)), one_rank):
        for precision, results in found.items():
            for one, whole in zip(results, expected, strict=True):
                atol = 3 * ERRORS[precision] * abs(whole).max()
                np.testing.assert_allclose(one, whole[mine], rtol=0, atol=atol)


@pytest.mark.parametrize(("one", "three"), [(1, 0), (9 / 8, -1 / 24)])
def test_propagators_of_unit_links_are_those_of_momentum_space(one: float, three: float) -> None:
    """With F = one and L = three times the phases η, D is i times the sum of 2 (one sin p + three sin 3p) η."""
    extents, mass = (4, 6, 4, 8), 0.3
    unit = Gauge(Group.alone(), extents)
    fat, far = one * with_phases(unit.links, True), None
    staggered = Staggered(unit)
    if three:
        far = three / one * fat
        far[-3:-1, ..., 3, :, :] *= -1  # a hop of three sites across the boundary changes the sign
        staggered = Staggered.of_links(Group.alone(), extents, fat, far)
    source = np.zeros((*extents[::-1], 3), complex)
    source[0, 0, 0, 0, 1] = 1
    found = staggered.solve(source, mass, tolerance=1e-12, sloppy_precision="single")
    assert found.converged
    # x = (2 m - D) (4 m^2 - D^2)^-1 b, the inverse by Fourier transform with half-integer frequencies in time.
    total = np.zeros(extents[::-1])
    for direction, extent in enumerate(extents):
        momentum = 2 * np.pi * (np.arange(extent) + (0.5 if direction == 3 else 0.0)) / extent
        term = (2 * (one * np.sin(momentum) + three * np.sin(3 * momentum))) ** 2
        total += term.reshape([-1 if 3 - axis == direction else 1 for axis in range(4)])
    wave = np.exp(1j * np.pi * np.arange(extents[3]) / extents[3])[:, None, None, None]
    field = np.zeros_like(source)
    field[..., 1] = np.fft.ifftn(np.fft.fftn(source[..., 1] / wave) / (4 * mass**2 + total)) * wave
    expected = 2 * mass * field - dslash_of_links(fat, far, field)
    np.testing.assert_allclose(found.solution, expected, rtol=0, atol=1e-11)


def test_nan_passes_through_operators_and_is_refused_by_solves() -> None:
    """Also in 16 bits. On unit links, the neighbours of the site in each direction have it."""
    staggered = Staggered(Gauge(Group.alone(), (4, 4, 4, 4)))
    field = np.ones((4, 4, 4, 4, 3), complex)
    field[0, 0, 0, 0] = np.nan
    for precision in ERRORS:
        assert np.isnan(staggered.dslash(field, precision=precision)).any(axis=-1).sum() == 8
        assert np.isnan(staggered.apply(field, 0.1, precision=precision)).any(axis=-1).sum() == 9
    with pytest.raises(BadInput, match="of finite numbers"):
        staggered.solve(field, 0.1)


def test_bad_input_is_refused() -> None:
    gauge = Gauge(Group.alone(), (4, 4))
    staggered = Staggered(gauge)
    with pytest.raises(BadInput, match="mass above 0"):
        staggered.solve(some_field((4, 4), 1), 0.0)
    for number in (np.nan, np.inf):
        with pytest.raises(BadInput, match="finite numbers and finite norm"):
            staggered.solve(number * some_field((4, 4), 1), 0.1, sloppy_precision="half")
    with pytest.raises(BadInput, match="tolerance: expected a number above 0"):
        staggered.solve(some_field((4, 4), 1), 0.1, tolerance=0)
    with pytest.raises(BadInput, match="field of shape"):
        staggered.dslash(some_field((4, 6), 1))
    with pytest.raises(BadInput, match="the action staggered, asqtad or hisq, found 'p4'"):
        Staggered(gauge, "p4")
    with pytest.raises(BadInput, match="u0 above 0"):
        Staggered(gauge, "asqtad", u0=0)
    with pytest.raises(BadInput, match="1 lane or more"):
        Staggered(gauge, lanes=0)
    with pytest.raises(BadInput, match="even extents"):
        Staggered(Gauge(Group.alone(), (3, 4)))
    links = random_links((4, 4), 1)
    with pytest.raises(BadInput, match="long links of shape"):
        Staggered.of_links(Group.alone(), (4, 4), links, links[:2])
    with pytest.raises(BadInput, match="half, single or double"):
        staggered.solve(some_field((4, 4), 1), 0.1, sloppy_precision="quarter")
    with pytest.raises(BadInput, match="expected precision single or double, found half"):
        staggered.solve(some_field((4, 4), 1), 0.1, precision="half")
    with pytest.raises(BadInput, match="one right-hand side for several masses"):
        staggered.solve(np.stack([some_field((4, 4), 1)] * 2), [0.1, 0.2])
    with pytest.raises(BadInput, match="parity 0"):
        staggered.dslash(some_field((4, 4), 1), parity=2)


def test_naik_epsilon_changes_the_links_in_proportion() -> None:
    gauge = random_gauge(Group.alone(), (4, 4, 4, 4))
    rng = np.random.default_rng(1)
    field = rng.normal(size=(*gauge.geometry.block_shape, 3, 2)) @ [1, 1j]
    # The operator without it takes another path, in C++. Weights of paths are linear in epsilon.
    results = [
        Staggered(gauge, "hisq", naik_epsilon=one, phases="milc").dslash(field) for one in (0.0, 0.2, 0.4)
    ]
    np.testing.assert_allclose(results[2] - results[1], results[1] - results[0], rtol=0, atol=1e-12)
    assert abs(results[1] - results[0]).max() > 0.01
    with pytest.raises(BadInput, match="expected the action hisq with naik_epsilon"):
        Staggered(gauge, "asqtad", naik_epsilon=0.1)
