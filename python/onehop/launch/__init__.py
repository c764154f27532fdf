"""Start ranks with the built-in launcher for one machine, and find out which launcher started this process."""

from onehop.exit_code import BAD_INPUT, FAILURE, PEER_LOST, exit_code, install_excepthook
from onehop.launch.environment import Launched, current_launch
from onehop.launch.local import Output, command_of, launch
from onehop.launch.mpi import MpiLauncher, find_mpi_launcher, launch_under_mpi
from onehop.launch.ranks import ensure_ranks, ensure_ranks_beside_mpi
from onehop.launch.result import LaunchResult, RankResult

__all__ = [
    "BAD_INPUT",
    "FAILURE",
    "PEER_LOST",
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
