"""Checkpoints: a killed run resumes from the file on any number of ranks and gives the same shots."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# MARK
import brute_force
from checkpointed_runs import OBSERVABLE, killed_at, mixed_circuit
from onehop import BadInput, Group, quantum
from onehop.cli import main
from onehop.quantum.io.state_file import load_state
from ranks import Ranks
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
    found, about = load_state(file)
    np.testing.assert_allclose(found, expected, atol=1e-5 if precision == "single" else 1e-12)
    assert about["made_by"] == "test"
    for ranks in (1, 2, 8):
        for vector in run_threads(ranks, lambda group: quantum.State.load(file, group).vector()):
            assert np.array_equal(vector, found)
    spoil(file, "amplitude")
    with pytest.raises(BadInput, match="checksum"):
        quantum.State.load(file)
    assert [path.name for path in tmp_path.iterdir()] == ["state.h5"]


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
    process.communicate(timeout=30)
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
    assert main([*words, "--checkpoint", str(file), "--every", "soon"]) == 2
    capsys.readouterr()
    with h5py.File(file, "r+") as stored:
        stored.attrs["flips"] = np.uint64(1)
    assert main([*words, "--checkpoint", str(file)]) == 2
    assert "damaged" in capsys.readouterr().err
    file.unlink()
    killed_at(2, load_qasm(program), file, 1, ())
    assert main([*words, "--checkpoint", str(file), "--every", "1s"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["resumed"]
    assert found["counts"] == expected
    assert not file.exists()


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_an_existing_part_file_is_kept(tmp_path: Path, kind: str) -> None:
    """Other users may be able to write to the folder and can guess the name of the temporary file."""
    precious = tmp_path / "precious"
    precious.write_text("untouched")
    part = tmp_path / "state.h5.part"
    part.symlink_to(precious) if kind == "symbolic" else part.hardlink_to(precious)
    quantum.simulate(quantum.Circuit(3, 1).h(0)).state.save(tmp_path / "state.h5")
    assert precious.read_text() == "untouched"
    assert not (tmp_path / "state.h5").is_symlink()
    assert len(load_state(tmp_path / "state.h5")[0]) == 8


def test_a_folder_in_place_of_the_part_file_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "state.h5.part").mkdir()
    state = quantum.simulate(quantum.Circuit(3, 1).h(0)).state
    with pytest.raises(BadInput, match="cannot write"):
        state.save(tmp_path / "state.h5")
