"""Smearing: against NumPy, covariant under gauge transformations, the same bits on every grid."""

import json
from pathlib import Path

import numpy as np
import pytest

import lattice_reference as reference
from gauge_fields import random_gauge, thermal_gauge
from onehop import BadInput, Group, _core
from onehop.cli import main
from onehop.lattice import (
    Gauge,
    Staggered,
    clover_leaves,
    field_strength,
    fix_gauge,
    gradient_flow,
    hybrid_monte_carlo,
    improved_charge,
    mesons,
    read_vectors,
    smearing,
    thermalize,
    wilson_loops,
    write_gauge,
)
from threads import run_threads

EXTENTS = (4, 6, 2, 5)
GRIDS = [(2, 1, 1, 1), (1, 2, 1, 1), (1, 1, 1, 2), (2, 1, 1, 2), (2, 2, 1, 2), (4, 1, 1, 2), (1, 2, 1, 4)]


@pytest.mark.parametrize("name", ["fat3", "fat5", "fat7", "asqtad"])
def test_fat_links_are_sums_over_paths(name: str) -> None:
    gauge = random_gauge(Group.alone(), EXTENTS)
    weights = smearing.path_weights(name, u0=0.9)
    found = smearing.fat_links(gauge, name, u0=0.9)
    fat, long_links = reference.fat_and_long(gauge.links, weights)
    np.testing.assert_allclose(found.fat, fat, atol=1e-14)
    np.testing.assert_allclose(found.long_links, long_links, atol=1e-14)


@pytest.mark.parametrize("extents", [(5, 4), (9, 2, 3), (17, 2, 2, 2)])
def test_any_number_of_directions_and_any_row(extents: tuple[int, ...]) -> None:
    gauge = random_gauge(Group.alone(), extents)
    weights = smearing.PathWeights(0.3, 0.2, -0.4, 0.7, 0.11, 0.5)
    found = smearing.fat_links(gauge, weights)
    fat, long_links = reference.fat_and_long(gauge.links, weights)
    np.testing.assert_allclose(found.fat, fat, atol=1e-13)
    np.testing.assert_allclose(found.long_links, long_links, atol=1e-14)


def test_hisq_as_by_numpy() -> None:
    gauge = random_gauge(Group.alone(), EXTENTS)
    epsilon = -0.3
    found = smearing.hisq_links(gauge, naik_epsilon=epsilon)
    first, _ = reference.fat_and_long(gauge.links, (1 / 8, 1 / 16, 1 / 64, 1 / 384, 0, 0))
    unitary = reference.nearest_unitary(first)
    second = (1 + epsilon / 8, 1 / 16, 1 / 64, 1 / 384, -1 / 8, -(1 + epsilon) / 24)
    fat, long_links = reference.fat_and_long(unitary, second)
    assert np.linalg.cond(first).max() > 20  # the matrices are far from unitary
    np.testing.assert_allclose(found.unitary, unitary, atol=1e-12)
    np.testing.assert_allclose(found.fat, fat, atol=1e-12)
    np.testing.assert_allclose(found.long_links, long_links, atol=1e-12)
    special = smearing.hisq_links(gauge, naik_epsilon=epsilon, projection="su3")
    phase = np.einsum("...ij,...ij", special.unitary, unitary.conj()) / 3
    np.testing.assert_allclose(special.unitary, phase[..., None, None] * unitary, atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(special.unitary), 1, atol=1e-12)
    assert abs(np.angle(phase)).max() < np.pi / 3  # the cube root that is nearest to 1
    assert abs(np.angle(phase)).max() > 0.9
    fat, long_links = reference.fat_and_long(special.unitary, second)
    np.testing.assert_allclose(special.fat, fat, atol=1e-12)
    np.testing.assert_allclose(special.long_links, long_links, atol=1e-12)


def test_su3_projection_in_all_commands(tmp_path: Path) -> None:
    """`solve --projection su3` is `solve --fat` with the links of `smear --projection su3`."""
    cfg, fat, long, one, two = (
        str(tmp_path / f"{name}.lime") for name in ("cfg", "fat", "long", "one", "two")
    )
    gauge = random_gauge(Group.alone(), (4, 4, 4, 4))
    write_gauge(cfg, gauge)
    hisq = ("hisq", "--projection", "su3")
    assert main(["lattice", "smear", cfg, "--kind", *hisq, "--fat", fat, "--long", long, "--phases"]) == 0
    end = ("--mass", "0.5", "--output-precision", "double", "-o")
    assert main(["lattice", "solve", cfg, "--action", *hisq, *end, one]) == 0
    assert main(["lattice", "solve", "--fat", fat, "--long", long, *end, two]) == 0
    found = [read_vectors(path, gauge.geometry, gauge.group) for path in (one, two)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    out = tmp_path / "out.json"
    measure = ["lattice", "measure", cfg, "--quarks", *hisq, "--mass", "0.5", "--json", str(out)]
    assert main(measure) == 0
    made = smearing.hisq_links(gauge, projection="su3")
    ours = mesons.staggered_mesons(gauge, Staggered.of_fat_links(gauge, made), 0.5)
    np.testing.assert_allclose(json.loads(out.read_text())["quarks"]["pion"], ours.pion, rtol=1e-6)


@pytest.mark.parametrize("kind", ["fat5", "asqtad", "hisq"])
def test_single_precision(kind: str) -> None:
    gauge = thermal_gauge((14, 4, 2, 4))
    double = smearing.fat_links(gauge, kind)
    single = smearing.fat_links(gauge, kind, precision="single")
    for one, other in zip(double, single, strict=True):
        if one is None or other is None:
            assert one is other
            continue
        np.testing.assert_allclose(other, one, atol=3e-6)
        assert np.abs(other - one).max() > 1e-9 or not one.any()  # it was computed in single precision
        assert (other == other.astype(np.complex64)).all()
    with pytest.raises(BadInput, match="double or single precision, found half"):
        smearing.fat_links(gauge, kind, precision="half")


@pytest.mark.parametrize("space_only", [False, True])
def test_ape_as_by_numpy(space_only: bool) -> None:
    gauge = thermal_gauge((4, 4, 4, 4))
    links = gauge.links
    smearing.ape(gauge, 0.6, 1, space_only=space_only)
    directions = list(range(3 if space_only else 4))
    expected = links.copy()
    for mu in directions:
        around = reference.staples(links, mu, directions) / (2 * (len(directions) - 1))
        unitary = reference.nearest_unitary(0.4 * links[..., mu, :, :] + 0.6 * around)
        phase = np.exp(-1j / 3 * np.angle(np.linalg.det(unitary)))
        expected[..., mu, :, :] = phase[..., None, None] * unitary
    np.testing.assert_allclose(gauge.links, expected, atol=1e-13)
    assert gauge.deviation().value < 1e-13


@pytest.mark.parametrize("space_only", [False, True])
def test_stout_as_by_numpy(space_only: bool) -> None:
    gauge = random_gauge(Group.alone(), (4, 3, 2, 3))
    links = gauge.links
    smearing.stout(gauge, 0.3, 2, space_only=space_only)
    directions = list(range(3 if space_only else 4))
    for _ in range(2):
        expected = links.copy()
        for mu in directions:
            old = links[..., mu, :, :]
            turn = reference.algebra(reference.staples(links, mu, directions) @ reference.adjoint(old))
            expected[..., mu, :, :] = reference.exponential(0.3 * turn) @ old
        links = expected
    np.testing.assert_allclose(gauge.links, links, atol=1e-12)
    assert gauge.deviation().value < 1e-13


@pytest.mark.parametrize(
    ("extents", "space_only"), [((2, 4, 2, 4), False), ((2, 4, 4, 2), True), ((4, 6), False)]
)
def test_hyp_as_by_numpy(extents: tuple[int, ...], space_only: bool) -> None:
    gauge = thermal_gauge(extents)
    links = gauge.links
    smearing.hyp(gauge, (0.7, 0.5, 0.4), space_only=space_only)
    directions = frozenset(range(len(extents) - space_only))
    expected = links.copy()
    for mu in directions:
        expected[..., mu, :, :] = reference.hyp_link(links, (0.4, 0.5, 0.7), mu, directions - {mu})
    np.testing.assert_allclose(gauge.links, expected, atol=1e-12)
    assert gauge.deviation().value < 1e-13
    again = thermal_gauge(gauge.geometry.extents)
    smearing.hyp(again, (0.7, 0.5, 0.4), 2, space_only=space_only)
    smearing.hyp(gauge, (0.7, 0.5, 0.4), space_only=space_only)
    assert again.links.tobytes() == gauge.links.tobytes()


def test_very_large_exponents() -> None:
    gauge = random_gauge(Group.alone(), (2, 2, 3, 2))
    links = gauge.links
    smearing.stout(gauge, 20.0)
    old = links[..., 1, :, :]
    turn = reference.algebra(reference.staples(links, 1, list(range(4))) @ reference.adjoint(old))
    assert np.linalg.norm(20 * turn, axis=(-2, -1)).max() > 64
    np.testing.assert_allclose(gauge.links[..., 1, :, :], reference.exponential(20 * turn) @ old, atol=1e-11)


def test_everything_is_covariant() -> None:
    """Smearing commutes with gauge transformations."""
    extents = (4, 4, 2, 4)
    turn = random_gauge(Group.alone(), extents).links[..., 0, :, :]
    plain, turned = thermal_gauge(extents), thermal_gauge(extents)
    turned.set_links(reference.transformed(plain.links, turn))
    for name in smearing.FAT_LINKS:
        one, other = smearing.fat_links(plain, name), smearing.fat_links(turned, name)
        np.testing.assert_allclose(other.fat, reference.transformed(one.fat, turn), atol=1e-12)
        np.testing.assert_allclose(
            other.long_links, reference.transformed(one.long_links, turn, distance=3), atol=1e-12
        )
        if one.unitary is not None:
            np.testing.assert_allclose(other.unitary, reference.transformed(one.unitary, turn), atol=1e-12)
    smearings = (
        lambda g: smearing.ape(g, 0.7, 2),
        lambda g: smearing.stout(g, 0.12, 2),
        lambda g: smearing.hyp(g),
        lambda g: gradient_flow(g, 0.1, step=0.05)[0].copy_to(g),
        lambda g: gradient_flow(g, 0.1, step=0.05, action="zeuthen")[0].copy_to(g),
    )
    for smear in smearings:
        one, other = thermal_gauge(extents), thermal_gauge(extents)
        other.set_links(reference.transformed(one.links, turn))
        smear(one)
        smear(other)
        np.testing.assert_allclose(other.links, reference.transformed(one.links, turn), atol=1e-12)


def test_the_same_bits_on_every_grid() -> None:
    extents = (8, 4, 2, 8)

    def one_rank(group: Group, grid: tuple[int, ...]) -> tuple[Group, Gauge, list[np.ndarray]]:
        gauge = random_gauge(group, extents, grid)
        hisq = smearing.hisq_links(gauge, naik_epsilon=0.1)
        found = [hisq.fat, hisq.long_links, hisq.unitary, *smearing.fat_links(gauge, precision="single")[:2]]
        smearing.ape(gauge, 0.4, 1)
        smearing.stout(gauge, 0.05, 2, space_only=True)
        return gauge.geometry.block_slices(group.rank), [*found, gauge.links]

    _, expected = one_rank(Group.alone(), (1, 1, 1, 1))
    for grid in GRIDS:
        for block, found in run_threads(int(np.prod(grid)), lambda group, grid=grid: one_rank(group, grid)):
            for part, whole in zip(found, expected, strict=True):
                assert part.tobytes() == whole[block].tobytes()


def test_the_same_bits_on_every_kind_of_processor() -> None:
    """Smearing, sweeps and trajectories give the same bits, since they share their loops."""
    found: dict[str, list[bytes]] = {}
    for target in _core.lattice_targets():
        _core.lattice_use_target(target)
        try:
            gauge = Gauge(Group.alone(), (6, 4, 2, 4))
            kept = [np.array(thermalize(gauge, 5.7, 2, over_relaxations=1)), gauge.links]
            for name in smearing.FAT_LINKS:
                for precision in ("double", "single"):
                    made = smearing.fat_links(gauge, name, precision=precision)
                    kept += [made.fat, made.long_links]
            smearing.ape(gauge, 0.4, 1)
            smearing.stout(gauge, 0.1, 1)
            smearing.hyp(gauge)
            fix_gauge(gauge, theta=1e-6)
            kept.append(np.array([improved_charge(gauge), *wilson_loops(gauge, 2, 2).flat]))
            gradient_flow(gauge, 0.1, step=0.05, action="symanzik")[0].copy_to(gauge)
            hybrid_monte_carlo(gauge, 5.7, 2, steps=3)
            kept += [gauge.links, clover_leaves(gauge), np.array(field_strength(gauge))]
        finally:
            _core.lattice_use_target("")
        found[target] = [one.tobytes() for one in kept]
    for kept_bytes in found.values():
        assert kept_bytes == found["portable"]


def test_bad_input_is_refused() -> None:
    gauge = Gauge(Group.alone(), (4, 4, 4, 4))
    with pytest.raises(BadInput, match=r"expected fat links .* or .*, found"):
        smearing.fat_links(gauge, "fat9")
    with pytest.raises(BadInput, match="path weights below 1e30"):
        smearing.fat_links(gauge, "asqtad", u0=1e-100)
    with pytest.raises(BadInput, match="u0 above 0"):
        smearing.fat_links(gauge, "asqtad", u0=0)
    with pytest.raises(BadInput, match="0 steps or more"):
        smearing.stout(gauge, 0.1, -1)
    with pytest.raises(BadInput, match="finite weight"):
        smearing.ape(gauge, np.nan)
    with pytest.raises(BadInput, match="three weights"):
        smearing.hyp(gauge, (0.5,))
    links = gauge.links
    links[:] = 0
    gauge.set_links(links)
    with pytest.raises(BadInput, match=r"singular one at \(0, 0, 0, 0\) in direction 0"):
        smearing.hisq_links(gauge)
