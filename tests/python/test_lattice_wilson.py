"""Wilson and clover quarks against plain NumPy: every grid, every precision, every kind of processor."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import wilson_reference as reference
from conftest import Ranks
from onehop import BadInput, Group, _core
from onehop.lattice import Gauge, Wilson, WilsonSolve, clover_blocks, clover_leaves, wilson_kappa, write_gauge
from threads import run_threads

TOLERANCE = {"double": 2e-13, "single": 3e-5, "half": 6e-4}


def some_field(extents: tuple[int, ...], seed: int, *front: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    shape = (*front, *extents[::-1], 4, 3)
    return random.normal(size=shape) + 1j * random.normal(size=shape)


def random_gauge(group: Group, extents: tuple[int, ...], grid: tuple[int, ...] | None = None) -> Gauge:
    gauge = Gauge(group, extents, grid)
    gauge.set_random(4)
    return gauge


def close(found: np.ndarray, expected: np.ndarray, precision: str = "double") -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[precision] * abs(expected).max())


def gamma5(field: np.ndarray) -> np.ndarray:
    return np.einsum("st,...tc->...sc", reference.GAMMA5, field)


def parity(extents: tuple[int, ...]) -> np.ndarray:
    return np.indices(extents[::-1]).sum(axis=0)[..., None, None] % 2


def test_gamma_matrices_are_a_clifford_algebra() -> None:
    for mu in range(4):
        for nu in range(4):
            together = reference.GAMMA[mu] @ reference.GAMMA[nu] + reference.GAMMA[nu] @ reference.GAMMA[mu]
            np.testing.assert_allclose(together, 2 * np.eye(4) * (mu == nu), atol=1e-15)
    np.testing.assert_allclose(reference.GAMMA5, np.diag(np.diag(reference.GAMMA5)), atol=1e-15)


@pytest.mark.parametrize("target", _core.lattice_targets())
@pytest.mark.parametrize("precision", ["double", "single", "half"])
@pytest.mark.parametrize("two_rows", [False, True])
def test_applies_as_by_numpy(target: str, precision: str, two_rows: bool) -> None:
    _core.lattice_use_target(target)
    try:
        for extents, lanes in [((8, 4, 4, 4), 0), ((4, 2, 6, 4), 0), ((4, 4, 4, 4), 2), ((2, 2, 2, 2), 1)]:
            gauge = random_gauge(Group.alone(), extents)
            field = some_field(extents, 1)
            for antiperiodic in (True, False):
                wilson = Wilson(
                    gauge,
                    0.14,
                    csw=1.3,
                    antiperiodic=antiperiodic,
                    two_rows=two_rows,
                    precision=precision,
                    lanes=lanes,
                    threads=2,
                )
                close(wilson.hop(field), reference.hop(gauge.links, field, antiperiodic), precision)
                expected = reference.apply(gauge.links, field, 0.14, 1.3, antiperiodic)
                close(wilson.apply(field), expected, precision)
            # The adjoint through gamma_5.
            close(
                wilson.hop(field, dagger=True),
                gamma5(reference.hop(gauge.links, gamma5(field), False)),
                precision,
            )
    finally:
        _core.lattice_use_target("")


def test_several_right_hand_sides_and_no_clover() -> None:
    extents = (4, 4, 4, 8)
    gauge = random_gauge(Group.alone(), extents)
    fields = some_field(extents, 2, 3)
    wilson = Wilson(gauge, 0.12)
    found = wilson.apply(fields)
    for one, expected in zip(found, fields, strict=True):
        close(one, reference.apply(gauge.links, expected, 0.12))
    close(wilson.precondition(fields)[1], wilson.precondition(fields[1]))


@pytest.mark.parametrize("csw", [0.0, 1.7])
def test_is_gamma5_hermitian_and_preconditions(csw: float) -> None:
    extents = (4, 4, 4, 4)
    gauge = random_gauge(Group.alone(), extents)
    wilson = Wilson(gauge, 0.13, csw=csw)
    a, b = some_field(extents, 3), some_field(extents, 4)
    for operator in (wilson.hop, wilson.apply, wilson.precondition):
        assert np.vdot(a, operator(b)) == pytest.approx(np.vdot(operator(a, dagger=True), b), abs=1e-9)
        close(operator(b, dagger=True), gamma5(operator(gamma5(b))))
    # A - kappa^2 D A^-1 D on even sites, from 12x12 matrices.
    even = parity(extents) == 0
    matrices = reference.clover(gauge.links, 0.13 * csw).reshape(*extents[::-1], 12, 12)
    field = np.where(even, b, 0)
    odd = reference.hop(gauge.links, field)
    odd = np.linalg.solve(matrices, odd.reshape(*extents[::-1], 12, 1)).reshape(odd.shape)
    straight = (matrices @ field.reshape(*extents[::-1], 12, 1)).reshape(b.shape)
    close(wilson.precondition(b), straight - 0.13**2 * reference.hop(gauge.links, odd))


def test_is_covariant() -> None:
    extents = (4, 4, 4, 4)
    gauge = random_gauge(Group.alone(), extents)
    b = some_field(extents, 4)
    before = Wilson(gauge, 0.13, csw=1.2).apply(b)
    turned = Gauge(Group.alone(), extents)
    turned.set_random(77)
    turn = turned.links[..., 0, :, :]
    links = gauge.links
    for mu in range(4):
        ahead = np.roll(turn, -1, axis=3 - mu).conj().swapaxes(-1, -2)
        links[..., mu, :, :] = turn @ links[..., mu, :, :] @ ahead
    gauge.set_links(links)
    found = Wilson(gauge, 0.13, csw=1.2).apply(np.einsum("...ij,...sj->...si", turn, b))
    close(found, np.einsum("...ij,...sj->...si", turn, before))


GRIDS = [
    ((4, 4, 4, 4), (1, 1, 1, 2), "double"),
    ((4, 4, 4, 4), (2, 1, 1, 1), "single"),
    ((4, 4, 8, 4), (1, 2, 2, 1), "double"),
    ((6, 6, 4, 4), (2, 2, 1, 1), "double"),  # odd blocks: colours change places from rank to rank
    ((6, 4, 4, 6), (2, 1, 1, 2), "single"),
    ((4, 8, 4, 4), (1, 4, 1, 1), "double"),
    ((4, 4, 4, 4), (2, 2, 2, 1), "double"),
    ((4, 6, 4, 8), (1, 2, 1, 4), "single"),
    ((4, 8, 4, 4), (1, 2, 1, 2), "half"),
    ((8, 4, 16, 4), (1, 1, 8, 1), "double"),
]


@pytest.mark.parametrize(("extents", "grid", "precision"), GRIDS)
def test_the_same_on_every_grid(extents: tuple[int, ...], grid: tuple[int, ...], precision: str) -> None:
    fields = some_field(extents, 2, 2)
    alone = random_gauge(Group.alone(), extents)
    expected = [reference.apply(alone.links, one, 0.12, 1.1) for one in fields]
    source = some_field(extents, 5)
    solved = Wilson(alone, 0.1, csw=1.1).solve(source, tolerance=1e-9)

    def one_rank(group: Group) -> tuple[tuple[slice, ...], np.ndarray, np.ndarray, WilsonSolve]:
        gauge = random_gauge(group, extents, grid)
        mine = gauge.geometry.block_slices(group.rank)
        wilson = Wilson(gauge, 0.12, csw=1.1, precision=precision, two_rows=precision != "double", threads=1)
        for _ in range(3):
            wilson.hop(fields[(slice(None), *mine)])
        one = wilson.apply(fields[0][mine])
        both = wilson.apply(fields[(slice(None), *mine)])
        result = Wilson(gauge, 0.1, csw=1.1, threads=1).solve(source[mine], tolerance=1e-9)
        return mine, one, both, result

    for mine, one, both, result in run_threads(int(np.prod(grid)), one_rank):
        close(one, expected[0][mine], precision)
        for i in range(2):
            close(both[i], expected[i][mine], precision)
        assert result.converged
        assert abs(result.iterations - solved.iterations) <= 2
        np.testing.assert_allclose(result.solution, solved.solution[mine], rtol=0, atol=1e-7)


def momenta(extents: tuple[int, ...]) -> list[np.ndarray]:
    """Antiperiodic in time, each of a shape that spreads over the lattice."""
    found = []
    for direction, extent in enumerate(extents):
        shift = 0.5 if direction == 3 else 0.0
        momentum = 2 * np.pi * (np.arange(extent) + shift) / extent
        found.append(momentum.reshape([-1 if 3 - axis == direction else 1 for axis in range(4)]))
    return found


def free_propagator(
    extents: tuple[int, ...],
    kappa: float,
    source: np.ndarray,
    term: np.ndarray,
    angles: Sequence[float] = (0, 0, 0, 0),
) -> np.ndarray:
    """(term - kappa D)^-1 source on links exp(i angle) of each direction, for a 4x4 `term`, by Fourier transform."""
    matrix = np.zeros((*extents[::-1], 4, 4), complex) + term
    for mu, p in enumerate(momenta(extents)):
        p = p[..., None, None] + angles[mu]
        matrix = matrix - kappa * (2 * np.cos(p) * np.eye(4) - 2j * np.sin(p) * reference.GAMMA[mu])
    wave = np.exp(1j * np.pi * np.arange(extents[3]) / extents[3]).reshape(-1, 1, 1, 1, 1)
    found = np.zeros_like(source)
    for colour in range(3):
        transformed = np.fft.fftn(source[..., colour] / wave, axes=(0, 1, 2, 3))
        inverse = np.linalg.solve(matrix, transformed[..., None])[..., 0]
        found[..., colour] = np.fft.ifftn(inverse, axes=(0, 1, 2, 3)) * wave
    return found


@pytest.mark.parametrize("method", ["bicgstab", "normal"])
def test_free_propagator(method: str) -> None:
    extents, kappa = (4, 6, 4, 8), 0.11
    source = np.zeros((*extents[::-1], 4, 3), complex)
    source[0, 0, 0, 0, 2, 1] = 1
    unit = Gauge(Group.alone(), extents)
    for csw in (0.0, 1.5):  # without a field the clover term is 1
        result = Wilson(unit, kappa, csw=csw).solve(source, tolerance=1e-12, method=method)
        assert result.converged
        np.testing.assert_allclose(
            result.solution, free_propagator(extents, kappa, source, np.eye(4)), rtol=0, atol=1e-11
        )


def abelian(extents: tuple[int, ...], mu: int, nu: int, units: tuple[int, int, int]) -> Gauge:
    """A constant field in one plane, diag(units) times the smallest that is periodic."""
    gauge = Gauge(Group.alone(), extents)
    links = np.zeros((*extents[::-1], 4, 3, 3), complex) + np.eye(3)
    at = np.indices(extents[::-1])[::-1]
    smallest = 2 * np.pi / (extents[mu] * extents[nu])
    for colour, unit in enumerate(units):
        along = np.where(at[mu] == extents[mu] - 1, -smallest * extents[mu] * at[nu], 0.0)
        links[..., mu, colour, colour] = np.exp(1j * unit * along)
        links[..., nu, colour, colour] = np.exp(1j * unit * smallest * at[mu])
    gauge.set_links(links)
    return gauge


@pytest.mark.parametrize(("mu", "nu"), [(0, 1), (1, 3), (2, 3)])
def test_clover_of_a_constant_abelian_field(mu: int, nu: int) -> None:
    extents, units, weight = (4, 4, 6, 4), (1, 2, -3), 0.2
    gauge = abelian(extents, mu, nu, units)
    strength = clover_leaves(gauge)
    plane = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)].index((mu, nu))
    angle = 2 * np.pi / (extents[mu] * extents[nu])
    exact = np.diag([1j * np.sin(unit * angle) for unit in units])
    for other in range(6):
        np.testing.assert_allclose(
            strength[..., other, :, :] - (exact if other == plane else 0), 0, atol=1e-14
        )
    # gamma_mu gamma_nu has the eigenvalues +-i, each twice: 1 +- weight * sin(angle) for each colour.
    blocks = clover_blocks(strength, weight)
    found = np.sort(np.linalg.eigvalsh(blocks.reshape(-1, 2, 6, 6)).reshape(-1, 12), axis=-1)
    values = np.sort([1 + sign * weight * np.sin(unit * angle) for unit in units for sign in (1, -1) * 2])
    np.testing.assert_allclose(found, np.broadcast_to(values, found.shape), atol=1e-14)
    inverse = clover_blocks(strength, weight, inverse=True)
    np.testing.assert_allclose(blocks @ inverse - np.eye(6), 0, atol=1e-13)


def constant_field_inverse(
    extents: tuple[int, ...], kappa: float, csw: float, unit: int, source: np.ndarray
) -> np.ndarray:
    """M^-1 source of one colour for a constant field in the plane of directions 0 and 1, nothing of it from links.

    Directions 2 and 3 are taken to momentum space; in the plane remains a matrix between its sites, with the phases
    of a field of the angle `angle` a plaquette, and the clover term 1 - kappa csw gamma_0 gamma_1 i sin(angle).
    """
    across, up = extents[:2]
    angle = unit * 2 * np.pi / (across * up)
    gamma, one = reference.GAMMA, np.eye(4)
    plane = np.zeros((up, across, 4, up, across, 4), complex)
    for y, x in np.ndindex(up, across):
        plane[y, x, :, y, x, :] += one - kappa * csw * 1j * np.sin(angle) * gamma[0] @ gamma[1]
        to_x, to_y = (x + 1) % across, (y + 1) % up
        phase_x = np.exp(-1j * angle * across * y) if to_x == 0 else 1.0
        phase_y = np.exp(1j * angle * x)
        plane[y, x, :, y, to_x, :] -= kappa * phase_x * (one - gamma[0])
        plane[y, to_x, :, y, x, :] -= kappa * np.conj(phase_x) * (one + gamma[0])
        plane[y, x, :, to_y, x, :] -= kappa * phase_y * (one - gamma[1])
        plane[to_y, x, :, y, x, :] -= kappa * np.conj(phase_y) * (one + gamma[1])
    wave = np.exp(1j * np.pi * np.arange(extents[3]) / extents[3]).reshape(-1, 1, 1, 1, 1)
    transformed = np.fft.fftn(source / wave, axes=(0, 1))
    _, _, z, t = momenta(extents)
    for at_t, at_z in np.ndindex(extents[3], extents[2]):
        matrix = plane.copy()
        for p, mu in ((z.ravel()[at_z], 2), (t.ravel()[at_t], 3)):
            hop = kappa * (2 * np.cos(p) * one - 2j * np.sin(p) * gamma[mu])
            for y, x in np.ndindex(up, across):
                matrix[y, x, :, y, x, :] -= hop
        size = up * across * 4
        solved = np.linalg.solve(matrix.reshape(size, size), transformed[at_t, at_z].reshape(size))
        transformed[at_t, at_z] = solved.reshape(up, across, 4)
    return np.fft.ifftn(transformed, axes=(0, 1)) * wave


def test_free_clover_propagator_in_a_constant_field() -> None:
    extents, kappa, csw, units = (4, 6, 4, 4), 0.11, 1.7, (1, 2, -3)
    gauge = abelian(extents, 0, 1, units)
    source = np.zeros((*extents[::-1], 4, 3), complex)
    source[1, 2, 3, 1] = some_field((2, 2, 2, 2), 5)[0, 0, 0, 0]
    result = Wilson(gauge, kappa, csw=csw).solve(source, tolerance=1e-12)
    assert result.converged
    for colour, unit in enumerate(units):
        expected = constant_field_inverse(extents, kappa, csw, unit, source[..., colour])
        np.testing.assert_allclose(result.solution[..., colour], expected, rtol=0, atol=1e-11)
        without = constant_field_inverse(extents, kappa, 0.0, unit, source[..., colour])
        assert abs(without - expected).max() > 1e-3


def test_free_propagator_with_the_same_phases_everywhere() -> None:
    """Links exp(i theta) that do not depend on the site have no field strength: they shift each colour's momenta."""
    extents, kappa = (4, 4, 6, 4), 0.11
    angles = np.random.default_rng(3).uniform(-1, 1, (4, 3))
    angles[:, 2] = -angles[:, 0] - angles[:, 1]
    gauge = Gauge(Group.alone(), extents)
    links = np.zeros_like(gauge.links)
    for mu in range(4):
        links[..., mu, :, :] = np.diag(np.exp(1j * angles[mu]))
    gauge.set_links(links)
    source = some_field(extents, 6)
    result = Wilson(gauge, kappa, csw=1.3).solve(source, tolerance=1e-12)
    assert result.converged
    for colour in range(3):
        one = free_propagator(extents, kappa, source, np.eye(4), angles[:, colour])
        np.testing.assert_allclose(result.solution[..., colour], one[..., colour], rtol=0, atol=1e-10)


def test_field_strength_as_by_numpy_on_two_ranks() -> None:
    extents = (4, 4, 4, 4)
    links = random_gauge(Group.alone(), extents).links
    expected = np.stack(
        [reference.field_strength(links, mu, nu) for mu in range(4) for nu in range(mu + 1, 4)], axis=-3
    )

    def one_rank(group: Group) -> tuple[tuple[slice, ...], np.ndarray]:
        gauge = random_gauge(group, extents, (1, 2, 1, 1))
        return gauge.geometry.block_slices(group.rank), clover_leaves(gauge)

    for mine, found in run_threads(2, one_rank):
        np.testing.assert_allclose(found, expected[mine], atol=1e-14)


@pytest.mark.parametrize("method", ["bicgstab", "normal"])
@pytest.mark.parametrize(("csw", "inner"), [(0.0, "double"), (1.4, "single"), (0.0, "half"), (1.4, "half")])
def test_solutions_and_what_is_said_of_them(method: str, csw: float, inner: str) -> None:
    extents, kappa = (4, 4, 4, 8), 0.11
    gauge = random_gauge(Group.alone(), extents)
    wilson = Wilson(gauge, kappa, csw=csw)
    sources = some_field(extents, 6, 2)
    sources[1] *= 1e-3
    result = wilson.solve(sources, tolerance=1e-11, method=method, inner=inner)
    assert result.converged
    assert result.corrections > 0 or inner == "double"
    for source, x, said in zip(sources, result.solution, result.residuals, strict=True):
        rest = source - reference.apply(gauge.links, x, kappa, csw)
        residual = np.linalg.norm(rest) / np.linalg.norm(source)
        assert residual <= 1.01e-11
        assert said == pytest.approx(residual, rel=0.05, abs=1e-14)
    assert result.flops > 0 < result.bytes
    short = wilson.solve(sources[0], iterations=2, method=method, inner=inner)
    rest = sources[0] - reference.apply(gauge.links, short.solution, kappa, csw)
    assert (short.converged, short.iterations) == (False, 2)
    assert short.true_residual == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(sources[0]), rel=1e-6)
    nothing = wilson.solve(np.zeros_like(sources[0]), method=method)
    assert (nothing.converged, nothing.iterations) == (True, 0)
    assert not nothing.solution.any()


@pytest.mark.parametrize("inner", ["double", "single", "half"])
def test_a_hopeless_solve_ends_near_where_it_began(inner: str) -> None:
    gauge = random_gauge(Group.alone(), (4, 4, 4, 4))
    source = some_field((4, 4, 4, 4), 7, 1)[0]
    for kappa in (0.3, 1.0):  # far beyond the critical one
        result = Wilson(gauge, kappa).solve(source, iterations=3000, inner=inner)
        rest = source - reference.apply(gauge.links, result.solution, kappa, 0.0)
        # With nothing on the even sites it is b + kappa D b_o there, and D is no longer than 8.
        assert np.linalg.norm(rest) <= (1 + 8 * kappa) * np.linalg.norm(source)
        assert result.true_residual == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(source), rel=1e-6)


def test_all_in_single_precision_is_as_good_as_that() -> None:
    extents = (4, 4, 4, 4)
    gauge = random_gauge(Group.alone(), extents)
    source = some_field(extents, 7)
    result = Wilson(gauge, 0.1, csw=1.0, two_rows=True).solve(source, tolerance=1e-5, precision="single")
    assert result.converged
    rest = source - reference.apply(gauge.links, result.solution, 0.1, 1.0)
    assert np.linalg.norm(rest) / np.linalg.norm(source) < 2e-5


@pytest.mark.parametrize("inner", ["double", "single", "half"])
@pytest.mark.parametrize("csw", [0.0, 1.2])
def test_schwarz_needs_fewer_iterations(inner: str, csw: float) -> None:
    extents, kappa = (4, 4, 4, 8), 0.12
    source = some_field(extents, 9)
    gauge = random_gauge(Group.alone(), extents)

    def one_rank(group: Group) -> tuple[tuple[slice, ...], WilsonSolve, WilsonSolve]:
        gauge = random_gauge(group, extents, (1, 1, 1, 2))
        mine = gauge.geometry.block_slices(group.rank)
        wilson = Wilson(gauge, kappa, csw=csw, threads=1)
        return (
            mine,
            wilson.solve(source[mine], inner=inner, tolerance=1e-9),
            wilson.solve(source[mine], inner=inner, tolerance=1e-9, schwarz=4),
        )

    solution = np.zeros_like(source)
    for mine, plain, schwarz in run_threads(2, one_rank):
        assert plain.converged
        assert schwarz.converged
        assert schwarz.iterations < (1.0 if inner == "half" else 0.7) * plain.iterations
        solution[mine] = schwarz.solution
    rest = source - reference.apply(gauge.links, solution, kappa, csw)
    assert np.linalg.norm(rest) <= 1.01e-9 * np.linalg.norm(source)


def test_reproducible_on_every_grid() -> None:
    extents = (8, 4, 4, 4)
    source = some_field(extents, 8)
    alone = Wilson(random_gauge(Group.alone(), extents), 0.1, csw=1.0, threads=2)
    expected = alone.solve(source, reproducible=True, tolerance=1e-8)

    def one_rank(group: Group) -> tuple[tuple[slice, ...], WilsonSolve]:
        gauge = random_gauge(group, extents, (2, 1, 1, 1))
        mine = gauge.geometry.block_slices(group.rank)
        wilson = Wilson(gauge, 0.1, csw=1.0, threads=1)
        return mine, wilson.solve(source[mine], reproducible=True, tolerance=1e-8)

    for mine, found in run_threads(2, one_rank):
        assert found.iterations == expected.iterations
        assert (found.solution == expected.solution[mine]).all()


@pytest.mark.parametrize(("inner", "schwarz"), [("single", 0), ("half", 3)])
def test_half_faces(inner: str, schwarz: int) -> None:
    """They change the way to the solution on two ranks, and the solution not beyond the tolerance."""
    extents = (8, 4, 4, 4)
    source = some_field(extents, 8, 2)
    alone = random_gauge(Group.alone(), extents)

    def one_rank(group: Group) -> list[WilsonSolve]:
        gauge = random_gauge(group, extents, (2, 1, 1, 1))
        wilson = Wilson(gauge, 0.1, csw=1.0, threads=1)
        mine = source[(slice(None), *gauge.geometry.block_slices(group.rank))]
        return [
            wilson.solve(mine, inner=inner, schwarz=schwarz, half_faces=half, tolerance=1e-9)
            for half in (False, True)
        ]

    found = run_threads(2, one_rank)
    parts = [np.concatenate([one[i].solution for one in found], axis=4) for i in range(2)]
    assert (parts[0] != parts[1]).any()
    for part, results in zip(parts, zip(*found, strict=True), strict=True):
        assert all(one.converged for one in results)
        for x, b in zip(part, source, strict=True):
            rest = b - reference.apply(alone.links, x, 0.1, 1.0)
            assert np.linalg.norm(rest) <= 1.01e-9 * np.linalg.norm(b)
    wilson = Wilson(alone, 0.1)
    with pytest.raises(BadInput, match="lower precision than the whole"):
        wilson.solve(source, half_faces=True)
    with pytest.raises(BadInput, match="either half faces or a reproducible"):
        wilson.solve(source, half_faces=True, inner="single", reproducible=True)


def test_half_precision_is_16_bits_with_a_scale_for_every_site() -> None:
    """Links and blocks rounded by hand give what the operator gives, to single precision."""
    extents, kappa, csw = (4, 4, 4, 4), 0.13, 2.5
    gauge = random_gauge(Group.alone(), extents)
    links = gauge.links
    rounded = np.round(links.real * 32767) / 32767 + 1j * np.round(links.imag * 32767) / 32767
    field = some_field(extents, 3)
    found = Wilson(gauge, kappa, csw=csw, precision="half").apply(field)
    whole = reference.clover(links, kappa * csw).reshape(-1, 2, 6, 2, 6)
    blocks = np.stack([whole[:, i, :, i] for i in range(2)], axis=1)  # of 6x6
    blocks = np.ascontiguousarray(blocks)
    parts = blocks.view(float).reshape(len(blocks), -1)
    scale = abs(parts).max(axis=1, keepdims=True) / 32767
    blocks = (np.round(parts / scale) * scale).view(complex).reshape(blocks.shape)
    straight = np.einsum("xbij,xbj->xbi", blocks, field.reshape(-1, 2, 6)).reshape(field.shape)
    expected = straight - kappa * reference.hop(rounded, field)
    close(found, expected, "single")
    assert abs(found - reference.apply(links, field, kappa, csw)).max() > 1e-5 * abs(expected).max()


def test_says_what_is_wrong() -> None:
    gauge = Gauge(Group.alone(), (4, 4, 4, 4))
    wilson = Wilson(gauge)
    assert wilson_kappa(0.0) == 0.125
    with pytest.raises(BadInput, match="other than -4"):
        wilson_kappa(-4)
    with pytest.raises(BadInput, match="tolerance above 0"):
        wilson.solve(some_field((4, 4, 4, 4), 1), tolerance=0)
    with pytest.raises(BadInput, match="field of shape"):
        wilson.hop(some_field((4, 4, 4, 6), 1))
    with pytest.raises(BadInput, match="bicgstab or normal"):
        wilson.solve(some_field((4, 4, 4, 4), 1), method="gmres")
    with pytest.raises(BadInput, match="Schwarz"):
        wilson.solve(some_field((4, 4, 4, 4), 1), method="normal", schwarz=2)
    with pytest.raises(BadInput, match="double or single precision; half is for the inner"):
        wilson.solve(some_field((4, 4, 4, 4), 1), precision="half")
    with pytest.raises(BadInput, match="four directions"):
        Wilson(Gauge(Group.alone(), (4, 4)))
    with pytest.raises(BadInput, match="even extents"):
        Wilson(Gauge(Group.alone(), (3, 4, 4, 4)))


def test_command_solves(ranks: Ranks, tmp_path: Path) -> None:
    extents = (4, 4, 4, 8)
    gauge = random_gauge(Group.alone(), extents)
    field = tmp_path / "cfg.lime"
    write_gauge(str(field), gauge)
    words = (
        "--action",
        "clover",
        "--csw",
        1.2,
        "--kappa",
        0.11,
        "--spin",
        3,
        "--colour",
        1,
        "--inner",
        "single",
    )
    done = ranks.onehop("lattice", "solve", field, *words, "-n", 2, "--json", "-")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    source = np.zeros((*extents[::-1], 4, 3), complex)
    source[0, 0, 0, 0, 3, 1] = 1
    expected = Wilson(gauge, 0.11, csw=1.2).solve(source, inner="single")
    assert found["converged"]
    assert found["true_residual"] <= 1e-10
    assert abs(found["iterations"] - expected.iterations) <= 3
    assert (found["csw"], found["kappa"], found["grid"]) == (1.2, 0.11, [1, 1, 1, 2])
    assert found["gflops"] > 0 < found["gbytes_per_second"]
    done = ranks.onehop("lattice", "solve", field, *words[:-1], "half", "-n", 2, "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["true_residual"] <= 1e-10
    short = ranks.onehop(
        "lattice", "solve", field, "--action", "wilson", "--mass", 0.5, "--iterations", 2, "--json", "-"
    )
    assert short.returncode == 1
    assert json.loads(short.stdout)["kappa"] == pytest.approx(1 / 9)
    assert "allow more of them" in short.stderr
    for wrong, said in (
        (("--action", "wilson"), "--kappa, or one --mass"),
        (("--action", "wilson", "--kappa", 0.1, "--csw", 1), "--action clover"),
        (("--action", "clover", "--kappa", 0.1, "--inner", "quarter"), "half, single or double"),
        (("--kappa", 0.1, "--mass", 0.1), "are for --action"),
    ):
        done = ranks.onehop("lattice", "solve", field, *wrong)
        assert done.returncode == 2
        assert said in " ".join(done.stderr.split())
