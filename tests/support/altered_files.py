"""Altered HDF5 files, and a quick way to have hundreds of them read: one process that forks a reader for each."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onehop import BadInput, hdf5, hdf5_child

h5py = pytest.importorskip("h5py")

SECONDS = 3  # of processor time, for a file of some kilobytes

READERS = """
import json, os, signal, sys

sys.path.insert(0, sys.argv[1])
import h5py, hdf5_child

for line in sys.stdin:
    question = json.loads(line)
    process = os.fork()
    if process == 0:
        signal.alarm(60)
        with open(sys.argv[2], "wb") as answer:
            hdf5_child.reply(question, answer)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


class Readers:
    """Stands for the process that `onehop.hdf5` starts, without the time to start Python."""

    def __init__(self, folder: Path) -> None:
        self._answer = folder / "answer"
        self._process = subprocess.Popen(
            [sys.executable, "-c", READERS, str(Path(hdf5_child.__file__).parent), str(self._answer)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __call__(self, question: dict[str, Any], _seconds: float) -> subprocess.CompletedProcess[bytes]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**question, "seconds": SECONDS}) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        return subprocess.CompletedProcess([], code, self._answer.read_bytes(), b"")

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture
def readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files are read by forks of one process."""
    one = Readers(tmp_path)
    monkeypatch.setattr(hdf5, "_run", one)
    yield
    one.close()


Change = Callable[[Any], None]  # of an open file


def altered(file: Path, copy: Path, change: Change) -> Path:
    """A copy with a change and, where it has one, the right digest."""
    copy.write_bytes(file.read_bytes())
    with h5py.File(copy, "r+") as stored:
        change(stored)
        if "digest" in stored.attrs:
            with contextlib.suppress(AttributeError):  # there is none of a data set without a shape
                stored.attrs["digest"] = hdf5_child.digest(stored)
    return copy


def put(name: str, values: Any, **how: Any) -> Change:
    """Another data set of this name."""

    def change(stored: Any) -> None:
        if name in stored:
            del stored[name]
        stored.create_dataset(name, data=values, **how)

    return change


def data_set_changes(name: str, values: np.ndarray) -> dict[str, Change]:
    """Whatever can be wrong with a data set, whatever its meaning: each makes the file a damaged one."""

    def drop(stored: Any) -> None:
        del stored[name]

    def group(stored: Any) -> None:
        del stored[name]
        stored.create_group(name)

    def link(stored: Any) -> None:
        stored.move(name, "elsewhere")
        stored[name] = h5py.SoftLink("/elsewhere")

    def external(stored: Any) -> None:
        del stored[name]
        stored[name] = h5py.ExternalLink("/dev/zero", "/x")

    def claims(stored: Any) -> None:
        del stored[name]
        stored.create_dataset(
            name, (2**20, *values.shape[1:]), values.dtype, chunks=(2**16, *values.shape[1:])
        )

    def virtual(stored: Any) -> None:
        del stored[name]
        layout = h5py.VirtualLayout(values.shape, values.dtype)
        stored.create_virtual_dataset(name, layout)

    one = values.reshape(-1)[:1]
    return {
        "dropped": drop,
        "group": group,
        "link": link,
        "external": external,
        "claims": claims,
        "virtual": virtual,
        "empty": put(name, values[:0]),
        "longer": put(name, np.concatenate([values, values[-1:]])),
        "deeper": put(name, values[..., None]),
        "scalar": put(name, one[0]),
        "none": put(name, h5py.Empty(values.dtype)),
        "bytes swapped": put(name, values.astype(values.dtype.newbyteorder()))
        if values.dtype.itemsize > 1
        else put(name, values.astype(np.int8)),
        "half": put(name, np.real(values).astype(np.float16)),
        "text": put(name, "some text"),
        "texts": put(name, ["some", "text"]),
        "pairs": put(name, np.zeros(values.shape, [("a", "u1"), ("b", "f8")])),
        "chunks": put(name, values, chunks=values.shape),
        "compressed": put(name, values, compression="gzip"),
    }


def give(name: str, value: Any) -> Change:
    """Another attribute of this name."""

    def change(stored: Any) -> None:
        if name in stored.attrs:
            del stored.attrs[name]
        if value is not None:
            stored.attrs[name] = value

    return change


def damaged_copies(file: Path, copy: Path, seed: int, count: int) -> Iterator[Path]:
    """Copies with bytes changed, or cut off, none of which has a right digest but by chance."""
    rng = np.random.default_rng(seed)
    whole = file.read_bytes()
    for number in range(count):
        data = bytearray(whole)
        if number % 5 == 4:
            data = data[: int(rng.integers(len(data)))]
        else:
            # The first bytes have the structure of the file; every other copy is changed there.
            end = min(len(data), 4096) if number % 2 else len(data)
            for place in rng.integers(end, size=int(rng.integers(1, 9))):
                data[place] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF, int(rng.integers(256))]))
        copy.write_bytes(data)
        yield copy


def error_of(read: Any, file: Path) -> str:
    """Return the message of BadInput; empty if the file was accepted."""
    try:
        read(file)
    except BadInput as error:
        return str(error)
    return ""


def refused(what: dict[str, Change], file: Path, copy: Path, read: Any) -> None:
    """Every alteration changes the file and is detected."""
    assert error_of(read, altered(file, copy, lambda stored: None)) == ""
    said = {name: error_of(read, altered(file, copy, change)) for name, change in what.items()}
    accepted = [name for name, words in said.items() if str(copy) not in words]
    assert not accepted, accepted
