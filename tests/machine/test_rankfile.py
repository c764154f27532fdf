"""Exported maps under a real mpiexec: every rank sits where the file says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from onehop.cli import main
from onehop.error import BadInput
from onehop.launch.mpi import find_mpi_launcher

# Prints the rank that MPI's launcher gave this process, its host and the cores that it may run on.
WHERE = """
import os
rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK"))
print("rank", rank, "host", os.uname().nodename, "cores", *sorted(os.sched_getaffinity(0)), flush=True)
"""


def mpiexec(kind: str) -> str:
    try:
        return find_mpi_launcher(kind).path
    except BadInput as error:
        pytest.skip(str(error))


def where(arguments: list[str]) -> dict[int, tuple[str, list[int]]]:
    """Start ranks and return the host and the cores of each."""
    allowed = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    done = subprocess.run(
        [*arguments, sys.executable, "-c", WHERE],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | allowed,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = re.findall(r"rank (\d+) host (\S+) cores ((?:\d+ ?)+)", done.stdout)
    return {int(rank): (host, [int(core) for core in cores.split()]) for rank, host, cores in found}


def export(tmp_path: Path, form: str, ranks: int) -> Path:
    """Write the map of a line of ranks to this host."""
    file = tmp_path / "ranks"
    host = os.uname().nodename
    arguments = ["--grid", str(ranks), "--hosts", "1", "--per-host", str(ranks), "--host-names", host]
    assert main(["map", *arguments, "--rankfile", str(file), "--format", form]) == 0
    return file


def test_open_mpi_reads_the_rankfile(tmp_path: Path) -> None:
    program = mpiexec("openmpi")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2 or cores != list(range(len(cores))):
        pytest.skip(f"a slot of a rankfile is core 0 or 1 of the machine, and this process may use {cores}")
    file = export(tmp_path, "openmpi", 2)
    text = file.read_text()
    reversed_slots = tmp_path / "reversed"
    reversed_slots.write_text(
        text.replace("slot=0", "slot=x").replace("slot=1", "slot=0").replace("=x", "=1")
    )
    host = os.uname().nodename
    # The second file shows that the ranks do not sit on these cores anyway.
    for each in (file, reversed_slots):
        expected = {
            int(rank): (name, [int(slot)])
            for rank, name, slot in re.findall(r"rank (\d+)=(\S+) slot=(\d+)", each.read_text())
        }
        assert expected.keys() == {0, 1}
        found = where([program, "--host", f"{host}:2", "-n", "2", "--map-by", f"rankfile:file={each}"])
        assert found == expected


def test_mpich_reads_the_machine_file(tmp_path: Path) -> None:
    program = mpiexec("mpich")
    file = export(tmp_path, "mpich", 3)
    host = os.uname().nodename
    assert file.read_text() == f"{host}:3\n"
    found = where([program, "-f", str(file), "-launcher", "fork", "-n", "3"])
    assert {rank: name for rank, (name, _) in found.items()} == {0: host, 1: host, 2: host}
