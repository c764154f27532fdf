"""Shared memory where the system refuses memfd_create, as a sandbox or vm.memfd_noexec does, or other calls."""

import os
from pathlib import Path

import pytest

from ranks import Ranks
from refused_calls import run_with_refused_calls

PROGRAM = """
    import os
    from pathlib import Path
    import numpy as np
    from onehop import Group, Plan, halo, halo_block
    from onehop.collectives import allreduce
    from onehop.quantum.memory_use import _own_shared
    group = Group.world()
    rank = group.rank
    layout = {"extents": [4_000_000], "grid": [2], "width": 1, "periodic": [True]}
    array = group.empty(halo_block(**layout, rank=rank).shape)
    array[:] = rank
    Plan(halo(**layout), group, [array]).run()
    assert (array[0], array[-1]) == (1 - rank, 1 - rank)
    assert (allreduce(group, np.full(500_000, rank + 1, np.float32)) == 3).all()
    assert _own_shared() > 16_000_000
    for file in Path("/proc/self/fd").iterdir():
        if file.exists() and "onehop" in str(file.readlink()):
            kinds = {"memfd" if "memfd" in str(file.readlink()) else "file", oct(file.stat().st_mode & 0o77)}
            assert file.stat().st_nlink == 0
            print(*sorted(kinds))
"""


@pytest.mark.parametrize("error", ["EPERM", "EACCES"])
def test_files_without_a_name_take_the_place_of_memfd(ranks: Ranks, error: str) -> None:
    """Exchanges and sums are right, nobody else may open the files, and none is left behind."""
    program = ranks.script(PROGRAM)
    done = run_with_refused_calls(ranks, error, "memfd_create", program)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) == {f"[{rank}] 0o0 file" for rank in (0, 1)}
    assert not list(Path("/dev/shm").glob("onehop-memory-*"))
    assert not list(ranks.temporary.glob("onehop-memory-*"))


@pytest.mark.parametrize("names", ["unlink", "unlinkat", "unlink,unlinkat"])
def test_no_file_is_left_where_files_cannot_be_removed(ranks: Ranks, names: str) -> None:
    source = """
        import numpy as np
        from onehop import Group, allreduce
        print(allreduce(Group.world(), np.ones(3))[0])
    """
    before = set(Path("/dev/shm").iterdir())
    done = run_with_refused_calls(ranks, "EPERM", f"memfd_create,{names}", ranks.script(source))
    assert sorted(done.stdout.splitlines()) == ["[0] 2.0", "[1] 2.0"], done.stderr
    assert not {one.name for one in set(Path("/dev/shm").iterdir()) - before if "onehop" in one.name}
    assert not list(ranks.temporary.glob("onehop-memory-*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its root folder")
def test_ranks_without_proc_do_not_blame_the_launcher(ranks: Ranks) -> None:
    source = """
        import os
        from onehop import Error, Group
        os.makedirs("empty", exist_ok=True)
        os.chroot("empty")
        try:
            Group.world()
        except Error as error:
            print("error:", error, flush=True)
            os._exit(0)
    """
    done = ranks.launch(2, source)
    assert done.stdout.count("has no /proc, through which ranks reach each other's memory") == 2, done.stdout


@pytest.mark.parametrize(
    "names", ["fallocate", "pidfd_open,membarrier,madvise,getrandom", "memfd_create,fallocate"]
)
def test_other_calls_that_are_refused(ranks: Ranks, names: str) -> None:
    done = run_with_refused_calls(ranks, "EPERM", names, ranks.script(PROGRAM))
    assert done.returncode == 0, done.stderr
    kind = "file" if "memfd" in names else "memfd"
    assert {line.split()[-1] for line in done.stdout.splitlines()} == {kind}


def test_a_call_that_shared_memory_needs_is_named(ranks: Ranks) -> None:
    done = run_with_refused_calls(ranks, "EPERM", "ftruncate", ranks.script(PROGRAM))
    assert done.returncode == 1
    assert "control memory: the system refuses ftruncate (Operation not permitted)" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
