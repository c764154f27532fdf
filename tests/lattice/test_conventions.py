"""Conventions of other programs: operators written down as the programs define them, and the algebra of gammas."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gauge_fields import random_gauge
from onehop import BadInput, Group
from onehop.cli import main
from onehop.lattice import Geometry, Staggered, Wilson, clover_leaves, field_strength, write_gauge
from onehop.lattice.conventions import CONVENTIONS, SPIN_BASES, convention
from onehop.lattice.measurements import read_measurements
from staggered_reference import dslash_site_by_site
from wilson_reference import GAMMA, SIGMA, some_field, with_boundary

EXTENTS = (2, 4, 2, 4)
KAPPA = 0.11
ONE, ZERO = np.eye(2), np.zeros((2, 2))


def blocks(sign: complex) -> list[np.ndarray]:
    """gamma_k = (0, c sigma_k; c* sigma_k, 0)."""
    return [
        np.block([[ZERO, sign * sigma], [np.conj(sign) * sigma, ZERO]]).astype(complex) for sigma in SIGMA
    ]


# As QUDA's enumeration of bases, MILC's conversion from FNAL, and openQCD's notes give them.
GAMMAS = {
    "degrand-rossi": [g * (-1 if k == 1 else 1) for k, g in enumerate(blocks(1j))]
    + [np.block([[ZERO, ONE], [ONE, ZERO]])],
    "ukqcd": [*blocks(1j), np.diag([1, 1, -1, -1])],
    "fnal": [*blocks(1), np.diag([1, 1, -1, -1])],
    "chiral": [*blocks(-1j), np.block([[ZERO, -ONE], [-ONE, ZERO]])],
}
# The basis, and the operator a - b * sum of (1 + s gamma) U psi(x + mu) + (1 - s gamma) U^dagger psi(x - mu).
KAPPA_NORM, MASS_NORM = (1, KAPPA), (1 / (2 * KAPPA), 0.5)
WILSON = {
    "onehop": ("degrand-rossi", -1, *KAPPA_NORM),
    "milc": ("degrand-rossi", 1, *KAPPA_NORM),
    "chroma": ("degrand-rossi", -1, *MASS_NORM),
    "quda": ("degrand-rossi", -1, *KAPPA_NORM),
    "grid": ("degrand-rossi", -1, *MASS_NORM),
    "openqcd": ("chiral", -1, *MASS_NORM),
}
# The order of the phases, and the operator a m + b D.
STAGGERED = {
    "onehop": ("xyzt", 2, 1),
    "milc": ("txyz", 2, 1),
    "chroma": ("xyzt", 2, 1),
    "quda": ("txyz", 2, -1),
    "grid": ("xyzt", 1, 0.5),
}


def applied(links: np.ndarray, psi: np.ndarray, name: str, basis: str | None = None) -> np.ndarray:
    """The Wilson operator of a program, by its definition."""
    own, s, a, b = WILSON[name]
    gammas, links, found = GAMMAS[basis or own], with_boundary(links, True), a * psi
    for mu in range(4):
        u, axis = links[..., mu, :, :], 3 - mu
        ahead = np.einsum("...ij,...sj->...si", u, np.roll(psi, -1, axis))
        behind = np.roll(np.einsum("...ji,...sj->...si", u.conj(), psi), 1, axis)
        found = found - b * np.einsum("st,...tc->...sc", np.eye(4) + s * gammas[mu], ahead)
        found = found - b * np.einsum("st,...tc->...sc", np.eye(4) - s * gammas[mu], behind)
    return found


@pytest.mark.parametrize("basis", SPIN_BASES)
def test_a_basis_is_unitary_and_maps_gamma_to_gamma(basis: str) -> None:
    matrix, gammas = SPIN_BASES[basis], GAMMAS[basis]
    np.testing.assert_allclose(matrix @ matrix.conj().T, np.eye(4), atol=1e-15)
    for mu in range(4):
        np.testing.assert_allclose(matrix @ GAMMA[mu] @ matrix.conj().T, gammas[mu], atol=1e-15)
        for nu in range(4):
            both = gammas[mu] @ gammas[nu] + gammas[nu] @ gammas[mu]
            np.testing.assert_array_equal(both, 2 * (mu == nu) * np.eye(4))


@pytest.mark.parametrize("name", CONVENTIONS)
def test_wilson_solutions_solve_the_system_of_the_program(name: str) -> None:
    gauge = random_gauge(Group.alone(), EXTENTS)
    wilson = Wilson(gauge, KAPPA)
    source = some_field(EXTENTS, 3)
    for basis in (None, *SPIN_BASES):
        chosen = convention(name, basis)
        found = wilson.solve(chosen.spinors_of_onehop(source), tolerance=1e-12).solution
        theirs = chosen.wilson_factor(KAPPA) * chosen.spinors(found)
        np.testing.assert_allclose(applied(gauge.links, theirs, name, basis), source, atol=1e-10)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_a_wilson_propagator_has_both_spins_in_the_basis_of_the_program(name: str) -> None:
    gauge = random_gauge(Group.alone(), EXTENTS)
    wilson, chosen = Wilson(gauge, KAPPA), convention(name, "ukqcd")
    points = np.zeros((12, *EXTENTS[::-1], 4, 3), complex)
    points.reshape(12, -1, 12)[:, 0] = np.eye(12)
    ours = wilson.solve(points, tolerance=1e-12).solution
    theirs = chosen.propagator(ours, KAPPA)
    for column in (0, 7):
        np.testing.assert_allclose(
            applied(gauge.links, theirs[column], name, "ukqcd"), points[column], atol=1e-10
        )
    np.testing.assert_allclose(chosen.propagator_of_onehop(theirs, KAPPA), ours, atol=1e-13)


@pytest.mark.parametrize("name", STAGGERED)
def test_staggered_solutions_solve_the_system_of_the_program(name: str) -> None:
    gauge, mass = random_gauge(Group.alone(), EXTENTS), 0.3
    order, a, b = STAGGERED[name]
    chosen = convention(name)
    source = some_field(EXTENTS, 4)[..., 0, :]
    signs = chosen.staggered_signs(gauge.geometry, 0)[..., None]
    found = Staggered(gauge).solve(signs * source, mass, tolerance=1e-12).solution
    theirs = chosen.staggered_propagator_factor * signs * found
    hop = dslash_site_by_site(gauge.links, theirs, order, True)
    np.testing.assert_allclose(a * mass * theirs + b * hop, source, atol=1e-10)


def test_signs_of_a_block_are_those_of_the_lattice() -> None:
    whole, parts = Geometry(EXTENTS), Geometry(EXTENTS, (1, 2, 1, 2), ranks=4)
    for name in STAGGERED:
        signs = convention(name).staggered_signs(whole, 0)
        for rank in range(4):
            mine = convention(name).staggered_signs(parts, rank)
            np.testing.assert_array_equal(mine, signs[parts.block_slices(rank)])


def test_unknown_conventions_are_refused() -> None:
    with pytest.raises(BadInput, match=r"expected the convention onehop, milc, .* found 'cps'"):
        convention("cps")
    with pytest.raises(BadInput, match=r"expected the spin basis .* found 'dirac'"):
        convention("milc", "dirac")
    with pytest.raises(BadInput, match="with staggered quarks, found openqcd"):
        convention("openqcd").staggered_signs(Geometry(EXTENTS), 0)


def test_measure_has_the_normalisation_of_a_program(tmp_path: Path) -> None:
    """The factors of M, plaquette and charge, and the same masses and flow."""
    cfg, out = str(tmp_path / "cfg.lime"), tmp_path / "out.json"
    write_gauge(cfg, random_gauge(Group.alone(), (2, 2, 2, 4)))

    def measured(*words: object) -> dict[str, Any]:
        assert main(["lattice", "measure", cfg, *map(str, words), "--json", str(out)]) == 0
        return json.loads(out.read_text())

    wilson = ("--quarks", "wilson", "--kappa", KAPPA, "--flow", 0.02)
    ours, theirs = measured(*wilson), measured(*wilson, "--convention", "openqcd")
    assert (ours["convention"], theirs["convention"]) == ("onehop", "openqcd")
    for name in ("plaquette", "plaquette_space", "plaquette_time"):
        assert theirs[name] == 3 * ours[name]
    assert theirs["charge"] == -ours["charge"] != 0
    assert theirs["flow"][-1]["charge"] == theirs["charge_after_flow"] == -ours["charge_after_flow"]
    assert theirs["link_trace"] == ours["link_trace"]
    np.testing.assert_allclose(
        theirs["quarks"]["pion"], np.multiply((2 * KAPPA) ** 2, ours["quarks"]["pion"]), rtol=1e-12
    )
    assert theirs["quarks"]["pion_mass"] == ours["quarks"]["pion_mass"]
    staggered = ("--quarks", "staggered", "--mass", 0.5, "--noise-vectors", 2)
    ours, theirs = measured(*staggered), measured(*staggered, "--convention", "grid")
    for name, factor in (("rho", 4), ("condensate", 2), ("condensate_error", 2)):
        np.testing.assert_allclose(theirs["quarks"][name], np.multiply(factor, ours["quarks"][name]))
    words = ["lattice", "measure", cfg]
    assert main([*words, *map(str, staggered), "--convention", "openqcd"]) == 2
    series = str(tmp_path / "run.h5")
    assert main([*words, "-o", series, "--convention", "milc"]) == 0
    assert main([*words, "-o", series]) == 2  # other options
    assert read_measurements(series).series["plaquette"] == [3 * ours["plaquette"]]


def test_the_charge_of_openqcd_counts_time_first() -> None:
    """openQCD's q(x) = -tr(F_01 F_23 + F_02 F_31 + F_03 F_12) / 4 pi^2, with 0 as time and 1, 2, 3 as space."""
    gauge = random_gauge(Group.alone(), EXTENTS)
    xy, xz, xt, yz, yt, zt = np.moveaxis(clover_leaves(gauge), -3, 0)
    density = np.einsum("...ij,...ji", -xt, yz) + np.einsum("...ij,...ji", -yt, -xz)
    density += np.einsum("...ij,...ji", -zt, xy)
    theirs = -density.real.sum() / (4 * np.pi**2)
    # The links' own F is without its trace, which clover_leaves keeps.
    traces = [np.trace(one, axis1=-2, axis2=-1) for one in (xy, xz, xt, yz, yt, zt)]
    theirs += (traces[5] * -traces[0] + traces[4] * traces[1] - traces[2] * traces[3]).real.sum() / (
        3 * 4 * np.pi**2
    )
    assert field_strength(gauge).charge * convention("openqcd").charge == pytest.approx(theirs, rel=1e-9)
