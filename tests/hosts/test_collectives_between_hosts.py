"""Collective operations between hosts in many layouts, over MPI and over UCX, bit by bit."""

import os
import re
import sys
from pathlib import Path

import pytest

from hosts_runner import PACKAGE, launched
from onehop import _core
from onehop_bench.hosts import EmulatedHosts

PROGRAM = Path(__file__).with_name("collectives_program.py")
LAYOUTS = Path(__file__).with_name("layouts_program.py")


@pytest.mark.parametrize("network", ["mpi", "ucx"])
@pytest.mark.parametrize("per_host", [1, 2])
def test_results_are_those_of_numpy(fast_hosts: EmulatedHosts, network: str, per_host: int) -> None:
    if network == "ucx" and not _core.ucx_library()["path"]:
        pytest.skip("no UCX library was found")
    environment = {"PYTHONPATH": str(PACKAGE), "ONEHOP_TIMEOUT": "60", "ONEHOP_NETWORK": network}
    words = [sys.executable, str(PROGRAM), network, str(2 * per_host + (network == "ucx"))]
    code, text = launched(fast_hosts, per_host, words, **environment)
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
    paths = os.pathsep.join(str(path) for path in (PACKAGE, PACKAGE.parent / "bench"))
    for network in networks:
        environment = {"PYTHONPATH": paths, "ONEHOP_TIMEOUT": "150", "ONEHOP_NETWORK": network}
        code, text = launched(own_hosts, [3, 2, 1], [sys.executable, str(LAYOUTS), network], **environment)
        assert code == 0, text
        assert len(re.findall(r"^right .*$", text, re.MULTILINE)) == 5, text
