"""The software that onehop can use: which of it is here, found without importing any of it."""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from onehop.error import BadInput
from onehop.launch import MpiLauncher, find_mpi_launcher
from onehop.launch.interpreter import python_code

_MPI_QUESTION = "import json; from onehop import _core; print(json.dumps(_core.mpi_library()))"


def package_version(name: str) -> str | None:
    """The version of an installed Python package; None if there is none. Does not import it."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def mpi_library() -> dict[str, Any]:
    """The MPI library that onehop would load: `path` (empty: none), `abi`, `version`, `tried`.

    Asked in another process, so that a library that cannot be loaded in order harms nobody.
    """
    try:
        done = subprocess.run(
            python_code(_MPI_QUESTION), capture_output=True, text=True, timeout=30, check=False
        )
        return json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, OSError, ValueError, IndexError):
        return {
            "path": "",
            "abi": "",
            "version": "",
            "tried": ["looking for an MPI library ended its process"],
        }


def mpi_launcher(mpi: str | None = None) -> MpiLauncher | None:
    """The mpiexec that would be used; None if there is none."""
    try:
        return find_mpi_launcher(mpi)
    except BadInput:
        return None


def belong_together(library: str, abi: str, launcher: MpiLauncher) -> bool:
    """Whether an MPI library and an mpiexec are of one kind and one installation."""
    if (abi == "Open MPI") != (launcher.kind == "openmpi"):
        return False
    if launcher.library is None:
        return True  # a launcher elsewhere, as distributions have it; the kinds agree
    return Path(library).resolve().parent == Path(launcher.library).resolve().parent


def ucx_version() -> str | None:
    """The version of UCX; None without it."""
    bundled = [Path(folder) / "libucx/lib/libucp.so.0" for folder in sys.path if folder]
    for name in ["libucp.so.0", *(str(path) for path in bundled if path.exists())]:
        try:
            library = ctypes.CDLL(name)
            library.ucp_get_version_string.restype = ctypes.c_char_p
            return library.ucp_get_version_string().decode()
        except (OSError, AttributeError):
            continue
    return None


def cuda_devices() -> list[str]:
    """The names of NVIDIA's devices with the driver's version; empty without them."""
    program = shutil.which("nvidia-smi")
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
    """The CUDA version that the driver's library supports; None without it."""
    try:
        version = ctypes.c_int()
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
        return f"{version.value // 1000}.{version.value % 1000 // 10}"
    except (OSError, AttributeError):
        return None
