"""Reading of HDF5 files in a separate process.

Damaged HDF5 files can crash or hang the HDF5 library, or make it allocate any amount of memory. Therefore a child
process with limits on its time and memory reads the file and answers one question about it (`hdf5_child`).
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import numpy as np

from onehop.error import BadInput
from onehop.launch.environment import variables
from onehop.output import file_path

# Time limit of the child: _SECONDS plus the size of the file over _BYTES_PER_SECOND, at most _MAX_SECONDS; and the same
# with _CPU_SECONDS of processor time, which ends the reading of most damaged files. Only that one says that a file is
# damaged, because on a busy machine a child can wait for long before it runs.
_SECONDS, _CPU_SECONDS = 60, 3
_BYTES_PER_SECOND = 32 << 20
_MAX_SECONDS = 24 * 3600


def _paths() -> list[str]:
    """Find the folders of NumPy and h5py, which an isolated Python may not search by itself.

    The current folder is excluded, so that a file h5py.py in it is not imported.
    """
    here = Path.cwd()
    folders = [folder for folder in sys.path if folder and Path(folder).absolute() != here]
    found = PathFinder.find_spec("h5py", folders)
    if found is None or found.origin is None:
        raise BadInput("HDF5 files need h5py: `pip install h5py`")
    return [str(Path(origin).absolute().parents[1]) for origin in (str(np.__file__), found.origin)]


def require_h5py() -> None:
    """Check that h5py is installed."""
    _paths()


def file_size(file: str | Path, what: str) -> int:
    """Return the size of a regular file in bytes; raise BadInput if there is none."""
    try:
        status = file_path(file, f"cannot read {what}").stat()
    except (OSError, ValueError) as error:
        raise BadInput(
            f"cannot read {what} from {file}: {getattr(error, 'strerror', None) or error}"
        ) from error
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(f"cannot read {what} from {file}: expected a file, found a folder or a device")
    return status.st_size


def ask(
    file: str | Path, what: str, question: dict[str, Any], size: int | None = None
) -> tuple[dict[str, Any], bytes]:
    """Read a file in a child process; return its answer and the bytes of the arrays that it lists, not checked yet.

    `size` is that of the file when its memory was asked for, if it was.
    """
    size = file_size(file, what) if size is None else size
    seconds = min(_SECONDS + size // _BYTES_PER_SECOND, _MAX_SECONDS)
    message = {
        **question,
        "file": str(Path(file).absolute()),
        "size": size,
        "seconds": min(_CPU_SECONDS + size // _BYTES_PER_SECOND, _MAX_SECONDS),
        "paths": _paths(),
    }
    begin = f"cannot read {what} from {file}"
    try:
        done = _run(message, seconds)
    except subprocess.TimeoutExpired:
        raise BadInput(
            f"{begin}: reading it did not end within {seconds} seconds: the machine or its disks are busy, or the file "
            "is damaged; try again, or take another copy"
        ) from None
    except OSError as error:
        raise BadInput(f"{begin}: the process that reads it cannot be started: {error.strerror}") from error
    line, _, data = done.stdout.partition(b"\n")
    if done.returncode == -signal.SIGXCPU:
        raise BadInput(
            f"{begin}: it is damaged, reading it did not end within {message['seconds']} seconds; take another copy"
        )
    if done.returncode != 0:
        raise BadInput(f"{begin}: {_why(done)}; take another copy")
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{begin}: it is damaged; take another copy") from error
    if not isinstance(answer, dict) or "error" in answer:
        why = answer.get("error") if isinstance(answer, dict) else "it is damaged"
        raise BadInput(f"{begin}: {why}; take another copy, or name another file")
    return answer, data


def _run(question: dict[str, Any], seconds: float) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in variables()}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-I", str(Path(__file__).with_name("hdf5_child.py"))],
        input=json.dumps(question).encode(),
        capture_output=True,
        env=environment,
        timeout=seconds,
        check=False,
    )


def _why(done: subprocess.CompletedProcess[bytes]) -> str:
    """Say why there is no answer: a crash, or an environment in which nothing can be read."""
    if done.returncode < 0:
        words = signal.strsignal(-done.returncode) or f"signal {-done.returncode}"
        if done.returncode in (-signal.SIGKILL, -signal.SIGTERM):
            return (
                f"the process that reads it was ended from outside ({words}), for example for want of memory"
            )
        return f"it is damaged, and crashed the process that read it ({words})"
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else f"the process that read it ended with exit code {done.returncode}"
