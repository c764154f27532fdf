"""Checkpoint files, from which a simulation resumes on any number of ranks."""

from __future__ import annotations

import hashlib
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum.circuit import Circuit
from onehop.quantum.io.state_file import agree, check_state_file, read_state_together, write_state
from onehop.quantum.io.stored_state import StoredState, damaged
from onehop.quantum.run.checkpoint_state import check_settings, checkpoint_arrays, checkpoint_state_of
from onehop.quantum.run.serialization import to_values

__all__ = ["Checkpoints", "circuit_digest"]

# Of the squared norm; millions of gates in single precision stay within.
_NORM_TOLERANCE = 0.1

_NO, _WRITE, _WRITE_AND_END = 0, 1, 2


def circuit_digest(circuit: Circuit) -> str:
    """A hash of what a circuit does: equal for equal operations, whatever its name."""
    digest = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, np.ndarray):
            digest.update(repr(value.shape).encode() + value.tobytes())
        elif isinstance(value, Mapping):
            add(list(value.items()))
        elif isinstance(value, (list, tuple)):
            digest.update(b"[")
            for item in value:
                add(item)
            digest.update(b"]")
        else:
            digest.update(repr(value).encode() + b",")

    values = to_values(circuit)
    add({**values, "head": values["head"][:2]})
    return digest.hexdigest()


class Checkpoints:
    """Writes checkpoints of one simulation, and reads the one from which it goes on. Collective.

    Parameters
    ----------
    file : path
        Where. If it exists, the simulation goes on from there.
    group : Group
    circuit : Circuit
    settings : mapping
        What the shots depend on besides the circuit; must be the same when the simulation goes on, but for None.
    every : float
        Seconds from one checkpoint to the next; infinity: only when a signal asks.

    Raises
    ------
    BadInput
        On every rank: no such folder, or a file that is damaged, no checkpoint, or of another circuit or settings.
    """

    def __init__(
        self, file: str | Path, group: Group, circuit: Circuit, settings: Mapping[str, Any], every: float
    ) -> None:
        if not every > 0:
            raise BadInput(f"expected more than 0 seconds from one checkpoint to the next, found {every}")
        self._file = Path(file)
        self._group = group
        self._every = every
        self._circuit = circuit
        self._digest = circuit_digest(circuit)
        self._wish = _NO
        self.written = 0
        self._stored: StoredState | None = None
        self._state: _core.CheckpointState | None = None
        wrong = ""
        try:
            check_state_file(file)
            exists = group.allgather(b"1" if self._file.exists() else b"")[0]
        except BadInput as error:
            wrong, exists = str(error), group.allgather(b"")[0]
        agree(group, wrong)
        self.settings = dict(settings)
        try:
            if exists:
                self._stored = self._read()
                self._state = checkpoint_state_of(self._stored, circuit)
        except BadInput as error:
            wrong = str(error)
        agree(group, wrong)
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
    def signals(self) -> Iterator[None]:
        """Inside, SIGUSR1 asks for a checkpoint, and SIGTERM for one and the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def asked(number: int, _frame: FrameType | None) -> None:
            wish = _WRITE_AND_END if number == signal.SIGTERM else _WRITE
            self._wish = max(self._wish, wish)

        saved = {number: signal.signal(number, asked) for number in (signal.SIGUSR1, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in saved.items():
                signal.signal(number, handler)

    def due(self) -> bool:
        """Whether a checkpoint is due now: the same answer on every rank."""
        mine = self._wish
        if mine == _NO and time.monotonic() - self._last >= self._every:
            mine = _WRITE
        self._wish = max(int(wish) for wish in self._group.allgather(str(mine).encode()))
        return self._wish != _NO

    def keep(self, state: _core.State, checkpoint: _core.CheckpointState) -> None:
        """Write a checkpoint; if SIGTERM has asked for it, the simulation ends here.

        Raises
        ------
        SystemExit
            Code 143, after SIGTERM.
        BadInput
            The file cannot be written.
        """
        wish = self._wish
        about = {
            "kind": "checkpoint",
            "circuit": self._circuit.name,
            "circuit_digest": self._digest,
            "settings": self.settings,
            "events": int(checkpoint.events),
            "runs": int(checkpoint.runs),
            "waiting": len(checkpoint.waiting),
        }
        # The C++ side speaks of wires here, which is what `bits` means until the circuit is done.
        write_state(self._file, state, self._group, about, checkpoint_arrays(checkpoint))
        self.written += 1
        self._wish = _NO
        self._last = time.monotonic()
        if wish == _WRITE_AND_END:
            raise SystemExit(128 + signal.SIGTERM)

    # -- going on ------------------------------------------------------------------------------------------------------

    @property
    def resumes(self) -> bool:
        """Whether there was a file to go on from."""
        return self._stored is not None

    def state(self) -> _core.CheckpointState | None:
        """Return the state to resume from, or None for a new simulation."""
        return self._state

    def restore(self, state: _core.State) -> None:
        """Write this rank's amplitudes from the file into a state whose layout is the checkpoint's."""
        assert self._stored is not None
        wrong = ""
        try:
            self._stored.fill(state.local(), state.rank)
        except BadInput as error:
            wrong = str(error)
        agree(self._group, wrong)
        self._check_norm(state)

    def _check_norm(self, state: _core.State) -> None:
        """A run's state has norm 1, but for what rounding adds up to."""
        local = state.local()
        mine = repr(float(np.vdot(local, local).real)).encode()
        norm = sum(float(one) for one in self._group.allgather(mine)[: state.ranks])
        if not abs(norm - 1) <= _NORM_TOLERANCE:
            raise damaged(self._file, f"expected a state of norm 1, found one of squared norm {norm:g}")

    def remove(self) -> None:
        """Remove the file: the run is done. On rank 0, for all."""
        if self._group.rank == 0:
            self._file.unlink(missing_ok=True)
