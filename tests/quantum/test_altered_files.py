"""Altered checkpoints and states with recomputed digests end in BadInput, never in a crash."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from altered_files import Change, altered, damaged_copies, data_set_changes, give, h5py, put, readers, refused
from checkpointed_runs import OBSERVABLE, killed_at, mixed_circuit
from onehop import BadInput, Group, quantum
from ranks import Ranks, completed
from threads import run_threads

__all__ = ["readers"]

HUGE = 2**64 - 1


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("checkpoint") / "run.h5"
    killed_at(5, mixed_circuit(1), file, 1)
    with h5py.File(file) as stored:  # has everything that the tests alter
        assert {"more/shots_1", "more/record_1"} <= {f"more/{name}" for name in stored["more"]}
    return file


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("state") / "state.h5"
    quantum.simulate(mixed_circuit(2), seed=1).state.save(file, attributes={"made_by": "test"})
    return file


def go_on(file: Path, group: Group | None = None) -> quantum.Result:
    return quantum.simulate(
        mixed_circuit(1), group, shots=50, observables=[OBSERVABLE], checkpoint=file, every=1e9
    )


def arrays_of(file: Path) -> dict[str, np.ndarray]:
    with h5py.File(file) as stored:
        more = {f"more/{name}": item[()] for name, item in stored.get("more", {}).items()}
        return {name: stored[name][()] for name in ("amplitudes", "checksums")} | more


def with_value(values: np.ndarray, value: Any, place: int = 0) -> np.ndarray:
    found = values.copy()
    found.flat[place] = value
    return found


def amplitudes(values: np.ndarray) -> Change:
    """Replace amplitudes and recompute the checksums."""

    def change(stored: Any) -> None:
        blocks = np.split(values, len(stored["checksums"]))
        stored["amplitudes"][...] = values
        stored["checksums"][...] = [
            np.frombuffer(hashlib.sha256(block.tobytes()).digest(), np.uint8) for block in blocks
        ]

    return change


def value_changes(arrays: dict[str, np.ndarray]) -> dict[str, Change]:
    """Values that no run can produce are refused."""
    found = {}
    for name, values in arrays.items():
        kind = name.removeprefix("more/").partition("_")[0]
        if kind in ("done", "clbits", "record") and len(values):
            found |= {f"{name} 2": put(name, with_value(values, 2))}
        if kind == "shots":
            for value in (50, 10**5, 10**11, 2**63, HUGE):
                found |= {f"{name} {value}": put(name, with_value(values, value, -1))}
            found |= {f"{name} twice": put(name, np.concatenate([values, values[:1]]))}
        if kind == "outcomes":
            found |= {f"{name} {value}": put(name, np.full_like(values, value)) for value in (1, HUGE)}
        if kind == "expectations":
            found |= {f"{name} {value}": put(name, with_value(values, value)) for value in (np.nan, np.inf)}
    both = np.concatenate([arrays["more/shots_0"], arrays["more/shots_1"]])
    return {
        **found,
        "the same shots": put("more/shots_0", both),
        "one more": put("more/record_99", arrays["more/record_0"]),
        "another": put("more/else", arrays["more/record_0"]),
        "another at the root": put("else", arrays["more/record_0"]),
        "long record": put("more/record_0", np.ones(1000, np.uint8)),
    }


def test_altered_data_of_checkpoints(checkpoint: Path, tmp_path: Path, readers: None) -> None:
    arrays = arrays_of(checkpoint)
    changes = {
        f"{name}: {how}": change
        for name, values in arrays.items()
        for how, change in data_set_changes(name, values).items()
    }
    # The current run may have drawn any number of outcomes before it was restarted.
    last = max(name for name in arrays if "record" in name)
    del changes[f"{last}: longer"]
    assert len(changes) > 150
    refused({**changes, **value_changes(arrays)}, checkpoint, tmp_path / "copy.h5", go_on)


def test_altered_amplitudes_of_checkpoints(checkpoint: Path, tmp_path: Path, readers: None) -> None:
    values = arrays_of(checkpoint)["amplitudes"]
    changes = {
        "nan": amplitudes(with_value(values, np.nan)),
        "inf": amplitudes(with_value(values, complex(0, np.inf))),
        "zero": amplitudes(0 * values),
        "large": amplitudes(1e200 * values),
        "norm": amplitudes(1.1 * values),
        "checksums": put("checksums", np.zeros((1, 32), np.uint8)),
        "no checksums": put("checksums", np.zeros((0, 32), np.uint8)),
        "three checksums": put("checksums", np.zeros((3, 32), np.uint8)),
        "short checksums": put("checksums", np.zeros((1, 31), np.uint8)),
    }
    refused(changes, checkpoint, tmp_path / "copy.h5", go_on)


def attribute_changes() -> dict[str, Change]:
    bits = [0, 1, 2, 3, 4, 5]
    empty = np.zeros(0, np.int64)
    orders = [[*bits[:5], 4], [*bits[:5], 6], [-1, *bits[1:]], [*bits[:5], 2**62], bits[:-1], [*bits, 6]]
    others = [np.zeros(6, np.int64), empty, np.array(bits, float), [bits], 3, "012345"]
    values: dict[str, list[Any]] = {
        "qubits": [None, 0, -1, 5, 7, 63, 2**40, "6", 6.0, np.nan, bits, empty, h5py.Empty("i8")],
        "precision": [None, "single", "half", "", 2, np.arange(3), h5py.Empty("S1")],
        "bits": [None, *orders, *others, h5py.Empty("i8")],
        "flips": [None, -1, 64, HUGE, 0.0, np.nan, [0], "0", h5py.Empty("u8")],
        "about": [None, "", "[]", "{", "3", "null", "[" * 50000, "1" * 5000, 3, np.arange(3), b"\xff\xfe"],
    }
    return {f"{name} {str(one)[:20]}": give(name, one) for name, each in values.items() for one in each}


def about_changes(about: dict[str, Any]) -> dict[str, Change]:
    values = [None, -1, 1e300, 2**70, 10**400, 0.5, "x", "\ud800", [], {}, [[]], True, np.nan]
    found = {}
    for place, part in ((None, about), ("settings", about["settings"])):
        for name, was in part.items():
            for value in [*values, "gone"]:
                if name == "circuit" and isinstance(value, str) and value != "gone":  # a name is arbitrary
                    continue
                if name == "fidelity_estimate" and value in (0.5, True):  # another estimate, and equal to 1
                    continue
                changed = {**part, name: value}
                if value == "gone":
                    del changed[name]
                assert changed != {**part, name: was}
                whole = changed if place is None else {**about, place: changed}
                found[f"{place} {name} {value!r:.20}"] = give("about", json.dumps(whole))
    return found


def test_altered_attributes_of_checkpoints(checkpoint: Path, tmp_path: Path, readers: None) -> None:
    with h5py.File(checkpoint) as stored:
        about = json.loads(stored.attrs["about"])
    changes = attribute_changes() | about_changes(about)
    assert len(changes) > 150
    refused(changes, checkpoint, tmp_path / "copy.h5", go_on)


def test_all_ranks_refuse_an_altered_checkpoint(checkpoint: Path, tmp_path: Path, readers: None) -> None:
    values = arrays_of(checkpoint)["more/shots_0"]
    for change in (put("more/shots_0", with_value(values, 10**11)), amplitudes(np.zeros(64, complex))):
        file = altered(checkpoint, tmp_path / "copy.h5", change)

        def read(group: Group, file: Path = file) -> str:
            with pytest.raises(BadInput) as caught:
                go_on(file, group)
            return str(caught.value)

        texts = run_threads(2, read)
        assert texts[0] == texts[1]
        assert "is damaged" in texts[0]


def test_ranks_end_with_bad_input(tmp_path: Path, ranks: Ranks) -> None:
    """The commands on two ranks, which read the file in a separate process."""
    pytest.importorskip("qiskit")
    from onehop.quantum import load_qasm

    program, file = ranks.folder / "a.qasm", tmp_path / "run.h5"
    program.write_text(
        'OPENQASM 2.0; include "qelib1.inc"; qreg q[4]; creg c[4]; h q[0]; measure q[0] -> c[0]; h q[1]; cx q[1],q[2];'
        "measure q -> c;"
    )
    killed_at(1, load_qasm(program), file, 1, ())
    shots = arrays_of(file)["more/shots_0"]
    change = put("more/shots_0", with_value(shots, 10**11))
    bad = altered(file, tmp_path / "bad.h5", change)
    what = ["run", program, "--shots", 50, "--seed", 3, "-n", 2, "--checkpoint"]
    refusal = ranks.onehop(*what, bad, status=2)
    assert "found shot 100000000000" in refusal.stderr
    assert "Traceback" not in refusal.stderr
    assert ranks.onehop(*what, file).returncode == 0


def test_altered_states(state: Path, tmp_path: Path, readers: None) -> None:
    arrays = arrays_of(state)
    changes = {
        f"{name}: {how}": change
        for name, values in arrays.items()
        for how, change in data_set_changes(name, values).items()
    }
    changes |= attribute_changes()
    changes |= {"nan": amplitudes(with_value(arrays["amplitudes"], np.nan))}
    refused(changes, state, tmp_path / "copy.h5", quantum.State.load)


@pytest.mark.parametrize("seed", [1, 2])
def test_damaged_checkpoints_and_states(
    checkpoint: Path, state: Path, tmp_path: Path, readers: None, seed: int
) -> None:
    """Most random alterations are detected, and the others do not change the result."""
    expected = quantum.simulate(mixed_circuit(1), shots=50, seed=3).counts
    vector = quantum.State.load(state).vector()
    wrong = 0
    for copy in damaged_copies(checkpoint, tmp_path / "copy.h5", seed, 80):
        try:
            assert go_on(copy).counts == expected
        except BadInput:
            wrong += 1
    for copy in damaged_copies(state, tmp_path / "copy.h5", seed, 80):
        try:
            assert np.array_equal(quantum.State.load(copy).vector(), vector)
        except BadInput:
            wrong += 1
    assert wrong > 80


MEASURED = """
import resource, sys
from onehop import BadInput, quantum

def peak():
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) << 10

quantum.State(2).save(sys.argv[2])
quantum.State.load(sys.argv[2])
before = peak()
try:
    quantum.State.load(sys.argv[1])
except BadInput as error:
    assert "is damaged" in str(error) or "cannot read" in str(error), error
else:
    sys.exit("it was accepted")
print(peak() - before)
"""


@pytest.mark.parametrize("how", ["amplitudes", "chunks", "more"])
def test_a_small_file_that_claims_much_takes_little_memory(state: Path, tmp_path: Path, how: str) -> None:
    def change(stored: Any) -> None:
        chunks = {"chunks": (1 << 16,), "compression": "gzip"} if how != "amplitudes" else {}
        if how == "more":
            stored.create_dataset("more/done", (1 << 35,), np.uint8, **chunks)
            return
        stored.attrs["qubits"], stored.attrs["bits"] = 31, np.arange(31)
        del stored["amplitudes"], stored["checksums"]
        stored.create_dataset("amplitudes", (1 << 31,), np.complex128, **chunks)
        stored["checksums"] = np.zeros((1 << 13, 32), np.uint8)

    copy = tmp_path / "copy.h5"
    copy.write_bytes(state.read_bytes())
    with h5py.File(copy, "r+") as stored:
        change(stored)
        if how != "more":  # computing its digest would take 32 GiB
            from onehop.hdf5_child import digest

            stored.attrs["digest"] = digest(stored)
    size = copy.stat().st_size
    assert size < 1 << 20
    done = completed(
        [sys.executable, "-c", MEASURED, str(copy), str(tmp_path / "other.h5")], timeout=120, status=0
    )
    assert int(done.stdout) < 10 * size + (64 << 20)
