"""Links and hosts that fail, for a while or for good: ranks go on with the right data, or learn who is lost in time.

`ONEHOP_LONG_FAULTS=1` takes the times of a real network: a link that is down for five seconds, ranks that are stopped
for ten.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hosts_runner import PACKAGE, run_without_mpi
from onehop import _core
from onehop_bench.hosts import EmulatedHosts

# Other load would delay signs of life beyond the short limits of these tests.
pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not _core.ucx_library()["path"], reason="no UCX library was found"),
]

LONG = os.environ.get("ONEHOP_LONG_FAULTS") == "1"
LINK_DOWN, STOPPED = (5.0, 10.0) if LONG else (1.2, 2.0)

# Halos and sums, which all ranks check, until rank 0 says that it is enough. A rank that loses another one says when.
WORK = """
    import os, time
    from onehop.collectives import allreduce
    from onehop.machine.rails import schedule_rails
    length = 20_000
    layout = {"extents": [4 * length], "grid": [4], "width": 2000, "periodic": [True]}
    array = np.zeros(halo_block(**layout, rank=rank).shape)
    # On one link this changes nothing. With two of them ranks 1 and 3 use the second one for their faces.
    rails = schedule_rails(halo(**layout), 2, rails=2, rule="by_rank")
    plan = Plan(halo(**layout), group, [array], rails=rails)
    numbers = np.full(5000, rank + 1, np.float32)
    step = 0
    try:
        while True:
            array[:] = 0
            array[2000:-2000] = rank + 10 * step
            plan.run()
            assert (array[:2000] == (rank - 1) % 4 + 10 * step).all()
            assert (array[-2000:] == (rank + 1) % 4 + 10 * step).all()
            assert (allreduce(group, numbers) == 10).all()
            enough = rank == 0 and os.path.exists(folder + "/enough")
            if allreduce(group, np.full(1, enough, np.int32))[0]:
                break
            step += 1
            if step == 3:  # all channels are open
                FileStore(folder).set(f"ready{rank}", str(os.getpid()).encode())
        print("finished", step, flush=True)
    except PeerLost as error:
        print("lost", error.rank, time.clock_gettime(time.CLOCK_MONOTONIC), error, flush=True)
"""


def _run(
    own_hosts: EmulatedHosts,
    folder: Path,
    fault: Callable[[], None],
    ended: dict[int, float] | None = None,
    **variables: str,
) -> list[tuple[int, str]]:
    """Run the work; the fault begins once all ranks are at work, and the work ends a moment after it."""

    def meanwhile() -> None:
        end = time.monotonic() + 30
        while not all((folder / f"store/ready{rank}").exists() for rank in range(4)):
            assert time.monotonic() < end, "the ranks do not begin"
            time.sleep(0.02)
        time.sleep(0.2)
        fault()
        time.sleep(0.3)
        (folder / "store/enough").touch()

    return run_without_mpi(own_hosts, folder, WORK, meanwhile, ended, **variables)


def _assert_lost(results: list[tuple[int, str]], lost_by: dict[int, int], begun: float, limit: float) -> None:
    """Each of these ranks has lost a rank of the host with this number, within the limit and two seconds."""
    for rank, host in lost_by.items():
        code, text = results[rank]
        found = re.search(r"^lost (\d) ([\d.]+) (.*)", text, re.MULTILINE)
        assert code == 0, f"rank {rank} ends with {code}: {text}"
        assert found is not None, f"rank {rank}: {text}"
        assert int(found[1]) // 2 == host, text
        assert f"on onehop{host}" in found[3], text
        assert float(found[2]) - begun < limit + 2, (limit, text)


@pytest.mark.parametrize("limit", ["ONEHOP_SILENCE", "ONEHOP_TIMEOUT"])
def test_a_link_that_goes_down_for_good(own_hosts: EmulatedHosts, tmp_path: Path, limit: str) -> None:
    """The ranks on both sides name a rank of the other one, by either of the two limits, and end within a second."""
    begun = 0.0
    ended: dict[int, float] = {}

    def fault() -> None:
        nonlocal begun
        begun = time.clock_gettime(time.CLOCK_MONOTONIC)
        own_hosts.set_link(1, 0, up=False)

    results = _run(own_hosts, tmp_path, fault, ended, **{limit: "2"})
    _assert_lost(results, {0: 1, 1: 1, 2: 0, 3: 0}, begun, 2)
    for rank, (_, text) in enumerate(results):
        assert ended[rank] - float(text.partition("lost ")[2].split()[1]) < 1, (rank, text, ended)


@pytest.mark.parametrize("own_hosts", [{"links": 1}, {"links": 2}], indirect=True, ids=["a link", "a rail"])
def test_a_link_that_comes_back(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """Messages wait for it, also those that are assigned to the last of several links."""
    last = own_hosts.links - 1

    def fault() -> None:
        own_hosts.set_link(1, last, up=False)
        time.sleep(LINK_DOWN)
        own_hosts.set_link(1, last, up=True)

    results = _run(own_hosts, tmp_path, fault)
    assert all(code == 0 and "finished" in text for code, text in results), results


def _status(hosts: EmulatedHosts, folder: Path) -> list[dict[str, Any]]:
    """Return the groups of rank 0, as `onehop status` shows them."""
    words = [sys.executable, "-m", "onehop", "status", (folder / "store/ready0").read_text(), "--json", "-"]
    said = hosts.output(0, words, {**os.environ, "PYTHONPATH": str(PACKAGE)})
    groups: list[dict[str, Any]] = json.loads(said)["groups"]
    return groups


def _await_rails(hosts: EmulatedHosts, folder: Path, down: list[str]) -> None:
    """Wait until just these interfaces of the first host are known to be down."""
    end = time.monotonic() + 15
    while True:
        group = next(group for group in _status(hosts, folder) if group["size"] == 4)
        if all(rank["interfaces_down"] == down for rank in group["ranks"]):
            return
        assert time.monotonic() < end, group
        time.sleep(0.1)


def _cut(hosts: EmulatedHosts, link: int, cut: bool = True) -> None:
    hosts.set_link(1, link, up=not cut)


def _lose_packets(hosts: EmulatedHosts, link: int, cut: bool = True) -> None:
    """Let the packets of the first host vanish, and those of the other one arrive."""
    neighbour = [hosts.hosts[1].addresses[link], "dev", f"e{link}"]
    nobody = ["lladdr", "02:00:00:00:00:77", "nud", "permanent"]
    hosts.output(0, ["ip", "neigh", *(["replace", *neighbour, *nobody] if cut else ["del", *neighbour])])


two_links = pytest.mark.parametrize("own_hosts", [{"links": 2}], indirect=True, ids=["2 links"])


@two_links
@pytest.mark.parametrize(("cut", "link"), [(_cut, 0), (_lose_packets, 1)])
def test_a_rail_that_goes_down(
    own_hosts: EmulatedHosts, tmp_path: Path, cut: Callable[..., None], link: int
) -> None:
    """The other one carries halos and sums; one rank says so, and so does `onehop status`."""

    def fault() -> None:
        cut(own_hosts, link)
        _await_rails(own_hosts, tmp_path, [f"e{link}"])

    results = _run(own_hosts, tmp_path, fault, ONEHOP_TIMEOUT="12")
    assert all(code == 0 and "finished" in text for code, text in results), results
    said = [line for _, text in results for line in text.splitlines() if not line.startswith("finished")]
    assert len(said) == 1, results
    assert re.search(
        r"^onehop: nothing arrives .* between onehop(0 and onehop1|1 and onehop0); messages", said[0]
    ), said


@two_links
def test_rails_that_go_down_in_turns(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """A rail that comes back is used again, and carries everything when the other one goes down."""

    def fault() -> None:
        for link in (1, 0):
            _cut(own_hosts, link)
            _await_rails(own_hosts, tmp_path, [f"e{link}"])
            _cut(own_hosts, link, cut=False)
            _await_rails(own_hosts, tmp_path, [])

    results = _run(own_hosts, tmp_path, fault, ONEHOP_TIMEOUT="12")
    assert all(code == 0 and "finished" in text for code, text in results), results


def _cut_once_ready(own_hosts: EmulatedHosts, folder: Path) -> Callable[[], None]:
    """What cuts the second link once the ranks are ready, and tells them."""

    def meanwhile() -> None:
        end = time.monotonic() + 30
        while not (folder / "store/ready").exists():
            assert time.monotonic() < end, "the ranks do not begin"
            time.sleep(0.02)
        _cut(own_hosts, 1)
        (folder / "store/cut").touch()

    return meanwhile


@two_links
@pytest.mark.parametrize("rails", ["auto", "e0,e1"])
def test_channels_that_open_while_a_rail_is_down(
    own_hosts: EmulatedHosts, tmp_path: Path, rails: str
) -> None:
    """Also between ranks that were not connected before, and in a new group, which does not probe that rail."""

    source = """
        import time
        def exchange(ranks, n):
            other = (rank + 2) % 4
            mine = {other: 8 * n} if rank in ranks else {}
            channels = group.channels(send=mine, receive=mine)
            if rank in ranks:
                got = np.zeros(n)
                channels.send[other].put(np.arange(n) + float(rank))
                channels.receive[other].get(got)
                assert (got == np.arange(n) + other).all()
            return channels
        kept = exchange((0, 2), 20_000)
        if rank == 0:
            FileStore(folder).set("ready", b"")
        FileStore(folder).get("cut")
        more = exchange((0, 1, 2, 3), 20_000)
        begin = time.monotonic()
        part = group.split(rank % 2)
        part.channels(send={1 - part.rank: 8}, receive={1 - part.rank: 8})
        assert time.monotonic() - begin < 2
        print("done", flush=True)
    """
    results = run_without_mpi(
        own_hosts, tmp_path, source, _cut_once_ready(own_hosts, tmp_path), ONEHOP_RAILS=rails
    )
    assert all(code == 0 and "done" in text for code, text in results), results


@two_links
def test_a_rail_that_goes_down_before_its_sender_ends(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """What it has lost arrives all the same, though the sender closes its channel and its group at once."""

    source = """
        import time
        numbers = np.arange(300_000.0)
        channels = group.channels(
            send={2: numbers.nbytes} if rank == 0 else {}, receive={0: numbers.nbytes} if rank == 2 else {}
        )
        if rank == 0:
            FileStore(folder).set("ready", b"")
            FileStore(folder).get("cut")
            channels.send[2].put(numbers)
        if rank == 2:
            got = np.zeros_like(numbers)
            channels.receive[0].get(got)
            assert (got == numbers).all()
        print("done", flush=True)
    """
    results = run_without_mpi(own_hosts, tmp_path, source, _cut_once_ready(own_hosts, tmp_path))
    assert all(code == 0 and "done" in text for code, text in results), results


@two_links
@pytest.mark.parametrize(
    "end", [lambda hosts: hosts.kill(1), lambda hosts: _cut(hosts, 1)], ids=["kill", "cut"]
)
def test_a_host_that_is_lost_while_a_rail_is_down(
    own_hosts: EmulatedHosts, tmp_path: Path, end: Callable[[EmulatedHosts], None]
) -> None:
    begun = 0.0

    def fault() -> None:
        nonlocal begun
        _cut(own_hosts, 0)
        _await_rails(own_hosts, tmp_path, ["e0"])
        begun = time.clock_gettime(time.CLOCK_MONOTONIC)
        end(own_hosts)

    results = _run(own_hosts, tmp_path, fault, ONEHOP_SILENCE="3")
    _assert_lost(results[:2], {0: 1, 1: 1}, begun, 3)


def test_a_host_that_is_stopped_and_goes_on(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    def fault() -> None:
        own_hosts.pause(1)
        time.sleep(STOPPED)
        own_hosts.pause(1, paused=False)

    results = _run(own_hosts, tmp_path, fault)
    assert all(code == 0 and "finished" in text for code, text in results), results


def test_status_names_the_host_that_is_waited_for(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """`onehop status` on a host whose ranks wait, directly or through each other, for those of a stopped host."""
    groups: list[dict[str, Any]] = []

    def fault() -> None:
        nonlocal groups
        own_hosts.pause(1)
        time.sleep(0.5)
        groups = _status(own_hosts, tmp_path)
        own_hosts.pause(1, paused=False)

    results = _run(own_hosts, tmp_path, fault)
    assert all(code == 0 and "finished" in text for code, text in results), results
    group = next(group for group in groups if group["size"] == 4)
    assert set(group["waited_for"]) <= {2, 3}, groups
    waits = [wait for rank in group["ranks"] for wait in rank["waits"]]
    assert any("on onehop1)" in wait["who"] and wait["seconds"] > 0.2 for wait in waits), groups


def test_a_host_that_is_stopped_for_too_long(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """The other host gives it up. Once it goes on it learns that, and ends too."""
    begun = 0.0

    def fault() -> None:
        nonlocal begun
        begun = time.clock_gettime(time.CLOCK_MONOTONIC)
        own_hosts.pause(1)
        time.sleep(4)
        own_hosts.pause(1, paused=False)

    results = _run(own_hosts, tmp_path, fault, ONEHOP_SILENCE="1.5")
    _assert_lost(results, {0: 1, 1: 1}, begun, 1.5)
    for code, text in results[2:]:
        assert code == 0, results
        assert "lost" in text, results


@pytest.mark.parametrize("own_hosts", [{"rate": "10mbit"}], indirect=True)
def test_a_slow_link_is_no_loss(own_hosts: EmulatedHosts, tmp_path: Path) -> None:
    """Signs of life wait behind data; that the data arrive is one, too."""
    results = _run(own_hosts, tmp_path, lambda: time.sleep(1), ONEHOP_SILENCE="1.5")
    assert all(code == 0 and "finished" in text for code, text in results), results
