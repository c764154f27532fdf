"""Programs that onehop starts by name, and its Python processes, which import nothing from the current folder."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import site
import sys
from collections.abc import Mapping
from pathlib import Path

# Before 3.11 there is no -P, and -I would leave out $PYTHONPATH as well.
_WITHOUT_FOLDER = "import sys; del sys.path[0]; "
_AS_MODULE = (
    "import runpy; del sys.argv[0]; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Run between fork and exec: the new process gets SIGTERM when its parent ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def python_module(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module of onehop with this Python."""
    if sys.version_info >= (3, 11):
        return [sys.executable, "-P", "-m", module, *arguments]
    return [sys.executable, "-c", _WITHOUT_FOLDER + _AS_MODULE, module, *arguments]


def python_code(code: str, *arguments: str) -> list[str]:
    """The command line that runs code with this Python."""
    if sys.version_info >= (3, 11):
        return [sys.executable, "-P", "-c", code, *arguments]
    return [sys.executable, "-c", _WITHOUT_FOLDER + code, *arguments]


def package_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which a Python process finds this onehop, wherever this process found it."""
    made = dict(environment)
    package = str(Path(__file__).resolve().parents[2])
    installed = [*site.getsitepackages(), site.getusersitepackages()]
    if package not in [str(Path(folder).resolve()) for folder in installed]:
        made["PYTHONPATH"] = os.pathsep.join(filter(None, [package, made.get("PYTHONPATH")]))
    return made


def search_path() -> list[Path]:
    """Return the folders of PATH without those that begin in the current folder, which may be another user's."""
    return [folder for folder in map(Path, os.get_exec_path()) if folder.is_absolute()]


def find_program(name: str) -> str | None:
    """Return the path of a program in the folders of `search_path`; None if none of them has it."""
    return shutil.which(name, path=os.pathsep.join(map(str, search_path())) or os.devnull)
