"""The built-in launcher: commands, exit codes, and cleaning up."""

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import onehop
from onehop.launch import command_of
from ranks import PATIENCE, SURVIVORS, Ranks

SLEEP = "import time; print('here', flush=True); time.sleep(1000)"


# -- what is run -----------------------------------------------------------------------------------------------------


def test_module_with_arguments(ranks: Ranks) -> None:
    ranks.script("import sys; print(sys.argv[1:])", "hello.py")
    done = ranks.onehop("launch", "-n", 1, "-m", "hello", "--flag", "-n", "7", cwd=ranks.folder)
    assert done.stdout == "[0] ['--flag', '-n', '7']\n"


def test_any_program(ranks: Ranks) -> None:
    done = ranks.onehop("launch", "-n", 2, "sh", "-c", "echo $ONEHOP_RANK of $ONEHOP_RANKS")
    assert sorted(done.stdout.splitlines()) == ["[0] 0 of 2", "[1] 1 of 2"]


def test_ranks_have_the_variables_of_torch(ranks: Ranks) -> None:
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    show = ["sh", "-c", "echo " + " ".join(f"${name}" for name in names)]
    rows = sorted(line.split() for line in ranks.onehop("launch", "-n", 2, *show).stdout.splitlines())
    assert [row[:-1] for row in rows] == [
        [f"[{rank}]", f"{rank}", "2", f"{rank}", "2", "127.0.0.1"] for rank in (0, 1)
    ]
    assert rows[0][-1] == rows[1][-1] != "0"
    given = {"RANK": "7", "MASTER_ADDR": "host", "MASTER_PORT": "1234"}
    rows = [
        line.split()
        for line in ranks.onehop(
            "launch", "-n", 1, *show, env={**ranks.environment, **given}
        ).stdout.splitlines()
    ]
    assert rows == [["[0]", "7", "1", "0", "1", "host", "1234"]]


def test_missing_program_is_bad_input(ranks: Ranks) -> None:
    for name in ("no_such_program", "no_such_program.py", "./no_such_program"):
        done = ranks.onehop("launch", "-n", 2, name, status=2)
        assert "no_such_program" in done.stderr
        assert "Traceback" not in done.stderr


def test_file_that_is_no_program_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program")
    with pytest.raises(onehop.BadInput, match=r"chmod \+x"):
        command_of(str(tmp_path / "data"))


def test_folder_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(onehop.BadInput, match=r"expected a program, .* found the folder"):
        command_of(str(tmp_path))


@pytest.mark.parametrize("number", ["0", "-1", "two"])
def test_bad_number_of_ranks(ranks: Ranks, number: str) -> None:
    assert ranks.onehop("launch", "-n", number, "true").returncode == 2


# -- failures --------------------------------------------------------------------------------------------------------


def test_first_failure_ends_the_launch_with_its_code(ranks: Ranks) -> None:
    source = """
        import os, sys, time
        if os.environ["ONEHOP_RANK"] == "2":
            sys.exit(7)
        time.sleep(1000)
    """
    done = ranks.launch(3, source, status=7)
    assert done.stderr == "onehop: rank 2 failed with exit code 7; the others were stopped\n"


def test_rank_that_ignores_sigterm_is_killed(ranks: Ranks) -> None:
    source = """
        import os, signal, sys, time
        if os.environ["ONEHOP_RANK"] == "0":
            time.sleep(1)
            sys.exit(4)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)
    """
    begin = time.monotonic()
    assert ranks.launch(2, source).returncode == 4
    assert time.monotonic() - begin > 2


@pytest.mark.parametrize("code", [0, 7])
def test_a_caller_that_ignores_the_ends_of_its_children(ranks: Ranks, code: int) -> None:
    """What is ignored stays so in the programs that a process starts."""
    ignored = "signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-m", "onehop", "launch", "-n", "2", "sh", "-c", f"exit {code}"]
    done = ranks.run([sys.executable, "-c", f"import os, signal, sys; {ignored}", *command])
    assert (done.returncode, done.stderr.count("\n")) == (code, int(code > 0)), done.stderr
    program = f"""
        import signal
        from onehop.launch import launch
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        print(launch(2, ["sh", "-c", "exit {code}"]))
    """
    done = ranks.run([sys.executable, ranks.script(program)])
    assert done.stdout == f"{code}\n", done.stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_killed_rank_is_named_with_its_signal(ranks: Ranks, number: signal.Signals) -> None:
    source = f"""
        import os, time
        if os.environ["ONEHOP_RANK"] == "1":
            os.kill(os.getpid(), {number})
        time.sleep(1000)
    """
    done = ranks.launch(2, source, status=128 + number)
    assert (
        f"rank 1 was killed by signal {int(number)} ({number.name}); the others were stopped" in done.stderr
    )


WAIT_FOR_EVER = """
    import os, signal, numpy as np, onehop
    group = onehop.Group.world()
    others = [rank for rank in range(group.size) if rank != group.rank]
    ends = group.channels(send=dict.fromkeys(others, 8), receive=dict.fromkeys(others, 8))
    group.barrier()
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    ends.receive[others[-1]].get(np.zeros(1))
"""


def test_rank_that_lost_its_peer_is_not_blamed(ranks: Ranks) -> None:
    done = ranks.launch(3, WAIT_FOR_EVER, *SURVIVORS, status=137)
    assert done.stderr.splitlines()[-1].startswith("onehop: rank 1 was killed by signal 9 (SIGKILL)")
    assert "onehop.error.PeerLost" in done.stderr


def test_rank_that_ends_early_without_an_error(ranks: Ranks) -> None:
    source = """
        import numpy as np, onehop
        group = onehop.Group.world()
        peer = 1 - group.rank
        ends = group.channels(send={peer: 8}, receive={peer: 8})
        if group.rank == 1:
            ends.receive[peer].get(np.zeros(1))
    """
    done = ranks.launch(2, source, status=3)
    assert "onehop.error.PeerLost" in done.stderr
    assert (
        "rank 1 failed with exit code 3 (it lost a peer: rank 0 had already ended with exit code 0)"
        in done.stderr
    )


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        ("onehop.BadInput('x')", 2),
        ("onehop.Mismatch('x')", 1),
        ("onehop.PeerLost('x', 0)", 3),
        ("ValueError('x')", 1),
        ("SystemExit(5)", 5),
    ],
)
def test_exit_codes_of_a_users_program(ranks: Ranks, raised: str, code: int) -> None:
    done = ranks.launch(1, f"import onehop\nraise {raised}", status=code)
    assert ("Traceback" in done.stderr) == (not raised.startswith("SystemExit"))


# -- nothing is left behind (the fixture looks) ----------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_stop_all(ranks: Ranks, number: signal.Signals) -> None:
    process = ranks.start(2, SLEEP)
    assert {process.stdout.readline(), process.stdout.readline()} == {"[0] here\n", "[1] here\n"}
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert errors.endswith("; all ranks were stopped\n")


def test_killed_launcher_takes_all_with_it(
    ranks: Ranks, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    # Each rank starts a process of its own; that, too, must go.
    source = "import subprocess; child = subprocess.Popen(['sleep', '1000']); print('here', flush=True); child.wait()"
    process = ranks.start(2, source)
    for _ in range(2):
        process.stdout.readline()
    assert len(ranks.processes()) >= 5
    process.kill()
    process.communicate(timeout=PATIENCE)
    eventually(lambda: ranks.processes() == [])


def test_what_a_rank_leaves_running_is_ended(ranks: Ranks) -> None:
    source = "import subprocess; subprocess.Popen(['sleep', '1000'])"
    assert ranks.launch(2, source).returncode == 0


def test_stopped_and_continued_with_the_launcher(
    ranks: Ranks, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    source = """
        import os, time
        print(os.getpid(), flush=True)
        time.sleep(1)
    """
    process = ranks.start(2, source)
    pids = [int(process.stdout.readline().split()[1]) for _ in range(2)]

    def states() -> set[str]:
        return {Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in pids}

    process.send_signal(signal.SIGTSTP)
    eventually(lambda: states() == {"T"})
    process.send_signal(signal.SIGCONT)
    eventually(lambda: states() & {"T"} == set())
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


# -- what became of the ranks ----------------------------------------------------------------------------------------


def test_json_tells_how_each_rank_ended(ranks: Ranks) -> None:
    source = """
        import os, signal, sys, time
        rank = int(os.environ["ONEHOP_RANK"])
        if rank == 1:
            time.sleep(0.3)
            sys.exit(7)
        if rank == 2:
            time.sleep(1000)
    """
    ranks.launch(3, source, "--json", "end.json", status=7)
    told = json.loads((ranks.folder / "end.json").read_text())
    assert (told["exit_code"], told["failed"]) == (7, 1)
    assert told["command"][-1] == str(ranks.folder / "program.py")
    assert [(one["exit_code"], one["signal"], one["stopped"]) for one in told["ranks"]] == [
        (0, None, False), (7, None, False), (None, "SIGTERM", True),
    ]  # fmt: skip
    seconds = [one["seconds"] for one in told["ranks"]]
    assert 0.3 <= seconds[1] <= seconds[2] <= told["seconds"]


@pytest.mark.parametrize(("prefix", "said"), [("rank", ["[0] hello", "[1] hello"]), ("raw", ["hello"] * 2)])
def test_json_has_stdout_for_itself(ranks: Ranks, prefix: str, said: list[str]) -> None:
    # One system call for each line: print makes two of them, between which the other rank may write.
    done = ranks.launch(2, "import os; os.write(1, b'hello\\n')", "--prefix", prefix, "--json", "-")
    assert sorted(done.stderr.splitlines()) == said
    told = json.loads(done.stdout)
    assert (told["exit_code"], told["failed"], len(told["ranks"])) == (0, None, 2)
