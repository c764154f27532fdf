"""Emulated hosts for tests, made once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts_runner import OnHosts
from onehop import BadInput
from onehop.hosts import EmulatedHosts, Unavailable, emulated_hosts
from onehop.launch.mpi import find_mpi_launcher


@pytest.fixture(scope="session")
def hosts() -> Iterator[EmulatedHosts]:
    """Two hosts with a link of 1 Gbit/s."""
    try:
        find_mpi_launcher("openmpi")
        made = emulated_hosts(2, "1gbit")
        two = made.__enter__()
    except (BadInput, Unavailable) as error:
        pytest.skip(str(error))
    try:
        yield two
    finally:
        made.__exit__(None, None, None)


@pytest.fixture
def on_hosts(hosts: EmulatedHosts, tmp_path: Path) -> OnHosts:
    """The two hosts, and a way to run programs on them."""
    return OnHosts(hosts, tmp_path)
