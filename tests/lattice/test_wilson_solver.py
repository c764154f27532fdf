"""Solves of Wilson and clover quarks: solutions and reports against NumPy."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wilson_reference as reference
from commands import Command
from gauge_fields import random_gauge
from onehop import BadInput, Group
from onehop.lattice import Gauge, Wilson, WilsonSolve, thermalize, write_gauge
from ranks import Ranks
from threads import run_threads
from wilson_reference import some_field


@pytest.mark.parametrize("method", ["auto", "bicgstab", "cgnr"])
@pytest.mark.parametrize(
    ("csw", "sloppy_precision"), [(0.0, "double"), (1.4, "single"), (0.0, "half"), (1.4, "half")]
)
def test_solutions_and_reports(method: str, csw: float, sloppy_precision: str) -> None:
    extents, kappa = (4, 4, 4, 8), 0.11
    gauge = random_gauge(Group.alone(), extents)
    wilson = Wilson(gauge, kappa, csw=csw)
    sources = some_field(extents, 6, 2)
    sources[1] *= 1e-3
    result = wilson.solve(sources, tolerance=1e-11, method=method, sloppy_precision=sloppy_precision)
    assert result.converged
    assert result.reliable_updates > 0 or sloppy_precision == "double"
    for source, x, said in zip(sources, result.solution, result.residuals, strict=True):
        rest = source - reference.apply(gauge.links, x, kappa, csw)
        residual = np.linalg.norm(rest) / np.linalg.norm(source)
        assert residual <= 1.01e-11
        assert said == pytest.approx(residual, rel=0.05, abs=1e-14)
    assert result.flops > 0 < result.bytes
    short = wilson.solve(sources[0], iterations=2, method=method, sloppy_precision=sloppy_precision)
    rest = sources[0] - reference.apply(gauge.links, short.solution, kappa, csw)
    assert (short.converged, short.iterations) == (False, 2)
    assert short.true_residual == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(sources[0]), rel=1e-6)
    nothing = wilson.solve(np.zeros_like(sources[0]), method=method)
    assert (nothing.converged, nothing.iterations) == (True, 0)
    assert not nothing.solution.any()


@pytest.mark.parametrize("method", ["auto", "bicgstab", "cgnr"])
@pytest.mark.parametrize("sloppy_precision", ["double", "single", "half"])
def test_a_solve_without_a_solution_returns_its_best(method: str, sloppy_precision: str) -> None:
    gauge = random_gauge(Group.alone(), (4, 4, 4, 4))
    sources = some_field((4, 4, 4, 4), 7, 2)
    for kappa in (0.5, 1e3, 1e150):  # far beyond the critical kappa, and where squares overflow
        result = Wilson(gauge, kappa, threads=1).solve(
            sources, iterations=800, sloppy_precision=sloppy_precision, method=method
        )
        assert not result.converged
        for source, x, said in zip(sources, result.solution, result.residuals, strict=True):
            assert np.isfinite(x).all()
            rest = source - reference.apply(gauge.links, x, kappa, 0.0)
            assert said <= 1  # no worse than x = 0
            assert said == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(source), rel=1e-6)
    # 200 iterations reduce the residual to below a third, and 400 leave at most 1.5 times as much.
    found = [
        Wilson(gauge, 0.3, threads=1).solve(
            sources[0], iterations=iterations, sloppy_precision=sloppy_precision, method="cgnr"
        )
        for iterations in (200, 400)
    ]
    assert found[1].true_residual <= 1.5 * found[0].true_residual < 0.5


def test_auto_is_near_the_better_method() -> None:
    """On fields at light quark masses and beyond, where BiCGStab hardly converges, and at heavy ones."""
    used = set()
    for extents, beta, csw, kappas in (
        ((4, 4, 4, 8), 5.9, 0.0, (0.12, 0.14, 0.15, 0.16, 0.165)),
        ((4, 4, 4, 4), 5.7, 1.2, (0.12, 0.13, 0.14)),
    ):
        gauge = Gauge(Group.alone(), extents)
        thermalize(gauge, beta=beta, sweeps=10)
        source = np.zeros((*extents[::-1], 4, 3), complex)
        source[0, 0, 0, 0, 0, 0] = 1
        for kappa in kappas:
            wilson = Wilson(gauge, kappa, csw=csw, threads=1)
            best = min(
                one.iterations
                for method in ("bicgstab", "cgnr")
                if (one := wilson.solve(source, method=method, iterations=400)).converged
            )
            for sloppy_precision in ("double", "single"):
                found = wilson.solve(source, sloppy_precision=sloppy_precision)
                assert found.converged
                if sloppy_precision == "double":
                    assert found.iterations <= 1.3 * best
                used.add(found.method)
    assert used == {"bicgstab", "cgnr"}


def test_solves_in_single_precision_reach_its_rounding() -> None:
    extents = (4, 4, 4, 4)
    gauge = random_gauge(Group.alone(), extents)
    source = some_field(extents, 7)
    result = Wilson(gauge, 0.1, csw=1.0, recon=12).solve(source, tolerance=1e-5, precision="single")
    assert result.converged
    rest = source - reference.apply(gauge.links, result.solution, 0.1, 1.0)
    assert np.linalg.norm(rest) / np.linalg.norm(source) < 2e-5


@pytest.mark.parametrize("method", ["auto", "bicgstab", "cgnr"])
@pytest.mark.parametrize("sloppy_precision", ["double", "single", "half"])
def test_sources_of_every_size(method: str, sloppy_precision: str) -> None:
    """Scaling a source by a power of two only scales the solution, on every grid: ranks agree on the factor."""
    extents = (4, 4, 4, 4)
    alone = random_gauge(Group.alone(), extents)
    source = some_field(extents, 12)
    point = np.zeros_like(source)
    point[0, 0, 0, 0, 0, 0] = 1
    wilson = Wilson(alone, 0.11, csw=1.1, threads=1)
    how: dict[str, Any] = {"method": method, "sloppy_precision": sloppy_precision}
    for size in (2.0**-660, 2.0**-80, 2.0**600):
        for one in (source, point):
            expected, found = wilson.solve(one, **how), wilson.solve(size * one, **how)
            assert (found.converged, found.iterations) == (True, expected.iterations)
            assert np.array_equal(found.solution, size * expected.solution)
            expected = wilson.solve(size * one, reproducible=True, **how)

            def on_two(group: Group, one: np.ndarray = size * one) -> WilsonSolve:
                gauge = random_gauge(group, extents, (1, 1, 1, 2))
                mine = gauge.geometry.block_slices(group.rank)
                return Wilson(gauge, 0.11, csw=1.1, threads=1).solve(one[mine], reproducible=True, **how)

            parts = [part.solution for part in run_threads(2, on_two)]
            assert np.array_equal(np.concatenate(parts), expected.solution)


@pytest.mark.parametrize("sloppy_precision", ["double", "single", "half"])
@pytest.mark.parametrize("csw", [0.0, 1.2])
def test_schwarz_needs_fewer_iterations(sloppy_precision: str, csw: float) -> None:
    extents, kappa = (4, 4, 4, 8), 0.12
    source = some_field(extents, 9)
    gauge = random_gauge(Group.alone(), extents)

    def one_rank(group: Group) -> tuple[tuple[slice, ...], WilsonSolve, WilsonSolve]:
        gauge = random_gauge(group, extents, (1, 1, 1, 2))
        mine = gauge.geometry.block_slices(group.rank)
        wilson = Wilson(gauge, kappa, csw=csw, threads=1)
        return (
            mine,
            wilson.solve(source[mine], sloppy_precision=sloppy_precision, tolerance=1e-9),
            wilson.solve(source[mine], sloppy_precision=sloppy_precision, tolerance=1e-9, schwarz=4),
        )

    solution = np.zeros_like(source)
    for mine, plain, schwarz in run_threads(2, one_rank):
        assert plain.converged
        assert schwarz.converged
        assert schwarz.iterations < (1.0 if sloppy_precision == "half" else 0.7) * plain.iterations
        solution[mine] = schwarz.solution
    rest = source - reference.apply(gauge.links, solution, kappa, csw)
    assert np.linalg.norm(rest) <= 1.01e-9 * np.linalg.norm(source)


@pytest.mark.parametrize(
    ("method", "sloppy_precision"), [("bicgstab", "double"), ("bicgstab", "half"), ("cgnr", "half")]
)
def test_reproducible_on_every_grid(method: str, sloppy_precision: str) -> None:
    extents = (8, 8, 4, 8)
    source = some_field(extents, 8)
    how = {"reproducible": True, "tolerance": 1e-8, "method": method, "sloppy_precision": sloppy_precision}
    alone = Wilson(random_gauge(Group.alone(), extents), 0.1, csw=1.0, threads=2)
    expected = alone.solve(source, **how)
    for grid in ((2, 1, 1, 1), (1, 1, 1, 4), (2, 2, 1, 2)):

        def one_rank(group: Group, grid: tuple[int, ...] = grid) -> tuple[tuple[slice, ...], WilsonSolve]:
            gauge = random_gauge(group, extents, grid)
            mine = gauge.geometry.block_slices(group.rank)
            return mine, Wilson(gauge, 0.1, csw=1.0, threads=1).solve(source[mine], **how)

        for mine, found in run_threads(int(np.prod(grid)), one_rank):
            assert (found.iterations, found.residuals) == (expected.iterations, expected.residuals)
            assert (found.solution == expected.solution[mine]).all()


@pytest.mark.parametrize(("sloppy_precision", "schwarz"), [("single", 0), ("half", 3)])
def test_half_precision_halo(sloppy_precision: str, schwarz: int) -> None:
    """Half-precision halos change the iterations on two ranks, but the solution only within the tolerance."""
    extents = (8, 4, 4, 4)
    source = some_field(extents, 8, 2)
    alone = random_gauge(Group.alone(), extents)

    def one_rank(group: Group) -> list[WilsonSolve]:
        gauge = random_gauge(group, extents, (2, 1, 1, 1))
        wilson = Wilson(gauge, 0.1, csw=1.0, threads=1)
        mine = source[(slice(None), *gauge.geometry.block_slices(group.rank))]
        return [
            wilson.solve(
                mine, sloppy_precision=sloppy_precision, schwarz=schwarz, half_halo=half, tolerance=1e-9
            )
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
    with pytest.raises(BadInput, match="sloppy precision below"):
        wilson.solve(source, half_halo=True)
    with pytest.raises(BadInput, match="either a half-precision halo or a reproducible"):
        wilson.solve(source, half_halo=True, sloppy_precision="single", reproducible=True)


def test_command_solves(ranks: Ranks, command: Command, tmp_path: Path) -> None:
    extents = (4, 4, 4, 8)
    gauge = random_gauge(Group.alone(), extents)
    field = tmp_path / "cfg.lime"
    write_gauge(str(field), gauge)
    quarks = ("--action", "clover", "--csw", 1.2, "--kappa", 0.11, "--spin", 3, "--colour", 1)
    words = (*quarks, "--sloppy-precision", "single")
    done = ranks.onehop("lattice", "solve", field, *words, "-n", 2, "--json", "-", status=0)
    found = json.loads(done.stdout)
    source = np.zeros((*extents[::-1], 4, 3), complex)
    source[0, 0, 0, 0, 3, 1] = 1
    expected = Wilson(gauge, 0.11, csw=1.2).solve(source, sloppy_precision="single")
    assert found["converged"]
    assert found["true_residual"] <= 1e-10
    assert abs(found["iterations"] - expected.iterations) <= 3
    assert (found["csw"], found["kappa"], found["grid"]) == (1.2, 0.11, [1, 1, 1, 2])
    assert found["gflops"] > 0 < found["gbytes_per_second"]
    done = ranks.onehop("lattice", "solve", field, *words[:-1], "half", "-n", 2, "--json", "-", status=0)
    assert json.loads(done.stdout)["true_residual"] <= 1e-10
    short = command(
        "lattice",
        "solve",
        field,
        "--action",
        "wilson",
        "--mass",
        0.5,
        "--iterations",
        2,
        "--json",
        "-",
        status=1,
    )
    assert json.loads(short.stdout)["kappa"] == pytest.approx(1 / 9)
    assert "allow more iterations" in short.stderr
