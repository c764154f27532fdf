"""Ranks that torchrun restarts do not see data of the previous attempt."""

from pathlib import Path

import pytest

from ranks import Ranks

WORK = """
    assert group.allgather(bytes([group.rank])) == [b"\\0", b"\\1"]
    assert group.local_ranks == [0, 1]
    part = group.split(0, -group.rank)
    assert part.allgather(bytes([group.rank])) == [b"\\1", b"\\0"]
    peer = 1 - group.rank
    ends = part.channels(send={1 - part.rank: 8}, receive={1 - part.rank: 8})
    ends.send[1 - part.rank].put(np.array([group.rank]))
    got = np.zeros(1, int)
    ends.receive[1 - part.rank].get(got)
    assert got[0] == peer
"""

ATTEMPT = f"""
    import sys, numpy as np, onehop
    from torch.distributed import FileStore
    from onehop.torch import group_from_store
    rank = int(sys.argv[2])
    group = group_from_store(FileStore(sys.argv[1], 2), rank, 2)
    {WORK}
    print("done", flush=True)
    import os
    os._exit(0)  # as a rank that is ended: nothing is put in order
"""

RESTARTED = f"""
    import os, sys, numpy as np, onehop
    from torch.distributed import PrefixStore, TCPStore
    from onehop.torch import group_from_store
    rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    # The agent's store, which stays while ranks are started again.
    store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    for group in (onehop.Group.world(), group_from_store(PrefixStore("test", store), rank, 2)):
        {WORK.replace(chr(10), chr(10) + "    ")}
    if attempt == 0:
        os._exit(3 if rank == 1 else 0)
    print(f"attempt {{attempt}} of rank {{rank}} is done", flush=True)
"""


def test_a_store_that_outlives_its_ranks(ranks: Ranks, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program, store = ranks.script(ATTEMPT), tmp_path / "store"
    for attempt in range(3):
        variables = {"TORCHELASTIC_RESTART_COUNT": str(attempt), "ONEHOP_TIMEOUT": "30"}
        started = [ranks.popen(program, store, rank, **variables) for rank in range(2)]
        try:
            said = [process.communicate(timeout=100) for process in started]
        finally:
            for process in started:
                process.kill()
        assert [out for out, _ in said] == ["done\n", "done\n"], (attempt, said)


def test_torchrun_starts_failed_ranks_again(ranks: Ranks) -> None:
    pytest.importorskip("torch")
    done = ranks.torchrun("--max-restarts=1", ranks.script(RESTARTED))
    assert done.returncode == 0, done.stderr[-4000:]
    # Lines of two ranks may be mixed.
    assert all(f"attempt 1 of rank {rank} is done" in done.stdout for rank in range(2)), done.stdout
