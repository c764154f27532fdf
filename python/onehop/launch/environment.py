"""Find the launch of this process from the variables that `onehop launch`, mpiexec, srun and torchrun set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from onehop.error import BadInput


@dataclass(frozen=True)
class Launched:
    """One rank of a launch.

    Attributes
    ----------
    launcher : str
        The launcher: "onehop launch", "Open MPI", "PMI" (MPICH and its relatives), "MVAPICH", "srun" or
        "torchrun".
    rank, ranks : int
        Rank of this process, and number of ranks.
    """

    launcher: str
    rank: int
    ranks: int


# Launchers in the order of preference, the innermost one first. Each has its variables for the rank and the number of
# ranks, and one more that must be set: SLURM_PROCID and RANK are also set for programs that run alone.
_MARKS = (
    ("onehop launch", "ONEHOP_RANK", "ONEHOP_RANKS", "ONEHOP_CONTROL"),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"),
    ("PMI", "PMI_RANK", "PMI_SIZE", "PMI_SIZE"),
    ("MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"),
    ("srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID"),
    ("torchrun", "RANK", "WORLD_SIZE", "MASTER_ADDR"),
)


def current_launch(environment: Mapping[str, str] | None = None) -> Launched | None:
    """The launch that this process is a rank of, or None outside a launch.

    Raises
    ------
    BadInput
        The variables of a launcher are set, but are not numbers; or some of those of `onehop launch` are missing.
    """
    environment = os.environ if environment is None else environment
    given = [name for name in _MARKS[0][1:] if environment.get(name)]
    if given and len(given) < len(_MARKS[0]) - 1:
        missing = " and ".join(name for name in _MARKS[0][1:] if name not in given)
        raise BadInput(
            f"expected {missing} in the environment beside {' and '.join(given)}, as `onehop launch` sets them: unset "
            f"{' and '.join(given)}, or start the program with `onehop launch`"
        )
    for launcher, rank, ranks, also in _MARKS:
        if all(environment.get(name) for name in (rank, ranks, also)):
            try:
                return Launched(launcher, int(environment[rank]), int(environment[ranks]))
            except ValueError:
                raise BadInput(
                    f"{rank} and {ranks} in the environment must be numbers, but they are {environment[rank]!r} and "
                    f"{environment[ranks]!r}: unset them, or start the program with {launcher}"
                ) from None
    return None


# Set for the ranks of a command that has started itself again (`ensure_ranks`).
RESTARTED = "ONEHOP_RESTARTED"


# The variables that `onehop launch` sets for its ranks.
OWN = ("ONEHOP_CONTROL", "ONEHOP_RANK", "ONEHOP_RANKS", "ONEHOP_LAUNCHER_PID", "ONEHOP_LAUNCHER_SPACE")


def variables() -> list[str]:
    """The names of all variables that tell a process its rank."""
    return sorted({*OWN, RESTARTED, *(name for _, *names in _MARKS for name in names)})


def check_paths(environment: Mapping[str, str] | None = None) -> None:
    """Check the variables that name a program or a library, which ranks would otherwise find missing one by one.

    A name of a library without a folder, such as libmpi.so.40, is for the system's loader to find. Raises BadInput.
    """
    environment = os.environ if environment is None else environment
    library, python = environment.get("ONEHOP_MPI", ""), environment.get("ONEHOP_PEERS", "")
    is_name = "/" not in library and ".so" in library
    if library not in ("", "none") and not is_name and not Path(library).is_file():
        raise BadInput(
            f"ONEHOP_MPI: expected the path of an MPI library (libmpi.so), or none, found '{library}', which is not a "
            "file; unset it, and `onehop doctor` lists the libraries of this machine"
        )
    if python and not (Path(python).is_file() and os.access(python, os.X_OK)):
        raise BadInput(
            f"ONEHOP_PEERS: expected the path of a Python interpreter, found '{python}', which is not an executable "
            "file; unset it, or run `make reference-simulators`"
        )
