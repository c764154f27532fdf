"""Other simulators of circuits, each in a process of its own, in whichever environment has it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from onehop.error import BadInput, Error

__all__ = ["CIRCUIT_PEERS", "Peer", "Timing", "WorkerPeer", "find_peers"]

CIRCUIT_PEERS = ("qiskit-aer", "qsim", "qulacs", "lightning.qubit", "lightning.kokkos")
_PACKAGES = {
    "qsim": "qsimcirq",
    "lightning.qubit": "pennylane-lightning",
    "lightning.kokkos": "pennylane-lightning-kokkos",
}
_PATIENCE = 600.0  # seconds for an answer, beside those that it was given to measure


@dataclass(frozen=True)
class Timing:
    """Runs of a circuit, one after the other.

    Attributes
    ----------
    seconds : list of float
        Of each run.
    amplitudes : array of complex
        Of the last one's state, at the indices that were asked for.
    """

    seconds: list[float]
    amplitudes: np.ndarray


class Peer(Protocol):
    """A simulator to compare with."""

    name: str
    version: str
    precisions: Sequence[str]

    def load(self, gates: Sequence[Any], qubits: int, precision: str) -> list[str]:
        """Take a circuit; the names of the settings in which it can be run, the likeliest first."""

    def run(self, setting: str, seconds: float, indices: Sequence[int]) -> Timing:
        """Take |0...0> through the circuit, as often as fits into so many seconds, at least once."""

    def close(self) -> None:
        """End it."""


class WorkerPeer:
    """A simulator in a process of its own (`worker.py`).

    Raises
    ------
    ImportError
        That Python does not have it.
    """

    def __init__(self, name: str, python: str, threads: int, patience: float = _PATIENCE) -> None:
        self.name = name
        self._patience = patience
        # A file, because nobody reads a pipe meanwhile, and who writes much into it would wait for ever.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        command = [python, str(Path(__file__).with_name("worker.py")), name, str(threads)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=environment,
            text=True,
            bufsize=1,
        )
        try:
            about = self._read()
        except Error as error:
            self.close()
            raise ImportError(str(error)) from error
        if "missing" in about:
            self.close()
            raise ImportError(about["missing"])
        self.version: str = about["version"]
        self.precisions: Sequence[str] = about["precisions"]

    def _read(self, more: float = 0) -> dict[str, Any]:
        assert self._process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(self._patience + more, end)
        timer.daemon = True
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            status = self._process.wait()
            if late.is_set():
                raise Error(f"{self.name} gave no answer within {self._patience + more:g} s and was ended")
            self._said.seek(0)
            said = self._said.read().decode(errors="replace").strip().splitlines()[-1:]
            raise Error(f"{self.name} ended with status {status}{': ' + said[0] if said else ''}")
        return json.loads(line)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its end is what reading finds
            self._process.stdin.write(json.dumps(request) + "\n")
        answer = self._read(request.get("seconds", 0))
        if "error" in answer:
            raise Error(f"{self.name}: {answer['error']}")
        return answer

    def load(self, gates: Sequence[Any], qubits: int, precision: str) -> list[str]:  # noqa: D102
        return self._ask({"do": "load", "gates": gates, "qubits": qubits, "precision": precision})["settings"]

    def run(self, setting: str, seconds: float, indices: Sequence[int]) -> Timing:  # noqa: D102
        answer = self._ask({"do": "run", "setting": setting, "seconds": seconds, "indices": list(indices)})
        numbers = np.array(answer["amplitudes"], np.float64)
        return Timing(answer["seconds"], numbers.view(np.complex128).reshape(-1))

    def close(self) -> None:  # noqa: D102
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()


def _pythons() -> Iterable[str]:
    """The one that runs this, then that of `make peers`, then what $ONEHOP_PEERS names.

    `make peers` puts it into the source tree, where this file is, or the environment with an installed copy. The
    current folder is somebody else's, perhaps, and nothing in it is run.
    """
    yield sys.executable
    seen = set()
    for start in (Path(__file__).resolve().parents[4], Path(sys.prefix).resolve().parent):
        path = start / ".peers" / "bin" / "python"
        if path not in seen and (start / "pyproject.toml").is_file() and os.access(path, os.X_OK):
            seen.add(path)
            yield str(path)
    named = os.environ.get("ONEHOP_PEERS")
    if named:
        yield named


def find_peers(names: Sequence[str], threads: int) -> tuple[list[WorkerPeer], list[str]]:
    """Start what there is of the simulators named.

    Returns
    -------
    list of WorkerPeer, list of str
        Those, and a line for each that is not there: why, and the remedy.

    Raises
    ------
    BadInput
        Nobody knows such a simulator.
    """
    unknown = [name for name in names if name not in CIRCUIT_PEERS]
    if unknown:
        raise BadInput(f"expected --peers among {', '.join(CIRCUIT_PEERS)}, found {unknown[0]!r}")
    there, missing = [], []
    for name in names:
        why = ""
        for python in _pythons():
            try:
                there.append(WorkerPeer(name, python, threads))
                break
            except ImportError as error:
                why = str(error)
        else:
            package = _PACKAGES.get(name, name)
            missing.append(f"without {name} ({why}): `make peers`, or `pip install {package}`")
    return there, missing
