"""Start ranks with the built-in launcher for one machine, and find out which launcher started this process.

The names are imported when they are first used: every command asks which launcher started it, and few start ranks.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onehop.exit_code import BAD_INPUT, FAILURE, PEER_LOST, exit_code, install_excepthook
    from onehop.launch.environment import Launched, current_launch
    from onehop.launch.local import Output, command_of, launch
    from onehop.launch.mpi import MpiLauncher, find_mpi_launcher, launch_under_mpi
    from onehop.launch.options import LaunchOptions
    from onehop.launch.ranks import ensure_ranks, ensure_ranks_beside_mpi
    from onehop.launch.result import LaunchResult, RankResult

__all__ = [
    "BAD_INPUT",
    "FAILURE",
    "PEER_LOST",
    "LaunchOptions",
    "LaunchResult",
    "Launched",
    "MpiLauncher",
    "Output",
    "RankResult",
    "command_of",
    "current_launch",
    "ensure_ranks",
    "ensure_ranks_beside_mpi",
    "exit_code",
    "find_mpi_launcher",
    "install_excepthook",
    "launch",
    "launch_under_mpi",
]
_MODULE_OF = {
    **dict.fromkeys(
        ("BAD_INPUT", "FAILURE", "PEER_LOST", "exit_code", "install_excepthook"), "onehop.exit_code"
    ),
    **dict.fromkeys(("Launched", "current_launch"), "onehop.launch.environment"),
    **dict.fromkeys(("Output", "command_of", "launch"), "onehop.launch.local"),
    **dict.fromkeys(("MpiLauncher", "find_mpi_launcher", "launch_under_mpi"), "onehop.launch.mpi"),
    "LaunchOptions": "onehop.launch.options",
    **dict.fromkeys(("ensure_ranks", "ensure_ranks_beside_mpi"), "onehop.launch.ranks"),
    **dict.fromkeys(("LaunchResult", "RankResult"), "onehop.launch.result"),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'onehop.launch' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
