"""Lattice computations compare what they need with the memory that is left before they take it."""

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from onehop import Error, Group
from onehop.cli import main
from onehop.lattice import (
    Flow,
    Gauge,
    Geometry,
    Hmc,
    Staggered,
    Wilson,
    field_strength,
    lowest_eigenvectors,
    read_eigenvectors,
    read_gauge,
    read_links,
    read_vectors,
    smearing,
    write_gauge,
    write_vectors,
)
from onehop.lattice.files import read_note
from ranks import Ranks
from threads import run_threads

KIB = 1 << 10
EXTENTS = (8, 8, 8, 8)
SITES = 8**4
LINKS = SITES * 4 * 144  # bytes of the links, 2.25 MiB


def free(monkeypatch: pytest.MonkeyPatch, count: float) -> None:
    monkeypatch.setenv("ONEHOP_TEST_FREE_MEMORY", str(int(count)))


@pytest.fixture
def gauge() -> Gauge:
    return Gauge(Group.alone(), EXTENTS)


def source(gauge: Gauge, spins: tuple[int, ...] = ()) -> np.ndarray:
    field = np.zeros((*gauge.geometry.block_shape, *spins, 3), complex)
    field[(0,) * field.ndim] = 1
    return field


# What needs memory, and for how many copies of the links there is too little.
NEEDS: dict[str, tuple[Callable[[Gauge], object], float]] = {
    "gauge field": (lambda g: Gauge(g.group, EXTENTS), 1),
    "links of all ranks": (lambda g: g.gather(), 1),
    "hybrid Monte Carlo": (lambda g: Hmc(g, 5.5), 2),
    "gradient flow": (Flow, 3),
    "field strength": (field_strength, 1),
    "smearing": (lambda g: smearing.stout(g, 0.1), 2),
    "fat links": (smearing.fat_links, 2),
    "HISQ links": (smearing.hisq_links, 3),
    "staggered operator": (Staggered, 0.9),
    "clover blocks": (lambda g: Wilson(g, 0.12, csw=1.0), 4),
}


@pytest.mark.parametrize("what", NEEDS)
def test_too_little_memory_is_an_error_before_it_is_taken(
    gauge: Gauge, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    make, copies = NEEDS[what]
    free(monkeypatch, copies * LINKS)
    with pytest.raises(Error, match=rf"not enough memory for .*{what} on a lattice of 8x8x8x8: rank 0 needs"):
        make(gauge)
    free(monkeypatch, 40 * LINKS)
    make(gauge)


def test_fields_take_whole_huge_pages(gauge: Gauge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 32 fields of 1.4 MiB takes 2 MiB: ranks in groups of 330 to 360 MB were killed."""
    free(monkeypatch, 60 * KIB * KIB)
    with pytest.raises(Error, match="not enough memory for HYP smearing"):
        smearing.hyp(gauge)
    free(monkeypatch, 80 * KIB * KIB)
    smearing.hyp(gauge)


def test_solves_compare_their_vectors(gauge: Gauge, monkeypatch: pytest.MonkeyPatch) -> None:
    staggered, wilson = Staggered(gauge), Wilson(gauge, 0.1)
    for solve in (
        lambda: staggered.solve(source(gauge), 1.0, iterations=2),
        lambda: staggered.solve(source(gauge), [1.0, 2.0], iterations=2),
        lambda: wilson.solve(source(gauge, (4,)), iterations=2),
    ):
        free(monkeypatch, 1100 * KIB)
        with pytest.raises(Error, match=r"not enough memory for .* quarks on a lattice of 8x8x8x8"):
            solve()
        free(monkeypatch, 1e9)
        solve()


def test_files_compare_what_they_hold(gauge: Gauge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    field, vectors = str(tmp_path / "cfg.lime"), str(tmp_path / "x.lime")
    write_gauge(field, gauge, note="a note")
    geometry, group = Geometry(EXTENTS), Group.alone()
    many = np.ones((8, *geometry.shape, 3), complex)
    write_vectors(vectors, many, geometry, group)
    cases: dict[str, Callable[[], object]] = {
        "reading .*cfg.lime, a gauge field": lambda: read_gauge(field),
        "reading .*cfg.lime, links": lambda: read_links(field, group),
        "reading .*x.lime, vectors": lambda: read_vectors(vectors, geometry, group),
        "writing a gauge field": lambda: write_gauge(field, gauge, overwrite=True),
        "writing vectors": lambda: write_vectors(vectors, many, geometry, group, overwrite=True),
    }
    for what, work in cases.items():
        free(monkeypatch, LINKS)
        with pytest.raises(Error, match=f"not enough memory for {what} on a lattice of 8x8x8x8"):
            work()
        free(monkeypatch, 20 * LINKS)
        work()


def test_a_sparse_file_takes_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of a few KiB whose header claims 2^26 sites, which need 36 GiB."""
    free(monkeypatch, 2**30)
    path, sites = tmp_path / "cfg.nersc", 2**26
    head = "BEGIN_HEADER\nDATATYPE = 4D_SU3_GAUGE_3x3\nFLOATING_POINT = IEEE64BIG\n"
    head += "".join(f"DIMENSION_{d} = {n}\n" for d, n in zip("1234", (64, 64, 128, 128), strict=True))
    path.write_text(head + "END_HEADER\n")
    os.truncate(path, path.stat().st_size + sites * 576)
    assert path.stat().st_blocks < 100
    for words in (
        ["measure", str(path)],
        ["convert", str(path), "-o", str(tmp_path / "out.lime")],
        ["smear", str(path)],
        ["solve", str(path), "--mass", "0.1"],
        ["solve", "--fat", str(path), "--mass", "0.1"],
        ["solve", str(path), "--action", "wilson", "--mass", "0.1"],
        ["thermalize", "--start", str(path)],
    ):
        assert main(["lattice", *words]) == 1
        said = capsys.readouterr().err
        assert said.startswith(f"error: not enough memory for reading {path}, "), said
        assert said.count("\n") == 1


def test_a_sparse_note_takes_no_memory(gauge: Gauge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cfg.lime"
    write_gauge(str(path), gauge, note="a note")
    data = bytearray(path.read_bytes())
    at = data.index(b"scidac-record-xml")
    length = 2**36
    data[at - 8 : at] = length.to_bytes(8, "big")
    path.write_bytes(data)
    free(monkeypatch, 2**30)
    os.truncate(path, at + 128 + length)
    with pytest.raises(Error, match="not enough memory for the note in"):
        read_note(str(path))


def test_sparse_files_of_results_take_no_memory(
    gauge: Gauge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Measurements, and eigenvectors, in files of no bytes on the disk that are longer than the free memory."""
    stored, low = tmp_path / "m.h5", tmp_path / "low.npz"
    stored.touch()
    os.truncate(stored, 2**36)
    with zipfile.ZipFile(low, "w") as parts, parts.open("vectors.npy", "w") as vectors:
        vectors.write(b" " * 2**20)
    operator = Staggered(gauge)
    free(monkeypatch, 2**21)
    with pytest.raises(Error, match=r"not enough memory for reading .*low\.npz, eigenvectors"):
        read_eigenvectors(str(low), operator)
    assert main(["lattice", "analyse", str(stored)]) == 1
    assert capsys.readouterr().err.startswith(f"error: not enough memory for the measurements in {stored}")


def test_ranks_that_read_files_of_their_own_count_together(
    gauge: Gauge, ranks: Ranks, tmp_path: Path
) -> None:
    """One file fits into the memory, two at the same time do not."""
    files = [str(tmp_path / f"{number}.lime") for number in (1, 2)]
    for file in files:
        write_gauge(file, gauge)
    ranks.environment["ONEHOP_TEST_FREE_MEMORY"] = str(7 * LINKS)
    assert main(["lattice", "check", files[0]]) == 0
    for words in (("check", *files), ("measure", *files, "--json", "-")):
        done = ranks.onehop("lattice", *words, "-n", 2, status=1)
        assert "error: not enough memory for reading 2 files at the same time: rank" in done.stderr


def test_what_does_not_depend_on_the_lattice_counts_too(
    gauge: Gauge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buffers of matrix products, and those of each of several ranks: groups of 175 to 195 MB were killed."""
    operator = Staggered(gauge)
    free(monkeypatch, 2**24)
    with pytest.raises(Error, match="not enough memory for eigenvectors"):
        lowest_eigenvectors(operator, count=1)
    free(monkeypatch, 20 * LINKS)

    def one_rank(group: Group) -> None:
        with pytest.raises(Error, match="not enough memory for a gauge field"):
            Gauge(group, EXTENTS)

    run_threads(2, one_rank)


def test_the_order_of_sites_takes_memory_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    free(monkeypatch, 2**24)
    assert main(["lattice", "info", "--extent", "64x64x64x64"]) == 1
    told = "error: not enough memory for the order of the sites on a lattice of 64x64x64x64"
    assert capsys.readouterr().err.startswith(told)
    assert main(["lattice", "info", "--extent", "64x64x64x64", "--grid", "4x4x4x4"]) == 0


def test_thermalize_knows_at_its_start_what_it_needs_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    free(monkeypatch, 5 * LINKS)
    words = ["lattice", "thermalize", "--extent", "8x8x8x8", "--sweeps", "1"]
    assert main(words) == 0
    for option in ("--output", "--checkpoint"):
        path = tmp_path / "cfg.lime"
        assert main([*words, option, str(path)]) == 1
        assert "not enough memory for writing a gauge field" in capsys.readouterr().err
        assert not path.exists()


def test_ranks_of_a_machine_hear_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block fits, both together do not."""
    free(monkeypatch, 1.8 * LINKS)

    def one_rank(group: Group) -> str:
        with pytest.raises(Error) as caught:
            Gauge(group, EXTENTS)
        Gauge(group, (4, 4, 4, 4))
        return str(caught.value)

    first, second = run_threads(2, one_rank)
    assert first == second
    assert "all 2 ranks of its machine" in first
    assert "take a smaller lattice, or more machines" in first
