"""Wilson loops and the charge 5Li: by NumPy, on abelian fields, the same bits on every grid."""

import json
from pathlib import Path

import numpy as np
import pytest

import lattice_reference as reference
from gauge_fields import abelian, constant_flux, random_gauge, same_on_grids
from onehop import BadInput, Group
from onehop.cli import main
from onehop.lattice import (
    Gauge,
    gradient_flow,
    improved_charge,
    smearing,
    thermalize,
    wilson_loops,
    write_gauge,
)
from onehop.lattice.measurements import read_measurements

EXTENTS = (4, 6, 5, 3)
FIVE = 1 / 20
WEIGHTS = {
    (1, 1): (19 - 55 * FIVE) / 9,
    (2, 2): (1 - 64 * FIVE) / 9,
    (1, 2): (640 * FIVE - 64) / 45,
    (1, 3): 1 / 5 - 2 * FIVE,
    (3, 3): FIVE,
}


def charge_by_numpy(links: np.ndarray) -> float:
    total = 0.0
    for (m, n), weight in WEIGHTS.items():
        strength = {}
        for mu in range(4):
            for nu in range(mu):
                leaves = 0
                for long, high in {(m, n), (n, m)}:
                    a, b = [mu + 1] * long, [nu + 1] * high
                    back_a, back_b = [-one for one in a], [-one for one in b]
                    paths = [a + b + back_a + back_b, b + back_a + back_b + a]
                    paths += [back_a + back_b + a + b, back_b + a + b + back_a]
                    leaves = leaves + sum(reference.along(links, path) for path in paths)
                strength[mu, nu] = reference.algebra(leaves) / (4 if m == n else 8)
        for (a, b), (c, d), sign in (((3, 2), (1, 0), 1), ((3, 1), (2, 0), -1), ((3, 0), (2, 1), 1)):
            product = np.trace(strength[a, b] @ strength[c, d], axis1=-2, axis2=-1).real
            total -= sign * weight * product.sum() / (4 * np.pi**2 * (m * n) ** 2)
    return total


def test_charge_as_by_numpy() -> None:
    gauge = random_gauge(Group.alone(), EXTENTS)
    assert improved_charge(gauge) == pytest.approx(charge_by_numpy(gauge.links), abs=1e-12)
    assert improved_charge(random_gauge(Group.alone(), (4, 3, 2))) == 0


def test_charge_of_constant_flux_is_an_integer() -> None:
    """A loop of A plaquettes has A times the angle of a plaquette; the clover charge has an error 3 times larger."""
    gauge = constant_flux((8, 8, 8, 8), 1, 1)
    area = np.array([m * n for m, n in WEIGHTS])
    flux = 2 * np.pi / 64
    sines = np.array([*WEIGHTS.values()]) * np.sin(area * flux) ** 2 / area**2
    found = improved_charge(gauge)
    assert found == pytest.approx(2 * sines.sum() / flux**2, abs=1e-11)
    clover = gradient_flow(gauge, 0)[1][0].charge
    assert 0.01 > abs(clover - 2) > 2.5 * abs(found - 2)


def test_wilson_loops_as_by_numpy() -> None:
    for extents in (EXTENTS, (4, 6)):
        gauge = random_gauge(Group.alone(), extents)
        time, longest = len(extents), min(extents[:-1])
        found = wilson_loops(gauge, longest, extents[-1])
        assert found.shape == (longest, extents[-1])
        for r in range(1, longest + 1):
            for t in range(1, extents[-1] + 1):
                paths = [[i] * r + [time] * t + [-i] * r + [-time] * t for i in range(1, time)]
                loops = [np.trace(reference.along(gauge.links, p), axis1=-2, axis2=-1).real for p in paths]
                assert found[r - 1, t - 1] == pytest.approx(np.mean(loops) / 3, abs=1e-14)
        assert found[0, 0] == pytest.approx(gauge.plaquettes().time, abs=1e-14)


def test_area_law_of_constant_flux() -> None:
    """In two directions, links with one angle per plaquette have loops cos(angle * area)."""
    angle = 2 * np.pi / 48
    t, x = np.indices((6, 8))
    angles = np.stack([np.where(x == 7, -angle * 8 * t, 0), angle * x], axis=-1)
    gauge = abelian(angles)
    areas = np.outer(np.arange(1, 6), np.arange(1, 5))
    np.testing.assert_allclose(wilson_loops(gauge, 5, 4), (1 + 2 * np.cos(angle * areas)) / 3, atol=1e-13)


def test_the_same_bits_on_every_grid() -> None:
    def found(group: Group, grid: tuple[int, ...]) -> tuple[float, bytes, str]:
        gauge = random_gauge(group, (4, 4, 6, 4), grid)
        found = improved_charge(gauge), wilson_loops(gauge, 3, 4).tobytes()
        smearing.hyp(gauge, (0.3, 0.2, 0.1))
        gradient_flow(gauge, 0.1, step=0.1, action="zeuthen")[0].copy_to(gauge)
        return *found, gauge.sha256()

    same_on_grids(found, (1, 1, 1, 2), (2, 1, 1, 1), (2, 1, 2, 2))


def test_what_is_refused() -> None:
    for r, t in ((5, 1), (0, 1), (1, 4), (1, 0)):
        with pytest.raises(BadInput, match="expected"):
            wilson_loops(random_gauge(Group.alone(), EXTENTS), r, t)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cfg, report, stored = (str(tmp_path / name) for name in ("c1.lime", "report.json", "run.h5"))
    gauge = Gauge(Group.alone(), (4, 4, 4, 4))
    thermalize(gauge, 6.0, 3)
    write_gauge(cfg, gauge)
    how = ["--charge", "5li", "--wilson-loops", "2x3", "--flow", "0.1", "--flow-step", "0.05"]
    how += ["--flow-action", "zeuthen"]
    assert main(["lattice", "measure", cfg, *how, "--json", report]) == 0
    assert "Wilson loops" in capsys.readouterr().out
    found = json.loads(Path(report).read_text())
    loops = wilson_loops(gauge, 2, 3)
    assert found["wilson_loops"] == loops.tolist()
    assert found["charge"] == improved_charge(gauge) == found["flow"][0]["charge"]
    _, points = gradient_flow(gauge, 0.1, step=0.05, action="zeuthen", charge="5li")
    assert found["flow"] == [point._asdict() for point in points]
    assert main(["lattice", "measure", cfg, *how, "-o", stored]) == 0
    kept = read_measurements(stored)
    np.testing.assert_array_equal(kept.series["wilson_loops/2"], loops[None, 1])
    assert kept.options["wilson_loops"] == [2, 3]
    assert kept.options["charge"] == "5li"
    assert main(["lattice", "measure", cfg, "-o", stored]) == 2
    assert "measured with other options" in capsys.readouterr().err
    assert main(["lattice", "measure", cfg, "--wilson-loops", "5x1"]) == 2
