"""`onehop status`: a stopped rank is the one that the others wait for."""

import json
import os
import signal
import subprocess
import time
from typing import Any

import pytest

from onehop.cli import main
from onehop.error import Error
from onehop.status import GroupStatus, Rank, status_of
from ranks import Ranks

NOBODY = 65534

# A ring of channels. Rank 1 stops itself, so the others run out of messages.
RING = """
    import os, signal
    import numpy as np, onehop
    group = onehop.Group.world()
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    ring = group.channels(send={right: 8}, receive={left: 8})
    group.barrier()
    print("process", os.getpid(), flush=True)
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    for step in range(20):
        ring.send[right].put(np.zeros(1))
        ring.receive[left].get(np.zeros(1))
"""

# Rank 2 stops before a barrier.
BARRIER = """
    import os, signal
    import onehop
    group = onehop.Group.world()
    print("process", os.getpid(), flush=True)
    if group.rank == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
    group.barrier()
"""


def _until(process: int, ready: Any) -> Any:
    """The status of a program once it is as expected."""
    end = time.monotonic() + 30
    while True:
        try:
            groups = [group for group in status_of(process) if group.size == 3]
        except Error:
            groups = []
        if groups and ready(groups[0]):
            return groups[0]
        assert time.monotonic() < end, groups
        time.sleep(0.02)


def _stopped(group: Any) -> bool:
    """Whether a rank is stopped, and the two others wait for it alone.

    While they form the group, they wait for each other, too.
    """
    stopped = [rank.rank for rank in group.ranks if rank.state == "stopped"]
    return (
        len(stopped) == 1
        and group.waited_for == stopped
        and all(rank.waits or rank.state == "stopped" for rank in group.ranks)
    )


def test_a_stopped_rank_is_the_one_that_is_waited_for(
    ranks: Ranks, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    launched = ranks.start(3, RING)
    try:
        group = _until(launched.pid, _stopped)
        assert [rank.rank for rank in group.ranks] == [0, 1, 2]
        assert group.waited_for == [1]
        (wait,) = group.ranks[2].waits
        assert wait.ranks == [1]
        assert wait.what.startswith("channel 1 -> 2")
        assert f"process {group.ranks[1].process}" in wait.who
        earlier = wait.seconds
        time.sleep(0.2)
        # From any rank of it, too; the wait has lasted longer since.
        monkeypatch.setenv("COLUMNS", "140")
        assert main(["status", str(group.ranks[0].process), "--json", "-"]) == 0
        out, table = capsys.readouterr()
        assert f"The waits end at rank 1 (process {group.ranks[1].process}, stopped)" in table
        (found,) = json.loads(out)["groups"]
        assert found["waited_for"] == [1]
        assert [rank["state"] for rank in found["ranks"]].count("stopped") == 1
        assert found["ranks"][2]["waits"][0]["seconds"] >= earlier + 0.19
        os.kill(group.ranks[1].process, signal.SIGCONT)
        assert launched.wait(30) == 0
    finally:
        launched.kill()
        launched.communicate()


def test_a_rank_that_does_not_reach_a_barrier(ranks: Ranks) -> None:
    launched = ranks.start(3, BARRIER)
    try:
        group = _until(launched.pid, _stopped)
        assert group.waited_for == [2]
        for rank in group.ranks[:2]:
            assert rank.waits[0].ranks == [2]
            assert "barrier" in rank.waits[0].what
        os.kill(group.ranks[2].process, signal.SIGCONT)
        assert launched.wait(30) == 0
    finally:
        launched.kill()
        launched.communicate()


def test_processes_without_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    """One line of an error, exit code 1."""
    # A plain fork has the groups of this process until it runs `sleep`.
    sleeping = subprocess.Popen(["sleep", "60"])
    child = sleeping.pid
    try:
        assert main(["status", str(child)]) == 1
        assert f"process {child} has no onehop group" in capsys.readouterr().err
    finally:
        sleeping.kill()
        sleeping.wait()
    assert main(["status", str(child)]) == 1
    assert f"there is no process {child}" in capsys.readouterr().err
    assert main(["status", "0"]) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_process_of_another_user_is_refused() -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            status_of(os.getppid())
        except Error as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as text:
        assert "who may not examine it; ask as its user or as root" in text.read()


def test_interfaces_that_are_down(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is named once."""
    ranks = [
        Rank(0, 7, "running", left=False, reported_lost=None, steps=1, interfaces_down=["e1"]),
        Rank(1, 8, "running", left=False, reported_lost=None, steps=1, interfaces_down=["e0", "e1"]),
        Rank(2, 9, "running", left=False, reported_lost=None, steps=1),
    ]
    monkeypatch.setattr("onehop.cli.status.status_of", lambda _: [GroupStatus(3, [], ranks)])
    assert main(["status"]) == 0
    assert "Nothing arrives through e0, e1; other interfaces carry the messages\n" in capsys.readouterr().out
    monkeypatch.setattr("onehop.cli.status.status_of", lambda _: [GroupStatus(3, [], ranks[2:])])
    assert main(["status"]) == 0
    assert "Nothing" not in capsys.readouterr().out
