"""Files without headers, with open boundaries, old formats, comments and wrong checksums; `onehop lattice check`."""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from commands import Command
from gauge_files import (
    EXTENTS,
    ildg_file,
    lime_file,
    lime_parts,
    milc_file,
    nersc_file,
    numbers,
    openqcd_file,
)
from onehop import BadInput, Group
from onehop.lattice import Gauge, read_gauge, write_gauge
from threads import run_threads

GIVEN = "x".join(map(str, EXTENTS))


def test_the_hash_is_that_of_the_links_in_lexicographic_order(gauge: Gauge) -> None:
    expected = hashlib.sha256(numbers(gauge.links, "<d")).hexdigest()
    assert gauge.sha256() == expected

    def one_rank(group: Group) -> str:
        field = Gauge(group, EXTENTS, (2, 1, 1, 2))
        field.set_links(gauge.links[field.geometry.block_slices(group.rank)])
        return field.sha256()

    assert run_threads(4, one_rank) == [expected] * 4


@pytest.mark.parametrize(("kind", "order"), [("<5i2f", "<f"), (">5i2f", ">f"), (">5q2f", ">f")])
def test_the_oldest_format_of_milc(gauge: Gauge, tmp_path: Path, kind: str, order: str) -> None:
    path = tmp_path / "field"
    path.write_bytes(struct.pack(kind, 59354, *EXTENTS, 5.5, 0.1) + numbers(gauge.links, order))
    again, file = read_gauge(str(path))
    assert (file.format, file.extents, file.precision, file.verified) == ("milc-v1", EXTENTS, 32, ())
    np.testing.assert_allclose(again.links, gauge.links, rtol=0, atol=1e-7)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(BadInput, match="cut off"):
        read_gauge(str(path))


@pytest.mark.parametrize("order", ["<d", ">d", "<f", ">f"])
@pytest.mark.parametrize("rows", [2, 3])
def test_raw_links_need_their_extents(gauge: Gauge, tmp_path: Path, order: str, rows: int) -> None:
    path = tmp_path / "field"
    path.write_bytes(numbers(gauge.links[..., :rows, :], order))
    with pytest.raises(BadInput, match=r"raw links need their extents \(extent, --extent\)"):
        read_gauge(str(path))
    again, file = read_gauge(str(path), extents=EXTENTS)
    assert (file.format, file.precision) == ("raw", 64 if order[1] == "d" else 32)
    np.testing.assert_allclose(again.links, gauge.links, rtol=0, atol=1e-6 if order[1] == "f" else 1e-14)
    with pytest.raises(BadInput, match="raw links of 4x2x6x10 have"):
        read_gauge(str(path), extents=(4, 2, 6, 10))
    path.write_bytes(bytes(len(path.read_bytes())))
    with pytest.raises(BadInput, match="norm is not 1 in either byte order"):
        read_gauge(str(path), extents=EXTENTS)


def test_ildg_without_its_format_record(gauge: Gauge, tmp_path: Path) -> None:
    path = tmp_path / "cfg.lime"
    path.write_bytes(ildg_file(gauge.links, ">"))
    with pytest.raises(BadInput, match=r"expected a lattice of 4x4x6x2, as was given, found 4x2x6x4"):
        read_gauge(str(path), extents=(4, 4, 6, 2))
    parts = [part for part in lime_parts(path.read_bytes()) if part[0] != "ildg-format"]
    path.write_bytes(lime_file(parts))
    with pytest.raises(BadInput, match=r"left it out: give the extents \(extent, --extent\)"):
        read_gauge(str(path))
    again, file = read_gauge(str(path), extents=EXTENTS)
    assert (again.sha256(), file.verified) == (gauge.sha256(), ("suma", "sumb"))
    with pytest.raises(BadInput, match="found a record of"):
        read_gauge(str(path), extents=(4, 2, 6, 2))


def test_comments_in_xml_and_lower_case_in_nersc(gauge: Gauge, tmp_path: Path) -> None:
    path = tmp_path / "cfg"
    parts = lime_parts(ildg_file(gauge.links, ">"))
    comment = b"<!-- <lx>99</lx> <precision>32</precision> -->"
    path.write_bytes(
        lime_file([(parts[0][0], parts[0][1].replace(b"<field>", comment + b"<field>")), *parts[1:]])
    )
    assert read_gauge(str(path))[1].sha256 == gauge.sha256()
    path.write_bytes(lime_file([(parts[0][0], parts[0][1].replace(b"<field>", b"<!-- <field>")), *parts[1:]]))
    with pytest.raises(BadInput, match="expected <lx> in its record ildg-format"):
        read_gauge(str(path))
    path.write_bytes(nersc_file(gauge.links, ">d", 3).replace(b"IEEE64BIG", b"ieee64big"))
    assert read_gauge(str(path))[1].sha256 == gauge.sha256()


def open_field(gauge: Gauge) -> np.ndarray:
    links = gauge.links
    links[-1, ..., 3, :, :] = 0
    return links


def averages_of_open(links: np.ndarray) -> tuple[float, float, float]:
    """The averages of Re tr / 3 over the plaquettes that exist: all, in space, in time."""
    found: dict[bool, list[float]] = {False: [], True: []}
    for mu in range(4):
        for nu in range(mu):
            ahead = np.roll(links[..., nu, :, :], -1, 3 - mu), np.roll(links[..., mu, :, :], -1, 3 - nu)
            product = links[..., mu, :, :] @ ahead[0] @ ahead[1].conj().swapaxes(-1, -2)
            traces = (
                np.trace(product @ links[..., nu, :, :].conj().swapaxes(-1, -2), axis1=-2, axis2=-1).real / 3
            )
            found[mu == 3] += list((traces[:-1] if mu == 3 else traces).ravel())
    return np.mean(found[False] + found[True]), np.mean(found[False]), np.mean(found[True])


def test_open_boundaries_in_time(gauge: Gauge, tmp_path: Path, command: Command) -> None:
    links, path = open_field(gauge), tmp_path / "open.dat"
    # openQCD divides the sum over the plaquettes that exist by the number of a periodic lattice.
    sums, t = averages_of_open(links), EXTENTS[3]
    path.write_bytes(openqcd_file(links, "<", sums[0] * (2 * t - 1) / (2 * t)))
    with pytest.raises(BadInput, match="the field has open boundaries in time, which only `measure`"):
        read_gauge(str(path))
    measured = json.loads(command("lattice", "measure", path, "--json", "-").stdout)
    assert (measured["boundary"], measured["verified"], measured["charge"]) == ("open", ["plaquette"], None)
    np.testing.assert_allclose(
        [measured[f"plaquette{one}"] for one in ("", "_space", "_time")], sums, rtol=1e-12
    )
    kept = links[links.any(axis=(-1, -2))]
    assert measured["link_trace"] == pytest.approx(np.trace(kept, axis1=1, axis2=2).real.mean() / 3)
    for name in ("open.lime", "open.nersc"):
        done = command("lattice", "convert", path, "-o", tmp_path / name, "--json", "-")
        assert json.loads(done.stdout)["sha256"] == measured["sha256"], done.stderr
        again = json.loads(command("lattice", "measure", tmp_path / name, "--json", "-").stdout)
        assert again["boundary"] == "open"
        assert again["plaquette_time"] == pytest.approx(sums[2])
    for words in (("measure", "--flow", "1"), ("smear",), ("solve", "--action", "hisq", "--mass", "1")):
        done = command("lattice", words[0], path, *words[1:], status=2)
        assert "open boundaries in time" in done.stderr
    assert command("lattice", "solve", path, "--action", "wilson", "--kappa", "0.11").returncode == 0
    links[0, 0, 0, 0, 1] *= 1.01
    path.write_bytes(openqcd_file(links, "<"))
    with pytest.raises(BadInput, match=r"expected links in SU\(3\), found one that deviates by .*e-02"):
        read_gauge(str(path), accept_open=True)
    links[0, 0, 0, 0, 1, 0] = 1e200
    path.write_bytes(openqcd_file(links, "<"))
    with np.errstate(all="raise"), pytest.raises(BadInput, match="found one that deviates by inf"):
        read_gauge(str(path), accept_open=True)


def test_a_wrong_checksum_is_accepted_and_told_for_ever(
    gauge: Gauge, tmp_path: Path, command: Command
) -> None:
    path = tmp_path / "old.milc"
    data = milc_file(gauge.links, "<")
    path.write_bytes(data[:88] + bytes([data[88] ^ 1]) + data[89:])
    assert "was altered: expected the milc checksum sum29" in command("lattice", "measure", path).stderr
    done = command("lattice", "measure", path, "--accept-checksum", "--json", "-")
    report = json.loads(done.stdout)
    assert report["verified"] == ["sum31"]
    (said,) = report["accepted_checksums"]
    assert said.startswith("old.milc: expected the milc checksum sum29")
    assert f"a wrong checksum was accepted: {said}" in done.stderr
    assert command("lattice", "convert", path, "-o", tmp_path / "a.lime", "--accept-checksum").returncode == 0
    for before, after in (("a.lime", "b.nersc"), ("b.nersc", "c.lime"), ("c.lime", "d.lime")):
        made = command("lattice", "convert", tmp_path / before, "-o", tmp_path / after, "--json", "-")
        assert json.loads(made.stdout)["accepted_checksums"] == [said], made.stderr
    refused = command("lattice", "convert", tmp_path / "d.lime", "-o", tmp_path / "e.milc", status=2)
    assert "expected the format ildg or nersc for a file with a note" in refused.stderr
    good = json.loads(command("lattice", "measure", tmp_path / "a.lime", "--json", "-").stdout)
    assert good["accepted_checksums"] == [said]


def test_check_lists_all_files_of_a_folder(gauge: Gauge, tmp_path: Path, command: Command) -> None:
    folder = tmp_path / "run"
    (folder / "old").mkdir(parents=True)
    write_gauge(str(folder / "a.lime"), gauge)
    (folder / "b.nersc").write_bytes(nersc_file(gauge.links, ">f"))
    data = milc_file(gauge.links, "<")
    (folder / "old" / "c.milc").write_bytes(data[:-4] + bytes(4))
    (folder / "old" / "d.lime").write_bytes((folder / "a.lime").read_bytes())
    (folder / "notes.txt").write_text("beta 5.5\n")
    (folder / "other").write_text("beta 5.5\n")
    (folder / ".hidden").write_text("")
    done = command("lattice", "check", folder, "--json", "-", status=1)
    files = {Path(one["file"]).name: one for one in json.loads(done.stdout)["files"]}
    assert list(files) == ["a.lime", "b.nersc", "other", "c.milc", "d.lime"]
    one = files["a.lime"]
    assert (one["format"], one["extent"], one["precision"], one["wrong"]) == ("ildg", list(EXTENTS), 64, None)
    assert one["plaquette"] == pytest.approx(gauge.plaquettes().all)
    assert set(one["checksums"]) == set(one["verified"]) - {"plaquette", "link trace"} == {"suma", "sumb"}
    assert "was altered: expected the milc checksum" in files["c.milc"]["wrong"]
    assert files["d.lime"]["wrong"] == f"it has the same links as {folder / 'a.lime'}"
    assert "unknown format" in files["other"]["wrong"]
    assert files["b.nersc"]["wrong"] is None
    assert command("lattice", "check", folder / "a.lime", folder / "b.nersc").returncode == 0
    for wrong in (tmp_path / "none", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        assert command("lattice", "check", wrong).returncode == 2
