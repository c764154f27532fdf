"""Wilson and clover quarks with exact solutions: without a gauge field, and in a constant one."""

from collections.abc import Sequence

import numpy as np
import pytest

import wilson_reference as reference
from onehop import Group
from onehop.lattice import Gauge, Wilson, clover_blocks, clover_leaves
from wilson_reference import some_field


def momenta(extents: tuple[int, ...]) -> list[np.ndarray]:
    """Return the momenta of each direction, antiperiodic in time, shaped to broadcast over the lattice."""
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
    """Return (term - kappa D)^-1 source on links exp(i angle), for a 4x4 `term`, by Fourier transform."""
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


@pytest.mark.parametrize("method", ["auto", "bicgstab", "cgnr"])
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
    """Return a constant field in one plane: diag(units) times the smallest periodic field."""
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
    """Return M^-1 source of one colour for a constant field in the plane of directions 0 and 1, without using links.

    Directions 2 and 3 are transformed to momentum space. In the plane, M is a dense matrix between sites, with the
    phases of a field of `angle` per plaquette, and the clover term 1 - kappa csw gamma_0 gamma_1 i sin(angle).
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
