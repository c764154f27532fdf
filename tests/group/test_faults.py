"""Errors of Python programs under `onehop launch` when ranks are killed, interrupted or end early.

The fixture `ranks` looks afterwards for processes, temporary files and files in /dev/shm that were left behind.
"""

import os
import random
import signal
import time

import pytest

from ranks import PATIENCE, SURVIVORS, Ranks

# Operations that ranks repeat until one raises an error.
WORK = {
    "preparation": """
        def step():
            group.channels(send={right: 8}, receive={left: 8})
    """,
    "plan_and_barrier": """
        field = np.zeros((66, 66))
        plan = onehop.Plan(onehop.halo(extents=(64 * group.size, 64), grid=(group.size, 1)), group, [field])
        def step():
            plan.run()
            group.barrier()
    """,
    "asleep": """
        ring = group.channels(send={right: 8}, receive={left: 8})
        def step():
            ring.receive[left].get(np.zeros(1))
    """,
}

# Survivors say whom they lost, when, by the clock that the test has, too, and how the error names it.
PROGRAM = """
import os, time
print("process", os.getpid(), flush=True)
import numpy as np, onehop
begun = time.clock_gettime(time.CLOCK_MONOTONIC)
try:
    group = onehop.Group.world()
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
{work}
    group.barrier()
    print("at work", flush=True)
    while True:
        step()
except onehop.PeerLost as error:
    print("lost", error.rank, begun, time.clock_gettime(time.CLOCK_MONOTONIC), error, flush=True)
"""


def program(work: str) -> str:
    """The source of a program that does this work."""
    lines = [line[4:] for line in WORK[work].splitlines()]
    return PROGRAM.format(work="\n".join(lines))


def read_pids(process: object, number: int, *, at_work: bool = True) -> dict[int, int]:
    """The process of each rank, as the ranks print it; when all are at work, or as soon as they have started."""
    pids = {}
    working = 0
    while len(pids) < number or (at_work and working < number):
        prefix, word, *rest = process.stdout.readline().split()
        if word == "process":
            pids[int(prefix.strip("[]"))] = int(rest[0])
        else:
            assert (word, rest) == ("at", ["work"])
            working += 1
    return pids


def kill_one(ranks: Ranks, number: int, work: str, longest: float, *, at_work: bool = True) -> None:
    """Kill one rank at a random moment: all others name it in time, and the launch ends with its exit code."""
    victim = random.randrange(number)
    process = ranks.start(number, program(work), *SURVIVORS)
    pids = read_pids(process, number, at_work=at_work)
    delay = random.uniform(0, longest)
    time.sleep(delay)
    killed = time.clock_gettime(time.CLOCK_MONOTONIC)
    os.kill(pids[victim], signal.SIGKILL)
    output, errors = process.communicate(timeout=PATIENCE)
    what = f"rank {victim} of {number} killed after {delay:.4f} s in {work}: {output} {errors}"
    assert process.returncode == 128 + signal.SIGKILL, what
    assert f"onehop: rank {victim} was killed by signal 9 (SIGKILL)" in errors, what
    said = [line.split(maxsplit=5) for line in output.splitlines() if " lost " in line]
    assert sorted(int(line[0].strip("[]")) for line in said) == sorted(set(range(number)) - {victim}), what
    for _, _, lost, begun, moment, text in said:
        assert int(lost) == victim, what
        assert f"rank {victim} " in text, what
        assert "channel " in text or "in set-up" in text, what
        took = float(moment) - max(killed, float(begun))
        print(f"{work}: {took:.4f} s")
        assert took < 60, what  # a fortieth of a second, and two at most; a busy machine gets more


@pytest.mark.parametrize("work", ["plan_and_barrier", "asleep"])  # test_faults.cc has all operations
def test_killed_rank_is_named_by_all_others_in_time(ranks: Ranks, work: str) -> None:
    kill_one(ranks, random.choice((3, 4)), work, 0.1)


def test_rank_that_is_killed_before_or_while_the_group_is_made(ranks: Ranks) -> None:
    # Importing takes a few tenths of a second, and every rank its own time.
    kill_one(ranks, 4, "plan_and_barrier", 0.01, at_work=False)
    kill_one(ranks, 3, "preparation", 1, at_work=False)


def test_rank_that_ends_without_joining_is_lost_to_the_others(ranks: Ranks) -> None:
    source = """
        import os, onehop
        if os.environ["ONEHOP_RANK"] == "1":
            os._exit(0)
        try:
            onehop.Group.world()
        except onehop.PeerLost as error:
            print(error.rank, str(error).split(" while")[0])
            raise
    """
    done = ranks.launch(3, source, *SURVIVORS)
    assert sorted(done.stdout.splitlines()) == [
        f"[{rank}] 1 rank 1 has ended without joining" for rank in (0, 2)
    ]
    assert done.returncode == 3


@pytest.mark.parametrize("work", ["asleep", "preparation"])
def test_killed_launcher_ends_all_ranks(ranks: Ranks, work: str) -> None:
    process = ranks.start(3, program(work))
    read_pids(process, 3)
    process.kill()
    process.communicate(
        timeout=PATIENCE
    )  # until the last rank has closed its output; the fixture looks for the rest


@pytest.mark.parametrize("work", ["asleep", "plan_and_barrier"])
def test_interrupt_ends_all_ranks(ranks: Ranks, work: str) -> None:
    process = ranks.start(3, program(work))
    read_pids(process, 3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT
    assert "KeyboardInterrupt" in errors


def test_long_wait_can_be_interrupted(ranks: Ranks) -> None:
    source = """
        import os, signal, threading, time, numpy as np, onehop
        group = onehop.Group.world()
        peer = 1 - group.rank
        ends = group.channels(send={peer: 8}, receive={peer: 8})
        if group.rank == 0:
            threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                ends.receive[peer].get(np.zeros(1))
            except KeyboardInterrupt:
                print("interrupted")
        # After that the group still works.
        group.barrier()
    """
    done = ranks.launch(2, source)
    assert (done.returncode, done.stdout) == (0, "[0] interrupted\n"), done.stderr
