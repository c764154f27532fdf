"""The time limit of waits in a store, and in an all-gather of the program's own, and the line before it."""

import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from file_store import FileStore
from onehop import Group, Timeout, time_limit
from ranks import Ranks


class Bare:
    """A store with `set` and `get` alone."""

    def __init__(self, store: FileStore) -> None:
        self.set, self.get = store.set, store.get


class Blocking(Bare):
    """One whose `get` waits two seconds outside Python for other ranks, so that no exception ends it before."""

    def __init__(self, store: FileStore) -> None:
        super().__init__(store)
        self.get = lambda key: store.get(key) if key.endswith("/0") else self._wait()

    def _wait(self) -> bytes:
        threading.Event().wait(2)
        return b"late"


@pytest.mark.parametrize("kind", ["checked", "bare"])
def test_a_missing_rank_in_a_store(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEHOP_TIMEOUT", "0.5")
    store: Any = FileStore(tmp_path)
    with pytest.raises(
        Timeout,
        match=r"rank 0 waited in set-up \(all-gather 1\) for rank 1 in a store for .* did one fail before",
    ):
        Group.from_store(store if kind == "checked" else Bare(store), 0, 2)


def test_a_missing_rank_in_an_all_gather_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEHOP_TIMEOUT", "0.5")

    def allgather(mine: bytes) -> list[bytes]:
        while True:
            time.sleep(0.01)

    with pytest.raises(
        Timeout, match=r"rank 0 waited for other ranks in the function of Group\.from_allgather"
    ):
        Group.from_allgather(0, 2, allgather)


def test_a_split_keeps_the_limit(tmp_path: Path) -> None:
    """The other rank of the part never comes to it."""
    store = FileStore(tmp_path)
    found: list[str] = []
    over = threading.Event()

    def rank(number: int) -> None:
        group = Group.from_store(store, number, 2)
        group.timeout = 20.0
        part = group.split(0)
        assert part is not None
        if number == 1:
            over.wait(20)  # a rank that left its groups would be named at once
            return
        try:
            group.timeout = 0.5
            with pytest.raises(
                Timeout, match=r"rank 0 waited in set-up .* for rank 1 of the part 0\.0 in a store"
            ):
                part.allgather(b"alone")
            found.append("limited")
        finally:
            over.set()

    threads = [threading.Thread(target=rank, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["limited"]


@pytest.mark.parametrize("kind", ["checked", "bare", "blocking"])
def test_a_line_says_who_is_waited_for(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time_limit, "_WARN_AFTER", 0.2)
    monkeypatch.setattr(time_limit, "_SECONDS_TO_END", 0.1)
    monkeypatch.setenv("ONEHOP_TIMEOUT", "0.6")
    store = FileStore(tmp_path)
    stores: dict[str, Any] = {"checked": store, "bare": Bare(store), "blocking": Blocking(store)}
    with pytest.raises(Timeout):
        Group.from_store(stores[kind], 0, 2)
    said = capfd.readouterr().err
    assert (
        said.count("onehop: rank 0 waited in set-up (all-gather 1) for rank 1 in a store for 0 s and goes on")
        == 1
    )
    assert ("outside Python" in said) == (kind == "blocking"), said


def test_calls_in_time_return_and_raise_as_they_are() -> None:
    """Many calls end just before, at or after their limit; none leaves an exception behind."""
    for step in range(100):
        limit = 0.004

        def call(step: int = step) -> int:
            end = time.monotonic() + 0.003 + step * 2e-5
            while time.monotonic() < end:
                pass
            return step

        try:
            assert time_limit.call_within(limit, lambda: "a test", call) == step
        except Timeout:
            continue
    with pytest.raises(ZeroDivisionError):
        time_limit.call_within(5, lambda: "a test", lambda: 1 // 0)


PROGRAM = """
    import os, sys
    sys.path.insert(0, {support!r})
    from file_store import FileStore
    from onehop import Group, Timeout
    rank = int(os.environ["ONEHOP_RANK"])
    if rank == 1:
        os._exit(0)  # before it joins
    try:
        Group.from_store(FileStore({store!r}), rank, 3)
    except Timeout as error:
        print(error, flush=True)
"""


def test_a_rank_that_ends_before_it_joins(ranks: Ranks, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    support = str(Path(__file__).resolve().parents[1] / "support")
    ranks.environment["ONEHOP_TIMEOUT"] = "2"
    done = ranks.launch(3, PROGRAM.format(store=str(store), support=support), status=0)
    said = sorted(done.stdout.splitlines())
    assert len(said) == 2, done.stdout
    for line, rank in zip(said, (0, 2), strict=True):
        assert line.startswith(
            f"[{rank}] rank {rank} waited in set-up (all-gather 1) for rank 1 in a store"
        ), said


def test_who_does_not_answer_is_named(ranks: Ranks) -> None:
    """Each rank waits for the next, and the last one is stopped: no survivor blames another one, in any order."""
    source = """
        import os, signal, sys
        import numpy as np
        from onehop import ArraySpec, Error, Group, Place, Plan, Round, Schedule, Slice, Transfer
        group = Group.world()
        array, plans = np.zeros(2), []
        for to in range(group.size - 1):
            one = Transfer(Place(to + 1, 0, Slice.range(0, 1)), Place(to, 0, Slice.range(1, 1)))
            plans.append(Plan(Schedule("chain", group.size, [ArraySpec("u", 2, 8)], [Round([one])]), group, [array]))
        group.timeout = (1.1, 0.8, 0.8, 0)[group.rank]
        if group.rank == 3:
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            for to in reversed(range(group.size - 1)):
                if group.rank in (to, to + 1):
                    plans[to].run()
        except Error as error:
            print(type(error).__name__, error, flush=True)
            sys.exit(1)
    """
    said = {line[:3]: line[4:] for line in ranks.launch(4, source).stdout.splitlines()}
    assert sorted(said) == ["[0]", "[1]", "[2]"], said
    assert all(one.startswith("Timeout ") for one in said.values()), said
    silent = re.compile(r"waited for rank 3( in|,)|Timeout rank 3 \(process \d+\) did not answer")
    assert all(silent.search(one) for one in said.values()), said
