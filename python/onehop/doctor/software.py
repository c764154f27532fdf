"""Find the software that onehop can use, without importing it."""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import subprocess
from pathlib import Path
from typing import Any

from onehop.error import BadInput
from onehop.launch import MpiLauncher, find_mpi_launcher
from onehop.launch.interpreter import find_program, python_code


def package_version(name: str) -> str | None:
    """Return the version of an installed Python package without importing it; None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _asked(function: str, none: dict[str, Any], what: str) -> dict[str, Any]:
    """Return what a function of the extension says in a process of its own; `none` if that process crashes."""
    question = f"import json; from onehop import _core; print(json.dumps(_core.{function}()))"
    try:
        done = subprocess.run(python_code(question), capture_output=True, text=True, timeout=30, check=False)
        return json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, OSError, ValueError, IndexError):
        return {**none, "tried": [f"the process that looked for {what} crashed or did not end"]}


def mpi_library() -> dict[str, Any]:
    """Describe the MPI library that onehop would load: `path` (empty: none), `abi`, `version`, `tried`.

    The library is loaded in another process, so that a crash while loading does not end this one.
    """
    return _asked("mpi_library", {"path": "", "abi": "", "version": ""}, "an MPI library")


def mpi_launcher(mpi: str | None = None) -> MpiLauncher | None:
    """Return the mpiexec that onehop would use; None if there is none."""
    try:
        return find_mpi_launcher(mpi)
    except BadInput:
        return None


def belong_together(library: str, abi: str, launcher: MpiLauncher) -> bool:
    """Whether an MPI library and an mpiexec are of the same kind and the same installation."""
    if (abi == "Open MPI") != (launcher.kind == "openmpi"):
        return False
    if launcher.library is None:
        return True  # Linux distributions install the launcher elsewhere; the kinds agree
    return Path(library).resolve().parent == Path(launcher.library).resolve().parent


def ucx_library() -> dict[str, Any]:
    """Describe the UCX library that onehop would use: `path` (empty: none), `version`, `networks`, `mode`, `tried`.

    It is loaded and started in another process, so that a crash does not end this one.
    """
    return _asked("ucx_library", {"path": "", "version": ""}, "a UCX library")


def cuda_devices() -> list[str]:
    """Return the names of the NVIDIA devices with the version of their driver; empty without devices."""
    program = find_program("nvidia-smi")
    if program is None:
        return []
    try:
        done = subprocess.run(
            [program, "--query-gpu=name,driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []


def cuda_driver() -> str | None:
    """Return the CUDA version that the driver library supports; None without a driver."""
    try:
        version = ctypes.c_int()
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
        return f"{version.value // 1000}.{version.value % 1000 // 10}"
    except (OSError, AttributeError):
        return None
