"""The child that reads HDF5 files: its limits, and what it blames."""

import hashlib
import io
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import onehop.hdf5
from onehop import BadInput
from onehop.lattice.measurements import DIGEST, Measurements, read_measurements, write_measurements
from ranks import completed


def measurements(count: int) -> Measurements:
    about = [{"file": f"{i}.lime", "number": i, "checksums": {}, "hash": "a" * 64} for i in range(count)]
    return Measurements({}, (4, 4, 4, 8), about, [], {"plaquette": np.linspace(0.1, 0.9, count)})


def test_a_long_ensemble_is_read(tmp_path: Path) -> None:
    """Its texts take little of the processor time that the child has."""
    write_measurements(str(tmp_path / "m.h5"), measurements(30_000))
    assert len(read_measurements(str(tmp_path / "m.h5")).configurations) == 30_000


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_that_others_end_says_nothing_of_the_file(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_measurements(str(tmp_path / "m.h5"), measurements(9))
    killed = subprocess.CompletedProcess([], -number, b"", b"")
    monkeypatch.setattr(onehop.hdf5, "_run", lambda *_: killed)
    with pytest.raises(BadInput, match="was ended from outside") as refused:
        read_measurements(str(tmp_path / "m.h5"))
    assert "damaged" not in str(refused.value)


MEASURED = """
import resource, sys
from onehop import BadInput
from onehop.lattice.measurements import read_measurements

def peak():
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) << 10

read_measurements(sys.argv[1])
before = peak()
try:
    read_measurements(sys.argv[2])
except BadInput as error:
    assert "cannot read measurements" in str(error), error
    print(peak() - before)
"""


@pytest.mark.parametrize("has_digest", [False, True])
def test_a_text_that_claims_gigabytes_takes_little_memory(tmp_path: Path, has_digest: bool) -> None:
    """HDF5 allocates what the length of a text claims before it looks for the text."""
    path, other = tmp_path / "m.h5", tmp_path / "other.h5"
    write_measurements(str(path), measurements(9))
    data = path.read_bytes().rpartition(DIGEST)[0]
    with h5py.File(io.BytesIO(data), "r") as stored:
        at = stored["configurations/hash"].id.get_offset()
    data = data[:at] + (1 << 30).to_bytes(4, "little") + data[at + 4 :]
    end = DIGEST + hashlib.sha256(data).hexdigest().encode() if has_digest else b""
    other.write_bytes(data + end)
    done = completed([sys.executable, "-c", MEASURED, str(path), str(other)], timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64 << 20
