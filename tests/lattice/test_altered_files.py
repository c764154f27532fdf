"""Altered gauge fields, colour vectors and checkpoints give BadInput or the original data, and nothing else."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gauge_files import EXTENTS, lime_file, lime_parts, milc_file, nersc_file, openqcd_file, scidac_file
from onehop import BadInput, Group
from onehop.cli import main
from onehop.lattice import Gauge, Geometry, read_gauge, write_gauge, write_vectors
from onehop.lattice.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from onehop.lattice.files import read_links, read_note, read_vectors

SETTINGS = {"algorithm": "heatbath", "beta": 5.5, "extent": list(EXTENTS)}
# Replacements for a number or name in a header; "gone" removes it.
VALUES = [
    *("", " ", "x", "-1", "0", "1", "3", "zz", "1e3", "1_0", "0.5", "nan", "inf", "٣", "0x", "--", "\0", "<"),
    *("0e-99999999999999999999", "1" * 5000, "f" * 9, "1 2 3 4", "gone"),
    *(str(2**31), str(2**63), str(2**64 + 4)),
]


@pytest.fixture(scope="module")
def checkpoint(gauge: Gauge, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("checkpoint") / "run.lime"
    write_checkpoint(str(path), gauge, Checkpoint(SETTINGS, 2, [0.5, gauge.plaquettes().all]))
    return path.read_bytes()


def lime_changes(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield copies with the text of one element replaced and the record lengths corrected."""
    parts = lime_parts(data)
    for number, (name, text) in enumerate(parts):
        if "binary" in name:
            continue
        for found in re.finditer(rb"<(\w+)>([^<]*)</\w+>", text):
            for value in VALUES:
                new = text[: found.start(2)] + value.encode() + text[found.end(2) :]
                if value == "gone":
                    new = text[: found.start()] + text[found.end() :]
                yield (
                    f"{name} {found[1].decode()} {value:.10}",
                    lime_file([*parts[:number], (name, new), *parts[number + 1 :]]),
                )
        yield f"no {name}", lime_file(parts[:number] + parts[number + 1 :])


def nersc_changes(data: bytes) -> Iterator[tuple[str, bytes]]:
    head, end, links = data.partition(b"END_HEADER\n")
    lines = head.splitlines(keepends=True)
    for number, line in enumerate(lines):
        name = line.partition(b"=")[0]
        for value in VALUES:
            new = b"" if value == "gone" else name + b"= " + value.encode() + b"\n"
            changed = [*lines[:number], new, *lines[number + 1 :]]
            yield f"{name.decode()} {value:.10}", b"".join(changed) + end + links


def same_or_refused(path: Path, read: Callable[[], np.ndarray], expected: np.ndarray) -> bool:
    """Return whether the file was refused. If not, assert that it gave the original data."""
    try:
        found = read()
    except BadInput as error:
        assert str(path) in str(error)  # noqa: PT017
        return True
    assert np.allclose(found, expected, atol=1e-6)
    return False


def flipped(data: bytes, seed: int, count: int, head: int) -> Iterator[bytes]:
    rng = np.random.default_rng(seed)
    for number in range(count):
        changed = bytearray(data)
        if number % 5 == 4:
            del changed[int(rng.integers(len(data))) :]
        for place in rng.integers(min(head, len(changed)) or 1, size=int(rng.integers(1, 5))):
            if place < len(changed):
                changed[place] = int(rng.choice([0, 1, 0x20, 0x2D, 0x39, 0x7F, 0xFF]))
        yield bytes(changed)


def test_altered_headers_of_gauge_fields(gauge: Gauge, checkpoint: bytes, tmp_path: Path) -> None:
    path = tmp_path / "field"
    scidac = scidac_file(gauge.links, "")
    nersc = nersc_file(gauge.links, ">d", 3, gauge.plaquettes().all)
    changes = [
        *lime_changes(checkpoint),
        *lime_changes(scidac),
        *nersc_changes(nersc),
    ]
    expected = gauge.links
    refused = 0
    for _, data in changes:
        path.write_bytes(data)
        refused += same_or_refused(path, lambda: read_gauge(str(path))[0].links, expected)
        same_or_refused(path, lambda: read_links(str(path), Group.alone())[0], expected)
    assert refused > len(changes) // 3


@pytest.mark.parametrize("text", ["zz", "", "1" * 5000, "-1", "1_0", "١"])
def test_a_checksum_that_is_no_number(gauge: Gauge, tmp_path: Path, text: str) -> None:
    path = tmp_path / "field.lime"
    scidac = scidac_file(gauge.links, "")
    nersc = nersc_file(gauge.links, ">d", 3)
    write_vectors(
        str(path), np.ones((1, *EXTENTS[::-1], 3), complex), Geometry(EXTENTS), Group.alone(), overwrite=True
    )
    vectors = path.read_bytes()

    def as_vectors() -> Any:
        return read_vectors(str(path), Geometry(EXTENTS), Group.alone())

    for data, read in ((scidac, None), (vectors, as_vectors)):
        parts = lime_parts(data)
        name, old = parts[-1]
        new = re.sub(rb"<suma>[^<]*<", b"<suma>" + text.encode() + b"<", old)
        path.write_bytes(lime_file([*parts[:-1], (name, new)]))
        with pytest.raises(BadInput, match="hexadecimal digits as suma"):
            (read or (lambda: read_gauge(str(path))))()
    path.write_bytes(re.sub(rb"CHECKSUM = \w+", b"CHECKSUM = " + text.encode(), nersc))
    with pytest.raises(BadInput, match="hexadecimal digits as CHECKSUM"):
        read_gauge(str(path))
    assert main(["lattice", "measure", str(path)]) == 2


def test_damaged_gauge_fields(gauge: Gauge, checkpoint: bytes, tmp_path: Path) -> None:
    path = tmp_path / "field"
    expected = gauge.links
    files = [
        (checkpoint, 3000),
        (nersc_file(expected, ">d", 3, gauge.plaquettes().all), 300),
        (milc_file(expected, "<"), 96),
        (scidac_file(expected, ""), 1200),
        (openqcd_file(expected, "", gauge.plaquettes().all), 24),
    ]
    refused = 0
    for seed, (data, head) in enumerate(files):
        for changed in flipped(data, seed, 60, head):
            path.write_bytes(changed)
            refused += same_or_refused(path, lambda: read_gauge(str(path))[0].links, expected)
    assert refused > 100


def test_altered_vectors(tmp_path: Path) -> None:
    path, geometry = tmp_path / "x.lime", Geometry(EXTENTS)
    vectors = np.random.default_rng(1).normal(size=(2, *geometry.shape, 3)) + 0j
    write_vectors(str(path), vectors, geometry, Group.alone(), precision=64)
    data = path.read_bytes()
    refused = 0
    for _, changed in lime_changes(data):
        path.write_bytes(changed)
        refused += same_or_refused(path, lambda: read_vectors(str(path), geometry, Group.alone()), vectors)
    assert refused > 50


def notes() -> Iterator[dict[str, Any] | str]:
    """Yield notes that no checkpoint can contain."""
    good = {"settings": SETTINGS, "done": 2, "history": [0.5, 0.25]}
    yield from ("", "[]", "3", "null", "{", "[" * 50000, "1" * 5000, '{"a": ' * 50000, "NaN", '"x"')
    for name in good:
        yield {key: value for key, value in good.items() if key != name}
        for value in (None, -1, "x", 0.5, True, {}, [[]], [None], [1, 2, 3, 4, "x"], 2**70, 10**400):
            yield {**good, name: value}
    for history in ([{}], ["x"], [0.5] * 4, [True], [{"plaquette": 0.5}], [[0.5]]):
        yield {**good, "history": history}
    yield {**good, "more": 1}


def with_note(record: bytes, note: str) -> bytes:
    begin, _, rest = record.partition(b"<info>")
    return begin + b"<info>" + note.encode() + b"</info>" + rest.partition(b"</info>")[2]


def test_altered_notes_of_checkpoints(gauge: Gauge, checkpoint: bytes, tmp_path: Path) -> None:
    path, group = tmp_path / "run.lime", Group.alone()
    path.write_bytes(checkpoint)
    assert read_checkpoint(str(path), group, None, SETTINGS) is not None
    parts = lime_parts(checkpoint)
    for note in notes():
        text = note if isinstance(note, str) else json.dumps(note)
        new = [(name, with_note(data, text) if name == "scidac-record-xml" else data) for name, data in parts]
        path.write_bytes(lime_file(new))
        with pytest.raises(BadInput, match="checkpoint"):
            read_checkpoint(str(path), group, None, SETTINGS)
    trajectories = {"algorithm": "hmc", "extent": list(EXTENTS)}
    one = {"delta_h": 0.1, "accepted": True, "plaquette": gauge.plaquettes().all}
    for wrong in ({**one, "delta_h": None}, {**one, "accepted": 1}, {"delta_h": 0.1}, 0.5, {**one, "x": 1.0}):
        write_checkpoint(str(path), gauge, Checkpoint(trajectories, 1, [one]))
        assert read_checkpoint(str(path), group, None, trajectories) is not None
        write_checkpoint(str(path), gauge, Checkpoint(trajectories, 1, [wrong]))
        with pytest.raises(BadInput, match="not a checkpoint"):
            read_checkpoint(str(path), group, None, trajectories)


def test_a_changed_number_in_the_history_of_a_checkpoint(gauge: Gauge, tmp_path: Path) -> None:
    path, settings = tmp_path / "run.lime", {"algorithm": "hmc", "extent": list(EXTENTS)}
    history = [{"delta_h": 0.25, "accepted": True, "plaquette": gauge.plaquettes().all}] * 2
    write_checkpoint(str(path), gauge, Checkpoint(settings, 2, history))
    data = path.read_bytes()
    assert read_checkpoint(str(path), Group.alone(), None, settings) is not None
    for old, new in ((b"0.25", b"8.25"), (b'"digest"', b'"digesu"'), (b"hmc", b"hmb")):
        path.write_bytes(data.replace(old, new, 1))
        with pytest.raises(BadInput, match="that was altered"):
            read_checkpoint(str(path), Group.alone(), None, settings)


def test_a_checkpoint_with_other_links_is_refused(gauge: Gauge, tmp_path: Path) -> None:
    path, group = str(tmp_path / "run.lime"), Group.alone()
    note = json.dumps({"settings": SETTINGS, "done": 0, "history": []})
    write_gauge(path, gauge, precision=32, note=note)
    with pytest.raises(BadInput, match="32 bits"):
        read_checkpoint(path, group, None, SETTINGS)
    write_gauge(path, Gauge(group, (4, 4, 4, 4)), note=note, overwrite=True)
    with pytest.raises(BadInput, match="4x4x4x4"):
        read_checkpoint(path, group, None, SETTINGS)


def test_long_texts_without_an_end(gauge: Gauge, tmp_path: Path) -> None:
    """Each character is read once: a search with backtracking would take days."""
    path = tmp_path / "field.lime"
    for text in (b"<suma>" + b" " * (1 << 20), b"<suma " * (1 << 17), b"<" + b"a" * (1 << 20)):
        parts = lime_parts(scidac_file(gauge.links, ""))[:-1]
        path.write_bytes(lime_file([*parts, ("scidac-checksum", text)]))
        with pytest.raises(BadInput, match=r"not complete|found no suma"):
            read_gauge(str(path))
    write_gauge(str(path), gauge, note="x", overwrite=True)
    parts = lime_parts(path.read_bytes())
    endless = [(name, b"<info>" * (1 << 20) if name == "scidac-record-xml" else data) for name, data in parts]
    path.write_bytes(lime_file(endless))
    assert read_note(str(path)) == ""


def test_special_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, tmp_path, Path("/dev/zero"), tmp_path / "none"):
        with pytest.raises(BadInput, match="cannot read"):
            read_gauge(str(path))
        with pytest.raises(BadInput, match="cannot read"):
            read_note(str(path))
        with pytest.raises(BadInput, match="cannot read"):
            read_vectors(str(path), Geometry(EXTENTS), Group.alone())
        assert main(["lattice", "measure", str(path)]) == 2
    assert main(["lattice", "thermalize", "--extent", "4 4 4 4", "--checkpoint", str(fifo)]) == 2
    assert "Traceback" not in capsys.readouterr().err
