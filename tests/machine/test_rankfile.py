"""Exported maps under a real mpiexec: every rank sits where the file says."""

import json
import os
import re
import sys
import tempfile
from pathlib import Path

import pytest

from onehop.cli import main
from onehop.error import BadInput
from onehop.launch.mpi import find_mpi_launcher
from ranks import completed

# Writes the host and the cores of a rank of MPI's launcher to a file; launchers may mix what ranks print.
WHERE = """
import os, pathlib, sys
rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK"))
where = [os.uname().nodename, *map(str, sorted(os.sched_getaffinity(0)))]
pathlib.Path(sys.argv[1], rank).write_text(" ".join(where))
"""


def mpiexec(kind: str) -> str:
    try:
        return find_mpi_launcher(kind).path
    except BadInput as error:
        pytest.skip(str(error))


def started(arguments: list[str], program: str) -> dict[int, list[str]]:
    """Start ranks that write words to a file each, and return these by rank."""
    allowed = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    with tempfile.TemporaryDirectory() as folder:
        completed(
            [*arguments, sys.executable, "-c", program, folder],
            timeout=120,
            env=os.environ | allowed,
            status=0,
        )
        return {int(file.name): file.read_text().split() for file in Path(folder).iterdir()}


def where(arguments: list[str]) -> dict[int, tuple[str, list[int]]]:
    """Start ranks and return the host and the cores of each."""
    found = started(arguments, WHERE)
    return {rank: (host, [int(core) for core in cores]) for rank, (host, *cores) in found.items()}


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


# Writes the host that Hydra's proxy stands for, and how many ranks share it.
SHARED = """
import os, pathlib, sys
words = os.environ["PMI_HOSTNAME"], os.environ["MPI_LOCALNRANKS"]
pathlib.Path(sys.argv[1], os.environ["PMI_RANK"]).write_text(" ".join(words))
"""


def hydra(arguments: list[str]) -> dict[int, tuple[str, int]]:
    """Return the host of each rank and the number of ranks there; all start on this host."""
    found = started([*arguments, "-launcher", "fork"], SHARED)
    return {rank: (host, int(ranks)) for rank, (host, ranks) in found.items()}


def test_mpich_places_ranks_on_two_hosts(tmp_path: Path) -> None:
    """The best map of a 2 x 4 grid on hosts of 4 has the ranks of each host in two runs."""
    program = mpiexec("mpich")
    file, hosts, map_file = (tmp_path / name for name in ("map", "hosts", "map.json"))
    arguments = ["--grid", "2x4", "--hosts", "2", "--per-host", "4", "--host-names", "alpha,beta"]
    texts = []
    for form in ("mpich", "mpich-rankmap"):
        more = ["--rankfile", str(file), "--format", form, "-o", str(map_file)]
        assert main(["map", *arguments, *more]) == 0
        texts.append(file.read_text())
    places = json.loads(map_file.read_text())["places"]
    expected = ["alpha" if rank < 4 else "beta" for rank in places]
    assert expected.count("alpha") == 4
    assert texts[0] != "alpha:4\nbeta:4\n"  # not the order without a map
    assert texts[1] == ",".join(str(int(host == "beta")) for host in expected) + "\n"
    file.write_text(texts[0])
    found = hydra([program, "-f", str(file), "-n", "8"])
    assert [found[rank][0] for rank in range(8)] == expected
    # Hydra takes the runs of a host for different nodes, so that ranks do not share memory across runs.
    assert {ranks for _, ranks in found.values()} == {2}
    hosts.write_text("alpha:4\nbeta:4\n")
    found = hydra([program, "-f", str(hosts), "-rankmap", texts[1].strip(), "-n", "8"])
    assert [found[rank][0] for rank in range(8)] == expected
    assert {ranks for _, ranks in found.values()} == {4}
