"""Error messages of the lattice commands name the cause, and their advice works."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from gauge_files import EXTENTS as OF_FILES
from gauge_files import ildg_file, nersc_file, openqcd_file
from onehop import BadInput, Group
from onehop.cli import main
from onehop.lattice import Gauge, Geometry, read_gauge, read_vectors, thermalize, write_gauge
from onehop.lattice.files import lime
from threads import refused_on, run_threads

EXTENTS = (4, 4, 4, 4)


@pytest.fixture
def cubic(tmp_path: Path) -> str:
    field = Gauge(Group.alone(), EXTENTS)
    thermalize(field, 5.7, 3)
    path = str(tmp_path / "cfg.lime")
    write_gauge(path, field)
    return path


KINDS = [
    (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 1000\n",
        "Git LFS pointer.*git lfs pull",
    ),
    (gzip.compress(b"x" * 1000), "compressed with gzip.*gunzip"),
    (b"BZh91AY&SY", "compressed with bzip2.*bunzip2"),
    (b"\xfd7zXZ\0\0\4", "compressed with xz.*unxz"),
    (b"\x28\xb5\x2f\xfd\x04", "compressed with Zstandard.*unzstd"),
    (b"PK\x03\x04more", "a zip archive.*unzip"),
    (b"\x89HDF\r\n\x1a\n\0\0", "an HDF5 file.*convert it"),
    (b"<!doctype html><html>", "a web page.*download"),
    (b"x" * 257 + b"ustar\0" + b"\0" * 300, "a tar archive"),
    (b"beta = 5.7\nnx = 4\n", "a text file that begins with 'beta = 5.7'"),
    (bytes(600), "begins with zeros"),
    (b"", "an empty file"),
    (b"\x01\x02\xfe\xff\x00", "begins with 01 02 fe ff 00"),
]


@pytest.mark.parametrize(("data", "says"), KINDS, ids=[says[:20] for _, says in KINDS])
def test_a_file_of_another_kind_is_called_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, says: str
) -> None:
    path = tmp_path / "cfg.lime"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=rf"unknown format: expected MILC .*, found .*{says}"):
        read_gauge(str(path))
    with pytest.raises(BadInput, match=rf"expected a SciDAC file \(LIME\), found .*{says}"):
        read_vectors(str(path), Geometry(EXTENTS), Group.alone())
    assert main(["lattice", "measure", str(path)]) == 2
    assert re.search(says, capsys.readouterr().err.replace("\n", " "))


def test_a_file_that_never_had_a_format_record(gauge: Gauge, tmp_path: Path) -> None:
    path = tmp_path / "cfg.lime"
    whole = ildg_file(gauge.links, "")
    path.write_bytes(whole)
    first = next(lime.records(str(path)))
    path.write_bytes(whole[first.offset + (first.length + 7) // 8 * 8 :])
    with pytest.raises(BadInput, match="expected a LIME record ildg-format") as caught:
        read_gauge(str(path))
    assert "altered" not in str(caught.value)


def test_no_word_twice(gauge: Gauge, tmp_path: Path) -> None:
    path = tmp_path / "cfg"
    data = nersc_file(gauge.links, ">d", 3)
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(BadInput, match=r"expected the nersc checksum [0-9a-f]{8} of its header"):
        read_gauge(str(path))
    with pytest.raises(BadInput, match=r"take an even extent, or store all sites together \(parities 1\)"):
        Geometry((3, 4, 4, 4))


def zeroed(gauge: Gauge, where: tuple[object, ...]) -> np.ndarray:
    links = gauge.links
    links[where] = 0
    return links


def test_open_boundaries_are_called_so(gauge: Gauge, tmp_path: Path) -> None:
    path = tmp_path / "cfg"
    path.write_bytes(openqcd_file(zeroed(gauge, (-1, ..., 3, slice(None), slice(None))), "", 0.4))
    says = (
        r"links in time from the last time are 0: the field has open boundaries in time, which only `measure`"
    )
    found = [refused_on(ranks, says, lambda group: read_gauge(str(path), group)) for ranks in (1, 2)]
    assert found[0] == found[1]
    assert "reunitarise" not in found[0]


@pytest.mark.parametrize("where", [(1, 5, 0, 2, 3), (3, 5, 1, 3, 3), (0, ..., 1, slice(None), slice(None))])
def test_links_that_are_0_are_counted_and_not_reunitarised(
    gauge: Gauge, tmp_path: Path, capsys: pytest.CaptureFixture[str], where: tuple[object, ...]
) -> None:
    path = tmp_path / "cfg"
    links = zeroed(gauge, where)
    count = int((~links.reshape(-1, 9).any(axis=1)).sum())
    path.write_bytes(nersc_file(links, ">d", 3))
    with pytest.raises(
        BadInput, match=rf"{count} links? of 768 (is|are) 0, the first at \(x, y, z, t\) = "
    ) as caught:
        read_gauge(str(path))
    assert "reunitarise" not in str(caught.value)
    words = f"lattice convert {path} -o {tmp_path}/out.lime --reunitarise --tolerance 9"
    assert main(words.split()) == 2
    assert "can be projected to SU(3), found a singular one at (" in capsys.readouterr().err
    assert not (tmp_path / "out.lime").exists()


def test_reunitarise_leaves_a_field_with_a_singular_link_as_it_is(gauge: Gauge) -> None:
    def one_rank(group: Group) -> bool:
        field = Gauge(group, OF_FILES)
        mine = field.geometry.block_slices(group.rank)
        links = zeroed(gauge, (3, 5, 1, 2, 0))[mine]
        field.set_links(links)
        with pytest.raises(BadInput, match=r"singular one at \(2, 1, 5, 3\) in direction 0"):
            field.reunitarise()
        return bool((field.links == links).all())

    assert run_threads(2, one_rank) == [True, True]


def test_links_far_from_su3_are_not_rounding(gauge: Gauge, tmp_path: Path) -> None:
    path = tmp_path / "cfg"
    for factor, says in ((1.001, "with a larger tolerance and reunitarise"), (1.1, "more than rounding")):
        path.write_bytes(nersc_file(gauge.links * factor, ">d", 3))
        with pytest.raises(BadInput, match=says):
            read_gauge(str(path))


@pytest.mark.parametrize(
    "kind", [["stout", "5"], ["stout", "-0.1"], ["stout", "0.4"], ["ape", "-1"], ["hyp", "-1,0.6,0.3"]]
)
def test_smearing_that_destroys_a_field_is_refused(
    cubic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: list[str]
) -> None:
    words = ["lattice", "smear", cubic, "--kind", kind[0], "-o", str(tmp_path / "out.lime"), "--steps", "4"]
    name = "--rho" if kind[0] == "stout" else "--alpha"
    assert main([*words, f"{name}={kind[1]}"]) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert "plaquette grows, found that it fell from 0." in said
    assert not (tmp_path / "out.lime").exists()
    for weight in ("0.1", "0"):
        weights = f"{weight},{weight},0.1" if kind[0] == "hyp" else weight
        assert main([*words, f"{name}={weights}", "--overwrite"]) == 0


def test_flow_times_have_no_rounding_errors(cubic: str, tmp_path: Path) -> None:
    out = tmp_path / "flow.json"
    words = ["lattice", "measure", cubic, "--flow", "0.7", "--flow-step", "0.1", "--json", str(out)]
    assert main(words) == 0
    times = [point["time"] for point in json.loads(out.read_text())["flow"]]
    assert times == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    assert "000000" not in out.read_text()


@pytest.mark.parametrize("action", ["staggered", "wilson"])
def test_advice_after_a_solve(cubic: str, capsys: pytest.CaptureFixture[str], action: str) -> None:
    words = ["lattice", "solve", cubic, "--mass", "0.5", "--action", action, "--precision", "single"]
    assert main([*words, "--iterations", "2", "--tolerance", "1e-6"]) == 1
    assert "allow more iterations, or take a" in capsys.readouterr().err.replace("\n", " ")
    words = ["lattice", "solve", cubic, "--mass", "0.5", "--action", action, "--tolerance", "1e-30"]
    assert main([*words, "--iterations", "100000"]) == 1
    said = capsys.readouterr().err.replace("\n", " ")
    limit, ask = re.search(
        r"rounding limits this residual to (\S+); ask for --tolerance (\S+)", said
    ).groups()
    assert float(limit) < float(ask) <= 13 * float(limit)
    assert main([*words[:-1], ask]) == 0
    assert "allow more" not in said


def test_info_shows_a_file(cubic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lattice", "info", cubic, "--json", str(tmp_path / "info.json")]) == 0
    shown = capsys.readouterr().out
    report = json.loads((tmp_path / "info.json").read_text())
    assert f"{report['plaquette']:.9g}" in shown
    for name, number in report["checksums"].items():
        assert re.search(
            rf"{name} +│ {number}  {'verified' if name in report['verified'] else 'computed'}", shown
        )
    gauge, _ = read_gauge(cubic)
    raw = tmp_path / "raw.bin"
    raw.write_bytes(np.ascontiguousarray(gauge.links).astype("<c16").tobytes())
    assert main(["lattice", "info", str(raw), "--extent", "x".join(map(str, report["extent"]))]) == 0
    assert "absent in the file" in capsys.readouterr().out
    assert main(["lattice", "info", cubic, "-n", "2"]) == 2
    assert "--ranks is not for a FILE" in capsys.readouterr().err
    assert main(["lattice", "info"]) == 2
    assert "expected FILE or --extent" in capsys.readouterr().err
