"""Collective operations between hosts in many layouts, over MPI and over UCX, bit by bit."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts_runner import PACKAGE
from onehop import BadInput, _core
from onehop.launch.mpi import find_mpi_launcher
from onehop_bench.hosts import EmulatedHosts, Unavailable, emulated_hosts, launch_on_hosts

PROGRAM = Path(__file__).with_name("collectives_program.py")
LAYOUTS = Path(__file__).with_name("layouts_program.py")


@pytest.fixture(scope="module")
def fast_hosts() -> Iterator[EmulatedHosts]:
    """Two hosts with a link that only the processor limits."""
    try:
        find_mpi_launcher("openmpi")
        made = emulated_hosts(2)
        two = made.__enter__()
    except (BadInput, Unavailable) as error:
        pytest.skip(str(error))
    yield two
    made.__exit__(None, None, None)


@pytest.mark.parametrize("network", ["mpi", "ucx"])
@pytest.mark.parametrize("per_host", [1, 2])
def test_results_are_those_of_numpy(fast_hosts: EmulatedHosts, network: str, per_host: int) -> None:
    if network == "ucx" and not _core.ucx_library()["path"]:
        pytest.skip("no UCX library was found")
    environment = {"PYTHONPATH": str(PACKAGE), "ONEHOP_TIMEOUT": "60", "ONEHOP_NETWORK": network}
    with tempfile.TemporaryFile("w+") as out, Path("/dev/null").open() as null:
        code = launch_on_hosts(
            fast_hosts,
            per_host,
            [sys.executable, str(PROGRAM), network, str(2 * per_host + (network == "ucx"))],
            environment=environment,
            descriptors=(null.fileno(), out.fileno(), out.fileno()),
        )
        out.seek(0)
        text = out.read()
    assert code == 0, text
    found = re.findall(r"^right (\d+) ([0-9a-f]{8})$", text, re.MULTILINE)
    assert len(found) == 2 * per_host, text
    assert len(set(found)) == 1, text
    assert int(found[0][0]) > 500


@pytest.mark.alone  # six ranks that poll need the cores
@pytest.mark.parametrize("own_hosts", [{"count": 3}], indirect=True, ids=["3 hosts"])
def test_results_and_bytes_on_unequal_hosts(own_hosts: EmulatedHosts) -> None:
    """Hosts with different numbers of ranks, also dealt in turns: NumPy's results, hardly more bytes than the least."""
    networks = ["mpi", "ucx"] if _core.ucx_library()["path"] else ["mpi"]
    for network in networks:
        paths = os.pathsep.join(str(path) for path in (PACKAGE, PACKAGE.parent / "bench"))
        environment = {"PYTHONPATH": paths, "ONEHOP_TIMEOUT": "150", "ONEHOP_NETWORK": network}
        with tempfile.TemporaryFile("w+") as out, Path("/dev/null").open() as null:
            code = launch_on_hosts(
                own_hosts,
                [3, 2, 1],
                [sys.executable, str(LAYOUTS), network],
                environment=environment,
                descriptors=(null.fileno(), out.fileno(), out.fileno()),
            )
            out.seek(0)
            text = out.read()
        assert code == 0, text
        assert len(re.findall(r"^right .*$", text, re.MULTILINE)) == 5, text
