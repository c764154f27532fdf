"""Groups over MPI: which communicators make one, and what is left of it after MPI_Finalize."""

import subprocess
from pathlib import Path

import pytest

from onehop.error import BadInput
from onehop.launch.mpi import find_mpi_launcher
from ranks import Ranks

pytest.importorskip("mpi4py", exc_type=ImportError)

both_libraries = pytest.mark.parametrize("mpi", ["openmpi", "mpich"])


def mpiexec(ranks: Ranks, size: int, source: str, mpi: str) -> subprocess.CompletedProcess[str]:
    """Run a program that imports mpi4py with the library of this mpiexec."""
    try:
        ranks.environment["MPI4PY_LIBMPI"] = find_mpi_launcher(mpi).library or ""
    except BadInput as error:
        pytest.skip(str(error))
    return ranks.mpiexec(size, ranks.script(source), mpi=mpi)


COMMUNICATORS = """
from mpi4py import MPI
import onehop
comm = MPI.COMM_WORLD
side = comm.Split(comm.rank % 2)
both = side.Create_intercomm(0, comm, 1 - comm.rank % 2)
freed = comm.Dup()
stale = MPI.Comm(freed)
freed.Free()
wrong = {
    "inter": both, "inter copied": both.Dup(), "null": MPI.COMM_NULL, "empty": MPI.Comm(), "freed": freed,
    "stale": stale,
    "group": comm.group, "type": MPI.Comm, "number": 0, "none": None, "text": "COMM_WORLD",
    "onehop": onehop.Group.alone(),
}
for name, value in wrong.items():
    try:
        onehop.Group.from_mpi(value)
    except onehop.BadInput as error:
        assert "communicator" in str(error), error
        assert not name.startswith("inter") or "MPI_Intercomm_merge" in str(error), error
    else:
        raise AssertionError(name)
# What is right, also after these errors.
right = {"world": comm, "side": side, "merged": both.Merge(), "grid": comm.Create_cart([comm.size])}
groups = {name: onehop.Group.from_mpi(one) for name, one in right.items()}
sums = {name: [one[0] for one in group.allgather(bytes([comm.rank]))] for name, group in groups.items()}
assert sums["world"] == sums["grid"] == [0, 1, 2, 3] == sorted(sums["merged"]), sums
assert sums["side"] == [comm.rank % 2, comm.rank % 2 + 2], sums
print("right", flush=True)
"""


@both_libraries
def test_communicators_that_make_a_group_and_those_that_make_none(ranks: Ranks, mpi: str) -> None:
    done = mpiexec(ranks, 4, COMMUNICATORS, mpi)
    assert (done.returncode, done.stdout) == (0, "right\n" * 4), done.stderr


# Every entry has a group of its own, because a step that fails on one is the last one there.
FINALIZED = """
from mpi4py import MPI
import numpy as np, onehop
world = onehop.Group.world()
peer = 1 - world.rank
schedule = onehop.halo(extents=(2 * 2, 4), grid=(2, 1))
field = np.zeros((4, 6))
ready = onehop.Plan(schedule, world, [field])
ends = world.channels(send={peer: 8}, receive={peer: 8}, transport="mpi")
first = {
    "barrier": lambda group: group.barrier(),
    "allgather": lambda group: group.allgather(b"x"),
    "split": lambda group: group.split(0, 0),
    "channels": lambda group: group.channels(send={peer: 8}, receive={peer: 8}),
    "plan": lambda group: onehop.Plan(schedule, group, [np.zeros((4, 6))]),
    "allreduce": lambda group: onehop.allreduce(group, np.ones(2)),
    "channel over MPI": lambda group: ends.receive[peer].get(np.zeros(1)),
    "from_mpi": lambda group: onehop.Group.from_mpi(MPI.COMM_WORLD),
}
groups = {name: world.split(0, 0) for name in first}
MPI.Finalize()
said = {}
for name, step in first.items():
    try:
        step(groups[name])
    except onehop.Error as error:
        said[name] = str(error)
missing = set(first) - set(said)
assert not missing, missing
assert all("MPI_Finalize" in one or "finalised" in one for one in said.values()), said
assert onehop.Group.world() is world
for again in range(2):
    try:
        groups["barrier"].barrier()
        raise SystemExit("a barrier without MPI")
    except onehop.Error as error:
        assert "the program has called MPI_Finalize" in str(error), error
field[:] = world.rank
ready.run()  # in shared memory, and made before
assert (field[0, 1:-1] == peer).all()
del groups, ends, ready
print("right", flush=True)
"""


@both_libraries
def test_after_finalize_every_entry_that_needs_mpi_is_an_error(ranks: Ranks, mpi: str) -> None:
    done = mpiexec(ranks, 2, FINALIZED, mpi)
    assert (done.returncode, done.stdout) == (0, "right\n" * 2), done.stderr


@both_libraries
@pytest.mark.parametrize(
    ("before", "said"), [("MPI.Init(); MPI.Finalize()", "finalised"), ("", "initialised")]
)
def test_a_group_needs_a_running_mpi(ranks: Ranks, mpi: str, before: str, said: str) -> None:
    source = f"""
        import mpi4py
        mpi4py.rc.initialize = False
        from mpi4py import MPI
        import onehop
        {before}
        for make in (lambda: onehop.Group.from_mpi(MPI.COMM_WORLD), onehop.Group.world):
            try:
                make()
            except onehop.Error as error:
                assert "{said}" in str(error), error
                print("right", flush=True)
    """
    # Group.world() initialises an MPI that is not.
    right = 2 if before else 1
    done = mpiexec(ranks, 2, source, mpi)
    assert (done.returncode, done.stdout) == (0, "right\n" * 2 * right), done.stderr


# Open MPI connects parents and children over TCP, also on one machine.
PARENT = """
import sys
import onehop
group = onehop.Group.world()
from mpi4py import MPI
child = "from mpi4py import MPI; up = MPI.Comm.Get_parent(); up.send(MPI.COMM_WORLD.rank, 0); up.Disconnect()"
children = MPI.COMM_SELF.Spawn(sys.executable, ["-c", child], maxprocs=2)
print(group.origin, [children.recv(source=rank) for rank in range(2)], flush=True)
children.Disconnect()
"""


def test_mpi_that_onehop_has_started_can_start_processes(ranks: Ranks) -> None:
    ranks.environment["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    done = mpiexec(ranks, 1, PARENT, "openmpi")
    assert (done.returncode, done.stdout) == (0, "mpi [0, 1]\n"), done.stderr


COUNTER = """
#include <stdio.h>
static int calls;
int PMPI_Iallgather(void*, int, void*, void*, int, void*, void*, void*);
int MPI_Iallgather(void* a, int b, void* c, void* d, int e, void* f, void* g, void* h) {
  ++calls;
  return PMPI_Iallgather(a, b, c, d, e, f, g, h);
}
__attribute__((destructor)) static void show(void) {
  if (calls > 0) puts("counted");
}
"""


def test_a_preloaded_tool_sees_the_calls(ranks: Ranks, tmp_path: Path) -> None:
    """As mpiP, Score-P and IPM do it: the tool defines a function of MPI and calls that of PMPI."""
    try:
        library = find_mpi_launcher("openmpi").library
    except BadInput as error:
        pytest.skip(str(error))
    (tmp_path / "counter.c").write_text(COUNTER)
    counter = str(tmp_path / "counter.so")
    line = ["gcc", "-shared", "-fPIC", str(tmp_path / "counter.c"), str(library), "-o", counter]
    subprocess.run([*line, f"-Wl,-rpath,{Path(str(library)).parent}"], check=True)
    ranks.environment["LD_PRELOAD"] = counter
    done = ranks.mpiexec(2, ranks.script("import onehop\nonehop.Group.world().barrier()"), mpi="openmpi")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["counted", "counted"], done.stdout + done.stderr
