"""Ranks in PID namespaces of their own, as in a container for each: the error says so, and what to do."""

import os
import shutil
import subprocess
import sys

import pytest

from ranks import PATIENCE, Ranks

UNSHARE = ["unshare", "--pid", "--fork"]

pytestmark = pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*UNSHARE, "true"], check=False).returncode != 0,
    reason="no PID namespaces can be made here",
)

PROGRAM = """
    from onehop import Error, Group
    try:
        Group.world()
        print("met", flush=True)
    except Error as error:
        print("error:", error, flush=True)
"""


@pytest.mark.parametrize("more", [[], ["--mount-proc"]], ids=["/proc of the launcher", "/proc of its own"])
def test_each_rank_in_a_namespace_of_its_own(ranks: Ranks, more: list[str]) -> None:
    """The launcher lives, although such a rank does not see its number."""
    command = [*UNSHARE, *more, sys.executable, ranks.script(PROGRAM)]
    done = ranks.onehop("launch", "-n", 2, *command, status=0)
    for rank in (0, 1):
        assert f"[{rank}] error: rank {rank} and its launcher (process " in done.stdout, done.stdout
    assert done.stdout.count("are in different PID namespaces") == 2, done.stdout
    assert done.stdout.count("run `onehop launch` inside the container") == 2, done.stdout


def test_the_whole_launch_in_a_namespace(ranks: Ranks) -> None:
    """It runs with a /proc of its own, and without one the error says what is wrong."""
    launch = [sys.executable, "-m", "onehop", "launch", "-n", "2", ranks.script(PROGRAM)]
    for more, expected in ([["--mount-proc"], "met"], [[], "mount one of its own (unshare --mount-proc)"]):
        done = ranks.run([*UNSHARE, *more, *launch])
        assert done.stdout.count(expected) == 2, (done.stdout, done.stderr)


def test_ranks_that_meet_over_a_socket(ranks: Ranks) -> None:
    """torchrun in a container for each rank, with a network that they share."""
    program = ranks.script(PROGRAM)
    running = []
    for rank in (0, 1):
        variables = {
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "LOCAL_WORLD_SIZE": "2",
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": "1",
            "ONEHOP_MEETING_KEY": f"spaces {os.getpid()}",
        }
        running.append(ranks.popen(program, before=UNSHARE, **variables))
    for rank, process in enumerate(running):
        said = process.communicate(timeout=PATIENCE)[0]
        assert said.startswith(f"error: rank {1 - rank} and rank {rank} are in different PID namespaces"), (
            said
        )
