"""Ranks of Open MPI that share a machine listen for no connections, unless the user has chosen the transports."""

from __future__ import annotations

import pytest

from ranks import Ranks

PROGRAM = """
    import os
    from pathlib import Path
    from onehop import Group
    def listening():
        mine = set()
        for file in Path("/proc/self/fd").iterdir():
            try:
                mine.add(str(file.readlink()))
            except OSError:
                continue
        found = set()
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in Path(table).read_text().splitlines()[1:]:
                words = line.split()
                listens = words[3] == "0A"
                if listens and f"socket:[{words[9]}]" in mine:
                    found.add(words[1])
        return found
    group = Group.world()
    assert (group.origin, group.size) == ("mpi", 2)
    print("ports", len(listening()), os.environ.get("OMPI_MCA_btl"), flush=True)
    group.barrier()
"""


@pytest.mark.parametrize(("chosen", "listens"), [(None, False), ("self,sm,tcp", True)])
def test_ports_of_ranks(ranks: Ranks, chosen: str | None, listens: bool) -> None:
    """The variable that says so to MPI is not left to programs that a rank starts."""
    if chosen:
        ranks.environment["OMPI_MCA_btl"] = chosen
    done = ranks.mpiexec(2, ranks.script(PROGRAM), mpi="openmpi")
    assert done.returncode == 0, done.stderr
    said = [line.split() for line in done.stdout.splitlines() if line.startswith("ports")]
    assert len(said) == 2, done.stdout
    for _, ports, variable in said:
        assert (int(ports) > 0) == listens, done.stdout
        assert variable == str(chosen), done.stdout
