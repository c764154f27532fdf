"""Implement `-n RANKS` for all commands: the command starts itself again on several ranks."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from onehop.error import BadInput
from onehop.launch.environment import RESTARTED, current_launch
from onehop.text import counted


def ensure_ranks(
    ranks: int | None,
    arguments: Sequence[str] | None = None,
    *,
    default: int = 1,
    launcher: str = "local",
    mpi: str | None = None,
    bind: bool = True,
    grace: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Return on every one of `ranks` ranks of this command.

    Inside a launch of any kind that launch is used, and this returns at once; BadInput if it has another number of
    ranks. Otherwise the command is started again as `ranks` ranks (None: `default`), by the built-in launcher ("local")
    or an mpiexec ("mpi"), and this process ends with their exit code. One rank needs no launch, unless it is to run
    under MPI. `arguments` is the command line after `onehop`, by default that of this process. The built-in launcher
    sets the variables of `environment` beside those of this process.
    """
    inside = current_launch()
    if inside is not None:
        if ranks is not None and ranks != inside.ranks:
            raise BadInput(
                f"-n {ranks} was asked for, but this runs inside a launch of {counted(inside.ranks, 'rank')} "
                f"({inside.launcher}); leave -n out, or start {counted(ranks, 'rank')} there"
            )
        return
    ranks = default if ranks is None else ranks
    if ranks < 1:
        raise BadInput(f"expected at least 1 rank, found -n {ranks}")
    if ranks == 1 and launcher != "mpi":
        return
    from onehop.launch.interpreter import python_module
    from onehop.launch.local import Output, launch
    from onehop.launch.mpi import launch_under_mpi

    command = python_module("onehop", *(sys.argv[1:] if arguments is None else arguments))
    if launcher == "mpi":
        raise SystemExit(launch_under_mpi(ranks, command, mpi, bind=bind))
    variables = {**os.environ, RESTARTED: "1", **(environment or {})}
    raise SystemExit(
        launch(
            ranks,
            command,
            output=Output.RANK0,
            bind=bind,
            report=False,
            environment=variables,
            grace=grace,
        )
    )


def ensure_ranks_beside_mpi(ranks: int | None, mpi: str | None, *, default: int) -> None:
    """As `ensure_ranks`, for commands that compare with MPI: under an mpiexec if there is one, else without MPI.

    `mpi` is as for `find_mpi_launcher`, or "none". Raises BadInput if the MPI that was asked for is not here. Where a
    sandbox refuses what an mpiexec needs, none is used unless it was asked for.
    """
    launcher = "local"
    if current_launch() is None and mpi != "none":
        from onehop.launch.mpi import find_mpi_launcher
        from onehop.launch.sandbox import refused_to_mpiexec

        try:
            if mpi is not None or refused_to_mpiexec() is None:
                find_mpi_launcher(mpi)
                launcher = "mpi"
        except BadInput:
            if mpi is not None:
                raise
    ensure_ranks(ranks, default=default, launcher=launcher, mpi=mpi)
