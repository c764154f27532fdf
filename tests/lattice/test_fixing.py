"""Gauge fixing: the divergence by NumPy, invariant observables, pure gauge, the same bits on every grid."""

import json
from pathlib import Path

import numpy as np
import pytest

import lattice_reference as reference
from gauge_fields import thermal_gauge
from onehop import BadInput, Error, Group
from onehop.cli import main
from onehop.lattice import (
    Gauge,
    field_strength,
    fix_gauge,
    polyakov_loop,
    read_gauge,
    write_gauge,
)
from threads import run_threads

EXTENTS = (4, 6, 2, 4)


def theta_and_functional(links: np.ndarray, directions: int) -> tuple[float, float]:
    dims = links.ndim - 3
    divergence, trace = 0.0, 0.0
    for mu in range(directions):
        u = links[..., mu, :, :]
        a = reference.algebra(u) / 1j
        divergence = divergence + a - reference.shifted(a, mu, -1, dims)
        trace += np.trace(u, axis1=-2, axis2=-1).real.mean() / 3 / directions
    return (abs(divergence) ** 2).sum(axis=(-2, -1)).mean() / 3, trace


@pytest.mark.parametrize("extents", [EXTENTS, (6, 4, 8), (4, 6)])
@pytest.mark.parametrize("condition", ["coulomb", "landau"])
def test_divergence_vanishes_and_observables_stay(extents: tuple[int, ...], condition: str) -> None:
    gauge = thermal_gauge(extents)
    directions = len(extents) - (condition == "coulomb")
    before = theta_and_functional(gauge.links, directions)
    strength, loop = field_strength(gauge), polyakov_loop(gauge)
    states = []
    first = fix_gauge(gauge, condition, theta=1, sweeps=20, progress=states.append)
    assert first[1:] == pytest.approx(theta_and_functional(gauge.links, directions))
    assert before[0] > 1 > first.theta
    assert first.sweeps == 10 * len(states)
    states = []
    found = fix_gauge(gauge, condition, progress=states.append)
    theta, functional = theta_and_functional(gauge.links, directions)
    assert theta < 1e-14
    assert (
        found == states[-1] == (10 * len(states), pytest.approx(theta), pytest.approx(functional, rel=1e-13))
    )
    assert functional > before[1] + 0.05
    assert (np.diff([one.functional for one in states]) > -1e-14).all()
    np.testing.assert_allclose(field_strength(gauge), strength, atol=1e-12)
    assert polyakov_loop(gauge) == pytest.approx(loop, abs=1e-13)
    assert gauge.deviation().value < 1e-13
    assert fix_gauge(gauge, condition).sweeps == 0


def test_pure_gauge_becomes_one() -> None:
    """Unit links behind a gauge transformation that is not small are unit links in the gauge again."""
    gauge = Gauge(Group.alone(), EXTENTS)
    numbers = np.random.default_rng(1).normal(size=(2, *EXTENTS[::-1], 3, 3))
    turns = reference.exponential(0.8 * reference.algebra(numbers[0] + 1j * numbers[1]))
    ahead = [reference.adjoint(reference.shifted(turns, mu, 1, 4)) for mu in range(4)]
    gauge.set_links(np.stack([turns @ one for one in ahead], axis=4))
    assert theta_and_functional(gauge.links, 4)[1] < 0.5
    assert fix_gauge(gauge, "landau", theta=1e-24).functional == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(gauge.links, gauge.links * 0 + np.eye(3), atol=1e-10)


def test_the_same_bits_on_every_grid() -> None:
    expected = thermal_gauge(EXTENTS)
    state = fix_gauge(expected, "landau")
    links = expected.gather()

    def fixed(grid: tuple[int, ...]) -> None:
        def on_rank(group: Group) -> None:
            gauge = thermal_gauge(EXTENTS, group, grid)
            assert fix_gauge(gauge, "landau") == state
            assert gauge.gather().tobytes() == links.tobytes()

        run_threads(int(np.prod(grid)), on_rank)

    for grid in [(2, 1, 1, 1), (1, 2, 1, 2), (2, 2, 1, 2)]:
        fixed(grid)


def test_what_is_refused_leaves_the_links() -> None:
    gauge = thermal_gauge(EXTENTS)
    links = gauge.links
    with pytest.raises(Error, match=r"expected a theta of at most 1e-14, found .* after 15 sweeps"):
        fix_gauge(gauge, sweeps=15)
    for match, how in {
        "coulomb or landau": {"condition": "axial"},
        "1 to 1.999": {"over_relaxation": 2.0},
        "theta": {"theta": 0.0},
        "sweeps": {"sweeps": 0},
    }.items():
        with pytest.raises(BadInput, match=match):
            fix_gauge(gauge, **how)
    assert gauge.links.tobytes() == links.tobytes()
    with pytest.raises(BadInput, match="even extents"):
        fix_gauge(Gauge(Group.alone(), (4, 3)))
    gauge.set_links(0 * links)
    gauge.set_links(links * 1e200)
    with pytest.raises(Error, match=r"found (nan|inf)"):
        fix_gauge(gauge)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cfg, out, report = tmp_path / "cfg.lime", tmp_path / "out.lime", tmp_path / "report.json"
    gauge = thermal_gauge(EXTENTS)
    write_gauge(str(cfg), gauge)
    command = ["lattice", "fix", str(cfg), "-o", str(out)]
    assert main([*command, "--sweeps", "20"]) != 0
    assert "expected a theta" in capsys.readouterr().err
    assert not out.exists()
    assert main([*command, "--gauge", "landau", "--json", str(report)]) == 0
    assert "landau gauge after" in capsys.readouterr().out
    found = json.loads(report.read_text())
    expected = fix_gauge(gauge, "landau")
    assert (found["sweeps"], found["theta"], found["functional"]) == expected
    assert found["plaquette"] == pytest.approx(gauge.plaquettes().all, abs=1e-14)
    np.testing.assert_array_equal(read_gauge(str(out))[0].links, gauge.links)
    assert main(command) == 2  # the file exists
