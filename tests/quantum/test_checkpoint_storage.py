"""Checkpoints of states that are kept encoded, and of states on disk, whose files are the checkpoints."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkpointed_runs import OBSERVABLE, killed_at, mixed_circuit
from onehop import BadInput, Group, _core, quantum
from onehop.cli import main
from onehop.quantum import generators, remove_checkpoint, simulate
from ranks import PATIENCE, Ranks
from threads import run_threads

h5py = pytest.importorskip("h5py")

TILES = 3 * 16 << 14  # bytes of memory for three tiles of the smallest state that has several of them


def resume(circuit: quantum.Circuit, file: Path, ranks: int = 1, **more: Any) -> list[quantum.Result]:
    """Resume on ranks from a copy of a checkpoint."""
    copy = file.with_name(f"copy{ranks}.h5")
    for end in ("", ".0", ".1"):
        if (here := Path(f"{file}{end}")).exists():
            shutil.copy(here, f"{copy}{end}")

    def run(group: Group) -> quantum.Result:
        result = simulate(
            circuit, group, shots=50, observables=[OBSERVABLE], checkpoint=copy, every=1e9, **more
        )
        assert result.resumed
        return result

    results = run_threads(ranks, run)
    remove_checkpoint(copy)
    return results


@pytest.mark.parametrize("precision", ["fp16", "q8"])
def test_encoded_states_resume_on_other_numbers_of_ranks(tmp_path: Path, precision: str) -> None:
    circuit, file = mixed_circuit(1, 10), tmp_path / "run.h5"
    tolerance = {"fp16": 1e-3, "q8": 3e-2}[precision]
    asked: dict[str, Any] = {"shots": 50, "seed": 3, "observables": [OBSERVABLE], "precision": precision}
    expected = simulate(circuit, **asked)
    for ranks in (1, 2, 4):
        file.unlink(missing_ok=True)
        assert killed_at(7, circuit, file, ranks, precision=precision) == 7
        for size in (1, 2, 4):
            for found in resume(circuit, file, size, precision=precision):
                # Rounding in other passes may move a few shots.
                moved = sum(one != other for one, other in zip(found.memory, expected.memory, strict=True))
                assert moved <= (3 if precision == "q8" else 0)
                assert found.expectations == pytest.approx(expected.expectations, abs=tolerance)
                assert 1 - found.fidelity_estimate == pytest.approx(1 - expected.fidelity_estimate, rel=0.6)
    with h5py.File(file) as stored:  # the encoded bytes
        assert stored["amplitudes"].shape == (_core.bytes_per_amplitude(precision) * 2**10,)
    state = quantum.State.load(file)
    assert state.precision == precision
    state.save(tmp_path / "state.h5")
    for loaded in run_threads(4, lambda group: quantum.State.load(tmp_path / "state.h5", group).vector()):
        np.testing.assert_array_equal(loaded, state.vector())


def test_states_of_few_qubits_are_not_encoded(tmp_path: Path) -> None:
    circuit = quantum.Circuit(2, 2).h(0).measure(0, 0).h(0).cx(0, 1).measure([0, 1], [0, 1])
    assert killed_at(1, circuit, tmp_path / "run.h5", 1, (), precision="q8") == 1
    found = simulate(circuit, shots=50, checkpoint=tmp_path / "run.h5", precision="q8")
    assert found.resumed
    assert found.counts == simulate(circuit, shots=50, seed=3).counts


@pytest.mark.parametrize("precision", ["double", "fp16"])
def test_a_run_on_disk_resumes_after_any_pass(tmp_path: Path, precision: str) -> None:
    circuit, file = mixed_circuit(1, 17), tmp_path / "run.h5"
    stored = {"precision": precision, "state_folder": tmp_path, "state_memory": TILES}
    tolerance = 1e-12 if precision == "double" else 1e-3
    expected = simulate(circuit, shots=50, seed=3, observables=[OBSERVABLE], precision=precision)
    for when in (2, 5, 11):
        assert killed_at(when, circuit, file, 1, **stored) == when
        assert sorted(path.name for path in tmp_path.iterdir()) == ["run.h5", f"run.h5.{number_of(file)}"]
        results = resume(circuit, file, **stored)
        if when == 5:  # also in memory
            results += resume(circuit, file, 4, precision=precision)
        for found in results:
            assert found.counts == expected.counts
            assert found.memory == expected.memory
            assert found.runs == expected.runs
            assert found.expectations == pytest.approx(expected.expectations, abs=tolerance)
        if when != 11:
            remove_checkpoint(file)
            del found, results
            assert list(tmp_path.iterdir()) == []
    # Nothing that was written after the checkpoint is in its state.
    before = quantum.State.load(file).vector()
    found = simulate(circuit, shots=50, observables=[OBSERVABLE], checkpoint=file, every=1e9, **stored)
    np.testing.assert_allclose(found.state.vector(), expected.state.vector(), atol=tolerance)
    np.testing.assert_array_equal(quantum.State.load(file).vector(), before)


def number_of(file: Path) -> int:
    """Return the number of the state's file that a checkpoint names."""
    with h5py.File(file) as stored:
        return int(stored.attrs["number"])


def test_a_run_in_memory_goes_on_on_disk(tmp_path: Path) -> None:
    circuit, file = mixed_circuit(2, 14), tmp_path / "run.h5"
    expected = simulate(circuit, shots=50, seed=3, observables=[OBSERVABLE])
    assert killed_at(6, circuit, file, 4) == 6
    (found,) = resume(circuit, file, state_folder=tmp_path, state_memory=TILES)
    assert found.memory == expected.memory
    assert found.expectations == pytest.approx(expected.expectations, abs=1e-12)
    del found  # the file that it goes on in is gone with its state
    # And back: the checkpoint in memory replaces that on disk.
    assert killed_at(2, circuit, file, 1, state_folder=tmp_path) == 2
    assert killed_at(2, circuit, file, 2) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["run.h5"]


SUPPORT = str(Path(__file__).parents[1] / "support")
RUN = """
import sys, time
sys.path[:0] = [{support!r}]
from onehop import quantum
from checkpointed_runs import OBSERVABLE, mixed_circuit

{before}
quantum.simulate(
    mixed_circuit(1, 17), shots=50, seed=3, observables=[OBSERVABLE], checkpoint="run.h5", every=1e-9,
    progress=progress, state_folder=".", state_memory={memory}, precision="single",
)
"""


def test_a_killed_run_on_disk_resumes(ranks: Ranks) -> None:
    file, circuit = ranks.folder / "run.h5", mixed_circuit(1, 17)
    before = "def progress(*_): time.sleep(0.02)"
    stored = {"precision": "single", "state_folder": ranks.folder, "state_memory": TILES}
    expected = simulate(circuit, shots=50, seed=3, precision="single")
    for wait in (0.0, 0.1, 0.23):
        process = ranks.start(1, RUN.format(support=SUPPORT, before=before, memory=TILES))
        until = time.monotonic() + PATIENCE
        while not file.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(wait)
        process.kill()
        process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGKILL
        ranks.assert_nothing_left()
        (found,) = resume(circuit, file, **stored)
        assert found.memory == expected.memory


FAILS = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
passes = 0
def progress(*_):
    global passes
    passes += 1
    if passes == 6:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
"""


def test_an_error_of_the_disk_leaves_the_last_checkpoint(ranks: Ranks) -> None:
    source = RUN.format(support=SUPPORT, before=FAILS, memory=TILES)
    done = ranks.run([sys.executable, ranks.script(source)], cwd=ranks.folder)
    assert "File too large; the last checkpoint stays" in done.stderr
    circuit, file = mixed_circuit(1, 17), ranks.folder / "run.h5"
    (found,) = resume(circuit, file, precision="single", state_folder=ranks.folder, state_memory=TILES)
    assert found.memory == simulate(circuit, shots=50, seed=3, precision="single").memory


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def linked(file: Path) -> None:
    file.symlink_to(file.rename(file.with_name("elsewhere")))


ALTERED: dict[str, tuple[Callable[[Path], object], str]] = {
    "flipped": (flipped, "does not match its checksum"),
    "short": (lambda file: file.write_bytes(file.read_bytes()[:-4096]), "shorter"),
    "missing": (Path.unlink, "no such file"),
    "linked": (linked, "no such file"),
}


@pytest.mark.parametrize("how", ALTERED)
@pytest.mark.parametrize("in_memory", [False, True])
def test_altered_files_of_states_are_refused(tmp_path: Path, how: str, in_memory: bool) -> None:
    circuit, file = mixed_circuit(1, 12), tmp_path / "run.h5"
    killed_at(5, circuit, file, 1, state_folder=tmp_path)
    alter, message = ALTERED[how]
    alter(Path(f"{file}.{number_of(file)}"))
    folder = None if in_memory else tmp_path
    message = "does not match its checksum" if in_memory and how == "short" else message
    with pytest.raises(BadInput, match=message):
        simulate(circuit, shots=50, observables=[OBSERVABLE], checkpoint=file, state_folder=folder)


def test_two_runs_of_one_checkpoint(tmp_path: Path) -> None:
    circuit, file = mixed_circuit(1, 12), tmp_path / "run.h5"
    calls = 0

    def progress(*_: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:  # another run begins from the same checkpoint and takes the name of the next file
            killed_at(1, circuit, file, 1, state_folder=tmp_path)

    with pytest.raises(RuntimeError, match="another run, or a user, has removed"):
        simulate(
            circuit, shots=50, seed=3, observables=[OBSERVABLE], checkpoint=file, every=1e-9, progress=progress,
            state_folder=tmp_path,
        )  # fmt: skip
    (found,) = resume(circuit, file, state_folder=tmp_path)
    assert found.memory == simulate(circuit, shots=50, seed=3).memory


def test_where_a_checkpoint_on_disk_may_be(tmp_path: Path) -> None:
    circuit = mixed_circuit(1)
    with pytest.raises(BadInput, match="expected a file in the state_folder"):
        simulate(circuit, checkpoint=tmp_path / "run.h5", state_folder=tmp_path.parent)

    def run(group: Group) -> None:
        with pytest.raises(BadInput, match="expected 1 rank"):
            simulate(circuit, group, checkpoint=tmp_path / "run.h5", state_folder=tmp_path)

    run_threads(2, run)
    assert list(tmp_path.iterdir()) == []


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, file, state = (tmp_path / name for name in ("a.qasm", "run.h5", "state.h5"))
    generators.qft(12).save(program)
    circuit = quantum.load_qasm(program)
    words = [
        "run",
        str(program),
        "--shots",
        "50",
        "--seed",
        "3",
        "--checkpoint",
        str(file),
        "--save",
        str(state),
    ]
    for more in (["--state-folder", str(tmp_path)], ["--precision", "fp16"]):
        asked = {"state_folder": tmp_path} if more[0] == "--state-folder" else {"precision": "fp16"}
        killed_at(1, circuit, file, 1, (), **asked)
        assert main([*words, *more]) == 0
        capsys.readouterr()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.qasm", "state.h5"]
        found = quantum.State.load(state)
        np.testing.assert_allclose(found.vector(), simulate(circuit).state.vector(), atol=1e-4)
