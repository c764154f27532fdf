"""Gauge files: written byte by byte here, read on any grid; errors that name what is wrong with a file."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gauge_files import EXTENTS, ildg_file, milc_file, nersc_file, numbers, openqcd_file, scidac_file
from onehop import BadInput, Group
from onehop.lattice import Gauge, Geometry, read_gauge, write_gauge, write_vectors
from threads import refused_on, run_threads

SAMPLES = Path(os.environ.get("ONEHOP_LATTICE_SAMPLES", "no such folder"))


FILES: list[tuple[str, Callable[[Gauge], bytes], float]] = [
    ("milc", lambda g: milc_file(g.links, "<"), 1e-7),
    ("milc", lambda g: milc_file(g.links, ">"), 1e-7),
    ("nersc", lambda g: nersc_file(g.links, ">f"), 1e-6),
    ("nersc", lambda g: nersc_file(g.links, "<d", 3, g.plaquettes().all), 0),
    ("nersc", lambda g: nersc_file(g.links, ">d"), 1e-14),
    ("ildg", lambda g: ildg_file(g.links, ">"), 0),
    ("scidac", lambda g: scidac_file(g.links, ">"), 1e-7),
    ("openqcd", lambda g: openqcd_file(g.links, "<", g.plaquettes().all), 0),
]


@pytest.mark.parametrize("case", range(len(FILES)))
def test_reads_every_format_on_every_grid(gauge: Gauge, tmp_path: Path, case: int) -> None:
    name, make, tolerance = FILES[case]
    path = tmp_path / "field"
    path.write_bytes(make(gauge))
    alone, file = read_gauge(str(path))
    assert (file.format, file.extents) == (name, EXTENTS)
    np.testing.assert_allclose(alone.links, gauge.links, rtol=0, atol=tolerance)

    def one_rank(group: Group) -> tuple[bytes, object]:
        field, found = read_gauge(str(path), group, (2, 1, 1, 2))
        return field.gather().tobytes(), found

    for links, found in run_threads(4, one_rank):
        assert links == alone.links.tobytes()
        assert found == file


def test_equal_fields_give_equal_files_without_dates(
    gauge: Gauge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(name: str, epoch: str) -> bytes:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        write_gauge(str(tmp_path / "out"), gauge, name, precision=32, overwrite=True)
        return (tmp_path / "out").read_bytes()

    assert written("milc", "0")[20:84] == bytes(64)
    assert written("milc", "86400")[20:84].rstrip(b"\0") == b"Fri Jan 02 00:00:00 1970"
    assert b"<date></date>" in written("ildg", "0")
    assert b"<date>Fri Jan 02 00:00:00 1970 UTC</date>" in written("ildg", "86400")
    for name in ("milc", "ildg", "nersc"):
        assert written(name, "0") == written(name, "0")
    with pytest.raises(BadInput, match=r"SOURCE_DATE_EPOCH: expected a whole number .* found 'now'"):
        written("milc", "now")


@pytest.mark.parametrize(
    ("name", "precision"), [("nersc", 32), ("nersc", 64), ("ildg", 32), ("ildg", 64), ("milc", 32)]
)
def test_what_is_written_is_read_again(gauge: Gauge, tmp_path: Path, name: str, precision: int) -> None:
    path = tmp_path / "out"

    def one_rank(group: Group) -> None:
        field = Gauge(group, EXTENTS, (1, 1, 2, 1))
        field.set_links(gauge.links[field.geometry.block_slices(group.rank)])
        write_gauge(str(path), field, name, precision=precision)

    run_threads(2, one_rank)
    again, file = read_gauge(str(path))
    assert (file.format, file.precision) == (name, precision)
    np.testing.assert_allclose(again.links, gauge.links, rtol=0, atol=1e-7 if precision == 32 else 0)
    assert [one.name for one in tmp_path.iterdir()] == ["out"]
    # After the header, the bytes are those of the plain writers in this file.
    expected = numbers(gauge.links, {"milc": "<"}.get(name, ">") + {32: "f", 64: "d"}[precision])
    assert expected in path.read_bytes()


def altered(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


@pytest.mark.parametrize("case", [0, 1, 2, 5, 6])
def test_finds_altered_files(gauge: Gauge, tmp_path: Path, case: int) -> None:
    path = tmp_path / "field"
    data = FILES[case][1](gauge)
    path.write_bytes(altered(data, len(data) // 2))
    with pytest.raises(BadInput, match=r"was altered: expected the .* checksum"):
        read_gauge(str(path))
    refused_on(2, "was altered", lambda group: read_gauge(str(path), group, (1, 1, 1, 2)))


@pytest.mark.parametrize("case", range(len(FILES)))
def test_finds_files_that_are_cut_off(gauge: Gauge, tmp_path: Path, case: int) -> None:
    path = tmp_path / "field"
    data = FILES[case][1](gauge)
    for length in (len(data) // 2, len(data) - 300, 60):
        path.write_bytes(data[:length])
        with pytest.raises(BadInput, match=r"cut off|unknown format"):
            read_gauge(str(path))


def test_bad_input_is_refused(gauge: Gauge, tmp_path: Path) -> None:
    path = tmp_path / "field"
    wrong = gauge.links
    wrong[1, 2, 0, 3, 1] *= 1.1
    path.write_bytes(nersc_file(wrong, ">d", 3))
    with pytest.raises(BadInput, match=r"expected links in SU\(3\).*\(3, 0, 2, 1\) in direction y"):
        read_gauge(str(path))
    assert read_gauge(str(path), tolerance=np.inf)[1].format == "nersc"
    with pytest.raises(BadInput, match="field exists already"):
        write_gauge(str(path), gauge, "ildg")
    write_gauge(str(path), gauge, "ildg", overwrite=True)
    with pytest.raises(BadInput, match="one of the formats"):
        write_gauge(str(path), gauge, "hdf5")
    with pytest.raises(BadInput, match=r"ends in \.lime"):
        write_gauge(str(tmp_path / "field.dat"), gauge)
    with pytest.raises(BadInput, match="a precision of 32 bits"):
        write_gauge(str(tmp_path / "f.milc"), gauge, precision=64)
    with pytest.raises(BadInput, match="there is no folder"):
        write_gauge(str(tmp_path / "no" / "f.milc"), gauge)


def test_blocks_are_as_wide_as_operators_reach(tmp_path: Path) -> None:
    path = str(tmp_path / "cfg.lime")
    write_gauge(path, Gauge(Group.alone(), (8, 8, 8, 8)))
    assert run_threads(4, lambda group: read_gauge(path, group)[0].geometry.grid) == [(1, 1, 1, 4)] * 4
    assert (
        run_threads(4, lambda group: read_gauge(path, group, width=3)[0].geometry.grid) == [(1, 1, 2, 2)] * 4
    )


def test_errors_of_the_writing_rank_reach_all_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    geometry = Geometry((4, 4, 4, 4), ranks=2)

    def both(group: Group) -> list[str]:
        gauge = Gauge(group, (4, 4, 4, 4))
        vectors = np.zeros((1, *geometry.block_shape, 3), complex)
        said = []
        for write in (
            lambda: write_gauge(str(tmp_path / "cfg.lime"), gauge),
            lambda: write_vectors(str(tmp_path / "x.lime"), vectors, geometry, group),
        ):
            with pytest.raises(BadInput) as caught:
                write()
            said.append(str(caught.value))
        return said

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def no_memory(*_: object) -> None:
        raise MemoryError

    for broken, word in ((full, "No space left on device"), (no_memory, "MemoryError")):
        monkeypatch.setattr(os, "fsync", broken)
        for found in run_threads(2, both):
            assert all(one.startswith("cannot write") and word in one for one in found)
    assert not list(tmp_path.iterdir())  # no unfinished file is left


@pytest.mark.skipif(
    not SAMPLES.is_dir(), reason="ONEHOP_LATTICE_SAMPLES names no folder with MILC's sample lattices"
)
def test_samples_of_milc() -> None:
    _, file = read_gauge(str(SAMPLES / "lat.sample.l8888"))
    assert 3 * file.plaquettes.space == pytest.approx(1.779002, abs=5e-7)
    assert 3 * file.plaquettes.time == pytest.approx(1.782359, abs=5e-7)
    assert file.link_trace == pytest.approx(-6.456386e-4, abs=5e-11)
    assert file.checksums == {"sum29": 0x4F9D000E, "sum31": 0x8D72F72E}
    links = read_gauge(str(SAMPLES / "lat.sample.l4444"))[0].links
    for name in ("ildg", "scidac"):
        assert read_gauge(str(SAMPLES / f"lat.sample.l4444.{name}"))[0].links.tobytes() == links.tobytes()
