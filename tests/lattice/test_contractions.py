"""Contractions against traces and Wick's theorem, written out with NumPy."""

import numpy as np

import wilson_reference
from onehop import Group
from onehop.lattice import Gauge
from onehop.lattice.contractions import (
    WILSON_MESONS,
    Projection,
    gamma_product,
    meson_correlators,
    momenta_up_to,
    nucleon_correlator,
)
from threads import run_threads

EXTENTS, ORIGIN = (2, 4, 2, 4), (1, 3, 0, 1)
MOMENTA = [(0, 0, 0), (0, 1, 0), (1, -1, 0)]
EPSILON = np.zeros((3, 3, 3))
for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    EPSILON[i, j, k], EPSILON[j, i, k] = 1, -1
G5 = wilson_reference.GAMMA5


def random_columns(seed: int) -> np.ndarray:
    return wilson_reference.some_field(EXTENTS, seed, 4, 3)


def projected(values: np.ndarray) -> np.ndarray:
    """Return sums over space with cos(p (x - origin)), of shape (momentum, time), from the source's time on."""
    _, z, y, x = np.indices(EXTENTS[::-1])
    found = []
    for p in MOMENTA:
        turns = sum(n * (at - o) / e for n, at, o, e in zip(p, (x, y, z), ORIGIN, EXTENTS[:3], strict=False))
        found.append((values * np.cos(2 * np.pi * turns)).sum(axis=(1, 2, 3)))
    return np.roll(found, -ORIGIN[3], axis=1)


def on_ranks(work: str, *columns: np.ndarray) -> list:
    """Return what one rank and each of two ranks find."""

    def found(group: Group, grid: tuple[int, ...]) -> object:
        gauge = Gauge(group, EXTENTS, grid)
        own = (slice(None), slice(None), *gauge.geometry.block_slices(group.rank))
        parts = [one[own] for one in columns]
        projection = Projection(gauge, MOMENTA, ORIGIN)
        return (
            nucleon_correlator(projection, *parts) if work == "n" else meson_correlators(projection, *parts)
        )

    return [found(Group.alone(), (1, 1, 1, 1)), *run_threads(2, lambda group: found(group, (1, 2, 1, 1)))]


def as_matrices(columns: np.ndarray) -> np.ndarray:
    """Return propagators of shape (t, z, y, x, spin, colour, source spin, source colour)."""
    return np.moveaxis(columns, (0, 1), (-2, -1))


def test_mesons_are_traces() -> None:
    columns, other = random_columns(1), random_columns(2)
    quark, antiquark = (as_matrices(one).reshape(*EXTENTS[::-1], 12, 12) for one in (columns, other))
    wide5 = np.kron(G5, np.eye(3))
    back = wide5 @ antiquark.conj().swapaxes(-1, -2) @ wide5
    for found in on_ranks("m", columns, other):
        assert len(found) == 16
        for name, number in WILSON_MESONS.items():
            gamma = np.kron(gamma_product(number), np.eye(3))
            traces = np.trace(gamma @ quark @ gamma @ back, axis1=-2, axis2=-1)
            np.testing.assert_allclose(found[name], projected(traces), rtol=1e-10, atol=1e-10)
    alone = meson_correlators(Projection(Gauge(Group.alone(), EXTENTS), MOMENTA, ORIGIN), columns)
    assert max(abs(one.imag).max() for one in alone.values()) < 1e-12 * abs(alone["pion"]).max()
    np.testing.assert_allclose(alone["pion"][0], projected((abs(quark) ** 2).sum(axis=(-2, -1)))[0])


def test_gamma_matrices() -> None:
    for mu in range(4):
        np.testing.assert_array_equal(gamma_product(1 << mu), wilson_reference.GAMMA[mu])
    np.testing.assert_array_equal(gamma_product(15), G5)
    product = wilson_reference.GAMMA[0] @ wilson_reference.GAMMA[2]
    np.testing.assert_array_equal(gamma_product(5), product)


def test_the_nucleon_is_that_of_wick() -> None:
    columns = random_columns(3)
    g = as_matrices(columns)
    c = wilson_reference.GAMMA[1] @ wilson_reference.GAMMA[3] @ G5  # C gamma_5 with C = gamma_y gamma_t
    project = (np.eye(4) + wilson_reference.GAMMA[3]) / 2
    # Indices of the sink: colours a b c and spins s t u; of the source: x y z and p q r; u quarks at a and c.
    down = np.einsum("st,pq,...tbqy->...sbpy", c, c, g)
    parts = (EPSILON, EPSILON, g, down, g, project)
    straight = np.einsum("abc,xyz,...sapx,...sbpy,...ucrz,ru->...", *parts, optimize=True)
    crossed = np.einsum("abc,xyz,...sarz,...sbpy,...ucpx,ru->...", *parts, optimize=True)
    expected = projected(straight - crossed)
    expected[:, -ORIGIN[3] :] *= -1  # behind the antiperiodic boundary
    for found in on_ranks("n", columns):
        np.testing.assert_allclose(found, expected.real, rtol=1e-10, atol=1e-9)


def test_momenta() -> None:
    assert momenta_up_to(0) == [(0, 0, 0)]
    assert momenta_up_to(1) == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    found = momenta_up_to(4)
    assert len(found) == 1 + 32 // 2  # all integers p with p² up to 4, of which p and -p are one
    assert not {tuple(-one for one in p) for p in found[1:]} & set(found)
