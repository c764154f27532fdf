"""Emulated hosts for tests: two that all tests of this folder share, and two of a test's own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hosts_runner import OnHosts
from onehop import BadInput
from onehop.launch.mpi import find_mpi_launcher
from onehop_bench.hosts import EmulatedHosts, Unavailable, emulated_hosts


@contextmanager
def _hosts(**settings: Any) -> Iterator[EmulatedHosts]:
    """Hosts, two by default; skips the test where they cannot be made."""
    with ExitStack() as stack:
        try:
            made = stack.enter_context(emulated_hosts(**settings))
        except Unavailable as error:
            pytest.skip(str(error))
        yield made


@pytest.fixture(scope="session")
def mpi() -> None:
    """Skips tests where there is no Open MPI."""
    try:
        find_mpi_launcher("openmpi")
    except BadInput as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def hosts(mpi: None) -> Iterator[EmulatedHosts]:
    """Two hosts with a link of 1 Gbit/s and an MPI, made once for all tests."""
    with _hosts(rate="1gbit") as two:
        yield two


@pytest.fixture(scope="module")
def fast_hosts(mpi: None) -> Iterator[EmulatedHosts]:
    """Two hosts with a link that only the processor limits, and an MPI."""
    with _hosts() as two:
        yield two


@pytest.fixture
def own_hosts(request: pytest.FixtureRequest) -> Iterator[EmulatedHosts]:
    """Hosts of a test's own, which it may break. An indirect parameter has the settings of `emulated_hosts`."""
    with _hosts(**getattr(request, "param", {})) as two:
        yield two


@pytest.fixture
def on_hosts(hosts: EmulatedHosts, tmp_path: Path) -> OnHosts:
    """The two hosts, and a way to run programs on them."""
    return OnHosts(hosts, tmp_path)
