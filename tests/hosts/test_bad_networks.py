"""Networks and libraries that do not fit: every rank gets one clear error, or goes on where that is possible."""

import shutil
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hosts_runner import run_without_mpi
from onehop import Group, Mismatch, _core
from onehop_bench.hosts import EmulatedHosts

needs_ucx = pytest.mark.skipif(not _core.ucx_library()["path"], reason="no UCX library was found")
PLAN = """
    array = np.zeros(halo_block(extents=[400], grid=[4], width=1, periodic=[True], rank=rank).shape)
    def plan():
        return Plan(halo(extents=[400], grid=[4], width=1, periodic=[True]), group, [array])
    def tells_error(act=plan):
        try:
            act()
        except Exception as error:
            print("error:", type(error).__name__, " ".join(str(error).split()), flush=True)
    def moved():
        from onehop.collectives import allreduce
        array[:] = rank
        one = plan()
        one.run()
        assert (array[0], array[-1]) == ((rank - 1) % 4, (rank + 1) % 4)
        assert (allreduce(group, np.full(500_000, rank + 1, np.float32)) == 10).all()
        return {channel["carrier"] for channel in one.explain()["channels"]}
"""


def _run(hosts: EmulatedHosts, folder: Path, source: str, **variables: str) -> list[str]:
    """Return what each rank writes; all end without an error."""
    results = run_without_mpi(hosts, folder, textwrap.dedent(PLAN) + textwrap.dedent(source), **variables)
    assert [code for code, _ in results] == [0] * 4, results
    return [text for _, text in results]


@needs_ucx
def test_an_interface_that_one_rank_does_not_have(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    results = _run(
        own_hosts,
        tmp_path,
        """
        import os
        if rank == 2:
            os.environ["UCX_NET_DEVICES"] = "eth7"
        tells_error()
        """,
    )
    for rank, text in enumerate(results):
        assert "names the interface 'eth7', which this machine does not have; it has" in text, (rank, text)
        assert rank == 2 or "on rank 2" in text, text


@needs_ucx
def test_ranks_that_ask_for_different_transports(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    results = _run(
        own_hosts,
        tmp_path,
        """
        from onehop import Mismatch
        other = rank ^ 1
        try:
            group.channels(send={other: 8}, receive={other: 8}, transport="shared_memory" if rank == 3 else "ucx")
        except Mismatch as error:
            print("mismatch:", error, flush=True)
        """,
    )
    for text in results:
        assert "mismatch:" in text, results
        assert "rank 3" in text or "rank 0" in text, text


@needs_ucx
def test_no_route_between_the_hosts(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """The cable is pulled before the ranks connect."""
    own_hosts.set_link(1, 0, up=False)
    results = _run(own_hosts, tmp_path, "tells_error(lambda: plan().run())", ONEHOP_TIMEOUT="5")
    for rank, text in enumerate(results):
        assert "error:" in text, (rank, text)
        assert "rank" in text, (rank, text)


def _drop_one_way(hosts: EmulatedHosts, link: int, of: int = 0) -> None:
    """Let the packets of a host vanish, and those of the other one arrive."""
    nobody = ["lladdr", "02:00:00:00:00:77", "nud", "permanent", "dev", f"e{link}"]
    hosts.output(of, ["ip", "neigh", "replace", hosts.hosts[1 - of].addresses[link], *nobody])


def _drop_packets(hosts: EmulatedHosts, link: int) -> None:
    for host in (0, 1):
        _drop_one_way(hosts, link, of=host)


@needs_ucx
def test_a_firewall_that_drops_packets(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """The time limit holds for connections, too. The system gives up after two minutes only."""
    _drop_packets(own_hosts, 0)
    results = _run(
        own_hosts,
        tmp_path,
        """
        import time
        begin = time.monotonic()
        tells_error()
        assert time.monotonic() - begin < 60
        """,
        ONEHOP_TIMEOUT="3",
    )
    for text in results:
        assert "error: Timeout rank " in text, results
        assert "does a firewall drop packets there? ONEHOP_RAILS or UCX_NET_DEVICES" in text, text


@needs_ucx
@pytest.mark.parametrize("own_hosts", [{"links": 2}], indirect=True, ids=["2 links"])
@pytest.mark.parametrize(("dead", "rails"), [(0, "auto"), (1, "e0,e1")])
def test_a_network_that_drops_packets_is_left_out(
    own_hosts: EmulatedHosts, tmp_path: Path, dead: int, rails: str
) -> None:
    """One rank says so, and the other network carries everything."""
    _drop_packets(own_hosts, dead)
    variables = {"ONEHOP_RAILS": rails, "ONEHOP_TIMEOUT": "8"}
    results = _run(own_hosts, tmp_path, 'print("carriers", sorted(moved()))', **variables)
    lives = f"e{1 - dead}"
    for text in results:
        assert f"carriers ['shared_memory', 'ucx: active messages over tcp/{lives}']" in text, text
    said = [text.count("messages between hosts use") for text in results]
    assert said == [1, 0, 0, 0], results
    first = results[0]
    assert f"messages between hosts use {lives}, not e{dead}, through which rank 0" in first, first
    assert f"ONEHOP_RAILS={lives}" in first, first


def _drop_long_packets(hosts: EmulatedHosts, link: int) -> None:
    """Let packets of more than 900 bytes to host 1 vanish, though it announces that it takes longer ones."""
    device = f"e{link}"
    for host in (0, 1):
        hosts.output(host, ["ip", "link", "set", device, "gso_max_segs", "1"])
    hosts.output(1, ["ip", "link", "set", device, "mtu", "900"])
    network = hosts.output(1, ["ip", "route", "show", "dev", device]).split()[0]
    source = ["src", hosts.hosts[1].addresses[link]]
    lengths = ["advmss", "1460", "mtu", "lock", "900"]
    hosts.output(1, ["ip", "route", "replace", network, "dev", device, *source, *lengths])


def _refuse(hosts: EmulatedHosts, link: int) -> None:
    """Let the system of host 0 refuse to connect to host 1 at once."""
    hosts.output(0, ["ip", "route", "add", "prohibit", hosts.hosts[1].addresses[link] + "/32"])


@needs_ucx
@pytest.mark.parametrize("own_hosts", [{"links": 2}], indirect=True, ids=["2 links"])
@pytest.mark.parametrize("drop", [_drop_one_way, _drop_long_packets, _refuse])
def test_a_network_that_drops_some_packets_is_left_out(
    own_hosts: EmulatedHosts, tmp_path: Path, drop: Callable[[EmulatedHosts, int], None]
) -> None:
    """A rail must carry long messages both ways before it is used."""
    drop(own_hosts, 1)
    results = _run(own_hosts, tmp_path, "moved()", ONEHOP_RAILS="e0,e1", ONEHOP_TIMEOUT="12")
    assert "messages between hosts use e0, not e1, through which rank 0" in results[0], results


@needs_ucx
@pytest.mark.parametrize("own_hosts", [{"links": 2}], indirect=True, ids=["2 links"])
def test_the_time_limit_includes_the_probe_of_networks(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """Each network drops the packets of one host, so none of them is of use."""
    _drop_one_way(own_hosts, 0, of=0)
    _drop_one_way(own_hosts, 1, of=1)
    results = _run(
        own_hosts,
        tmp_path,
        """
        import time
        begin = time.monotonic()
        tells_error()
        print("after", time.monotonic() - begin, flush=True)
        """,
        ONEHOP_RAILS="e0,e1",
        ONEHOP_TIMEOUT="4",
    )
    for text in results:
        assert "error: Timeout rank " in text, results
        assert 3 < float(text.rpartition("after ")[2].split()[0]) < 6, text


@needs_ucx
def test_hosts_with_different_packet_lengths(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """TCP agrees on the shorter packets."""
    own_hosts.output(1, ["ip", "link", "set", "e0", "mtu", "1400"])
    _run(own_hosts, tmp_path, "moved()")


@needs_ucx
def test_memory_that_cannot_be_locked(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """UCX over TCP registers no memory, so `ulimit -l 0` is no obstacle, also without the rights of root."""
    results = _run(
        own_hosts,
        tmp_path,
        """
        import ctypes, resource
        libc = ctypes.CDLL(None, use_errno=True)
        header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        assert libc.capget(header, sets) == 0
        may_lock = 1 << 14  # CAP_IPC_LOCK
        sets[0] &= ~may_lock
        sets[1] &= ~may_lock
        assert libc.capset(header, sets) == 0
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
        assert libc.mlock(ctypes.create_string_buffer(8192), ctypes.c_size_t(8192)) != 0
        print(sorted(moved()))
        """,
    )
    for text in results:
        assert "over tcp" in text, text


@needs_ucx
def test_two_ucx_libraries_on_one_rank(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """The other ranks learn why, too."""
    path = Path(_core.ucx_library()["path"]).resolve()
    other = tmp_path / "libucp-other.so"
    shutil.copy(path, other)
    results = _run(
        own_hosts,
        tmp_path,
        f"""
        import ctypes
        if rank == 1:
            ctypes.CDLL({str(path)!r})
            ctypes.CDLL({str(other)!r})
        tells_error()
        """,
    )
    for rank, text in enumerate(results):
        assert f"this process has two UCX libraries, {path} and {other}" in text, (rank, text)
        assert rank == 1 or "on rank 1" in text, text


def test_ranks_with_different_versions() -> None:
    """Both ranks see what rank 1 would have sent if it had another version."""
    version = _core.__version__.encode()
    barrier = threading.Barrier(2, timeout=20)
    given = [b"", b""]
    errors: list[str] = ["", ""]

    def rank(number: int) -> None:
        def allgather(mine: bytes) -> list[bytes]:
            given[number] = mine
            barrier.wait()
            parts = [given[0], given[1].replace(version, b"9" * len(version))]
            barrier.wait()
            return parts

        try:
            Group.from_allgather(number, 2, allgather)
        except Mismatch as error:
            errors[number] = str(error)

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for text in errors:
        assert f"rank 0 runs onehop {version.decode()}, but rank 1" in text, errors
        assert f"runs onehop {'9' * len(version)}; all ranks need the same version" in text
