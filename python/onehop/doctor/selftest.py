"""The two-rank test that `onehop doctor` runs for every transport.

Each rank runs `python -m onehop.doctor.selftest TRANSPORT`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import onehop
from onehop.launch.environment import variables
from onehop.launch.interpreter import python_module
from onehop.launch.mpi import MpiLauncher, mpi_command
from onehop.launch.refusal import reason_of, remedy_of
from onehop.text import seconds_text

TIME_LIMIT = 30.0
# Variables that MPI launchers set for the MPI library of a rank. A launch within a rank must not inherit them.
_LAUNCHER_PREFIXES = (
    "OMPI_COMM_WORLD_",
    "OMPI_FILE_",
    "PMIX_",
    "PMI_",
    "PRTE_LAUNCHED",
    "HYDI_",
    "HYDRA_",
    "MPI_LOCAL",
)
_EXTENTS = (8, 6)


@dataclass(frozen=True)
class Outcome:
    """The outcome of the test of a transport: the time of a small halo exchange, or what went wrong."""

    ok: bool
    text: str
    microseconds: float | None = None


def _check_channels(group: onehop.Group, transport: str) -> None:
    """Exchange messages of two lengths in both directions; the longer one does not fit in one chunk."""
    peer = 1 - group.rank
    for count in (1, 40_000):
        ends = group.channels(send={peer: 8 * count}, receive={peer: 8 * count}, transport=transport)
        got = np.zeros(count)
        for step in range(3):
            ends.send[peer].put(np.arange(count) + 1000.0 * group.rank + step)
            ends.receive[peer].get(got)
            if not np.array_equal(got, np.arange(count) + 1000.0 * peer + step):
                raise onehop.Error(
                    f"expected the {8 * count} bytes that rank {peer} sent over {transport}, found other values"
                )


def _check_halo(group: onehop.Group, transport: str) -> float:
    """Compare a periodic halo exchange with NumPy, and return its time in microseconds."""
    layout = {"extents": _EXTENTS, "grid": (group.size, 1), "corners": True}
    whole = np.arange(np.prod(_EXTENTS), dtype=float).reshape(_EXTENTS)
    block = onehop.halo_block(**layout, rank=group.rank)
    field = group.empty(block.shape)
    start, extent = block.start[0], block.extents[0]
    field[block.interior] = whole[start : start + extent]
    plan = onehop.Plan(onehop.halo(**layout), group, [field], transport=transport)
    plan.run()
    expected = np.pad(whole, 1, mode="wrap")[start : start + extent + 2]
    if transport != "mock" and not np.array_equal(field, expected):
        raise onehop.Error(
            f"expected the ghost layers that NumPy computes after a halo exchange over {transport}, found other values"
        )
    begin = time.perf_counter()
    for _ in range(repeats := 200):
        plan.run()
    return (time.perf_counter() - begin) / repeats * 1e6


def run_rank(transport: str) -> None:
    """Run the test on one of two ranks; rank 0 prints the time of a halo exchange as JSON."""
    group = onehop.Group.world()
    if group.size != 2:
        raise onehop.Error(f"expected a launch of 2 ranks, found {group.size} ({group.origin})")
    if transport != "mock":
        _check_channels(group, transport)
    microseconds = _check_halo(group, transport)
    group.barrier()
    if group.rank == 0:
        print(json.dumps({"microseconds": microseconds}))


def _run(command: Sequence[str], environment: Mapping[str, str]) -> Outcome:
    """Run a command in its own session, so that no process survives the time limit, and read its outcome."""
    hidden = variables()
    clean = {
        name: value
        for name, value in environment.items()
        if name not in hidden and not name.startswith(_LAUNCHER_PREFIXES)
    }
    try:
        with subprocess.Popen(
            command,
            env=clean,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, errors = process.communicate(timeout=TIME_LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.communicate(timeout=5)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                return Outcome(False, f"not done after {TIME_LIMIT:.0f} s")
    except OSError as error:
        remedy = remedy_of(error) or "does a sandbox refuse it?"
        return Outcome(False, f"could not run {command[0]!r}: {reason_of(error)}; {remedy}")
    if process.returncode == 0:
        for line in out.splitlines():
            if line.startswith("{"):
                microseconds = json.loads(line)["microseconds"]
                return Outcome(
                    True, f"right; {seconds_text(microseconds * 1e-6, 3)} for a small halo", microseconds
                )
    lines = [
        line for line in errors.splitlines() if "Error" in line or "error" in line
    ] or errors.splitlines()
    return Outcome(False, lines[0].strip() if lines else f"exit code {process.returncode} without a message")


def _rank_command(transport: str) -> list[str]:
    return python_module("onehop.doctor.selftest", transport)


def test_local(transport: str) -> Outcome:
    """Test a transport on two ranks of the built-in launcher."""
    command = python_module("onehop", "launch", "-n", "2", "--prefix", "raw", *_rank_command(transport))
    return _run(command, os.environ)


def test_mpi(launcher: MpiLauncher) -> Outcome:
    """Test the MPI transport on two ranks under an mpiexec."""
    command, environment = mpi_command(launcher, 2, _rank_command("mpi"))
    return _run(command, environment)


if __name__ == "__main__":
    run_rank(sys.argv[1])
