"""Reference simulators of circuits. Each runs in its own process, in whichever environment has it."""

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
from typing import Any, ClassVar, TypeVar

import numpy as np

from onehop.error import BadInput, Error

REFERENCE_SIMULATORS = ("qiskit-aer", "qsim", "qulacs", "lightning.qubit", "lightning.kokkos", "prism-q")
GRADIENT_SIMULATORS = ("lightning.qubit", "lightning.kokkos", "qulacs", "prism-q")
_PACKAGES = {
    "qsim": "qsimcirq",
    "lightning.qubit": "pennylane-lightning",
    "lightning.kokkos": "pennylane-lightning-kokkos",
}
_KILL_AFTER = 600.0  # seconds that an answer may take, in addition to the time it was given to measure


@dataclass(frozen=True)
class Timing:
    """The times of consecutive runs of a circuit, and the amplitudes of the last one at the requested indices."""

    seconds: list[float]
    amplitudes: np.ndarray


class WorkerSimulator:
    """A simulator in its own process (`worker.py`). Raise ImportError if the given Python does not have it."""

    script = "worker.py"
    known: ClassVar[Sequence[str]] = REFERENCE_SIMULATORS

    def __init__(self, name: str, python: str, threads: int, kill_after: float = _KILL_AFTER) -> None:
        self.name = name
        self._kill_after = kill_after
        # A file instead of a pipe, because nothing reads a pipe meanwhile and a process that fills it would block.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        count = str(threads)
        # The script imports a module beside it, which a value of PYTHONSAFEPATH would prevent.
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": count,
            "RAYON_NUM_THREADS": count,
            "PYTHONSAFEPATH": "",
        }
        command = [python, str(Path(__file__).with_name(self.script)), name, count]
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

        timer = threading.Timer(self._kill_after + more, end)
        timer.daemon = True
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            status = self._process.wait()
            if late.is_set():
                raise Error(f"{self.name} gave no answer within {self._kill_after + more:g} s and was ended")
            self._said.seek(0)
            said = self._said.read().decode(errors="replace").strip().splitlines()[-1:]
            raise Error(f"{self.name} ended with status {status}{': ' + said[0] if said else ''}")
        return json.loads(line)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # reading reports its end
            self._process.stdin.write(json.dumps(request) + "\n")
        answer = self._read(request.get("seconds", 0))
        if "error" in answer:
            raise Error(f"{self.name}: {answer['error']}")
        return answer

    def load(self, gates: Sequence[Any], qubits: int, precision: str) -> list[str]:
        """Take a circuit, and return the settings in which it can run, the most promising one first."""
        return self._ask({"do": "load", "gates": gates, "qubits": qubits, "precision": precision})["settings"]

    def run(self, setting: str, seconds: float, indices: Sequence[int]) -> Timing:
        """Apply the circuit to |0...0>, repeatedly for `seconds` seconds and at least once."""
        answer = self._ask({"do": "run", "setting": setting, "seconds": seconds, "indices": list(indices)})
        numbers = np.array(answer["amplitudes"], np.float64)
        return Timing(answer["seconds"], numbers.view(np.complex128).reshape(-1))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()


class GradientSimulator(WorkerSimulator):
    """A simulator in its own process that differentiates (`gradient_worker.py`). Errors are those of its base."""

    script = "gradient_worker.py"
    known = GRADIENT_SIMULATORS

    def prepare(self, gates: Sequence[Any], terms: Sequence[Any], qubits: int, precision: str) -> None:
        """Take rotations with their angles and CX, and the terms of an observable."""
        self._ask({"do": "load", "gates": gates, "terms": terms, "qubits": qubits, "precision": precision})

    def differentiate(self, seconds: float) -> tuple[list[float], np.ndarray]:
        """Compute all derivatives repeatedly for `seconds` seconds, at least once; return the times and the last."""
        answer = self._ask({"do": "run", "setting": "default", "seconds": seconds, "indices": []})
        return answer["seconds"], np.array(answer["derivatives"], float)

    def evaluate(self, rows: np.ndarray, seconds: float) -> tuple[list[float], np.ndarray]:
        """Compute the expectation value for every row of angles; return the times and the last values."""
        answer = self._ask({"do": "many", "rows": rows.tolist(), "seconds": seconds})
        return answer["seconds"], np.array(answer["values"], float)


class ReadoutSimulator(WorkerSimulator):
    """A simulator in its own process that reads states out (`readout_worker.py`). Errors are those of its base."""

    script = "readout_worker.py"

    def prepare(self, gates: Sequence[Any], strings: Sequence[Any], qubits: int, precision: str) -> None:
        """Take a circuit and Pauli strings."""
        self._ask(
            {"do": "load", "gates": gates, "strings": strings, "qubits": qubits, "precision": precision}
        )

    def read(self, case: str, shots: int) -> tuple[list[float], np.ndarray]:
        """Run the circuit once and sample it, or evaluate the strings; return the time and what was read."""
        answer = self._ask({"do": case, "shots": shots, "seconds": 0})
        return answer["seconds"], np.array(answer["values"], float)


_Simulator = TypeVar("_Simulator", bound=WorkerSimulator)


def _pythons() -> Iterable[str]:
    """Yield this Python, then that of `make reference-simulators`, then the one that $ONEHOP_PEERS names.

    The second is looked for in the source tree that holds this file, and beside the environment of an installed
    copy. The current folder might belong to somebody else, so nothing in it is run.
    """
    yield sys.executable
    seen = set()
    for start in (Path(__file__).resolve().parents[4], Path(sys.prefix).resolve().parent):
        for folder in (".reference-simulators", ".peers"):  # the second is the name before 0.2
            path = start / folder / "bin" / "python"
            if path not in seen and (start / "pyproject.toml").is_file() and os.access(path, os.X_OK):
                seen.add(path)
                yield str(path)
    named = os.environ.get("ONEHOP_PEERS")
    if named:
        yield named


def find_simulators(
    names: Sequence[str],
    threads: int,
    kind: type[_Simulator] = WorkerSimulator,  # type: ignore[assignment]
) -> tuple[list[_Simulator], list[str]]:
    """Start the named simulators that are installed, as processes of this `kind`.

    Returns them, and for each one that is not installed a line with the reason and the remedy. Raises BadInput for a
    name that is none of the kind's.
    """
    unknown = [name for name in names if name not in kind.known]
    if unknown:
        raise BadInput(f"expected --peers among {', '.join(kind.known)}, found {unknown[0]!r}")
    there: list[_Simulator] = []
    missing = []
    for name in names:
        why = ""
        for python in _pythons():
            try:
                there.append(kind(name, python, threads))
                break
            except ImportError as error:
                why = str(error)
        else:
            package = _PACKAGES.get(name, name)
            missing.append(f"without {name} ({why}): `make reference-simulators`, or `pip install {package}`")
    return there, missing
