"""What docs/design/security.md says about ports on one machine."""

import os
import socket
from pathlib import Path

import pytest

import open_sockets
from onehop.launch.mpi import find_mpi_launcher
from ranks import Ranks

# Each rank prints the addresses at which it and its launcher listen.
PROGRAM = f"""
    import os, sys
    import numpy as np, onehop
    sys.path.insert(0, {str(Path(open_sockets.__file__).parent)!r})
    from open_sockets import internet_sockets
    group = onehop.Group.world()
    onehop.allreduce(group, np.ones(1))
    print("own", internet_sockets(os.getpid(), listening=True), flush=True)
    if "--launcher" in sys.argv:
        print("launcher", internet_sockets(os.getppid(), listening=True), flush=True)
    group.barrier()
"""


def test_a_listening_socket_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert f"tcp 0100007F:{port:04X}" in open_sockets.internet_sockets(os.getpid(), listening=True)


def test_the_ranks_of_a_launch_and_the_launcher_have_no_port(ranks: Ranks) -> None:
    done = ranks.onehop("launch", "-n", 2, ranks.script(PROGRAM), "--launcher")
    assert (done.stdout.count("own []"), done.stdout.count("launcher []")) == (2, 2), (
        done.stdout + done.stderr
    )


@pytest.mark.parametrize("without_tcp", [True, False])
def test_the_ports_of_ranks_of_open_mpi_are_those_of_open_mpi(ranks: Ranks, without_tcp: bool) -> None:
    if without_tcp:
        ranks.environment["OMPI_MCA_btl"] = "^tcp"
    done = ranks.mpiexec(2, ranks.script(PROGRAM), mpi="openmpi")
    listening = [line for line in done.stdout.splitlines() if "own" in line]
    assert len(listening) == 2, done.stdout + done.stderr
    assert ["own []" in line for line in listening] == [without_tcp] * 2, done.stdout
    if not without_tcp and "Open MPI) 5" in find_mpi_launcher("openmpi").version:
        assert all("tcp 00000000:" in line for line in listening), "security.md: on all interfaces"
