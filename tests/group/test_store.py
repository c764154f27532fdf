"""Groups whose ranks connect through a key-value store."""

import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from file_store import FileStore
from onehop import BadInput, Group, PeerLost, _core
from onehop.store import allgathers_through, store_of_torchrun
from ranks import SURVIVORS, Ranks


class Dictionary:
    """A store of one process, without `delete_key`."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.changed = threading.Condition()

    def set(self, key: str, value: bytes) -> None:
        with self.changed:
            assert key not in self.values
            self.values[key] = value
            self.changed.notify_all()

    def get(self, key: str) -> bytes:
        with self.changed:
            assert self.changed.wait_for(lambda: key in self.values, 20)
            return self.values[key]


def _split_and_gather(group: Group) -> tuple[int, list[bytes], list[bytes]]:
    part = group.split(group.rank % 2, -group.rank)
    assert part is not None
    inner = part.split(0 if part.rank == 0 else -1)
    assert (inner is not None) == (part.rank == 0)
    everybody = group.allgather(b"" if group.rank == 1 else bytes([group.rank]) * group.rank)
    return part.rank, part.allgather(str(group.rank).encode()), everybody


@pytest.mark.parametrize("kind", ["dictionary", "files"])
def test_gathers_and_splits(kind: str, tmp_path: Path) -> None:
    ranks = 5
    store = Dictionary() if kind == "dictionary" else FileStore(tmp_path)
    with ThreadPoolExecutor(ranks) as pool:
        results = list(
            pool.map(lambda rank: _split_and_gather(Group.from_store(store, rank, ranks)), range(ranks))
        )
    for rank, (place, mine, everybody) in enumerate(results):
        part = [other for other in (4, 3, 2, 1, 0) if other % 2 == rank % 2]
        assert place == part.index(rank)
        assert mine == [str(other).encode() for other in part]
        assert everybody == [b"", b"", b"\2\2", b"\3\3\3", b"\4\4\4\4"]
    if kind == "files":  # what everybody has read is deleted
        assert len(list(tmp_path.iterdir())) < 2 * 3 * ranks + 1


def test_a_prefix_makes_one_group(tmp_path: Path) -> None:
    """Entries of an earlier group would be taken for those of the later one."""
    store = FileStore(tmp_path)

    def work(rank: int) -> list[bytes]:
        first = Group.from_store(store, rank, 3)
        with pytest.raises(BadInput, match=rf"found 'onehop', with which rank {rank} has joined already"):
            Group.from_store(store, rank, 3)
        assert first.allgather(b"first") == 3 * [b"first"]
        return Group.from_store(store, rank, 3, "another").allgather(bytes([rank]))

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(work, range(3))) == 3 * [[b"\0", b"\1", b"\2"]]


def test_a_rank_alone_does_not_touch_the_store() -> None:
    """Others may use the same keys: torch gives groups of one rank each the same name on different ranks."""
    store = Dictionary()
    group = Group.from_store(store, 0, 1)
    part = group.split(0)
    assert part is not None
    assert group.allgather(b"alone") == part.allgather(b"alone") == [b"alone"]
    assert group.allgather(b"") == [b""]
    assert not store.values


def test_refuses_what_is_no_store() -> None:
    with pytest.raises(BadInput, match=r"set\(key, value\).*found dict without set"):
        Group.from_store({}, 0, 1)


def paths(tmp_path: Path) -> dict[str, str]:
    store = tmp_path / "store"
    store.mkdir()
    return {"store": str(store), "support": str(Path(__file__).resolve().parents[1] / "support")}


BEGIN = """
    import os, sys, time
    sys.path.insert(0, {support!r})
    import numpy as np
    from file_store import FileStore
    from onehop import Group, PeerLost
    rank = int(os.environ["ONEHOP_RANK"])
"""
RING = """
    os.environ["ONEHOP_TEST_HOST"] = f"host{{rank // {per_host}}}"
    group = Group.from_store(FileStore({store!r}), rank, 4)
    right, left = (rank + 1) % 4, (rank - 1) % 4
    ring = group.channels(send={{right: 8}}, receive={{left: 8}})
    message = np.zeros(1)
    for step in range(1000):
        if rank == 1 and step == 20:
            os._exit(7)
        try:
            if step == 20 and {waits!r} == "barrier":
                group.barrier()
            if rank == 0:
                ring.send[right].put(message)
            ring.receive[left].get(message)
            if rank != 0:
                ring.send[right].put(message)
        except PeerLost as error:
            print("lost", error.rank, flush=True)
            if {stays}:  # its connections do not fail
                time.sleep(3)
            os._exit(0)
"""


@pytest.mark.skipif(not _core.ucx_library()["path"], reason="no UCX library was found")
@pytest.mark.parametrize(
    ("waits", "per_host", "stays"),
    [
        ("ring", 1, False),
        ("ring", 1, True),
        ("ring", 2, False),
        ("ring", 2, True),
        ("barrier", 1, False),
        ("barrier", 2, True),
    ],
)
def test_ranks_on_all_hosts_name_the_rank_that_was_lost_first(
    waits: str, per_host: int, stays: bool, ranks: Ranks, tmp_path: Path
) -> None:
    """Rank 3 has no channel with rank 1. It waits for ranks that give up and end, or give up and stay."""
    done = ranks.launch(
        4,
        (BEGIN + RING).format(**paths(tmp_path), per_host=per_host, stays=stays, waits=waits),
        *SURVIVORS,
    )
    assert sorted(line for line in done.stdout.splitlines() if "lost" in line) == [
        f"[{rank}] lost 1" for rank in (0, 2, 3)
    ], done.stderr


# Rank 0 loses rank 1 in a part of its host, and gives up. Rank 2 waits for rank 0 in a part without rank 1.
IN_ANOTHER_PART = """
    os.environ["ONEHOP_TEST_HOST"] = f"host{{rank // 2}}"
    world = Group.from_store(FileStore({store!r}), rank, 3)
    pair = world.split(0 if rank < 2 else 1, 0)
    rest = world.split(1 if rank == 1 else 0, 0)
    ends = None if rank == 1 else rest.channels(send={{1 - rest.rank: 8}}, receive={{1 - rest.rank: 8}})
    world.barrier()
    if rank == 1:
        os._exit(7)
    try:
        if rank == 0:
            pair.barrier()
        ends.receive[1 - rest.rank].get(np.zeros(1))
    except PeerLost as error:
        print("lost", error.rank, error, flush=True)
        raise
"""


@pytest.mark.skipif(not _core.ucx_library()["path"], reason="no UCX library was found")
def test_a_part_on_other_hosts_without_the_lost_rank_names_it_in_the_text(
    ranks: Ranks, tmp_path: Path
) -> None:
    done = ranks.launch(3, (BEGIN + IN_ANOTHER_PART).format(**paths(tmp_path)), *SURVIVORS)
    said = {line[:3]: line for line in done.stdout.splitlines() if " lost " in line}
    assert said["[0]"].startswith("[0] lost 1 "), done.stdout + done.stderr
    assert said["[2]"].startswith("[2] lost 0 "), done.stdout + done.stderr
    assert "it had lost rank 1 of the world before; see the output of rank 1 of the world" in said["[2]"]


def test_a_lost_rank_has_its_number_in_the_part(tmp_path: Path) -> None:
    make = allgathers_through(FileStore(tmp_path), "run", lambda: 20.0)
    with pytest.raises(PeerLost, match=r"^rank 1 of the part 7\.0 has ended"):
        make("/7.0", 0, 2, lambda: 1)(b"mine")
    with pytest.raises(PeerLost, match=r"^rank 1 has ended"):
        make("", 0, 2, lambda: 1)(b"mine")


def test_survivors_agree(tmp_path: Path) -> None:
    """Rank 2 is lost; the others go on. What it does later changes nothing for them."""
    store = FileStore(tmp_path)
    ranks = 4

    def work(rank: int) -> tuple[int, int, list[bytes]] | Group:
        group = Group.from_store(store, rank, ranks, "before")
        if rank == 2:
            return group
        left = group.survivors(lost=[2], wait=60)
        return left.rank, left.size, left.allgather(str(rank).encode())

    with ThreadPoolExecutor(ranks) as pool:
        results = list(pool.map(work, range(ranks)))
    assert results[:2] + results[3:] == [(i, 3, [b"0", b"1", b"3"]) for i in range(3)]
    late = results[2]
    assert isinstance(late, Group)
    with pytest.raises(PeerLost, match="rank 2 came too late: the ranks 0, 1, 3 have decided"):
        late.survivors()


def test_ranks_that_do_not_come_are_lost(tmp_path: Path) -> None:
    """Two survivors that know of no loss wait for the third, and then agree."""
    store = FileStore(tmp_path)

    def work(rank: int) -> list[bytes]:
        group = Group.from_store(store, rank, 3)
        return group.survivors(wait=0.5).allgather(bytes([rank])) if rank != 0 else []

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(work, range(3))) == [[], [b"\1", b"\2"], [b"\1", b"\2"]]


def test_survivors_need_a_store() -> None:
    with pytest.raises(BadInput, match="made from a store, found one made by alone"):
        Group.alone().survivors()
    group = Group.from_store(Dictionary(), 0, 1)
    with pytest.raises(BadInput, match="found Dictionary without check"):
        group.survivors()


def test_the_store_of_torchrun_has_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank whose store does not answer ends at ONEHOP_TIMEOUT, not at torch's own limit."""
    made: list[dict[str, object]] = []
    torch = types.ModuleType("torch.distributed")
    torch.TCPStore = lambda *_, **more: made.append(more)
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    monkeypatch.setitem(sys.modules, "torch.distributed", torch)
    for name in (
        "ONEHOP_CONTROL",
        "OMPI_COMM_WORLD_SIZE",
        "PMI_SIZE",
        "MV2_COMM_WORLD_SIZE",
        "SLURM_STEP_ID",
    ):
        monkeypatch.delenv(name, raising=False)
    launch = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "x", "MASTER_PORT": "1"}
    for name, value in launch.items():
        monkeypatch.setenv(name, value)
    for limit in ("7", "0", "inf"):
        monkeypatch.setenv("ONEHOP_TIMEOUT", limit)
        assert store_of_torchrun() is not None
    assert [more.get("timeout") for more in made] == [timedelta(seconds=7), None, None]
