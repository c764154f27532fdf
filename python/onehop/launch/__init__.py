"""Start ranks with the built-in launcher for one machine, and find out which launcher started this process.

The names are imported when they are first used: every command asks which launcher started it, and few start ranks.
"""

from __future__ import annotations

import importlib
import types
from typing import TYPE_CHECKING, Any

from onehop.error import with_explained_errors

if TYPE_CHECKING:
    from onehop.exit_code import BAD_INPUT as BAD_INPUT
    from onehop.exit_code import FAILURE as FAILURE
    from onehop.exit_code import PEER_LOST as PEER_LOST
    from onehop.exit_code import exit_code as exit_code
    from onehop.exit_code import install_excepthook as install_excepthook
    from onehop.launch.environment import Launched as Launched
    from onehop.launch.environment import current_launch as current_launch
    from onehop.launch.local import Output as Output
    from onehop.launch.local import command_of as command_of
    from onehop.launch.local import launch as launch
    from onehop.launch.mpi import MpiLauncher as MpiLauncher
    from onehop.launch.mpi import find_mpi_launcher as find_mpi_launcher
    from onehop.launch.mpi import launch_under_mpi as launch_under_mpi
    from onehop.launch.options import LaunchOptions as LaunchOptions
    from onehop.launch.ranks import ensure_ranks as ensure_ranks
    from onehop.launch.ranks import ensure_ranks_beside_mpi as ensure_ranks_beside_mpi
    from onehop.launch.result import LaunchResult as LaunchResult
    from onehop.launch.result import RankResult as RankResult

_NAMES = {
    "onehop.exit_code": ["BAD_INPUT", "FAILURE", "PEER_LOST", "exit_code", "install_excepthook"],
    "onehop.launch.environment": ["Launched", "current_launch"],
    "onehop.launch.local": ["Output", "command_of", "launch"],
    "onehop.launch.mpi": ["MpiLauncher", "find_mpi_launcher", "launch_under_mpi"],
    "onehop.launch.options": ["LaunchOptions"],
    "onehop.launch.ranks": ["ensure_ranks", "ensure_ranks_beside_mpi"],
    "onehop.launch.result": ["LaunchResult", "RankResult"],
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [*_MODULE_OF]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'onehop.launch' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    if isinstance(value, types.FunctionType):
        value = with_explained_errors(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
