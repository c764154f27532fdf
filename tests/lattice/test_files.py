"""Gauge fields in files: written here byte by byte, read on any grid, and what is wrong with a file said plainly."""

from __future__ import annotations

import errno
import itertools
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from onehop import BadInput, Group
from onehop.lattice import Gauge, Geometry, read_gauge, thermalize, write_gauge, write_vectors
from threads import run_threads

EXTENTS = (4, 2, 6, 4)
SAMPLES = Path(os.environ.get("ONEHOP_LATTICE_SAMPLES", "no such folder"))


def rotated(word: int, by: int) -> int:
    return ((word << by) | (word >> (32 - by))) & 0xFFFFFFFF


def milc_sums(data: bytes, order: str) -> tuple[int, int]:
    """Word by word, as the format's definition has it."""
    sums = [0, 0]
    for number, (word,) in enumerate(struct.iter_unpack(f"{order}I", data)):
        sums = [old ^ rotated(word, number % m) for old, m in zip(sums, (29, 31), strict=True)]
    return sums[0], sums[1]


@pytest.fixture(scope="module")
def gauge() -> Gauge:
    field = Gauge(Group.alone(), EXTENTS)
    thermalize(field, 5.5, 2, over_relaxations=0)
    return field


def sites() -> list[tuple[int, int, int, int]]:
    """(x, y, z, t), x fastest."""
    return [(x, y, z, t) for t, z, y, x in itertools.product(*map(range, EXTENTS[::-1]))]


def numbers(links: np.ndarray, order: str) -> bytes:
    """All links in natural order, one number after the other."""
    values = []
    for x, y, z, t in sites():
        for matrix in links[t, z, y, x]:
            for entry in matrix.ravel():
                values += [entry.real, entry.imag]
    return struct.pack(f"{order[0]}{len(values)}{order[1]}", *values)


def milc_file(links: np.ndarray, order: str) -> bytes:
    data = numbers(links, f"{order}f")
    head = struct.pack(f"{order}5i64si", 20103, *EXTENTS, b"some day", 0)
    return head + struct.pack(f"{order}2I", *milc_sums(data, order)) + data


def nersc_file(links: np.ndarray, order: str, rows: int = 2, plaquette: float | None = None) -> bytes:
    data = numbers(links[..., :rows, :], order)
    total = sum(word for (word,) in struct.iter_unpack(f"{order[0]}I", data)) & 0xFFFFFFFF
    sizes = "".join(f"DIMENSION_{d + 1} = {extent}\n" for d, extent in enumerate(EXTENTS))
    bits, end = {"f": 32, "d": 64}[order[1]], {">": "BIG", "<": "LITTLE"}[order[0]]
    said = "" if plaquette is None else f"PLAQUETTE = {plaquette:.10f}\n"
    kind = "4D_SU3_GAUGE" + ("" if rows == 2 else "_3x3")
    return (
        f"BEGIN_HEADER\nHDR_VERSION = 1.0\nDATATYPE = {kind}\n{sizes}{said}CHECKSUM = {total:x}\n"
        f"FLOATING_POINT = IEEE{bits}{end}\nEND_HEADER\n"
    ).encode() + data


def lime_record(name: str, data: bytes) -> bytes:
    return (
        struct.pack(">IHHQ128s", 0x456789AB, 1, 0, len(data), name.encode()) + data + b"\0" * (-len(data) % 8)
    )


def lime_sums(data: bytes, site_bytes: int) -> str:
    suma = sumb = 0
    for number in range(len(data) // site_bytes):
        crc = zlib.crc32(data[number * site_bytes : (number + 1) * site_bytes])
        suma, sumb = suma ^ rotated(crc, number % 29), sumb ^ rotated(crc, number % 31)
    return (
        f"<scidacChecksum><version>1.0</version><suma>{suma:x}</suma><sumb>{sumb:x}</sumb></scidacChecksum>"
    )


def ildg_file(links: np.ndarray, _order: str) -> bytes:
    data = numbers(links, ">d")
    sizes = "".join(f"<l{name}>{extent}</l{name}>" for name, extent in zip("xyzt", EXTENTS, strict=True))
    head = f"<ildgFormat><version>1.0</version><field>su3gauge</field><precision>64</precision>{sizes}</ildgFormat>"
    return (
        lime_record("ildg-format", head.encode())
        + lime_record("ildg-binary-data", data)
        + lime_record("scidac-checksum", lime_sums(data, 4 * 18 * 8).encode())
    )


def scidac_file(links: np.ndarray, _order: str) -> bytes:
    data = numbers(links, ">f")
    dims = "".join(f"{extent} " for extent in EXTENTS)
    about = "<precision>F</precision><colors>3</colors><typesize>72</typesize><datacount>4</datacount>"
    return (
        lime_record("scidac-private-file-xml", f"<scidacFile><dims>{dims}</dims></scidacFile>".encode())
        + lime_record("scidac-private-record-xml", f"<scidacRecord>{about}</scidacRecord>".encode())
        + lime_record("scidac-binary-data", data)
        + lime_record("scidac-checksum", lime_sums(data, 4 * 72).encode())
    )


def openqcd_file(links: np.ndarray, _order: str, plaquette: float = 0.0) -> bytes:
    """The eight links around each odd point: in each direction the one ahead, then the one behind."""
    x_, y_, z_, t_ = EXTENTS
    parts = [struct.pack("<4id", t_, x_, y_, z_, 3 * plaquette)]
    for t, x, y, z in itertools.product(range(t_), range(x_), range(y_), range(z_)):
        if (t + x + y + z) % 2 == 0:
            continue
        for direction, place in ((3, 0), (0, 1), (1, 2), (2, 3)):
            behind = [t, x, y, z]
            behind[place] = (behind[place] - 1) % (t_, x_, y_, z_)[place]
            tb, xb, yb, zb = behind
            for matrix in (links[t, z, y, x, direction], links[tb, zb, yb, xb, direction]):
                parts.append(np.ascontiguousarray(matrix).astype("<c16").tobytes())
    return b"".join(parts)


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
    # The same bytes after the header as the plain writers here.
    expected = numbers(gauge.links, {"milc": "<"}.get(name, ">") + {32: "f", 64: "d"}[precision])
    assert expected in path.read_bytes()


def altered(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


@pytest.mark.parametrize("case", [0, 1, 2, 5, 6])
def test_finds_altered_files(gauge: Gauge, tmp_path: Path, case: int) -> None:
    path = tmp_path / "field"
    data = FILES[case][1](gauge)
    path.write_bytes(altered(data, len(data) // 2))
    with pytest.raises(BadInput, match=r"was altered: it says, as .* files do, that"):
        read_gauge(str(path))

    def one_rank(group: Group) -> str:
        with pytest.raises(BadInput) as caught:
            read_gauge(str(path), group, (1, 1, 1, 2))
        return str(caught.value)

    first, second = run_threads(2, one_rank)
    assert first == second


@pytest.mark.parametrize("case", range(len(FILES)))
def test_finds_files_that_are_cut_off(gauge: Gauge, tmp_path: Path, case: int) -> None:
    path = tmp_path / "field"
    data = FILES[case][1](gauge)
    for length in (len(data) // 2, len(data) - 300, 60):
        path.write_bytes(data[:length])
        with pytest.raises(BadInput, match=r"cut off|no format known"):
            read_gauge(str(path))


def test_says_what_is_wrong(gauge: Gauge, tmp_path: Path) -> None:
    path = tmp_path / "field"
    path.write_bytes(nersc_file(gauge.links, ">d", 3, gauge.plaquettes().all + 0.01))
    with pytest.raises(BadInput, match="header says that the plaquette is"):
        read_gauge(str(path))
    wrong = gauge.links
    wrong[1, 2, 0, 3, 1] *= 1.1
    path.write_bytes(nersc_file(wrong, ">d", 3))
    with pytest.raises(BadInput, match=r"expected links of SU\(3\).*\(3, 0, 2, 1\) in direction y"):
        read_gauge(str(path))
    assert read_gauge(str(path), tolerance=np.inf)[1].format == "nersc"
    path.write_bytes(b"PK\x03\x04 something else" * 10)
    with pytest.raises(BadInput, match="no format known here"):
        read_gauge(str(path))
    with pytest.raises(BadInput, match="cannot read"):
        read_gauge(str(tmp_path / "missing"))
    with pytest.raises(BadInput, match="field exists already"):
        write_gauge(str(path), gauge, "ildg")
    write_gauge(str(path), gauge, "ildg", overwrite=True)
    with pytest.raises(BadInput, match="one of the formats"):
        write_gauge(str(path), gauge, "hdf5")
    with pytest.raises(BadInput, match=r"ends in \.lime"):
        write_gauge(str(tmp_path / "field.dat"), gauge)
    with pytest.raises(BadInput, match="32 bits a number"):
        write_gauge(str(tmp_path / "f.milc"), gauge, precision=64)
    with pytest.raises(BadInput, match="cannot write"):
        write_gauge(str(tmp_path / "no" / "f.milc"), gauge)


def test_blocks_are_as_wide_as_operators_reach(tmp_path: Path) -> None:
    path = str(tmp_path / "cfg.lime")
    write_gauge(path, Gauge(Group.alone(), (8, 8, 8, 8)))
    assert run_threads(4, lambda group: read_gauge(path, group)[0].geometry.grid) == [(1, 1, 1, 4)] * 4
    assert (
        run_threads(4, lambda group: read_gauge(path, group, width=3)[0].geometry.grid) == [(1, 1, 2, 2)] * 4
    )


def test_whatever_goes_wrong_on_the_writing_rank_all_ranks_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert not list(tmp_path.iterdir())  # nothing unfinished stays


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
