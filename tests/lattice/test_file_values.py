"""Every value that a file holds twice is compared, and reports tell what was compared from what was only computed."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gauge_files import (
    EXTENTS,
    ildg_file,
    lime_file,
    lime_parts,
    milc_file,
    nersc_file,
    openqcd_file,
    scidac_file,
)
from onehop import BadInput, Group
from onehop.cli import main
from onehop.lattice import Gauge, Geometry, read_gauge, read_vectors, write_gauge, write_vectors
from onehop.lattice.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from onehop.lattice.files import lime, links_have_checksum, vectors_have_checksum
from threads import refused_on

Parts = list[tuple[str, bytes]]


def parts_of(path: Path) -> Parts:
    return lime_parts(path.read_bytes())


def put(path: Path, parts: Parts) -> str:
    path.write_bytes(lime_file(parts))
    return str(path)


def behind_the_name(data: bytes, record: int, padding: bytes) -> bytes:
    """Put bytes behind the NUL of the name of a record, given by the offset of its data."""
    at = record - 128 + data[record - 128 :].index(b"\0") + 3
    return data[:at] + padding + data[at + len(padding) :]


@pytest.mark.parametrize("padding", [b"\x01", b"scidac", b"\xff"])
def test_the_name_of_a_record_ends_at_its_first_nul(gauge: Gauge, tmp_path: Path, padding: bytes) -> None:
    path = tmp_path / "cfg.lime"
    write_gauge(str(path), gauge)
    data = path.read_bytes()
    checksum = {one.name: one for one in lime.records(str(path))}["scidac-checksum"]
    whole = behind_the_name(data, checksum.offset, padding)
    path.write_bytes(whole)
    assert read_gauge(str(path))[1].verified[:2] == ("suma", "sumb")
    links = {one.name: one for one in lime.records(str(path))}["ildg-binary-data"]
    place = links.offset + links.length // 2 + 7  # the lowest bits of a number
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    with pytest.raises(BadInput, match="was altered: expected the ildg checksum suma"):
        read_gauge(str(path))


def test_a_record_without_a_name_is_refused(gauge: Gauge, tmp_path: Path) -> None:
    path = tmp_path / "cfg.lime"
    write_gauge(str(path), gauge)
    parts = [("" if name == "scidac-checksum" else name, data) for name, data in parts_of(path)]
    with pytest.raises(BadInput, match="expected a LIME record with a name at byte"):
        read_gauge(put(path, parts))


def without_checksum(data: bytes) -> bytes:
    return re.sub(rb"CHECKSUM = \w+\n", b"", data)


FILES: dict[str, tuple[Callable[[Gauge], bytes], tuple[str, ...]]] = {
    "milc": (lambda g: milc_file(g.links, "<"), ("sum29", "sum31")),
    "nersc": (lambda g: nersc_file(g.links, ">d", 3, g.plaquettes().all), ("checksum", "plaquette")),
    "bare nersc": (lambda g: without_checksum(nersc_file(g.links, ">d", 3)), ()),
    "ildg": (lambda g: ildg_file(g.links, ">"), ("suma", "sumb")),
    "openqcd": (lambda g: openqcd_file(g.links, "<", g.plaquettes().all), ("plaquette",)),
}


@pytest.mark.parametrize("name", FILES)
def test_reports_tell_verified_from_computed(
    gauge: Gauge, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    make, verified = FILES[name]
    path, report = tmp_path / "cfg", tmp_path / "report.json"
    path.write_bytes(make(gauge))
    found = read_gauge(str(path))[1]
    assert found.verified == verified
    has = any("sum" in one for one in verified)
    assert found.has_checksum == links_have_checksum(str(path)) == has
    assert main(["lattice", "measure", str(path), "--json", str(report)]) == 0
    said = capsys.readouterr().out
    assert json.loads(report.read_text())["verified"] == list(verified)
    assert ("the file has no checksum" in said) == (not has)
    assert (re.search(r"plaquette  .*verified", said) is not None) == ("plaquette" in verified), said
    for checksum in found.checksums:
        word = "verified" if checksum in verified else "computed"
        assert re.search(rf"{checksum} .*{word}", said), said
    words = ["lattice", "smear", str(path), "--steps", "1"]
    assert main(words) == 0
    assert ("the file has no checksum" in capsys.readouterr().out) == (not has)


def with_text(gauge: Gauge, path: Path, name: str, text: str) -> str:
    """Write an ILDG file with one more text, as the last record before the links."""
    path.write_bytes(ildg_file(gauge.links, ">"))
    parts = parts_of(path)
    return put(path, [*parts[:1], (name, text.encode()), *parts[1:]])


def test_the_plaquette_of_xlf_info_is_compared(gauge: Gauge, tmp_path: Path) -> None:
    plaquette, path = gauge.plaquettes().all, tmp_path / "cfg.lime"
    rest = " trajectory nr = 12\n beta = 5.500000, kappa = 0.125000\n"
    for digits in ("%.14f", "%e", "%f"):
        text = f"plaquette = {digits % plaquette}\n{rest}"
        assert "plaquette" in read_gauge(with_text(gauge, path, "xlf-info", text))[1].verified
    for value in ("0.111111111111", "nan", "1e400", str(3 * plaquette)):
        with pytest.raises(BadInput, match="expected the plaquette"):
            read_gauge(with_text(gauge, path, "xlf-info", f"plaquette = {value}\n{rest}"))
    with pytest.raises(BadInput, match="expected numbers in its header"):
        read_gauge(with_text(gauge, path, "xlf-info", f"plaquette = 0.5x\n{rest}"))
    assert read_gauge(with_text(gauge, path, "xlf-info", rest))[1].verified == ("suma", "sumb")


def test_the_averages_in_the_info_of_milc_are_compared(gauge: Gauge, tmp_path: Path) -> None:
    path, found = tmp_path / "cfg.lime", gauge.plaquettes()
    right = {
        "gauge.ssplaq": 3 * found.space,
        "gauge.stplaq": 3 * found.time,
        "gauge.nersc_linktr": gauge.link_trace(),
    }

    def text(values: dict[str, float]) -> str:
        lines = "".join(f"{name} = {value:.6f}\n" for name, value in values.items())
        return f'<?xml version="1.0"?><info>gauge.description = "x"\n{lines}</info>'

    verified = read_gauge(with_text(gauge, path, "scidac-record-xml", text(right)))[1].verified
    assert verified[2:] == ("spatial plaquette", "plaquette in time", "link trace")
    for name in right:
        with pytest.raises(BadInput, match=r"expected the .*(plaquette|trace)"):
            read_gauge(with_text(gauge, path, "scidac-record-xml", text({**right, name: right[name] + 1e-4})))


def test_records_that_occur_twice_must_agree(gauge: Gauge, tmp_path: Path) -> None:
    path = tmp_path / "cfg.lime"
    write_gauge(str(path), gauge)
    parts = parts_of(path)
    for name, text in parts:
        if "binary" in name or name == "scidac-file-xml":
            continue
        read_gauge(put(path, [(name, text), *parts, *([(name, text)] if "checksum" in name else [])]))
        altered = text.replace(b"4", b"2").replace(b"a", b"b").replace(b"5", b"6")
        at = len(parts) if "checksum" in name else 0
        with pytest.raises(BadInput, match="contradicts itself"):
            read_gauge(put(path, [*parts[:at], (name, altered), *parts[at:]]))


def test_a_checksum_belongs_to_the_field_before_it(gauge: Gauge, tmp_path: Path) -> None:
    path = tmp_path / "two"
    path.write_bytes(scidac_file(gauge.links, ""))
    parts = parts_of(path)
    other = gauge.links
    other[..., 0, :, :] = np.eye(3)
    path.write_bytes(scidac_file(other, ""))
    second = parts_of(path)
    links, found = read_gauge(put(path, [*parts, *second[1:]]))
    assert found.has_checksum
    np.testing.assert_allclose(links.links, gauge.links, atol=1e-6)
    found = read_gauge(put(path, [*parts[:-1], *second[1:]]))[1]  # only the second field has a checksum
    assert not found.has_checksum


def two_vectors(path: Path) -> tuple[Parts, Geometry]:
    geometry = Geometry(EXTENTS)
    vectors = np.random.default_rng(1).normal(size=(2, *geometry.shape, 3)) + 0j
    write_vectors(str(path), vectors, geometry, Group.alone(), precision=64)
    return parts_of(path), geometry


def test_records_of_vectors_that_occur_twice_must_agree(tmp_path: Path) -> None:
    path = tmp_path / "x.lime"
    parts, geometry = two_vectors(path)
    for number, (name, text) in enumerate(parts):
        if "binary" in name:
            continue
        altered = (name, text.replace(b"1", b"2").replace(b"s", b"t"))
        for at in (number, number + 1):
            path.write_bytes(lime_file([*parts[:at], altered, *parts[at:]]))
            with pytest.raises(BadInput, match=r"contradicts itself|behind each"):
                read_vectors(str(path), geometry, Group.alone())
        if name != "scidac-private-record-xml":
            path.write_bytes(lime_file([*parts[:number], parts[number], *parts[number:]]))
            assert len(read_vectors(str(path), geometry, Group.alone())) == 2


def test_a_vector_is_not_lost_with_the_name_of_its_record(tmp_path: Path) -> None:
    path = tmp_path / "x.lime"
    parts, geometry = two_vectors(path)
    for number, (name, numbers) in enumerate(parts):
        if name != "scidac-binary-data":
            continue
        for sums in (0, 1):  # without and with its checksum
            rest = parts[number + 2 - sums :]
            path.write_bytes(lime_file([*parts[:number], ("scidac-binary-dat`", numbers), *rest]))
            with pytest.raises(BadInput, match="it was altered"):
                read_vectors(str(path), geometry, Group.alone())


@pytest.mark.filterwarnings("error")
def test_a_signaling_nan_is_refused_without_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gauge = Gauge(Group.alone(), (2, 2, 2, 2))
    gauge.set_random(1)
    numbers = gauge.links.astype("<c8").tobytes()
    path = tmp_path / "raw"
    path.write_bytes(numbers[:-4] + b"\0\0\xa0\x7f")
    assert main(["lattice", "info", str(path), "--extent", "2x2x2x2"]) == 2
    assert "expected finite links" in capsys.readouterr().err


@pytest.mark.parametrize("value", [np.nan, np.inf, complex(0, -np.inf)])
def test_vectors_that_are_not_finite_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: complex
) -> None:
    path = str(tmp_path / "x.lime")
    geometry = Geometry(EXTENTS)
    vectors = np.ones((2, *geometry.shape, 3), complex)
    vectors[1, 3, 5, 1, 2, 1] = value
    for precision, wrong in ((64, value), (32, value), (32, 1e39)):
        with pytest.raises(BadInput, match=f"finite in {precision} bits"):
            write_vectors(
                path, np.where(vectors == 1, 1, wrong), geometry, Group.alone(), precision=precision
            )
        assert not Path(path).exists()
    with monkeypatch.context() as patched:
        patched.setattr(np, "isfinite", np.ones_like)
        write_vectors(path, vectors, geometry, Group.alone(), precision=64)
    says = r"expected finite vectors, found one .* at \(x, y, z, t\) = \(2, 1, 5, 3\)"
    with pytest.raises(BadInput, match=says):
        read_vectors(path, geometry, Group.alone())
    refused_on(2, says, lambda group: read_vectors(path, Geometry(EXTENTS, (1, 1, 1, 2)), group))


def test_vectors_without_a_checksum_are_said_to_have_none(
    gauge: Gauge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, field = tmp_path / "x.lime", str(tmp_path / "cfg.lime")
    write_gauge(field, gauge)
    geometry = Geometry(EXTENTS)
    write_vectors(str(path), np.ones((2, *geometry.shape, 3), complex), geometry, Group.alone(), precision=64)
    assert vectors_have_checksum(str(path))
    parts = parts_of(path)
    assert parts[-1][0] == "scidac-checksum"
    put(path, parts[:-1])
    assert not vectors_have_checksum(str(path))
    words = ["lattice", "solve", field, "--mass", "2", "--tolerance", "0.1", "--source-file", str(path)]
    assert main(words) == 0
    assert f"{path}: the file has no checksum" in capsys.readouterr().out
    assert read_vectors(str(path), geometry, Group.alone()).shape[0] == 2


HISTORIES = [
    ("hmc", [{"delta_h": 0.25, "accepted": True, "plaquette": math.nan}]),
    ("hmc", [{"delta_h": math.inf, "accepted": True, "plaquette": 0.5}]),
    ("hmc", [{"delta_h": -math.inf, "accepted": True, "plaquette": 0.5}]),
    ("heatbath", [math.nan]),
    ("heatbath", [math.inf]),
]


@pytest.mark.parametrize(("algorithm", "history"), HISTORIES)
def test_a_checkpoint_with_numbers_that_are_not_finite_is_refused(
    gauge: Gauge, tmp_path: Path, algorithm: str, history: list[object]
) -> None:
    path = str(tmp_path / "run.lime")
    settings = {"algorithm": algorithm, "extent": list(EXTENTS)}
    state = {"settings": settings, "done": 1, "history": history}
    # JSON has no such numbers, but Python writes them as words, and reads 1e999 as infinity.
    for note in (json.dumps(state), json.dumps(state).replace("Infinity", "1e999")):
        write_gauge(path, gauge, note=note, overwrite=True)
        with pytest.raises(BadInput, match=r"not a checkpoint, or one that|checkpoint with finite numbers"):
            read_checkpoint(path, Group.alone(), None, settings)
    with pytest.raises(BadInput, match="expected a history of finite numbers"):
        write_checkpoint(path, gauge, Checkpoint(settings, 1, history))


@pytest.mark.parametrize(
    ("algorithm", "history"),
    [("hmc", [{"delta_h": 0.25, "accepted": True, "plaquette": 1.5}]), ("heatbath", [-1.5])],
)
def test_a_checkpoint_with_an_impossible_plaquette_is_refused(
    gauge: Gauge, tmp_path: Path, algorithm: str, history: list[object]
) -> None:
    path, settings = str(tmp_path / "run.lime"), {"algorithm": algorithm, "extent": list(EXTENTS)}
    write_checkpoint(path, gauge, Checkpoint(settings, 1, history))
    with pytest.raises(BadInput, match="not a checkpoint, or one that was altered"):
        read_checkpoint(path, Group.alone(), None, settings)


@pytest.mark.parametrize("algorithm", ["hmc", "heatbath"])
def test_a_checkpoint_whose_last_plaquette_is_not_that_of_its_links_is_refused(
    gauge: Gauge, tmp_path: Path, algorithm: str
) -> None:
    path, settings = str(tmp_path / "run.lime"), {"algorithm": algorithm, "extent": list(EXTENTS)}
    right = gauge.plaquettes().all
    for last in (right, right + 1e-6, -right):
        record = last if algorithm == "heatbath" else {"delta_h": 0.25, "accepted": True, "plaquette": last}
        write_checkpoint(path, gauge, Checkpoint(settings, 1, [record]))
        if last == right:
            assert read_checkpoint(path, Group.alone(), None, settings) is not None
            continue
        with pytest.raises(
            BadInput, match=f"links with the plaquette {last:.12g} of the last record, found {right:.12g}"
        ):
            read_checkpoint(path, Group.alone(), None, settings)


def test_a_checkpoint_without_checksum_is_refused(gauge: Gauge, tmp_path: Path) -> None:
    path, settings = tmp_path / "run.lime", {"algorithm": "heatbath", "extent": list(EXTENTS)}
    write_checkpoint(str(path), gauge, Checkpoint(settings, 1, [0.5]))
    put(path, [one for one in parts_of(path) if one[0] != "scidac-checksum"])
    with pytest.raises(BadInput, match="expected a checkpoint with the checksum of its links"):
        read_checkpoint(str(path), Group.alone(), None, settings)


def test_an_open_file_is_continued(tmp_path: Path) -> None:
    with (tmp_path / "field").open("wb") as file:
        target = f"/dev/fd/{file.fileno()}"
        write_gauge(target, Gauge(Group.alone(), EXTENTS), "nersc", overwrite=True)
    assert read_gauge(tmp_path / "field")[1].extents == tuple(EXTENTS)
