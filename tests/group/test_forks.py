"""A process that a rank forks is not a rank: it cannot use the group of the rank, and its end closes nothing."""

import pytest

from ranks import Ranks

PROGRAM = """
    import multiprocessing, os, sys
    import numpy as np, onehop

    def refused(step):
        try:
            step()
        except onehop.Error as error:
            assert f"belongs to process {os.getppid()}" in str(error), error
            assert "forked" in str(error), error
            return
        raise AssertionError("it worked in a forked process")

    group = onehop.Group.world()
    peer = 1 - group.rank
    ends = group.channels(send={peer: 8}, receive={peer: 8})
    schedule = onehop.halo(extents=(64,), grid=(2,), width=1, periodic=True)
    block = onehop.halo_block(extents=(64,), grid=(2,), width=1, periodic=True, rank=group.rank)
    plan = onehop.Plan(schedule, group, [np.zeros(block.shape)])

    def work():
        refused(onehop.Group.world)
        refused(group.barrier)
        refused(lambda: group.allgather(b"x"))
        refused(lambda: ends.send[peer].put(np.zeros(1)))
        refused(lambda: ends.receive[peer].get(np.zeros(1)))
        refused(plan.start)
        onehop.Group.alone().barrier()
        print("refused", flush=True)

    if group.rank == 0:
        FORK
    # The other rank has waited meanwhile; both go on.
    group.barrier()
    with plan:
        pass
    ends.send[peer].put(np.array([float(group.rank)]))
    got = np.zeros(1)
    ends.receive[peer].get(got)
    assert got[0] == peer
    group.barrier()
    print("done")
"""

BY_HAND = """child = os.fork()
        if child == 0:
            work()
            END
        assert os.waitpid(child, 0)[1] == 0"""


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_uses_and_closes_nothing(ranks: Ranks, end: str) -> None:
    """`sys.exit` runs the exit handlers that it has inherited, and lets all its objects go."""
    done = ranks.launch(2, PROGRAM.replace("FORK", BY_HAND.replace("END", end)), status=0)
    assert sorted(done.stdout.split("\n")) == ["", "[0] done", "[0] refused", "[1] done"]


def test_children_of_multiprocessing_use_and_close_nothing(ranks: Ranks) -> None:
    start = """process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
        process.join()
        assert process.exitcode == 0"""
    done = ranks.launch(2, PROGRAM.replace("FORK", start), status=0)
    assert sorted(done.stdout.split("\n")) == ["", "[0] done", "[0] refused", "[1] done"]


def test_the_world_of_one_rank_is_made_anew_in_a_child(ranks: Ranks) -> None:
    source = """
        import os, onehop
        onehop.Group.world().barrier()
        child = os.fork()
        if child == 0:
            group = onehop.Group.world()
            group.barrier()
            print(group.size, group.origin, flush=True)
            raise SystemExit
        assert os.waitpid(child, 0)[1] == 0
        onehop.Group.world().barrier()
    """
    done = ranks.run_python(ranks.script(source))
    assert (done.returncode, done.stdout) == (0, "1 alone\n"), done.stderr
