"""The operators of Wilson and clover quarks against NumPy: every grid, precision and instruction set."""

import numpy as np
import pytest

import wilson_reference as reference
from gauge_fields import random_gauge
from grids import lattices
from onehop import BadInput, Group, _core
from onehop.lattice import Gauge, Wilson, wilson_kappa
from threads import run_threads
from wilson_reference import TOLERANCE, close, gamma5, some_field


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
@pytest.mark.parametrize("recon", [18, 12])
def test_applies_as_by_numpy(target: str, precision: str, recon: int) -> None:
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
                    recon=recon,
                    precision=precision,
                    lanes=lanes,
                    threads=2,
                )
                close(wilson.dslash(field), reference.dslash(gauge.links, field, antiperiodic), precision)
                expected = reference.apply(gauge.links, field, 0.14, 1.3, antiperiodic)
                close(wilson.apply(field), expected, precision)
            # The adjoint is gamma_5 D gamma_5.
            close(
                wilson.dslash(field, dagger=True),
                gamma5(reference.dslash(gauge.links, gamma5(field), False)),
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
    for operator in (wilson.dslash, wilson.apply, wilson.precondition):
        assert np.vdot(a, operator(b)) == pytest.approx(np.vdot(operator(a, dagger=True), b), abs=1e-9)
        close(operator(b, dagger=True), gamma5(operator(gamma5(b))))
    # A - kappa^2 D A^-1 D on even sites, from 12x12 matrices.
    even = parity(extents) == 0
    matrices = reference.clover(gauge.links, 0.13 * csw).reshape(*extents[::-1], 12, 12)
    field = np.where(even, b, 0)
    odd = reference.dslash(gauge.links, field)
    odd = np.linalg.solve(matrices, odd.reshape(*extents[::-1], 12, 1)).reshape(odd.shape)
    straight = (matrices @ field.reshape(*extents[::-1], 12, 1)).reshape(b.shape)
    close(wilson.precondition(b), straight - 0.13**2 * reference.dslash(gauge.links, odd))


@pytest.mark.parametrize(("extents", "grid"), lattices(2))
def test_every_operator_on_every_grid(extents: tuple[int, ...], grid: tuple[int, ...]) -> None:
    """All divisions of four directions into blocks of two and three sites, in every precision."""
    field, alone = some_field(extents, 2), random_gauge(Group.alone(), extents)
    expected = (
        reference.dslash(alone.links, field),
        reference.apply(alone.links, field, 0.12, 1.1),
        gamma5(reference.apply(alone.links, gamma5(field), 0.12, 1.1)),
        Wilson(alone, 0.12, csw=1.1).precondition(field, dagger=True),
    )

    def one_rank(group: Group) -> tuple[tuple[slice, ...], dict[str, tuple[np.ndarray, ...]]]:
        gauge = random_gauge(group, extents, grid)
        mine = gauge.geometry.block_slices(group.rank)
        found = {}
        for precision in TOLERANCE:
            wilson = Wilson(gauge, 0.12, csw=1.1, precision=precision, threads=1)
            found[precision] = (
                wilson.dslash(field[mine]),
                wilson.apply(field[mine]),
                wilson.apply(field[mine], dagger=True),
                wilson.precondition(field[mine], dagger=True),
            )
        return mine, found

    for mine, found in run_threads(int(np.prod(grid)), one_rank):
        for precision, results in found.items():
            for one, whole in zip(results, expected, strict=True):
                atol = TOLERANCE[precision] * abs(whole).max()
                np.testing.assert_allclose(one, whole[mine], rtol=0, atol=atol)


def test_half_precision_is_16_bits_with_a_scale_for_every_site() -> None:
    """Links and blocks rounded in NumPy give the operator's result, to single precision."""
    extents, kappa, csw = (4, 4, 4, 4), 0.13, 2.5
    gauge = random_gauge(Group.alone(), extents)
    links = gauge.links
    rounded = np.round(links.real * 32767) / 32767 + 1j * np.round(links.imag * 32767) / 32767
    field = some_field(extents, 3)
    found = Wilson(gauge, kappa, csw=csw, precision="half").apply(field)
    whole = reference.clover(links, kappa * csw).reshape(-1, 2, 6, 2, 6)
    blocks = np.stack([whole[:, i, :, i] for i in range(2)], axis=1)  # 6x6 blocks
    blocks = np.ascontiguousarray(blocks)
    parts = blocks.view(float).reshape(len(blocks), -1)
    scale = abs(parts).max(axis=1, keepdims=True) / 32767
    blocks = (np.round(parts / scale) * scale).view(complex).reshape(blocks.shape)
    straight = np.einsum("xbij,xbj->xbi", blocks, field.reshape(-1, 2, 6)).reshape(field.shape)
    expected = straight - kappa * reference.dslash(rounded, field)
    close(found, expected, "single")
    assert abs(found - reference.apply(links, field, kappa, csw)).max() > 1e-5 * abs(expected).max()


def test_bad_input_is_refused() -> None:
    gauge = Gauge(Group.alone(), (4, 4, 4, 4))
    wilson = Wilson(gauge)
    assert wilson_kappa(0.0) == 0.125
    with pytest.raises(BadInput, match="other than -4"):
        wilson_kappa(-4)
    with pytest.raises(BadInput, match="tolerance: expected a number above 0"):
        wilson.solve(some_field((4, 4, 4, 4), 1), tolerance=0)
    with pytest.raises(BadInput, match="field of shape"):
        wilson.dslash(some_field((4, 4, 4, 6), 1))
    broken = some_field((4, 4, 4, 4), 1)
    broken[1, 2, 3, 0] = np.nan
    with pytest.raises(BadInput, match=r"finite numbers and finite norm, found .* for right-hand side 1"):
        wilson.solve(np.stack([some_field((4, 4, 4, 4), 1), broken]))
    with pytest.raises(BadInput, match="auto, bicgstab or cgnr"):
        wilson.solve(some_field((4, 4, 4, 4), 1), method="gmres")
    with pytest.raises(BadInput, match="Schwarz"):
        wilson.solve(some_field((4, 4, 4, 4), 1), method="cgnr", schwarz=2)
    with pytest.raises(BadInput, match="expected precision single or double, found half"):
        wilson.solve(some_field((4, 4, 4, 4), 1), precision="half")
    with pytest.raises(BadInput, match="four directions"):
        Wilson(Gauge(Group.alone(), (4, 4)))
    with pytest.raises(BadInput, match="even extents"):
        Wilson(Gauge(Group.alone(), (3, 4, 4, 4)))
