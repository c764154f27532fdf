"""Predicted times of iterations of lattice solvers: counts as the solvers make them, and times by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gauge_fields import random_gauge
from onehop import Group
from onehop.cli import main
from onehop.error import BadInput
from onehop.lattice import Geometry, Staggered, Wilson
from onehop.machine import traffic_of
from onehop.predict import predict_solver
from onehop.predict.lattice import _action, _halo, balanced_grid
from predicted_machines import two_hosts

EXTENTS = (4, 4, 4, 8)


def solved(action: str, precision: str, recon: int, iterations: int) -> Any:
    gauge = random_gauge(Group.alone(), EXTENTS)
    rng = np.random.default_rng(1)
    spins = (4,) if action in ("wilson", "clover") else ()
    shape = (*EXTENTS[::-1], *spins, 3)
    source = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    if spins:
        csw = 1.0 if action == "clover" else 0.0
        wilson = Wilson(gauge, 0.1, csw=csw, recon=recon, precision=precision)
        return wilson.solve(source, precision=precision, tolerance=1e-30, iterations=iterations)
    return Staggered(gauge).solve(source, 0.5, precision=precision, tolerance=1e-30, iterations=iterations)


@pytest.mark.parametrize(
    ("action", "precision", "recon"),
    [
        ("staggered", "double", 18),
        ("staggered", "single", 18),
        ("wilson", "double", 18),
        ("clover", "single", 12),
    ],
)
def test_counts_are_those_of_the_solver(action: str, precision: str, recon: int) -> None:
    few, more = (solved(action, precision, recon, iterations) for iterations in (3, 8))
    steps = more.iterations - few.iterations
    assert steps == 5
    found = predict_solver(EXTENTS, two_hosts(), action=action, precision=precision, recon=recon)
    assert (more.flops - few.flops) / steps == pytest.approx(found.flops, rel=1e-9)
    # BiCGStab also copies its best solution, after some of the iterations; the prediction does not count this.
    numbers = 24 if action in ("wilson", "clover") else 6
    copy = 2 * numbers * (8 if precision == "double" else 4) * np.prod(EXTENTS) / 2
    copies = (more.bytes - few.bytes - steps * found.bytes) / copy
    assert copies == pytest.approx(round(copies), abs=1e-6)
    assert 0 <= round(copies) <= (steps if numbers == 24 else 0)


@pytest.mark.parametrize(
    ("action", "grid", "size"),
    [("hisq", (2, 1, 1, 3), 8), ("clover", (2, 2, 2, 1), 4), ("staggered", (1, 4, 1, 2), 4)],
)
def test_halos_are_those_of_the_geometry(action: str, grid: tuple[int, ...], size: int) -> None:
    quark = _action(action, 18)
    geometry = Geometry((12, 12, 12, 18) if action == "hisq" else (8, 8, 8, 8), grid, width=quark.width)
    real = geometry.halo({4: "float32", 8: "float64"}[size], quark.halo_reals, parity=0)
    assert _halo(geometry, quark, size).messages(0) == traffic_of(real).messages(0)


def test_one_iteration_by_hand() -> None:
    # Two ranks of one host; t is cut, so 8x8x8 sites of each of two faces.
    found = predict_solver((8, 8, 8, 16), two_hosts(), 2, action="staggered", precision="double")
    half = 8 * 8 * 8 * 8 // 2
    per_site = (8 * 18 + 18) * 8
    term = half * per_site / 1e9
    inside = term * 6 / 8
    # Both faces are one message of half of their sites.
    halo = 1e-6 + 2 * 512 // 2 * 6 * 8 / 1e8
    assert halo < inside
    assert found.halo_seconds == pytest.approx(0, abs=1e-12)
    algebra = 9 * 6 * 8 * half / 1e9
    sums = 2 * (1e-6 + 16 / 1e8)
    assert found.hopping_seconds == pytest.approx(2 * term, rel=1e-9)
    assert found.algebra_seconds == pytest.approx(algebra, rel=1e-9)
    assert found.sum_seconds == pytest.approx(sums, rel=1e-6)
    assert found.predicted_seconds == pytest.approx(2 * term + algebra + sums, rel=1e-6)
    assert found.bytes_by_level == {"host": 2 * 2 * 512 * 6 * 8 + 2 * 2 * 16, "cluster": 0}
    assert found.bound == "memory bandwidth"
    # With slower links the halo takes longer than the interior.
    slow = predict_solver((8, 8, 8, 16), two_hosts(bandwidth=1e6), 2, action="staggered")
    halo = 1e-6 + 512 * 6 * 8 / 1e6
    assert slow.halo_seconds == pytest.approx(2 * (halo - inside), rel=1e-6)
    assert slow.bound == "halo: links of level host"


def test_multiply_adds_limit_an_iteration() -> None:
    """Parts take the longer of memory and arithmetic: hops by hand, of 66 * 8 + 42 and 12 more operations a site."""
    half = 8 * 8 * 8 * 16 // 2
    flops = [66 * 8 + 42, 66 * 8 + 54]
    memory = half * (8 * 18 + 18) * 8 / 1e9
    algebra = 9 * 6 * 8 * half / 1e9
    # The first hop takes as long as its memory traffic, the second one 2 % longer. A multiply-add is two operations.
    rate = half * flops[0] / memory / 2
    found = predict_solver((8, 8, 8, 16), two_hosts(multiply_adds=rate * 1.001), action="staggered")
    assert found.counts_arithmetic
    second = half * flops[1] / (2 * rate * 1.001)
    assert found.hopping_seconds == pytest.approx(memory + second, rel=1e-9)
    assert found.algebra_seconds == pytest.approx(algebra, rel=1e-9)
    assert found.arithmetic_seconds == pytest.approx(second, rel=1e-9)
    slow = predict_solver((8, 8, 8, 16), two_hosts(multiply_adds=rate / 100), action="staggered")
    assert slow.bound == "multiply-adds"
    assert slow.predicted_seconds == pytest.approx(slow.flops / (2 * rate / 100), rel=1e-9)
    # With two ranks the interior is computed as slowly, so halos stay hidden.
    both = predict_solver((8, 8, 8, 32), two_hosts(multiply_adds=rate / 100), 2, action="staggered")
    assert both.halo_seconds == pytest.approx(0, abs=1e-12)
    # The file does not give the rate in single precision.
    single = predict_solver(
        (8, 8, 8, 16), two_hosts(multiply_adds=rate / 100), action="staggered", precision="single"
    )
    assert not single.counts_arithmetic
    assert single.arithmetic_seconds == 0


def test_sums_along_a_tree() -> None:
    direct, tree = (
        predict_solver((8, 8, 8, 16), two_hosts(), 4, action="staggered", sums=how)
        for how in ("direct", "tree")
    )
    # One step inside a host, one between hosts, where two ranks share a link.
    assert tree.sum_seconds == pytest.approx(2 * (1e-6 + 16 / 1e8 + 1e-5 + 2 * 16 / 1e7), rel=1e-6)
    assert tree.hopping_seconds == direct.hopping_seconds
    assert tree.bytes_by_level["cluster"] < direct.bytes_by_level["cluster"]
    with pytest.raises(BadInput, match="power of two"):
        predict_solver((8, 8, 8, 12), two_hosts(), 3, action="staggered", sums="tree")


def test_balanced_grids() -> None:
    assert balanced_grid(65536, 4) == (16, 16, 16, 16)
    assert balanced_grid(12, 4) == (1, 2, 2, 3)
    assert balanced_grid(7, 2) == (1, 7)
    assert balanced_grid(1, 3) == (1, 1, 1)
    assert balanced_grid(360, 3) == (6, 6, 10)
    with pytest.raises(BadInput, match="at least 1"):
        balanced_grid(0, 4)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"machine": "none"}, r"expected a machine \(a100-nvlink"),
        ({"ranks": 8}, "at most 4 ranks"),
        ({"action": "overlap"}, r"expected the action .*clover, found 'overlap'"),
        ({"precision": "quad"}, "double, single or half"),
        ({"recon": 8}, "12 or 18"),
        ({"recon": 12}, "18 numbers per link of the action hisq"),
        ({"sums": "ring"}, "direct or tree"),
        (
            {"extents": (64, 64, 64, 64)},
            r"hisq action on 1 rank does not fit: expected at most 1 GB.*use more ranks",
        ),
    ],
)
def test_bad_input(more: dict[str, Any], words: str) -> None:
    given = {"extents": (8, 8, 8, 8), "machine": two_hosts(), **more}
    with pytest.raises(BadInput, match=words):
        predict_solver(given.pop("extents"), given.pop("machine"), **given)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    local = ["lattice", "info", "--extent", "16", "16", "16", "16", "--local", "-n", "64"]
    assert main([*local, "--machine", "genesis", "--action", "clover", "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    expected = predict_solver((32, 32, 64, 64), "genesis", grid=(2, 2, 4, 4), action="clover")
    assert found["predicted_seconds"] == expected.predicted_seconds
    assert found["bytes_by_level"] == expected.bytes_by_level
    assert found["site_bytes"] == 24 * 8
    assert "one iteration of BiCGStab, clover" in capsys.readouterr().out
    assert main([*local, "--action", "clover"]) == 2
    assert "--action needs --machine" in capsys.readouterr().err
    assert main([*local, "--machine", "genesis", "--width", "2"]) == 2
    assert main([*local, "--machine", "nowhere"]) == 2
    assert "genesis-ib" in capsys.readouterr().err
