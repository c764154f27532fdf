"""Solves of staggered quarks: solutions and reports against NumPy."""

import json
from pathlib import Path

import numpy as np
import pytest

from commands import Command
from gauge_fields import random_gauge
from gauge_files import lime_file, lime_sums
from onehop import BadInput, Group
from onehop.lattice import Gauge, Geometry, Staggered, StaggeredSolve, read_vectors, thermalize, write_gauge
from ranks import Ranks
from staggered_reference import (
    coordinates,
    dslash_by_numpy,
    dslash_of_links,
    random_links,
    some_field,
)
from threads import run_threads


def test_solutions_and_reports() -> None:
    extents, mass = (4, 4, 4, 4), 0.2
    gauge = random_gauge(Group.alone(), extents)
    staggered = Staggered(gauge)
    source = some_field(extents, 6)
    result = staggered.solve(source, mass, tolerance=1e-11)
    rest = source - 2 * mass * result.solution - dslash_by_numpy(gauge.links, result.solution, True)
    residual = np.linalg.norm(rest) / np.linalg.norm(source)
    assert result.converged
    assert residual <= 1.01e-11
    assert result.true_residual == pytest.approx(residual, rel=1e-2)
    assert 0 <= result.communication_seconds < result.seconds
    short = staggered.solve(source, mass, iterations=3)
    rest = source - 2 * mass * short.solution - dslash_by_numpy(gauge.links, short.solution, True)
    assert (short.converged, short.iterations) == (False, 3)
    assert short.true_residual == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(source), rel=1e-10)
    nothing = staggered.solve(np.zeros_like(source), mass)
    assert (nothing.converged, nothing.iterations) == (True, 0)
    assert not nothing.solution.any()


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"sloppy_precision": "single"},
        {"sloppy_precision": "half"},
        {"precision": "single", "sloppy_precision": "half"},
    ],
)
def test_a_solve_without_a_solution_returns_its_best(how: dict[str, str]) -> None:
    """On periodic unit links D has eigenvalues 0, so a tiny mass leaves the operator singular."""
    extents = (4, 4, 4, 4)
    unit = Gauge(Group.alone(), extents)
    staggered = Staggered(unit, antiperiodic=False, threads=1)
    one = some_field(extents, 6)
    both = np.stack([one, 1j * one])
    for mass in (1e-9, 1e-25, 1e-60):
        cases = (
            ([mass], [one], staggered.solve(one, mass, iterations=300, **how)),
            ([mass] * 2, both, staggered.solve(both, mass, iterations=300, **how)),
            ([2 * mass, mass], [one] * 2, staggered.solve(one, (2 * mass, mass), iterations=300, **how)),
        )
        for masses, sources, result in cases:
            assert not result.converged
            solutions = result.solution.reshape(-1, *one.shape)
            for m, b, x, said in zip(masses, sources, solutions, result.residuals, strict=True):
                assert said <= 1  # no worse than x = 0
                rest = b - 2 * m * x - dslash_by_numpy(unit.links, x, False)
                assert said == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(b), rel=1e-3)


@pytest.mark.parametrize("how", [{}, {"sloppy_precision": "half"}, {"precision": "single"}])
def test_sources_of_every_size(how: dict[str, str]) -> None:
    """Scaling a source by a power of two only scales the solution, also beside sources of other sizes."""
    extents = (4, 4, 4, 4)
    staggered = Staggered(random_gauge(Group.alone(), extents))
    source = some_field(extents, 6)
    tolerance = 1e-5 if "precision" in how else 1e-10
    expected = staggered.solve(source, 0.3, tolerance=tolerance, **how)
    assert expected.converged
    for size in (2.0**-660, 2.0**-80, 2.0**600):
        found = staggered.solve(size * source, 0.3, tolerance=tolerance, **how)
        assert (found.converged, found.iterations) == (True, expected.iterations)
        assert np.array_equal(found.solution, size * expected.solution)
        both = staggered.solve(np.stack([source, size * source]), 0.3, tolerance=tolerance, **how)
        assert np.array_equal(both.solution[1], size * both.solution[0])
        masses = staggered.solve(size * source, (0.3, 0.6), tolerance=tolerance, **how)
        ordinary = staggered.solve(source, (0.3, 0.6), tolerance=tolerance, **how)
        assert np.array_equal(masses.solution, size * ordinary.solution)


@pytest.mark.parametrize("sloppy_precision", ["half", "single"])
def test_ends_if_the_tolerance_is_below_rounding(sloppy_precision: str) -> None:
    extents = (4, 4, 4, 4)
    staggered = Staggered(random_gauge(Group.alone(), extents))
    found = staggered.solve(
        some_field(extents, 6), 0.1, tolerance=1e-30, iterations=100000, sloppy_precision=sloppy_precision
    )
    assert not found.converged
    assert found.iterations < 5000
    assert found.true_residual < 1e-14


@pytest.mark.parametrize("masses", [0.2, (0.7, 0.2)])
def test_half_precision_halo(masses: float | tuple[float, float]) -> None:
    """Half-precision halos change the iterations on two ranks, but the solution only within the tolerance."""
    extents, grid = (8, 4, 4, 4), (2, 1, 1, 1)
    fat, long = random_links(extents, 7), 0.1 * random_links(extents, 8)
    source = some_field(extents, 3)

    def one_rank(group: Group) -> list[StaggeredSolve]:
        mine = Geometry(extents, grid).block_slices(group.rank)
        staggered = Staggered.of_links(group, extents, fat[mine], long[mine], grid, threads=1)
        return [
            staggered.solve(source[mine], masses, sloppy_precision="half", half_halo=half, tolerance=1e-9)
            for half in (False, True)
        ]

    found = run_threads(2, one_rank)
    parts = [np.concatenate([one[i].solution for one in found], axis=-2) for i in range(2)]
    assert (parts[0] != parts[1]).any()
    for part in parts:
        for m, x in zip(np.atleast_1d(masses), part.reshape(-1, *source.shape), strict=True):
            rest = source - 2 * m * x - dslash_of_links(fat, long, x)
            assert np.linalg.norm(rest) <= 1.01e-9 * np.linalg.norm(source)
    assert all(one.converged for both in found for one in both)


def test_solves_in_every_precision_and_for_several_sources_and_masses() -> None:
    extents, mass = (8, 4, 4, 4), 0.2
    fat, long = random_links(extents, 7), 0.1 * random_links(extents, 8)
    staggered = Staggered.of_links(Group.alone(), extents, fat, long)
    sources = np.stack([some_field(extents, seed) for seed in range(5)])

    def residual(x: np.ndarray, b: np.ndarray, m: float) -> float:
        rest = b - 2 * m * x - dslash_of_links(fat, long, x)
        return float(np.linalg.norm(rest) / np.linalg.norm(b))

    seen: list[tuple[int, float]] = []
    iterations = {}
    for sloppy_precision in ("double", "single", "half"):
        found = staggered.solve(
            sources,
            mass,
            tolerance=1e-11,
            sloppy_precision=sloppy_precision,
            progress=lambda *at: seen.append(at),
        )
        assert found.converged
        assert found.reliable_updates >= (1 if sloppy_precision == "double" else 3)
        for b, x, said in zip(sources, found.solution, found.residuals, strict=True):
            assert residual(x, b, mass) == pytest.approx(said, rel=0.05)
            assert said <= 1e-11
        assert found.flops > 0 < found.bytes
        iterations[sloppy_precision] = found.iterations
    assert max(iterations.values()) < 1.5 * iterations["double"]
    single = staggered.solve(sources[0], mass, tolerance=1e-5, precision="single", sloppy_precision="half")
    assert single.converged
    assert residual(single.solution, sources[0], mass) < 1.1e-5
    masses = (0.7, 0.2, 0.4)
    even = np.where((sum(coordinates(extents)) % 2 == 0)[..., None], sources[0], 0)
    for sloppy_precision, source in (("double", even), ("single", sources[0]), ("half", sources[0])):
        found = staggered.solve(source, masses, tolerance=1e-10, sloppy_precision=sloppy_precision)
        assert found.converged
        for m, x in zip(masses, found.solution, strict=True):
            assert residual(x, source, m) <= 1e-10
    few = staggered.solve(sources[0], masses, iterations=2)
    assert not few.converged


def test_masses_and_shifts_in_mixed_precision_need_few_more_iterations() -> None:
    extents, mass = (8, 4, 4, 4), 0.02
    gauge = Gauge(Group.alone(), extents)
    thermalize(gauge, beta=5.9, sweeps=5)
    staggered = Staggered(gauge, threads=1)
    source = some_field(extents, 3)
    masses = np.geomspace(mass, 1, 11)
    shifts = 4 * (masses**2 - mass**2)
    iterations = {}
    for sloppy_precision in ("double", "single", "half"):
        found = staggered.solve(source, masses, sloppy_precision=sloppy_precision)
        squares = staggered.solve_shifts(source, mass, shifts, sloppy_precision=sloppy_precision)
        assert found.converged
        assert squares.converged
        for m, shift, x, y in zip(masses, shifts, found.solution, squares.solution, strict=True):
            assert np.linalg.norm(staggered.apply(x, m) - source) <= 1.01e-10 * np.linalg.norm(source)
            rest = staggered.apply_mdagm(y, mass) + shift * y - source
            assert np.linalg.norm(rest) <= 1.01e-10 * np.linalg.norm(source)
        iterations[sloppy_precision] = (found.iterations, squares.iterations)
    for each in iterations.values():
        assert (np.array(each) <= 1.3 * np.array(iterations["double"])).all()
    with pytest.raises(BadInput, match=r"4 m\^2 \+ shift above 0"):
        staggered.solve_shifts(source, mass, [-1.0])
    with pytest.raises(BadInput, match="one shift or more"):
        staggered.solve_shifts(source, mass, [])


def test_command_solves(ranks: Ranks, command: Command, tmp_path: Path) -> None:
    gauge = random_gauge(Group.alone(), (4, 4, 4, 8))
    field = tmp_path / "cfg.lime"
    write_gauge(str(field), gauge)
    done = ranks.onehop(
        "lattice", "solve", field, "--mass", 0.3, "-n", 2, "--colour", 1, "--json", "-", status=0
    )
    found = json.loads(done.stdout)
    source = np.zeros((8, 4, 4, 4, 3), complex)
    source[0, 0, 0, 0, 1] = 1
    expected = Staggered(gauge).solve(source, 0.3)
    assert found["converged"]
    assert found["true_residual"] <= 1e-10
    assert abs(found["iterations"] - expected.iterations) <= 1
    assert found["grid"] == [1, 1, 1, 2]
    assert 0 < found["communication_seconds"] < found["seconds"]
    assert found["gflops"] > 0 < found["gbytes_per_second"]
    shifted = ("--shift", 0, "--shift", 0.5, "--sloppy-precision", "half")
    done = command("lattice", "solve", field, "--mass", 0.3, *shifted, "--json", "-", status=0)
    assert json.loads(done.stdout)["shifts"] == [0, 0.5]
    short = command("lattice", "solve", field, "--mass", 0.3, "--iterations", 2, "--json", "-", status=1)
    assert "allow more iterations" in short.stderr
    assert json.loads(short.stdout)["converged"] is False


def scidac(path: Path, extents: tuple[int, ...], count: int, numbers: np.ndarray) -> None:
    """Write a single-precision file as other programs do."""
    data = np.stack([numbers.real, numbers.imag], axis=-1).astype(">f4").tobytes()
    site_bytes = len(data) // int(np.prod(extents))
    dims = " ".join(map(str, extents))
    about = "<datatype>USQCD_F3_X</datatype><precision>F</precision><colors>3</colors>"
    about += f"<typesize>{site_bytes // count}</typesize><datacount>{count}</datacount>"
    file_xml = f"<scidacFile><spacetime>4</spacetime><dims>{dims} </dims></scidacFile>"
    records = [
        ("scidac-private-file-xml", file_xml.encode()),
        ("scidac-private-record-xml", f"<scidacRecord>{about}</scidacRecord>".encode()),
        ("scidac-binary-data", data),
        ("scidac-checksum", lime_sums(data, site_bytes).encode()),
    ]
    path.write_bytes(lime_file(records))


def test_command_solves_with_links_and_sources_of_files(
    ranks: Ranks, command: Command, tmp_path: Path
) -> None:
    extents, mass = (4, 4, 4, 8), 0.3
    fat, long = (scale * random_links(extents, seed) for scale, seed in ((1, 1), (0.2, 2)))
    fat, long = fat.astype(np.complex64), long.astype(np.complex64)
    source = some_field(extents, 3).astype(np.complex64)
    names = {name: tmp_path / f"{name}.lime" for name in ("fat", "long", "src", "x")}
    scidac(names["fat"], extents, 4, fat)
    scidac(names["long"], extents, 4, long)
    scidac(names["src"], extents, 1, source)
    links = ("--fat", names["fat"], "--long", names["long"], "--source-file", names["src"], "--mass", mass)
    words = ("lattice", "solve", *links, "-o", names["x"], "--action", "staggered", "--json", "-")
    done = ranks.onehop(
        *words, "-n", 2, "--sloppy-precision", "half", "--output-precision", "double", status=0
    )
    found = json.loads(done.stdout)
    assert found["converged"]
    assert found["true_residual"] <= 1e-10
    geometry = Geometry(extents)
    (x,) = read_vectors(str(names["x"]), geometry, Group.alone())
    rest = source - 2 * mass * x - dslash_of_links(fat.astype(complex), long.astype(complex), x)
    assert np.linalg.norm(rest) / np.linalg.norm(source) < 1.1e-10
    again = command(*words, status=2)
    assert "exists already" in again.stderr
    names["src"].write_bytes(names["src"].read_bytes()[:-200])
    with pytest.raises(BadInput, match="cut off"):
        read_vectors(str(names["src"]), geometry, Group.alone())
    broken = bytearray(names["x"].read_bytes())
    broken[-2000] ^= 1
    names["x"].write_bytes(broken)
    with pytest.raises(BadInput, match="altered"):
        read_vectors(str(names["x"]), geometry, Group.alone())
    with pytest.raises(BadInput, match="expected a lattice of 4x4x4x4"):
        read_vectors(str(names["fat"]), Geometry((4, 4, 4, 4)), Group.alone())
    with pytest.raises(BadInput, match="colour vectors per site"):
        read_vectors(str(names["fat"]), geometry, Group.alone())
