"""Groups: constructors, all-gather, split, shared arrays."""

import numpy as np
import pytest

import onehop
from onehop import Group
from ranks import PATIENCE, Ranks


def test_alone() -> None:
    group = Group.alone()
    assert (group.rank, group.size, group.origin) == (0, 1, "alone")
    assert group.allgather(b"abc") == [b"abc"]
    assert group.local_ranks == [0]
    assert group.shares_memory(0)
    group.barrier()
    assert repr(group) == "<Group: rank 0 of 1, alone>"


def test_communicators_of_mpi4py(ranks: Ranks) -> None:
    pytest.importorskip("mpi4py", exc_type=ImportError)
    source = """
        from mpi4py import MPI
        import numpy as np, onehop
        comm = MPI.COMM_WORLD
        group = onehop.Group.from_mpi(comm)
        turned = onehop.Group.from_mpi(comm.Split(0, -comm.rank))
        peer = 1 - group.rank
        got = np.zeros(1, int)
        for transport in ("shared_memory", "mpi"):
            ends = group.channels(send={peer: 8}, receive={peer: 8}, transport=transport)
            ends.send[peer].put(np.array([comm.rank]))
            ends.receive[peer].get(got)
            assert got[0] == peer
        try:
            onehop.Group.from_mpi(MPI.COMM_NULL)
        except onehop.BadInput:
            print(group.rank, group.size, group.origin, turned.rank, onehop.Group.world().size, flush=True)
    """
    done = ranks.mpiexec(2, ranks.script(source))
    assert sorted(done.stdout.splitlines()) == ["0 2 mpi 1 2", "1 2 mpi 0 2"]


def test_empty_is_an_array_of_zeros() -> None:
    group = Group.alone()
    array = group.empty((3, 4), "float32")
    assert array.shape == (3, 4)
    assert array.dtype == np.float32
    assert not array.any()
    array[:] = 7
    assert group.empty(5).shape == (5,)
    assert group.empty((0, 3)).size == 0
    assert group.empty((), "int64").shape == ()


def test_empty_lives_longer_than_its_group() -> None:
    array = Group.alone().empty((1000,))
    view = array[10:20]
    del array
    view[:] = 3
    assert view.sum() == 30


@pytest.mark.parametrize("arguments", [(-1,), ((2, -3),), (4, object)])
def test_empty_of_nonsense(arguments: tuple) -> None:
    with pytest.raises(onehop.BadInput):
        Group.alone().empty(*arguments)


def test_exception_in_the_allgather_reaches_the_caller() -> None:
    def allgather(_mine: bytes) -> list[bytes]:
        raise KeyError("no store")

    with pytest.raises(KeyError, match="no store"):
        Group.from_allgather(0, 2, allgather)


def test_timeout_from_the_environment(ranks: Ranks) -> None:
    ranks.environment["ONEHOP_TIMEOUT"] = "0.3"
    source = """
        import time, numpy as np, onehop
        group = onehop.Group.world()
        peer = 1 - group.rank
        ends = group.channels(send={peer: 8}, receive={peer: 8})
        if group.rank == 0:
            ends.receive[peer].get(np.zeros(1))
        time.sleep(10)
    """
    done = ranks.launch(2, source, status=1)
    assert "onehop.error.Timeout" in done.stderr


def test_lonely_rank_of_a_launch_says_so(ranks: Ranks) -> None:
    """A launcher of several ranks, but no MPI to find them with: an error, and no silent independent copies."""
    ranks.environment.update(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="4", ONEHOP_MPI="none")
    done = ranks.run_python("-c", "import onehop; onehop.Group.world()")
    assert done.returncode != 0
    assert "alone" in done.stderr
    assert "4" in done.stderr


def test_torchrun(ranks: Ranks) -> None:
    """Two processes with what torchrun leaves in the environment find each other."""
    program = ranks.script(
        "import onehop; g = onehop.Group.world(); print(g.rank, g.size, g.origin, g.allgather(b'x'))"
    )
    variables = {
        "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511",
        "TORCHELASTIC_RUN_ID": "test",
    }  # fmt: skip
    processes = [ranks.popen(program, RANK=str(rank), **variables) for rank in range(2)]
    out = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    assert out == ["0 2 torchrun [b'x', b'x']\n", "1 2 torchrun [b'x', b'x']\n"]


def test_from_mpi_needs_a_communicator() -> None:
    with pytest.raises(onehop.BadInput, match="expected an mpi4py communicator"):
        Group.from_mpi("COMM_WORLD")


ABORTS = """
    import threading
    import onehop

    world = onehop.Group.world()
    part = world.split(0)  # another group of the same ranks, which goes on
    others = [r for r in range(world.size) if r != world.rank]
    channels = world.channels(send={r: 8 for r in others}, receive={r: 8 for r in others})

    def wait_for(rank, kind):
        try:
            world.barrier() if world.rank == 1 else channels.receive[rank].wait()
        except kind as error:
            return str(error)
        raise SystemExit(f"expected {kind.__name__}")

    if world.rank == 2:  # waits itself, in one thread, and aborts in another
        threading.Timer(0.5, world.abort).start()
        words = wait_for(0, onehop.Error)
        assert "rank 2 has aborted this group while it was waiting for rank 0" in words, words
    else:
        words = wait_for(1 - world.rank, onehop.PeerLost)  # although it waits for another rank
        assert "rank 2 (process" in words and "has aborted this group" in words, words
    part.barrier()
    print("gave up", flush=True)
"""


def test_aborting_a_group_ends_the_waits_of_all_its_ranks(ranks: Ranks) -> None:
    done = ranks.launch(3, ABORTS, status=0)
    assert done.stdout.count("gave up") == 3
