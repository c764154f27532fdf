"""Checkpoint files, from which a simulation resumes on any number of ranks."""

from __future__ import annotations

import hashlib
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group, together
from onehop.output import check_name, file_path, remove_output
from onehop.quantum.circuit import Circuit
from onehop.quantum.io.state_file import (
    StoredState,
    check_state_file,
    damaged,
    read_state_together,
    require,
    write_state,
)
from onehop.quantum.precision import BLOCK_BITS, is_encoded
from onehop.quantum.run.serialization import pack
from onehop.text import counted

# Allowed deviation of the squared norm from 1; the rounding of millions of gates in single precision is smaller.
_NORM_TOLERANCE = 0.1

_NO, _WRITE, _WRITE_AND_END = 0, 1, 2


def circuit_digest(circuit: Circuit) -> str:
    """Return a hash of a circuit's qubits, classical bits and operations. The name of the circuit does not count."""
    return hashlib.sha256(pack(circuit, name="")).hexdigest()


def remove_checkpoint(file: str | Path) -> None:
    """Remove the checkpoint of a finished run, if it is there, with the files of a state on disk. Raises OSError."""
    import h5py

    place = check_name(file, "checkpoint")
    if place.exists():
        with h5py.File(place, locking=False) as stored:
            ends = ["", ".0", ".1"] if "number" in stored.attrs else [""]
        for end in ends:
            remove_output(f"{place}{end}")


class Checkpoints:
    """Writes the checkpoints of one simulation, and reads the checkpoint from which it resumes. Collective.

    `stored` is the part of the circuit that has a state. The settings, on which the shots depend, must equal those of
    the checkpoint; in `settings`, its values replace None.
    `written` is the number of checkpoints so far.
    """

    def __init__(
        self,
        file: str | Path,
        group: Group,
        circuit: Circuit,
        stored: _core.Circuit,
        settings: Mapping[str, Any],
        every: float,
        state_folder: str | Path | None = None,
    ) -> None:
        if not every > 0:
            raise BadInput(f"expected more than 0 seconds between checkpoints, found {every}")
        self._file = file_path(file, "checkpoint")
        self._place = check_name(file, "checkpoint")
        self._group = group
        self._every = every
        self._circuit = circuit
        self._digest = circuit_digest(circuit)
        self._request = _NO
        self.written = 0
        self._stored: StoredState | None = None
        self._state: _core.CheckpointState | None = None
        with together(group, f"cannot write {file}"):
            check_state_file(file)
            if state_folder is not None:
                _check_folder(self._place.parent, state_folder, group.size)
        self.settings = dict(settings)
        if group.allgather(b"1" if self._file.exists() else b"")[0]:
            with together(group):
                self._stored = self._read()
                self._state = CheckpointReader(self._stored, stored, circuit.clbits or circuit.qubits).state()
        self._last = time.monotonic()

    def _read(self) -> StoredState:
        stored = read_state_together(self._file, self._group)
        about = stored.about
        if about.get("kind") != "checkpoint":
            raise BadInput(f"{self._file} holds a state, but no checkpoint; give another name")
        check_settings(stored)
        if about["circuit_digest"] != self._digest:
            raise BadInput(
                f"{self._file} is a checkpoint of another circuit ('{about['circuit']}', digest "
                f"{about['circuit_digest'][:12]}), this one has digest {self._digest[:12]}; "
                f"remove the file to begin anew, or give another name"
            )
        for name, now in self.settings.items():
            then = about["settings"][name]
            if now is not None and now != then:
                raise BadInput(
                    f"{self._file} is a checkpoint of a run with {name} {then}, found {name} {now}; "
                    f"leave it the same, or remove the file to begin anew"
                )
        self.settings = about["settings"]
        return stored

    # -- writing -------------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, options: _core.ProgramOptions) -> Iterator[None]:
        """Write checkpoints in a `with` block that runs with these options, and resume from the one that there is.

        SIGUSR1 requests a checkpoint; SIGTERM requests one and then the end. Threads other than the main thread, which
        cannot handle signals, do without.
        """
        self.settings["seed"] = options.seed
        options.due, options.keep, options.restore = self.due, self.keep, self.restore
        if self._stored is not None:
            options.resume, options.state_kept = self._state, self._stored.number
        options.state_file = str(self._place)
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, _frame: FrameType | None) -> None:
            request = _WRITE_AND_END if number == signal.SIGTERM else _WRITE
            self._request = max(self._request, request)

        saved = {number: signal.signal(number, handle) for number in (signal.SIGUSR1, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in saved.items():
                signal.signal(number, handler)

    def due(self) -> bool:
        """Decide whether to write a checkpoint now. Collective; every rank gets the same answer."""
        mine = self._request
        if mine == _NO and time.monotonic() - self._last >= self._every:
            mine = _WRITE
        self._request = max(int(request) for request in self._group.allgather(str(mine).encode()))
        return self._request != _NO

    def keep(self, state: _core.State, checkpoint: _core.CheckpointState) -> None:
        """Write a checkpoint. Collective. After SIGTERM, end the simulation with code 143."""
        request = self._request
        about = {
            "kind": "checkpoint",
            "circuit": self._circuit.name,
            "circuit_digest": self._digest,
            "settings": self.settings,
            "events": int(checkpoint.events),
            "runs": int(checkpoint.runs),
            "waiting": len(checkpoint.waiting),
            "fidelity_estimate": checkpoint.fidelity_estimate,
        }
        # Until the circuit is done, `bits` lists the bits of wires instead of qubits.
        write_state(self._file, state, self._group, about, checkpoint_arrays(checkpoint), in_place=True)
        if state.file_number >= 0:
            state.turn_file()
        elif self._stored is not None and self._stored.number >= 0 and self._group.rank == 0:
            remove_output(self._stored.amplitudes)  # the new checkpoint has the amplitudes in it
        self.written += 1
        self._request = _NO
        self._last = time.monotonic()
        if request == _WRITE_AND_END:
            raise SystemExit(128 + signal.SIGTERM)

    # -- resuming ------------------------------------------------------------------------------------------------------

    @property
    def resumes(self) -> bool:
        """Whether the simulation resumes from a file."""
        return self._stored is not None

    def restore(self, state: _core.State) -> None:
        """Read this rank's amplitudes from the file into a state that has the checkpoint's layout. Collective."""
        assert self._stored is not None
        with together(self._group):
            self._stored.fill(state)
        norm = state.norm_squared()
        if not abs(norm - 1) <= _NORM_TOLERANCE:
            raise damaged(self._file, f"expected a state of norm 1, found one of squared norm {norm:g}")


def _check_folder(found: Path, folder: str | Path, ranks: int) -> None:
    """Check where a checkpoint of a state on disk is: the files of the state are a part of it."""
    if ranks > 1:
        raise BadInput(f"state_folder: expected 1 rank, found {ranks}; its threads share the work")
    if not Path(folder).is_dir() or not found.samefile(folder):
        raise BadInput(
            f"checkpoint: expected a file in the state_folder {folder}, whose files belong to it, found one in {found}"
        )


# The settings that a checkpoint stores, and their JSON types.
SETTINGS: Mapping[str, type] = {"seed": int, "shots": int, "precision": str, "observables": list}
_MAX_SHOTS = 1 << 31


def checkpoint_arrays(state: _core.CheckpointState) -> dict[str, NDArray[Any]]:
    """Return the arrays that a checkpoint stores besides the amplitudes."""
    arrays: dict[str, NDArray[Any]] = {
        "done": np.array(state.done, np.uint8),
        "clbits": np.array(state.clbits, np.uint8),
        "expectations": np.array(state.expectations, np.complex128),
        "outcomes": state.outcomes,
    }
    for number, (record, shots) in enumerate(state.waiting):
        arrays[f"record_{number}"] = np.array(record, np.uint8)
        arrays[f"shots_{number}"] = shots
    return arrays


def check_settings(stored: StoredState) -> None:
    """Check the settings that a checkpoint stores for its run."""
    about = stored.about
    settings = about.get("settings")
    for name in ("circuit", "circuit_digest"):
        if not isinstance(about.get(name), str):
            raise damaged(stored.file, f"its attribute {name} is missing or no text")
    if not isinstance(settings, dict) or settings.keys() != SETTINGS.keys():
        raise damaged(stored.file, f"expected the settings {', '.join(SETTINGS)}, found others")
    for name, kind in SETTINGS.items():
        has_type = type(settings[name]) is kind
        require(stored.file, has_type, f"{kind.__name__} as {name}", f"{settings[name]!r:.40}")
    shots, seed, precision = (settings[name] for name in ("shots", "seed", "precision"))
    in_range = 0 <= shots <= _MAX_SHOTS and 0 <= seed < 1 << 64
    limits = f"0 to {_MAX_SHOTS} shots and a seed below 2^64"
    require(stored.file, in_range, limits, f"{shots} shots and seed {seed}")
    # Too few amplitudes are not encoded.
    kept = "single" if is_encoded(precision) and stored.qubits < BLOCK_BITS else precision
    same = kept == stored.precision
    require(stored.file, same, f"a state in {precision} precision, as the run", f"one in {stored.precision}")
    are_texts = all(isinstance(one, str) for one in settings["observables"])
    require(stored.file, are_texts, "observables as texts")


class CheckpointReader:
    """Reads the state of a run of this circuit, which has no idle qubits, from its checkpoint; shots have `bits`."""

    def __init__(self, stored: StoredState, circuit: _core.Circuit, bits: int) -> None:
        self._bits = bits
        self._stored = stored
        self._circuit = circuit
        self._shots: int = stored.about["settings"]["shots"]
        self._runs = max(self._shots, 1)  # without shots a circuit runs once, as shot 0 would

    def state(self) -> _core.CheckpointState:
        """Return the checked state."""
        circuit, stored = self._circuit, self._stored
        qubits = f"a state of {counted(circuit.qubits, 'qubit')}"
        self._require(circuit.qubits == stored.qubits, qubits, stored.qubits)
        waiting = self._number("waiting", 1, self._runs)
        names = {"done", "clbits", "expectations", "outcomes"}
        names |= {f"{kind}_{number}" for kind in ("record", "shots") for number in range(waiting)}
        self._require(names == stored.more.keys(), f"the data sets of {waiting} runs in `more`")
        state = _core.CheckpointState()
        state.bits = list(stored.bits)
        state.done = self._bools("done", len(circuit.operations))
        state.clbits = self._bools("clbits", circuit.clbits + circuit.hidden_clbits)
        observables = len(stored.about["settings"]["observables"])
        expectations = self._array("expectations", np.complex128, observables)
        self._require(np.isfinite(expectations).all(), "finite expectation values")
        state.expectations = expectations.tolist()
        records = [self._record(number) for number in range(waiting)]
        self._check_tree(records)
        shots = self._waiting_shots(waiting)
        state.outcomes = self._outcomes(shots)
        state.events = self._number("events", 0, min(self._drawn(state.done), len(records[-1])))
        state.runs = self._number("runs", 0, self._runs - 1)
        estimate = stored.about.get("fidelity_estimate")
        is_estimate = type(estimate) is float and 0 <= estimate <= 1
        self._require(is_estimate, "0 to 1 as `fidelity_estimate`", f"{estimate!r:.40}")
        state.fidelity_estimate = estimate
        for record, mine in zip(records, shots, strict=True):
            state.add_waiting(record, mine)
        return state

    def _require(self, holds: Any, expected: str, found: object = "others") -> None:
        require(self._stored.file, holds, expected, found)

    def _number(self, name: str, low: int, high: int) -> int:
        value = self._stored.about.get(name)
        is_in_range = type(value) is int and low <= value <= high
        self._require(is_in_range, f"{low} to {high} as `{name}`", f"{value!r:.40}")
        return value

    def _array(self, name: str, kind: Any, length: int | None) -> NDArray[Any]:
        array = self._stored.more[name]
        fits = array.dtype == kind and array.ndim == 1 and length in (None, len(array))
        expected = f"{'any number' if length is None else length} of {np.dtype(kind)} in more/{name}"
        self._require(fits, expected, f"shape {array.shape} of {array.dtype}")
        return array

    def _bools(self, name: str, length: int | None) -> list[bool]:
        array = self._array(name, np.uint8, length)
        self._require((array < 2).all(), f"0 and 1 in more/{name}", max(array, default=0))
        return array.astype(bool).tolist()

    def _record(self, number: int) -> list[bool]:
        """Read the outcomes of a run, which are at most as many as the circuit has measurements and resets."""
        record = self._bools(f"record_{number}", None)
        most = self._drawn([True] * len(self._circuit.operations))
        self._require(len(record) <= most, f"at most {counted(most, 'outcome')} of a run", len(record))
        return record

    def _drawn(self, done: Sequence[bool]) -> int:
        """Count the outcomes that these operations have drawn."""
        pairs = zip(self._circuit.operations, done, strict=True)
        return sum(len(one.targets) for one, is_done in pairs if is_done and one.kind in ("measure", "reset"))

    def _check_tree(self, records: Sequence[list[bool]]) -> None:
        """Check that each waiting run differs from the one under way in its last outcome only, at increasing depth."""
        *waiting, current = records
        before = 0
        for record in waiting:
            last = len(record) - 1
            branches = last >= before and current[: last + 1] == [*record[:-1], not record[-1]]
            self._require(branches, "runs that branch off the one under way")
            before = last + 1

    def _waiting_shots(self, waiting: int) -> Sequence[NDArray[np.uint64]]:
        """Read the shots of each waiting run, and check that no shot waits in two runs."""
        shots = [self._array(f"shots_{number}", np.uint64, None) for number in range(waiting)]
        together = np.concatenate(shots)
        self._require(all(len(one) for one in shots), "shots for each run that is to be made", "none")
        last = f"shot {together.max()}"
        self._require(together.max() < self._runs, f"shots 0 to {self._runs - 1}", last)
        is_once = len(np.unique(together)) == len(together)
        self._require(is_once, "each shot in one run at most", "one in several")
        return shots

    def _outcomes(self, waiting: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
        """Read the outcomes of the shots; waiting shots and bits beyond the classical bits must be 0."""
        clbits = self._bits
        words = (clbits + 63) // 64
        outcomes = self._array("outcomes", np.uint64, self._shots * words)
        if self._shots == 0:
            return outcomes
        of_shot = outcomes.reshape(self._shots, words)
        beyond = clbits % 64 != 0 and (of_shot[:, -1] >> np.uint64(clbits % 64)).any()
        self._require(not beyond, f"outcomes of {clbits} bits", "more bits")
        early = of_shot[np.concatenate(waiting)].any()
        self._require(not early, "no outcomes of shots that wait for a run", "some")
        return outcomes
