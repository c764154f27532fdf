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

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group, together
from onehop.output import file_path
from onehop.quantum.circuit import Circuit
from onehop.quantum.io.state_file import check_state_file, read_state_together, write_state
from onehop.quantum.io.stored_state import StoredState, damaged
from onehop.quantum.run.checkpoint_state import CheckpointReader, check_settings, checkpoint_arrays
from onehop.quantum.run.serialization import pack

# Allowed deviation of the squared norm from 1; the rounding of millions of gates in single precision is smaller.
_NORM_TOLERANCE = 0.1

_NO, _WRITE, _WRITE_AND_END = 0, 1, 2


def circuit_digest(circuit: Circuit) -> str:
    """Return a hash of a circuit's qubits, classical bits and operations. The name of the circuit does not count."""
    return hashlib.sha256(pack(circuit, name="")).hexdigest()


class Checkpoints:
    """Writes the checkpoints of one simulation, and reads the checkpoint from which it resumes. Collective.

    The settings, on which the shots depend, must equal those of the checkpoint; in `settings`, its values replace None.
    `written` is the number of checkpoints so far.
    """

    def __init__(
        self, file: str | Path, group: Group, circuit: Circuit, settings: Mapping[str, Any], every: float
    ) -> None:
        if not every > 0:
            raise BadInput(f"expected more than 0 seconds between checkpoints, found {every}")
        self._file = file_path(file, "checkpoint")
        self._group = group
        self._every = every
        self._circuit = circuit
        self._digest = circuit_digest(circuit)
        self._request = _NO
        self.written = 0
        self._stored: StoredState | None = None
        self._state: _core.CheckpointState | None = None
        with together(group):
            check_state_file(file)
        self.settings = dict(settings)
        if group.allgather(b"1" if self._file.exists() else b"")[0]:
            with together(group):
                self._stored = self._read()
                self._state = CheckpointReader(self._stored, circuit).state()
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
        if self._state is not None:
            options.resume = self._state
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
        }
        # Until the circuit is done, `bits` lists the bits of wires instead of qubits.
        write_state(self._file, state, self._group, about, checkpoint_arrays(checkpoint))
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
            self._stored.fill(state.local(), state.rank)
        norm = state.norm_squared()
        if not abs(norm - 1) <= _NORM_TOLERANCE:
            raise damaged(self._file, f"expected a state of norm 1, found one of squared norm {norm:g}")
