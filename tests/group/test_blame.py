"""However a rank fails, the surviving ranks and the launcher name this rank and not each other."""

import signal

import pytest

from ranks import SURVIVORS, Ranks

# Ways in which rank 1 ends, and its exit codes.
ENDS = {
    "raise": ("raise RuntimeError('a mistake of its own')", 1),
    "sys.exit(3)": ("sys.exit(3)", 3),
    "words": ("sys.exit('words')", 1),
    "os._exit": ("os._exit(5)", 5),
    "signal": ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
}

# Rank 1 fails. Rank r waits for rank r - 1, and would blame it if the failure were not reported.
PROGRAM = """
import os, signal, sys, time, numpy as np, onehop
group = onehop.Group.world()
right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
part = group.split(0, 0)
ends = part.channels(send={{right: 8}}, receive={{left: 8}}) if {in_part} else None
ring = group.channels(send={{right: 8}}, receive={{left: 8}})
ends = ends or ring
if group.rank == 1:
    {end}
try:
    ends.receive[left].get(np.zeros(1))
except onehop.PeerLost as error:
    print("lost", error.rank, error, flush=True)
    raise
"""


def survivors(output: str) -> list[tuple[int, int]]:
    """(rank, whom it lost) of every survivor that said so."""
    words = [line.split() for line in output.splitlines() if " lost " in line]
    return sorted((int(line[0].strip("[]")), int(line[2])) for line in words)


@pytest.mark.parametrize(("number", "end"), list(zip([2, 3, 4, 2, 3], ENDS, strict=True)))
def test_survivors_and_launcher_name_the_rank_that_failed(ranks: Ranks, number: int, end: str) -> None:
    statement, code = ENDS[end]
    done = ranks.launch(number, PROGRAM.format(end=statement, in_part=False), *SURVIVORS)
    assert survivors(done.stdout) == [(rank, 1) for rank in range(number) if rank != 1], done.stderr
    assert done.returncode == code, done.stderr
    assert "onehop: rank 1 " in done.stderr


def test_survivors_that_wait_in_a_part_of_the_group_name_the_rank_that_failed(ranks: Ranks) -> None:
    done = ranks.launch(3, PROGRAM.format(end="raise RuntimeError('a mistake')", in_part=True), *SURVIVORS)
    assert survivors(done.stdout) == [(0, 1), (2, 1)], done.stderr
    assert (done.stdout.count(" has ended; "), done.returncode) == (2, 1), done.stdout


@pytest.mark.parametrize("statement", ["sys.exit()", "sys.exit(256)"])
def test_rank_that_ends_early_with_status_0_has_closed_its_group(ranks: Ranks, statement: str) -> None:
    done = ranks.launch(3, PROGRAM.format(end=statement, in_part=False), *SURVIVORS)
    assert survivors(done.stdout) == [(0, 1), (2, 1)], done.stderr
    assert done.stdout.count("rank 1 (process") == 2
    assert "has closed its group" in done.stdout


def test_a_rank_that_ended_well_gives_no_reason_to_look_for(ranks: Ranks) -> None:
    """Rank 1 waits for it, rank 2 for rank 1, which has failed, and rank 3 in a barrier."""
    source = PROGRAM.format(end="pass", in_part=False).replace(
        "try:\n", "if group.rank == 0:\n    sys.exit()\ntry:\n    group.rank == 3 and group.barrier()\n"
    )
    done = ranks.launch(4, source, *SURVIVORS)
    said = [line for line in done.stdout.splitlines() if " lost " in line]
    assert survivors(done.stdout) == [(1, 0), (2, 0), (3, 0)], done.stderr
    for line in said:
        assert " has closed its group" in line, line
        assert line.endswith("do all ranks make the same number of steps?"), line


def test_end_of_a_program_is_not_missed(ranks: Ranks) -> None:
    # Rank 0 ends first. Its group and a part of it are in variables and in a reference cycle.
    source = """
        import time, numpy as np, onehop
        group = onehop.Group.world()
        part = group.split(0, 0)
        circle = [part, group]
        circle.append(circle)
        ends = group.channels(send={2: 8} if group.rank == 1 else {}, receive={1: 8} if group.rank == 2 else {})
        if group.rank == 1:
            time.sleep(1)
            ends.send[2].put(np.zeros(1))
        if group.rank == 2:
            ends.receive[1].get(np.zeros(1))
            print("done")
    """
    done = ranks.launch(3, source)
    assert (done.returncode, done.stdout) == (0, "[2] done\n"), done.stderr


@pytest.mark.parametrize("end", ["raise", "sys.exit(3)", "words"])
def test_exit_code_under_mpiexec(ranks: Ranks, end: str) -> None:
    statement, code = ENDS[end]
    done = ranks.mpiexec(3, ranks.script(PROGRAM.format(end=statement, in_part=False)), status=code)
    # mpiexec may end the other ranks before they print anything. Whatever they print must be true.
    for line in done.stdout.splitlines():
        if line.startswith("lost "):
            assert line.split()[1] == "1", done.stdout


def test_parts_of_a_group_name_the_rank_of_the_world_too(ranks: Ranks) -> None:
    source = """
        import os, signal, numpy as np, onehop
        group = onehop.Group.world()
        part = group.split(group.rank % 2, 0)
        peer = 1 - part.rank
        ends = part.channels(send={peer: 8}, receive={peer: 8})
        if group.rank == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        if group.rank == 1:
            try:
                ends.receive[peer].get(np.zeros(1))
            except onehop.PeerLost as error:
                print(error.rank, error, flush=True)
                raise
    """
    done = ranks.launch(4, source, *SURVIVORS)
    said = next(line for line in done.stdout.splitlines() if line.startswith("[1] "))
    assert said.startswith("[1] 1 rank 1 of this group (rank 3 of the world; process "), done.stdout
    assert "see the output of rank 3 of the world" in said
    assert done.returncode == 128 + signal.SIGKILL


def test_rank_that_dies_while_the_group_is_made_is_lost(ranks: Ranks) -> None:
    # Rank 1 has published its data, and dies before the others map its memory.
    source = """
        import os, signal, time, onehop
        control = onehop.Group.world()
        steps = []
        def kept(mine):
            # The second all-gather is answered for rank 1, which dies after its first.
            if not steps:
                everything = control.allgather(mine)
                if control.rank == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(0.5)
                steps.append(everything)
                return everything
            label, reach = mine[:32], mine[32:]
            answer = []
            for rank in range(control.size):
                head = bytearray(label)
                head[24:28] = rank.to_bytes(4, "little")
                answer.append(bytes(head) + reach)
            return answer
        try:
            onehop.Group.from_allgather(control.rank, control.size, kept)
        except onehop.PeerLost as error:
            print("lost", error.rank, error, flush=True)
            raise
    """
    done = ranks.launch(3, source, *SURVIVORS)
    assert survivors(done.stdout) == [(0, 1), (2, 1)], done.stdout + done.stderr
    assert done.returncode == 128 + signal.SIGKILL


# Rank 1 leaves and takes a while to end. Rank 2 loses it meanwhile, and has ended itself when rank 0 checks.
SLOW_END = """
import atexit, os, sys, time
atexit.register(time.sleep, 3)  # runs after what onehop registers
import onehop
group = onehop.Group.world()
if group.rank == 1:
    sys.exit(3)
time.sleep(1 if group.rank == 0 else 0)
try:
    group.barrier()
except onehop.PeerLost as error:
    print("lost", error.rank, error, flush=True)
    os._exit(9)
"""


def test_a_lost_rank_is_named_while_a_busy_one_is_awaited(ranks: Ranks) -> None:
    """Set-up takes the ranks in order, and rank 1 is busy until rank 0 knows what has happened."""
    source = """
        import os, signal, time, onehop
        group = onehop.Group.world()
        group.barrier()
        if group.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        while group.rank == 1 and not os.path.exists("told"):
            time.sleep(0.01)
        try:
            group.rank == 0 and group.barrier()
        except onehop.PeerLost as error:
            print("lost", error.rank, error, flush=True)
        finally:
            open("told", "w")
    """
    ranks.environment["ONEHOP_TIMEOUT"] = "30"
    done = ranks.launch(3, source, *SURVIVORS)
    assert survivors(done.stdout) == [(0, 2)], (done.stdout, done.stderr)


def test_a_rank_that_takes_long_to_end_is_named_and_not_who_missed_it(ranks: Ranks) -> None:
    done = ranks.launch(3, SLOW_END, *SURVIVORS)
    assert survivors(done.stdout) == [(0, 1), (2, 1)], done.stdout
    assert "and after it" not in done.stdout


# Rank 0 waits for rank 2 in a part of the world without rank 1, and gives up when rank 2 is killed. Rank 1 looks once
# both have gone. The three end in every way.
IN_ANOTHER_GROUP = """
import atexit, os, signal, sys, time, onehop
world = onehop.Group.world()
pids = [int(one) for one in world.allgather(str(os.getpid()).encode())]
part = world.split(0 if world.rank in {in_part} else 1, 0)
rest = world.split(1 if world.rank == 2 else 0, 0)  # without rank 2
def wait_for_the_end_of(rank):
    while os.path.exists(f"/proc/{{pids[rank]}}"):
        time.sleep(0.01)
if world.rank == 2:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    if world.rank == 0:
        {loses}
    wait_for_the_end_of(0)
    {waits}
except onehop.PeerLost as error:
    print("lost", error.rank, error, flush=True)
    if world.rank == 0:
        {ends}
    raise
"""
LOSES = {
    "barrier": "part.barrier()",
    "channels": "part.channels(send={1: 8}, receive={1: 8})",
    "report from user code": "wait_for_the_end_of(2); raise onehop.PeerLost('found out by itself', 2)",
}
ENDS_OF_0 = {"raises": "raise", "closes": "del part, rest, world; sys.exit(0)", "exits": "sys.exit(3)"}
WAITS = {"barrier": "world.barrier()", "split": "world.split(0, 0)", "channels": "world.channels()"}


@pytest.mark.parametrize(
    ("loses", "ends", "waits"),
    [
        ("barrier", "raises", "barrier"),
        ("barrier", "closes", "split"),
        ("channels", "exits", "channels"),
        ("report from user code", "raises", "barrier"),
    ],
)
def test_a_rank_that_was_lost_in_another_group_is_named(
    ranks: Ranks, loses: str, ends: str, waits: str
) -> None:
    program = IN_ANOTHER_GROUP.format(
        in_part=(0, 2), loses=LOSES[loses], ends=ENDS_OF_0[ends], waits=WAITS[waits]
    )
    done = ranks.launch(3, program, "--grace", 20)
    lost_by_0 = 2 if loses.startswith("report") else 1  # in the part
    assert survivors(done.stdout) == [(0, lost_by_0), (1, 2)], done.stdout + done.stderr


def test_a_group_without_the_lost_rank_names_it_in_the_text(ranks: Ranks) -> None:
    program = IN_ANOTHER_GROUP.format(
        in_part=(0, 2), loses="part.barrier()", ends="raise", waits="rest.barrier()"
    )
    done = ranks.launch(3, program, "--grace", 20)
    assert survivors(done.stdout) == [(0, 1), (1, 0)], done.stdout + done.stderr
    said = next(line for line in done.stdout.splitlines() if line.startswith("[1] "))
    assert "it had lost rank 2 of the world before; see the output of rank 2 of the world" in said


def test_of_two_losses_the_one_that_is_no_consequence_is_named(ranks: Ranks) -> None:
    # Rank 1 is killed, and rank 0 fails because of it in a part of both. Rank 2 is killed, too. Rank 3 is in a part
    # with ranks 0 and 2.
    source = """
        import os, signal, time, onehop
        world = onehop.Group.world()
        pids = [int(one) for one in world.allgather(str(os.getpid()).encode())]
        rest = world.split(-1 if world.rank == 1 else 0, 0)
        pair = world.split(0 if world.rank < 2 else 1, 0)
        def wait_for_the_end_of(rank):
            while os.path.exists(f"/proc/{pids[rank]}"):
                time.sleep(0.01)
        if world.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if world.rank == 0:
            pair.barrier()
        wait_for_the_end_of(0)
        if world.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        wait_for_the_end_of(2)
        try:
            rest.barrier()
        except onehop.PeerLost as error:
            print("lost", error.rank, flush=True)
            raise
    """
    done = ranks.launch(4, source, "--grace", 20)
    assert survivors(done.stdout) == [(3, 1)], done.stdout + done.stderr  # rank 2 of the world


def test_a_rank_that_aborted_another_group_and_lives_is_not_blamed(ranks: Ranks) -> None:
    # Rank 2 aborts a part, which rank 0 notices. Later rank 0 is killed: the others name it, and not rank 2.
    source = """
        import os, signal, numpy as np, onehop
        world = onehop.Group.world()
        part = world.split(0 if world.rank in (0, 2) else 1, 0)
        peer = 1 - part.rank
        ends = part.channels(send={peer: 8}, receive={peer: 8}) if part.size == 2 else None
        if world.rank == 2:
            part.abort()
        elif world.rank == 0:
            try:
                ends.receive[1].get(np.zeros(1))
            except onehop.PeerLost as error:
                print("lost", error.rank, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            world.barrier()
        except onehop.PeerLost as error:
            print("lost", error.rank, flush=True)
            raise
    """
    done = ranks.launch(3, source, "--grace", 20)
    assert survivors(done.stdout) == [(0, 1), (1, 0), (2, 0)], done.stdout + done.stderr
