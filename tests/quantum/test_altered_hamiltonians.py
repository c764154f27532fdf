"""Altered files of Hamiltonians end in BadInput, and so do commands that read files of a wrong kind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from altered_files import Change, data_set_changes, h5py, put, readers, refused
from onehop import BadInput, quantum
from onehop.cli import main
from onehop.quantum.io.hamlib import hamlib_names, read_hamlib, write_tfim_file

__all__ = ["readers"]


@pytest.fixture(scope="module")
def hamlib(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    file = tmp_path_factory.mktemp("hamlib") / "tfim.hdf5"
    return file, write_tfim_file(file, [((4,), "grid")], fields=(1,))[0]


def test_altered_hamiltonians(hamlib: tuple[Path, str], tmp_path: Path, readers: None) -> None:
    file, name = hamlib
    text = "(1+0j) [Z0 Z1]"

    def with_attribute(value: Any) -> Change:
        return lambda stored: stored[name].attrs.update({"nqubits": value})

    def claims(kind: Any) -> Change:
        def change(stored: Any) -> None:
            del stored[name]
            stored.create_dataset(name, (2**35,), kind, chunks=(2**20,))

        return change

    changes = {
        how: change
        for how, change in data_set_changes(name, np.arange(4.0)).items()
        if how not in ("link", "longer", "text")
    }
    changes |= {
        "claims texts": claims(h5py.string_dtype()),
        "claims bytes": claims("S10"),
        "no text": put(name, ""),
        "bytes": put(name, np.bytes_(b"\xff\xfe")),
        "number": put(name, 3.5),
        "infinite": put(name, "(1e999+0j) [Z0]"),
        "huge qubit": put(name, "(1+0j) [Z99999999999]"),
        "list": put(name, [text, text]),
        **{
            f"nqubits {one!r:.20}": with_attribute(one)
            for one in (-1, 2, 2**40, "4", 4.5, np.nan, np.inf, [4], np.zeros(0), h5py.Empty("i8"))
        },
    }

    def read(copy: Path) -> None:
        hamlib_names(copy)
        read_hamlib(copy, name)

    refused(changes, file, tmp_path / "copy.h5", read)


def test_a_reader_that_crashes_or_hangs_is_bad_input(
    hamlib: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onehop import hdf5

    child = tmp_path / "hdf5_child.py"
    monkeypatch.setattr(hdf5, "__file__", str(tmp_path / "hdf5.py"))
    monkeypatch.setattr(hdf5, "_SECONDS", 1)
    for code, words in {
        "import os; os.kill(os.getpid(), 11)": "Segmentation fault",
        "import time; time.sleep(60)": "did not end within 1 second",
        "print('{')": "damaged",
        "print('[' * 100000)": "damaged",
        "raise SystemExit(5)": "exit code 5",
    }.items():
        child.write_text(code)
        with pytest.raises(BadInput, match=words):
            hamlib_names(hamlib[0])


def test_a_child_that_begins_late_reads_a_sound_file(
    hamlib: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine, imports take long: neither their processor time nor the wait says that a file is damaged."""
    from onehop import hdf5

    (tmp_path / "hdf5_child.py").write_text(
        f"import sys, time\nsys.path.append({str(Path(hdf5.__file__).parent)!r})\n"
        "while time.process_time() < 1.2: pass\n"
        "import hdf5_child\nhdf5_child.main()\n"
    )
    names = hamlib_names(hamlib[0])
    monkeypatch.setattr(hdf5, "__file__", str(tmp_path / "hdf5.py"))
    monkeypatch.setattr(hdf5, "_CPU_SECONDS", 1)
    assert hamlib_names(hamlib[0]) == names
    monkeypatch.setattr(hdf5, "_SECONDS", 0)
    with pytest.raises(BadInput, match="the machine or its disks are busy, or the file is damaged"):
        hamlib_names(hamlib[0])


def test_commands_end_with_bad_input(
    hamlib: tuple[Path, str], tmp_path: Path, readers: None, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("qiskit")
    program = tmp_path / "a.qasm"
    program.write_text("OPENQASM 2.0; qreg q[2]; creg c[2]; U(1,2,3) q[0]; measure q -> c;")
    state = tmp_path / "state.h5"
    quantum.State(2).save(state)
    fifo, cut, text = tmp_path / "fifo", tmp_path / "cut.h5", tmp_path / "text.h5"
    os.mkfifo(fifo)
    cut.write_bytes(hamlib[0].read_bytes()[:700])
    text.write_text("no such thing")
    for file in (fifo, cut, text, tmp_path, tmp_path / "none", Path("/dev/zero")):
        assert main(["quantum", "hamlib", "list", str(file)]) == 2
        assert main(["quantum", "circuit", "hamlib", str(file), "x"]) == 2
        if file in (fifo, text):
            assert main(["run", str(program), "--checkpoint", str(file)]) == 2
    assert main(["run", str(program), "--checkpoint", str(state)]) == 2
    assert "Traceback" not in capsys.readouterr().err
