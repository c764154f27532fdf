#!/usr/bin/env python3
"""Run a test program on emulated hosts: `run.py [--hosts 2] [--per-host 2] [--rate 1gbit] [--links 1] PROGRAM ARGS...`.

The ranks are started with Open MPI. Ends with 77 and the reason where hosts cannot be emulated.
"""

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Return the exit code of mpiexec."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--per-host", type=int, default=2)
    parser.add_argument("--rate", default="0")
    parser.add_argument("--links", type=int, default=1)
    parser.add_argument("--variable", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    given = parser.parse_args()

    from onehop.error import BadInput
    from onehop.launch.mpi import find_mpi_launcher
    from onehop_bench.hosts import Unavailable, emulated_hosts, launch_on_hosts

    try:
        find_mpi_launcher("openmpi")
        with emulated_hosts(given.hosts, given.rate, given.links) as hosts:
            # MPI keeps memory of its own until the end; other tests look for leaks of onehop's.
            leaks = ":".join(filter(None, ["detect_leaks=0", os.environ.get("ASAN_OPTIONS")]))
            variables = dict(one.split("=", 1) for one in given.variable)
            variables["ASAN_OPTIONS"] = leaks
            return launch_on_hosts(hosts, given.per_host, given.words, mpi="openmpi", environment=variables)
    except (BadInput, Unavailable) as error:
        print(f"skipped: {error}")
        return 77


if __name__ == "__main__":
    python = ROOT / ".venv/bin/python"
    if not python.exists():
        print("skipped: there is no .venv/bin/python, which starts the hosts")
        sys.exit(77)
    if Path(sys.prefix).resolve() != (ROOT / ".venv").resolve():
        os.execv(python, [str(python), *sys.argv])
    sys.exit(main())
