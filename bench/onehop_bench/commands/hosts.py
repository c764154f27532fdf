"""`onehop bench NAME --hosts 2`: start the command again on emulated hosts."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from onehop.error import BadInput
from onehop.launch import current_launch
from onehop.launch.interpreter import python_module
from onehop_bench.hosts import Unavailable, emulated_hosts, launch_on_hosts
from onehop_bench.hosts.launch import DESCRIPTION

__all__ = [
    "NO_HOSTS",
    "HostsOption",
    "LinksOption",
    "OnHosts",
    "PerHostOption",
    "RateOption",
    "ensure_hosts",
]

PASSED = (
    "ONEHOP_NETWORK",
    "ONEHOP_TIMEOUT",
    "ONEHOP_UCX",
    "UCX_",
)  # variables that ranks on hosts get as well
SKIPPED = 77  # the exit code of a test that cannot run here

HostsOption = Annotated[
    int | None,
    typer.Option(
        "--hosts",
        metavar="HOSTS",
        help="Measure between this many emulated hosts (2 to 4; needs root). Exit code 77 where they cannot be made.",
    ),
]
PerHostOption = Annotated[
    int | None, typer.Option("--per-host", metavar="RANKS", help="Ranks on each emulated host; 1 by default.")
]
RateOption = Annotated[
    str | None,
    typer.Option(
        "--rate", metavar="1gbit", help="Rate of each link between emulated hosts; 0, the default: no limit."
    ),
]
LinksOption = Annotated[
    int | None,
    typer.Option("--links", metavar="LINKS", help="Links of each emulated host, 1 to 3; 1 by default."),
]


@dataclass(frozen=True)
class OnHosts:
    """The options of emulated hosts as they were given; None where one was not."""

    hosts: int | None = None
    per_host: int | None = None
    rate: str | None = None
    links: int | None = None

    def check(self, ranks: int | None, mpi: str | None) -> None:
        """Raise BadInput if the options do not fit together, or with `-n` and `--mpi`."""
        given = {"--per-host": self.per_host, "--rate": self.rate, "--links": self.links}
        stray = [name for name, value in given.items() if value is not None]
        if self.hosts is None:
            if stray:
                raise BadInput(f"{stray[0]} describes emulated hosts: say how many with --hosts 2")
            return
        if current_launch() is not None and DESCRIPTION not in os.environ:
            raise BadInput("--hosts starts its own ranks: run it by itself, without a launcher")
        if ranks is not None:
            raise BadInput(f"expected --per-host beside --hosts {self.hosts}, found -n {ranks}")
        if mpi == "none":
            raise BadInput("ranks on several hosts are started with an MPI: leave out --mpi none")


NO_HOSTS = OnHosts()


def ensure_hosts(on: OnHosts, mpi: str | None) -> bool:
    """Return on every rank of this command on emulated hosts.

    Outside of them the hosts are made, the command is started again on them, and this process ends with its exit code.

    Parameters
    ----------
    on : OnHosts
        The checked options.
    mpi : str or None
        As for `find_mpi_launcher`.

    Returns
    -------
    bool
        Whether the command runs on emulated hosts.
    """
    if on.hosts is None:
        return False
    if DESCRIPTION in os.environ:
        return True
    per_host = 1 if on.per_host is None else on.per_host
    if per_host < 1:
        raise BadInput(f"expected --per-host of at least 1, found {per_host}")
    try:
        with emulated_hosts(on.hosts, on.rate, 1 if on.links is None else on.links) as hosts:
            words = python_module("onehop", *sys.argv[1:])
            passed = {name: value for name, value in os.environ.items() if name.startswith(PASSED)}
            code = launch_on_hosts(hosts, per_host, words, mpi=mpi, environment=passed)
    except Unavailable as error:
        print(f"skipped: {error}", file=sys.stderr)
        code = SKIPPED
    raise SystemExit(code)
