"""Groups whose ranks connect through a key-value store."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from file_store import FileStore
from onehop import BadInput, Group


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


def test_refuses_what_is_no_store() -> None:
    with pytest.raises(BadInput, match=r"set\(key, value\).*found dict without set"):
        Group.from_store({}, 0, 1)
