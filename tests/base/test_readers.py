"""Readers of untrusted files return a value or raise BadInput, and do so soon."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import onehop
from commands import Command, refused
from onehop import BadInput, Schedule, _core
from onehop.cli import main
from onehop.input_file import read_text
from ranks import Ranks

pytestmark = pytest.mark.timeout(100)

SCHEDULE = """{"onehop_schedule": 1, "name": "s", "ranks": 2,
"arrays": [{"name": "u", "element_bytes": 8, "type": "float64", "elements": 10}],
"rounds": [{"transfers": [{"from": {"rank": 0, "array": 0, "slice": {"offset": 0, "extents": [4], "strides": [1]}},
"to": {"rank": 1, "array": 0, "slice": {"offset": 5, "extents": [4], "strides": [1]}}, "combine": "add"}]}],
"must_cover": []}"""
SLICE = '"offset": 0, "extents": [4], "strides": [1]'
DEEP = 200_000

# What to put in the place of what, and what is said about it.
BAD_SCHEDULES = {
    "1e400": ('"ranks": 2', '"ranks": 1e400', r"line 1, column \d+: number overflow"),
    "digits": ('"ranks": 2', f'"ranks": {"9" * 5000}', "line 1, column 50"),
    "ranks": ('"ranks": 2', '"ranks": 2147483647', "ranks: expected an integer from 1 to 1048576"),
    "beyond_ascii": ('"ranks": 2', '"ranks": é', "line 1, column"),
    "half_a_character": ('"ranks": 2', '"ranks": "\udcc3"', "line 1, column"),
    "long_text": ('"ranks": 2', f'"ranks": "{"é" * 500}"', "ranks: expected an integer"),
    "deep": ('"ranks": 2', '"ranks": ' + "[" * DEEP + "]" * DEEP, "at most 32 brackets in each other"),
    "deep_objects": ('"ranks": 2', '"ranks": ' + '{"a":' * DEEP, "at most 32 brackets in each other"),
    "twice": (
        '"combine": "add"',
        '"combine": "add", "combine": "add"',
        r"twice in rounds\[0\]\.transfers\[0\]",
    ),
    "keys": ('"ranks": 2', ",".join(f'"k{i}": 1' for i in range(60_000)), "at most 64 keys in an object"),
    "control": ('"ranks": 2', '"ranks": \0', "line 1, column"),
}


def changed(name: str) -> str:
    old, new, _ = BAD_SCHEDULES[name]
    assert old in SCHEDULE
    return SCHEDULE.replace(old, new)


@pytest.mark.parametrize("name", BAD_SCHEDULES)
def test_schedules_that_are_none(name: str) -> None:
    with pytest.raises(BadInput, match=BAD_SCHEDULES[name][2]) as error:
        Schedule.from_json(changed(name))
    assert len(str(error.value)) < 600


def test_few_numbers_that_stand_for_too_much() -> None:
    """Elements and transfers are counted before anything is made for each of them."""
    large = SCHEDULE.replace('"elements": 10', f'"elements": {2**41}').replace("[4]", f"[{2**40}]")
    with pytest.raises(BadInput, match="verify: expected at most 34359738368 elements"):
        onehop.verify(Schedule.from_json(large))
    covered = SCHEDULE.replace('"elements": 10', f'"elements": {2**41}').replace(
        '"must_cover": []',
        f'"must_cover": [{{"rank": 0, "array": 0, "slice": {{{SLICE.replace("[4]", f"[{2**40}]")}}}}}]',
    )
    with pytest.raises(BadInput, match=r"must_cover\[0\]"):
        onehop.verify(Schedule.from_json(covered))
    # Bits in reverse: without a limit 2^20 slices on each of 2^20 ranks.
    bits = list(reversed(range(60)))
    permuted = (
        SCHEDULE.replace('"elements": 10', f'"elements": {2**40}')
        .replace('"ranks": 2', f'"ranks": {2**20}')
        .replace(
            '"transfers":', f'"permutation": {{"array": 0, "local_bits": 40, "to": {bits}}}, "transfers":'
        )
    )
    (violation,) = onehop.verify(Schedule.from_json(permuted), limit=1)
    assert "expected the 2 or more transfers" in violation.message
    with pytest.raises(BadInput, match="at most 1048576 ranks"):
        onehop.count(Schedule("made", 2**31 - 1, [], []))


def test_old_key_of_a_tuning_is_told_its_new_name() -> None:
    old = _core.built_in_tuning().replace("spins_oversubscribed", "spins_crowded")
    with pytest.raises(BadInput) as caught:
        _core.check_tuning(old)
    assert 'expected the key "spins_oversubscribed", found its old name "spins_crowded"' in str(caught.value)


def test_numbers_of_a_tuning_are_checked() -> None:
    good = _core.built_in_tuning()
    spins = next(line for line in good.splitlines() if '"spins"' in line)
    for value, said in (
        ("1e400", "number overflow"),
        ("3.5", "spins: expected an integer"),
        ("99999999999", "spins: expected an integer"),
        ("[" * DEEP + "]" * DEEP, "at most 32 brackets"),
        ("é", "line "),
    ):
        with pytest.raises(BadInput, match=said):
            _core.check_tuning(good.replace(spins, f'"spins": {value},'))
    with pytest.raises(BadInput, match=r"rules\[0\]\.chunk_bytes: expected an integer from 64"):
        _core.check_tuning(good.replace('"chunk_bytes": ', '"chunk_bytes": -', 1))


def _fifo(file: Path) -> None:
    os.mkfifo(file)


def _huge(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(1 << 40)


TUNINGS: dict[str, tuple[Callable[[Path], object], str]] = {
    "fifo": (_fifo, "expected a file, found a FIFO"),
    "folder": (lambda file: file.mkdir(), "expected a file, found a folder"),
    "device": (lambda file: file.symlink_to("/dev/zero"), "expected a file, found a device"),
    "missing": (lambda file: None, "No such file"),
    "loop": (lambda file: file.symlink_to(file), "symbolic links"),
    "huge": (_huge, "expected at most 65536 bytes"),
    "bytes": (lambda file: file.write_bytes(b"\xff\xfe\0"), "line 1, column 1"),
}


@pytest.mark.parametrize("kind", TUNINGS)
def test_tuning_file_that_is_none(ranks: Ranks, kind: str) -> None:
    make, said = TUNINGS[kind]
    file = ranks.folder / "tuning"
    make(file)
    ranks.environment["ONEHOP_TUNING"] = str(file)
    done = ranks.run_python("-c", "from onehop import _core; print(_core.tuning_origin())")
    assert (done.returncode, done.stdout.split()[-2:]) == (0, ["built", "in"]), done.stderr
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(("content", "said"), [(None, ""), ("none", "or delete it")])
def test_an_empty_name_of_the_tuning_file_is_unset(ranks: Ranks, content: str | None, said: str) -> None:
    cached = ranks.folder / "cache/onehop/tuning.json"
    cached.parent.mkdir(parents=True)
    if content is not None:
        cached.write_text(content, encoding="utf-8")
    ranks.environment |= {"ONEHOP_TUNING": "", "XDG_CACHE_HOME": str(ranks.folder / "cache")}
    done = ranks.run_python("-c", "from onehop import _core; print(_core.tuning_origin())")
    assert (done.returncode, done.stdout.split()[-2:]) == (0, ["built", "in"]), done.stderr
    assert said in done.stderr if said else not done.stderr


def test_commands_for_schedules(
    tmp_path: Path, command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2 and one line, whatever the command."""
    file = tmp_path / "bad.json"
    for name, verb in (("1e400", "show"), ("ranks", "count"), ("beyond_ascii", "verify")):
        file.write_text(changed(name), encoding="utf-8")
        assert "is not a schedule" in refused(["schedule", verb, str(file)], capsys)
    file.write_bytes(SCHEDULE.encode().replace(b'"s"', b'"\xff"'))
    refused(["schedule", "show", str(file)], capsys)
    monkeypatch.setenv("COLUMNS", "200")
    # Transfers of arrays that do not exist are shown, and refused by those who need the array.
    file.write_text(SCHEDULE.replace('"array": 0', '"array": -7', 1))
    assert "(no array -7)" in command("schedule", "show", file).stdout
    refused(["schedule", "count", str(file)], capsys)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        (2**63, "u1"),
        (2**64, "u1"),
        pytest.param(10**5000, "u1", id="digits"),
        (-1, "u1"),
        ((-1, -1), "u1"),
        ((-(2**40), -(2**40)), "u1"),
        ((0, 2**70), "f8"),
        ((2**40, 2**40, 0), "f8"),
        (2**62, "f8"),
        (2.5, "f8"),
        ("x", "f8"),
        (None, "f8"),
        (float("nan"), "f8"),
        ([[2, 2], [3, 3]], "f8"),
        ((1,) * 70, "u1"),
        (3, "V0"),
        (3, "S0"),
        (3, "nope"),
        (3, "O"),
    ],
)
def test_shapes_that_no_array_has(shape: object, dtype: str) -> None:
    with pytest.raises(BadInput, match="expected a"):
        onehop.Group.alone().empty(shape, dtype)


def test_shapes_that_arrays_have() -> None:
    group = onehop.Group.alone()
    assert group.empty((2, 3), "c16").shape == (2, 3)
    assert group.empty(np.int32(4)).shape == (4,)
    assert group.empty((), "f4").shape == ()
    assert group.empty((5, 0), "f4").shape == (5, 0)
    assert group.empty([3], [("a", "f4"), ("b", "i8")]).dtype.itemsize == 12


def test_a_sparse_text_takes_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of no bytes on the disk that is longer than the free memory, or than any text."""
    monkeypatch.setenv("ONEHOP_TEST_FREE_MEMORY", str(2**24))
    for length, told in ((2**26, "not enough memory for the "), (2**40, "bytes, found more")):
        file = tmp_path / "sparse.qasm"
        file.touch()
        os.truncate(file, length)
        for words in (["run", str(file)], ["schedule", "show", str(file)], ["trace", str(file)]):
            assert main(words) in (1, 2)
            assert told in capsys.readouterr().err, words


def test_a_pipe_without_a_writer_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Timer(1.2, pipe.write_text, ("late",))
    writer.start()
    assert read_text(pipe, "circuit", 100) == "late"
    writer.join()
    assert f"waiting for a program that writes into the pipe {pipe}" in capsys.readouterr().err
    for text in (b"", b"early"):  # as the shell's <(...) leaves them
        reading, writing = os.pipe()
        os.write(writing, text)
        os.close(writing)
        assert read_text(f"/dev/fd/{reading}", "circuit", 100) == text.decode()
        os.close(reading)
    assert capsys.readouterr().err == ""
