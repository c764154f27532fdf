"""The lowest eigenvectors of staggered quarks against dense matrices and a formula, their file, and deflated solves."""

import dataclasses
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from commands import Command
from onehop import BadInput, Error, Group
from onehop.lattice import (
    Eigenvectors,
    Gauge,
    Staggered,
    deflated_solve,
    eigen,
    lowest_eigenvectors,
    read_eigenvectors,
    thermalize,
    write_eigenvectors,
    write_gauge,
)
from threads import run_threads

EXTENTS = (4, 4, 4, 4)


def make(group: Group, grid: tuple[int, ...] | None = None) -> Staggered:
    gauge = Gauge(group, EXTENTS, grid)
    thermalize(gauge, beta=5.6, sweeps=3)
    return Staggered(gauge, threads=1)


def dense(operator: Staggered) -> np.ndarray:
    """All eigenvalues of -D D on the even sites, by the matrix of D from odd to even sites."""
    even = (sum(np.indices(EXTENTS)) % 2 == 0).ravel().repeat(3)
    units = np.eye(len(even), dtype=complex)[~even].reshape(-1, *EXTENTS, 3)
    columns = operator.dslash(units).reshape(len(units), -1)[:, even]
    return np.sort(np.linalg.svd(columns, compute_uv=False) ** 2)


def source_of() -> np.ndarray:
    source = np.zeros((*EXTENTS, 3), complex)
    source[0, 0, 0, 0, 0] = 1
    return source


def test_eigenvalues_are_those_of_the_dense_matrix() -> None:
    operator = make(Group.alone())
    seen: list[int] = []
    found = lowest_eigenvectors(
        operator, count=20, residual=1e-10, progress=lambda _at, done: seen.append(done)
    )
    np.testing.assert_allclose(found.values, dense(operator)[:20], rtol=1e-11)
    assert found.residuals.max() <= 1e-10
    assert seen[-1] == 20
    rows = found.vectors.reshape(20, -1)
    np.testing.assert_allclose(rows.conj() @ rows.T, np.eye(20), atol=1e-12)


def test_multiple_eigenvalues_of_the_free_field() -> None:
    """Sums of 4 sin^2 p: the lowest has the multiplicity 48, which no Lanczos of single vectors finds."""
    operator = Staggered(Gauge(Group.alone(), EXTENTS), threads=1)
    found = lowest_eigenvectors(operator, count=40)
    momenta = np.meshgrid(*3 * [np.pi * np.arange(4) / 2], np.pi * (np.arange(4) + 0.5) / 2)
    squares = np.sort(sum(4 * np.sin(p) ** 2 for p in momenta).ravel())
    np.testing.assert_allclose(found.values, np.repeat(squares[::2], 3)[:40], rtol=1e-9)
    operator = Staggered(Gauge(Group.alone(), (2, 2, 2, 2)), threads=1)  # whose eigenvalues are all the same
    found = lowest_eigenvectors(operator, count=2, applications=500)
    np.testing.assert_allclose(found.values, 4, rtol=1e-9)
    operator = Staggered(Gauge(Group.alone(), (2, 4, 4, 6)), threads=1)
    assert lowest_eigenvectors(operator, count=20, applications=5000).residuals.max() <= 1e-9


def test_the_file_and_deflated_solves_on_every_grid(tmp_path: Path) -> None:
    alone, mass = make(Group.alone()), 0.01
    low = lowest_eigenvectors(alone, count=24)
    files = {precision: str(tmp_path / f"{precision}.npz") for precision in ("double", "half")}
    for precision, file in files.items():
        write_eigenvectors(file, low, alone, precision=precision)
    assert Path(files["half"]).stat().st_size < 0.3 * Path(files["double"]).stat().st_size
    plain = alone.solve(source_of(), mass)

    def one_rank(group: Group) -> list[tuple[tuple[slice, ...], object, Eigenvectors]]:
        operator = make(group, (1, 1, 1, group.size))
        mine = operator.geometry.block_slices(group.rank)
        return [
            (mine, deflated_solve(operator, source_of()[mine], mass, stored, sloppy_precision=sloppy), stored)
            for file in files.values()
            for stored in [read_eigenvectors(file, operator)]
            for sloppy in ("double", "single")
        ]

    for ranks in (1, 2):
        for parts in zip(*run_threads(ranks, one_rank), strict=True):
            solution = np.zeros_like(plain.solution)
            for mine, found, stored in parts:
                assert found.converged
                solution[mine] = found.solution
                np.testing.assert_array_equal(stored.values, low.values)
            rest = source_of() - alone.apply(solution, mass)
            assert np.linalg.norm(rest) <= 1.01e-10
            assert parts[0][1].true_residual == pytest.approx(np.linalg.norm(rest), rel=0.1)
    exact = deflated_solve(alone, source_of(), mass, read_eigenvectors(files["double"], alone))
    assert exact.iterations < 0.8 * plain.iterations
    odd = np.roll(source_of(), 1, axis=0)
    several = deflated_solve(alone, np.stack([source_of(), odd]), mass, low)
    assert exact.iterations <= several.iterations < 0.8 * plain.iterations
    for source, solution, residual in zip(
        (source_of(), odd), several.solution, several.residuals, strict=True
    ):
        assert np.linalg.norm(source - alone.apply(solution, mass)) == pytest.approx(residual, rel=0.1)
    masses = deflated_solve(alone, odd, (mass, 0.02), low)
    assert masses.converged
    np.testing.assert_allclose(masses.solution[0], several.solution[1], atol=1e-6)


def test_bad_input(tmp_path: Path) -> None:
    operator = make(Group.alone())
    low = lowest_eigenvectors(operator, count=3, residual=1e-6)
    file = tmp_path / "low.npz"
    write_eigenvectors(str(file), low, operator)
    other = Gauge(Group.alone(), EXTENTS)
    thermalize(other, beta=5.6, sweeps=4)
    for wrong in (Staggered(other), Staggered(other, antiperiodic=False)):
        with pytest.raises(BadInput, match="expected eigenvectors of these links"):
            read_eigenvectors(str(file), wrong)
    with pytest.raises(BadInput, match="expected eigenvectors on a lattice of 4x4x4x8, found 4x4x4x4"):
        read_eigenvectors(str(file), Staggered(Gauge(Group.alone(), (4, 4, 4, 8))))
    data = file.read_bytes()
    for damaged in (data[:-100], data[:2000] + b"\1" + data[2001:], b"", b"text"):
        file.write_bytes(damaged)
        with pytest.raises(BadInput, match="expected a file of eigenvectors"):
            read_eigenvectors(str(file), operator)
    with pytest.raises(BadInput, match="1 to 96 eigenvectors"):
        lowest_eigenvectors(operator, count=97)
    with pytest.raises(Error, match="expected 20 eigenvectors with residuals of 1e-09, reached"):
        lowest_eigenvectors(operator, count=20, applications=100)
    with pytest.raises(BadInput, match="double or half"):
        write_eigenvectors(str(file), low, operator, precision="single")
    for wrong in (low.vectors[:2], low.vectors * np.nan):
        with pytest.raises(BadInput, match="expected finite eigenvectors of shape"):
            write_eigenvectors(str(file), dataclasses.replace(low, vectors=wrong), operator, overwrite=True)


def test_commands(command: Command, tmp_path: Path) -> None:
    gauge = Gauge(Group.alone(), EXTENTS)
    thermalize(gauge, beta=5.6, sweeps=3)
    field, file = tmp_path / "cfg.lime", tmp_path / "low.npz"
    write_gauge(str(field), gauge)
    done = command("lattice", "eigen", field, "--count", 12, "-o", file, "--json", "-", status=0)
    found = json.loads(done.stdout)
    np.testing.assert_allclose(found["eigenvalues"], dense(Staggered(gauge))[:12], rtol=1e-9)
    assert max(found["residuals"]) <= 1e-9
    solve = ("lattice", "solve", field, "--mass", 0.01, "--json", "-")
    deflated = json.loads(command(*solve, "--deflate", file).stdout)
    assert (deflated["converged"], deflated["eigenvectors"]) == (True, 12)
    assert deflated["iterations"] < Staggered(gauge).solve(source_of(), 0.01).iterations
    done = command(*solve, "--deflate", file, "--boundary", "periodic", status=2)
    assert "expected eigenvectors of these links" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["compressed", "texts", "extents", "digest", "huge", "cut", "gone"])
def test_files_of_strangers(name: str, tmp_path: Path) -> None:
    operator = Staggered(Gauge(Group.alone(), EXTENTS))
    file = tmp_path / "low.npz"
    about = {"format": "onehop eigenvectors 1", "extents": list(EXTENTS), "digest": [1, 0], "applications": 1}
    about |= {"extents": {"extents": 7}, "digest": {"digest": ["a"]}}.get(name, {})
    arrays = {
        "values": np.array(["x"]) if name == "texts" else np.ones(1),
        "residuals": np.ones(1),
        "vectors": np.zeros((1, 128, 3), complex),
        "about": np.frombuffer(json.dumps(about).encode(), np.uint8),
    }
    if name != "gone":
        (np.savez_compressed if name == "compressed" else np.savez)(file, **arrays)
    if name == "huge":  # a header that claims more than any memory holds
        header = b"(1, 128, 3), }" + b" " * 12
        assert header in file.read_bytes()
        file.write_bytes(file.read_bytes().replace(header, b"(1, 128, 300000000000), } "))
    if name == "cut":
        file.write_bytes(file.read_bytes().replace(b"(1, 128, 3), }", b"(1, 128, 3    "))
    with pytest.raises(BadInput, match=r"low\.npz"):
        read_eigenvectors(str(file), operator)


ALTERED = {
    "values of no dimension": {"values": np.float64(1)},
    "values of two dimensions": {"values": np.ones((1, 1))},
    "complex values": {"values": np.ones(1, complex)},
    "dates": {"values": np.zeros(1, "M8[s]")},
    "values below 0": {"values": -np.ones(1)},
    "no values": {"values": np.zeros(0), "residuals": np.zeros(0), "vectors": np.zeros((0, 128, 3), complex)},
    "residuals of others": {"residuals": np.ones(2)},
    "real vectors": {"vectors": np.zeros((1, 128, 3))},
    "an array of no use": {"more": np.ones(1)},
    "rounding": {"about": {"rounding": "x"}},
    "rounding NaN": {"about": {"rounding": float("nan")}},
    "applications": {"about": {"applications": "many"}},
}


@pytest.mark.parametrize("name", ALTERED)
def test_altered_arrays_are_refused(name: str, tmp_path: Path) -> None:
    about = {"format": "onehop eigenvectors 1", "extents": EXTENTS, "digest": [1, 0], "applications": 1}
    arrays = {
        "values": np.ones(1),
        "residuals": np.ones(1),
        "vectors": np.zeros((1, 128, 3), complex),
        **ALTERED[name],
        "about": np.frombuffer(json.dumps(about | ALTERED[name].get("about", {})).encode(), np.uint8),
    }
    np.savez(tmp_path / "low.npz", **arrays)
    with pytest.raises(BadInput, match=r"low\.npz: expected a file of eigenvectors"):
        read_eigenvectors(str(tmp_path / "low.npz"), Staggered(Gauge(Group.alone(), EXTENTS)))


@pytest.mark.parametrize("count", [8, 60])
def test_no_more_memory_is_taken_than_was_compared(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(eigen, "require_memory", lambda group, extents, needed, what: asked.append(needed))
    operator = Staggered(Gauge(Group.alone(), (8, 8, 8, 8)))
    tracemalloc.start()
    try:
        with pytest.raises(Error, match="reached"):
            lowest_eigenvectors(operator, count=count, degree=1, applications=250, residual=1e-3)
        assert tracemalloc.get_traced_memory()[1] < asked[0] - eigen._OF_NUMPY
    finally:
        tracemalloc.stop()
