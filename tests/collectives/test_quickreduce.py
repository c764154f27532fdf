"""The interface of QuickReduce: its demo with another import, all profiles, and refused arguments."""

import multiprocessing
import os
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from onehop import BadInput, Mismatch, PeerLost, Timeout, quickreduce, serialization
from ranks import Ranks

# An object in a process of its own that is told what to do, and answers; tensors are torch's where it is here.
DEMO = """
    import multiprocessing as mp
    import sys
    try:
        import torch as arrays
    except ImportError:
        import numpy as arrays
    import onehop.quickreduce as qr

    class Demo:
        def __init__(self, world_size, rank):
            self.world_size, self.rank = world_size, rank
            qr.init(world_size, rank)

        def get_comm_handle(self):
            return qr.get_comm_handle()

        def set_comm_handles(self, handles):
            qr.set_comm_handles(handles)

        def run(self, profile):
            # Numbers that every profile represents: the largest of each block is 7 of its 7, 31 of its 31, ...
            bound = {1: 0.0, 2: 1 / 16, 3: 1 / 126, 4: 1 / 30, 5: 1 / 6.9, 6: 1 / 2.9}[profile]
            for dtype in (arrays.float16, arrays.float32):
                for length in (1024, 1, 31, 100_003):
                    tensor = arrays.ones(length, dtype=dtype)
                    tensor[::3] = 0.25 * self.rank
                    result = qr.allreduce(profile, tensor)
                    exact = self.world_size * arrays.ones(length, dtype=dtype)
                    exact[::3] = 0.25 * sum(range(self.world_size))
                    assert result.dtype == dtype and type(result) is type(tensor)
                    assert tensor[0] == 0.25 * self.rank  # stays as it is
                    assert abs(result - exact).max() <= 2 * bound * self.world_size, (profile, dtype, length)
            assert qr.should_allreduce(tensor, profile)
            for wrong in (arrays.ones(4, dtype=arrays.int32), arrays.ones((4, 4))[:, 1]):
                verdict = qr.should_allreduce(wrong, profile)
                assert not verdict and ("int32" in verdict.reason or "contiguous" in verdict.reason), verdict

        def refused(self, profile):
            verdict = qr.should_allreduce(arrays.ones(40), profile)
            try:
                qr.allreduce(profile, arrays.ones(40))
            except qr.BadInput as error:
                return not verdict and str(error) == verdict.reason and verdict.reason

    def actor(size, rank, pipe):
        demo = Demo(size, rank)
        while (call := pipe.recv()) is not None:
            pipe.send(getattr(demo, call[0])(*call[1:]))

    def everywhere(pipes, *call):
        for pipe in pipes:
            pipe.send(call)
        return [pipe.recv() for pipe in pipes]

    if __name__ == "__main__":
        size = int(sys.argv[1])
        context = mp.get_context("spawn")
        ends = [context.Pipe() for _ in range(size)]
        for rank, (_, there) in enumerate(ends):
            context.Process(target=actor, args=(size, rank, there), daemon=True).start()
            there.close()
        pipes = [here for here, _ in ends]
        everywhere(pipes, "set_comm_handles", everywhere(pipes, "get_comm_handle"))
        for profile, codec in qr.PROFILES.items():
            if codec == "q3" and size > 2:
                reason = "the codec q3 is for groups of 2 ranks, found 3"
                assert everywhere(pipes, "refused", profile) == size * [reason]
            else:
                everywhere(pipes, "run", profile)
        for pipe in pipes:
            pipe.send(None)
        for process in mp.active_children():
            process.join()
        print("all profiles")
"""


@pytest.mark.parametrize("size", [2, 3])
def test_demo_with_the_import_changed(ranks: Ranks, size: int) -> None:
    done = ranks.run([sys.executable, ranks.script(DEMO), str(size)], status=0)
    assert done.stdout == "all profiles\n"


def test_says_what_is_wrong() -> None:
    quickreduce._current.clear()
    for action, message in (
        (lambda: quickreduce.init(2, 2), "rank from 0 to 1"),
        (lambda: quickreduce.allreduce(1, np.ones(3)), "init"),
        (lambda: quickreduce.get_comm_handle(), "init"),
    ):
        with pytest.raises(BadInput, match=message):
            action()
    assert "not connected" in quickreduce.should_allreduce(np.ones(3)).reason

    quickreduce.init(1, 0)
    with pytest.raises(Mismatch, match="ranks 0 to 0 of 1"):
        quickreduce.set_comm_handles([])
    with pytest.raises(BadInput, match="set_comm_handles"):
        quickreduce.allreduce(1, np.ones(3))
    quickreduce.set_comm_handles([quickreduce.get_comm_handle()])
    assert (quickreduce.allreduce(1, np.ones(3)) == 1).all()
    with pytest.raises(BadInput, match="1 to 6, found 7"):
        quickreduce.allreduce(7, np.ones(3))
    with pytest.raises(BadInput, match="int64"):
        quickreduce.allreduce(3, np.ones(3, np.int64))
    with pytest.raises(BadInput, match="are connected"):
        quickreduce.set_comm_handles([quickreduce.get_comm_handle()])
    quickreduce._current.clear()


def _lost(rank: int, pipe: Connection) -> None:
    """A rank ends before it is connected."""
    quickreduce.init(2, rank)
    pipe.send(quickreduce.get_comm_handle())
    os._exit(0)


@pytest.mark.parametrize("here", [0, 1])
def test_a_rank_that_dies_before_it_is_connected_is_named(here: int) -> None:
    mine, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_lost, args=(1 - here, theirs))
    process.start()
    other = mine.recv()
    process.join()
    quickreduce.init(2, here)
    handles = [quickreduce.get_comm_handle(), other]
    with pytest.raises(PeerLost) as caught:
        quickreduce.set_comm_handles(handles if here == 0 else handles[::-1])
    assert caught.value.rank == 1 - here
    quickreduce._current.clear()


def test_a_rank_does_not_wait_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEHOP_TIMEOUT", "0.5")
    for here in (0, 1):
        quickreduce.init(2, here)
        handles = [_handle(size=2, rank=rank, pid=os.getpid()) for rank in (0, 1)]
        with pytest.raises(Timeout, match=f"this is rank {here} of 2, but "):
            quickreduce.set_comm_handles(handles)
    quickreduce._current.clear()


def _handle(**changed: object) -> bytes:
    fields = {"size": 1, "rank": 0, "pid": 1}
    key = changed.pop("key", b"k" * 32)
    return serialization.encode("quickreduce", {**fields, **changed}, [key])


@pytest.mark.parametrize(
    "handle",
    [
        b"cos\nsystem\n(S'touch unpickled'\ntR.",
        b"",
        "text",
        None,
        _handle()[:-1],
        _handle(key=b"short"),
        _handle(size=0),
        _handle(rank=-1),
        _handle(rank="0"),
        _handle(pid=0),
        _handle(pid=2**70),
    ],
)
def test_handles_that_are_none(handle: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    quickreduce.init(1, 0)
    with pytest.raises(BadInput, match="get_comm_handle"):
        quickreduce.set_comm_handles([handle])
    assert not (tmp_path / "unpickled").exists()
    quickreduce._current.clear()
