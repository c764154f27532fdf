"""Checkpoints: a killed run resumes from the file on any number of ranks and gives the same shots."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import time
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import brute_force
from checkpointed_runs import OBSERVABLE, killed_at, mixed_circuit
from onehop import BadInput, Group, Mismatch, quantum
from onehop.cli import main
from ranks import PATIENCE, Ranks
from threads import run_threads

h5py = pytest.importorskip("h5py")


def test_a_run_resumes_at_every_step(tmp_path: Path) -> None:
    file = tmp_path / "run.h5"
    circuit = mixed_circuit(1)
    expected = quantum.simulate(circuit, shots=50, seed=3, observables=[OBSERVABLE])
    assert expected.runs > 3
    steps = killed_at(10**9, circuit, tmp_path / "whole.h5", 2)
    assert steps > 10
    for when in sorted({1, 2, 3, *range(4, steps, max(steps // 3, 1)), steps - 1}):
        file.unlink(missing_ok=True)
        assert killed_at(when, circuit, file, 2) == when
        for ranks in (1, 2, 4):
            # Each run gets a copy of the file and resumes from the same point.
            copy = tmp_path / f"copy{ranks}.h5"
            copy.write_bytes(file.read_bytes())

            def resume(group: Group, copy: Path = copy) -> quantum.Result:
                return quantum.simulate(
                    circuit, group, shots=50, observables=[OBSERVABLE], checkpoint=copy, every=1e9
                )

            for found in run_threads(ranks, resume):
                assert found.seed == 3
                assert found.counts == expected.counts
                assert found.memory == expected.memory
                assert found.runs == expected.runs
                assert found.expectations == pytest.approx(expected.expectations, abs=1e-12)


def spoil(file: Path, how: str) -> None:
    data = bytearray(file.read_bytes())
    if how == "cut":
        file.write_bytes(data[: len(data) * 2 // 3])
        return
    with h5py.File(file) as stored:
        at = stored["amplitudes"].id.get_offset() + 40
    if how == "amplitude":
        data[at] ^= 1
        file.write_bytes(data)
    elif how == "attribute":
        with h5py.File(file, "r+") as stored:
            stored.attrs["flips"] = np.uint64(32)
    elif how == "data":
        with h5py.File(file, "r+") as stored:
            stored["more/done"][0] ^= 1
    elif how == "text":
        file.write_text("no such thing")


@pytest.mark.parametrize("how", ["cut", "amplitude", "attribute", "data", "text"])
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, how: str) -> None:
    file = tmp_path / "run.h5"
    circuit = mixed_circuit(1)
    killed_at(5, circuit, file, 1)
    spoil(file, how)

    def resume(group: Group) -> str:
        with pytest.raises(BadInput) as caught:
            quantum.simulate(circuit, group, shots=50, observables=[OBSERVABLE], checkpoint=file)
        return str(caught.value)

    for text in run_threads(2, resume):
        assert str(file) in text
        assert {"cut": "cut short", "text": "no HDF5 file"}.get(how, "is damaged") in text


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.h5"
    circuit = mixed_circuit(1)
    killed_at(5, circuit, file, 1)
    kwargs: dict[str, Any] = {"shots": 50, "observables": [OBSERVABLE], "checkpoint": file}
    with pytest.raises(BadInput, match="another circuit"):
        quantum.simulate(mixed_circuit(2), **kwargs)
    for other in ({"shots": 51}, {"seed": 4}, {"precision": "single"}, {"observables": ["Z0"]}):
        with pytest.raises(BadInput, match=f"with {next(iter(other))}"):
            quantum.simulate(circuit, **{**kwargs, **other})
    with pytest.raises(BadInput, match="no folder"):
        quantum.simulate(circuit, checkpoint=tmp_path / "none" / "x.h5")
    quantum.State(3).save(tmp_path / "state.h5")
    with pytest.raises(BadInput, match="no checkpoint"):
        quantum.simulate(circuit, checkpoint=tmp_path / "state.h5")


@pytest.mark.parametrize("precision", ["double", "single"])
def test_states_in_files(tmp_path: Path, precision: str) -> None:
    file = tmp_path / "state.h5"
    circuit = brute_force.random_circuit(6, 30, 4, 2).x(5).x(4)
    expected = quantum.simulate(circuit, precision=precision).state.vector()

    def save(group: Group) -> None:
        result = quantum.simulate(circuit, group, precision=precision)
        result.state.save(file, group, {"made_by": "test"})

    run_threads(4, save)
    found = quantum.State.load(file).vector()
    np.testing.assert_allclose(found, expected, atol=1e-5 if precision == "single" else 1e-12)
    with h5py.File(file) as stored:
        assert stored.attrs["made_by"] == "test"
    for ranks in (1, 2, 8):
        for vector in run_threads(ranks, lambda group: quantum.State.load(file, group).vector()):
            assert np.array_equal(vector, found)
    spoil(file, "amplitude")
    with pytest.raises(BadInput, match="checksum"):
        quantum.State.load(file)
    assert [path.name for path in tmp_path.iterdir()] == ["state.h5"]


def test_ranks_that_name_other_files_are_told_both(tmp_path: Path) -> None:
    files = [str(tmp_path / one) for one in ("a.h5", "b.h5")]

    def told(group: Group) -> list[str]:
        texts = []
        for file in files:
            quantum.State(3, group).save(file, group)
        for call in (
            lambda: quantum.State.load(files[group.rank], group),
            lambda: quantum.State(3, group).save(files[group.rank], group),
            lambda: quantum.simulate(quantum.Circuit(3), group, checkpoint=files[group.rank]),
        ):
            with pytest.raises(Mismatch) as error:
                call()
            texts.append(str(error.value))
        return texts

    for text in chain(*run_threads(2, told)):
        assert re.search(rf"'\w+ {files[0]}' on rank 0 and '\w+ {files[1]}' on rank 1", text), text


FOLDERS = [str(Path(__file__).parents[1] / "support")]
RUN = """
import sys, time
sys.path[:0] = {folders!r}
from onehop import Group, quantum
from checkpointed_runs import OBSERVABLE, mixed_circuit

quantum.simulate(
    mixed_circuit(1), Group.world(), shots=50, seed=3, observables=[OBSERVABLE], checkpoint="run.h5", every={every},
    progress=lambda *_: time.sleep(0.03),
)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1])
def test_a_killed_run_resumes_on_other_numbers_of_ranks(ranks: Ranks, number: signal.Signals) -> None:
    file = ranks.folder / "run.h5"
    # Without SIGKILL only the signal triggers a checkpoint.
    every = 0.001 if number == signal.SIGKILL else 1e6
    process = ranks.start(2, RUN.format(folders=FOLDERS, every=every))
    until = time.monotonic() + 30
    if number != signal.SIGKILL:
        while not handles(ranks.processes(), number) and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(number)
    if number != signal.SIGTERM:  # the run continues until the test kills it
        while not file.exists() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.05)
        assert process.poll() is None
        process.kill()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == (143 if number == signal.SIGTERM else -signal.SIGKILL)
    ranks.assert_nothing_left()
    circuit = mixed_circuit(1)
    expected = quantum.simulate(circuit, shots=50, seed=3)
    for size in (1, 2, 4) if number == signal.SIGKILL else (4,):
        copy = ranks.folder / f"copy{size}.h5"
        copy.write_bytes(file.read_bytes())

        def resume(group: Group, copy: Path = copy) -> quantum.Result:
            return quantum.simulate(circuit, group, shots=50, observables=[OBSERVABLE], checkpoint=copy)

        for found in run_threads(size, resume):
            assert found.resumed
            assert found.counts == expected.counts


def handles(processes: list[int], number: signal.Signals) -> bool:
    """Whether both ranks have installed the signal handler (the launcher may do so first)."""
    ready = 0
    for process in processes:
        try:
            status = Path(f"/proc/{process}/status").read_text()
            command = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        caught = int(status.partition("SigCgt:")[2].split()[0], 16)
        ready += bool(caught >> (number - 1) & 1) and b"launch" not in command
    return ready == 2


def test_run_with_checkpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("qiskit")
    from onehop.quantum import load_qasm

    program, file = tmp_path / "a.qasm", tmp_path / "run.h5"
    layers = "".join(f"ry({0.3 + 0.1 * i}) q[{i % 3}]; cx q[{i % 3}], q[{(i + 1) % 3}];" for i in range(30))
    program.write_text(
        'OPENQASM 2.0; include "qelib1.inc"; qreg q[3]; creg c[3]; ry(1) q[0]; measure q[0] -> c[0];'
        + layers
        + "measure q -> c;"
    )
    words = ["run", str(program), "--shots", "50", "--seed", "3", "--json", "-"]
    assert main(words) == 0
    expected = json.loads(capsys.readouterr().out)["counts"]
    killed_at(2, load_qasm(program), file, 1, ())
    assert file.exists()
    assert main([*words, "--checkpoint", str(file), "--save-every", "soon"]) == 2
    capsys.readouterr()
    with h5py.File(file, "r+") as stored:
        stored.attrs["flips"] = np.uint64(1)
    assert main([*words, "--checkpoint", str(file)]) == 2
    assert "damaged" in capsys.readouterr().err
    file.unlink()
    killed_at(2, load_qasm(program), file, 1, ())
    assert main([*words, "--checkpoint", str(file), "--save-every", "1s"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["resumed"]
    assert found["counts"] == expected
    assert not file.exists()


def test_a_folder_that_refuses_new_files_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    state = quantum.State(3)
    monkeypatch.setattr(os, "fsync", refuse)  # the disk is full when the data are flushed
    with pytest.raises(BadInput, match=r"cannot write .*: No space left on device"):
        state.save(tmp_path / "state.h5")
    monkeypatch.setattr("onehop.output._create_locked", refuse)
    with pytest.raises(BadInput, match=r"cannot write .*: No space left on device"):
        state.save(tmp_path / "state.h5")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_checkpoint_of_the_run_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends before its first checkpoint is due, and a file of that name appears meanwhile."""
    program, file = tmp_path / "c.qasm", tmp_path / "run.h5"
    program.write_text('OPENQASM 2.0; include "qelib1.inc"; qreg q[2]; h q[0];')

    def save(*_: Any) -> None:
        file.write_text("precious")

    monkeypatch.setattr("onehop.cli.quantum.run.save_result", save)
    assert main(["run", str(program), "--checkpoint", str(file), "--save", str(tmp_path / "state.h5")]) == 0
    assert file.read_text() == "precious"


def test_the_checkpoint_behind_a_link_is_removed(tmp_path: Path) -> None:
    pytest.importorskip("qiskit")
    program, file, link = tmp_path / "c.qasm", tmp_path / "run.h5", tmp_path / "link.h5"
    program.write_text(
        'OPENQASM 2.0; include "qelib1.inc"; qreg q[2]; creg c[2]; h q; measure q[0] -> c[0]; h q; measure q -> c;'
    )
    link.symlink_to(file)
    killed_at(2, quantum.load_qasm(program), link, 1, ())
    assert link.is_symlink()
    assert file.exists()
    assert main(["run", str(program), "--shots", "50", "--seed", "3", "--checkpoint", str(link)]) == 0
    assert link.is_symlink()
    assert not file.exists()
