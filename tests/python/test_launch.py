"""The built-in launcher: output, exit codes, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import onehop
from conftest import Ranks
from onehop.exit_code import exit_code
from onehop.launch import command_of, current_launch, ensure_ranks, find_mpi_launcher, launch_under_mpi
from onehop.launch.output import Lines

SLEEP = "import time; print('here', flush=True); time.sleep(60)"


def lines_of(text: str) -> list[str]:
    return sorted(text.splitlines())


# -- output ----------------------------------------------------------------------------------------------------------


def test_every_line_carries_its_rank(ranks: Ranks) -> None:
    done = ranks.launch(3, "import os; print('one'); print('two of', os.environ['ONEHOP_RANKS'], end='')")
    assert done.returncode == 0
    assert done.stderr == ""
    assert lines_of(done.stdout) == [
        "[0] one", "[0] two of 3", "[1] one", "[1] two of 3", "[2] one", "[2] two of 3",
    ]  # fmt: skip


def test_lines_are_never_mixed(ranks: Ranks) -> None:
    source = """
        import os, sys
        letter = "abcd"[int(os.environ["ONEHOP_RANK"])]
        for _ in range(200):
            for _ in range(40):
                sys.stdout.write(letter)
            print()
    """
    done = ranks.launch(4, source)
    assert len(done.stdout.splitlines()) == 800
    assert set(done.stdout.splitlines()) == {f"[{rank}] {letter * 40}" for rank, letter in enumerate("abcd")}


def test_stdout_and_stderr_stay_apart(ranks: Ranks) -> None:
    done = ranks.launch(1, "import sys; print('out'); print('err', file=sys.stderr)")
    assert (done.stdout, done.stderr) == ("[0] out\n", "[0] err\n")


def test_rank0_alone(ranks: Ranks) -> None:
    done = ranks.launch(3, "import os; print('rank', os.environ['ONEHOP_RANK'])", "--output", "rank0")
    assert done.stdout == "rank 0\n"


def test_raw(ranks: Ranks) -> None:
    done = ranks.launch(2, "import os; print('rank', os.environ['ONEHOP_RANK'])", "--output", "raw")
    assert lines_of(done.stdout) == ["rank 0", "rank 1"]


def test_last_words_of_a_failed_rank_are_shown_even_if_it_is_not_rank_0(ranks: Ranks) -> None:
    source = """
        import os, sys, time
        if os.environ["ONEHOP_RANK"] == "1":
            sys.exit("something went wrong")
        time.sleep(60)
    """
    done = ranks.launch(2, source, "--output", "rank0")
    assert done.returncode == 1
    assert "[1] something went wrong" in done.stderr


def test_input_goes_to_rank_0(ranks: Ranks) -> None:
    done = ranks.launch(2, "import sys; print(repr(sys.stdin.read()))", input="typed\n")
    assert lines_of(done.stdout) == ["[0] 'typed\\n'", "[1] ''"]


def test_a_closed_output_ends_the_launch(ranks: Ranks) -> None:
    source = "import time\nwhile True: print('x' * 1000); time.sleep(0.001)"
    process = ranks.start(2, source)
    process.stdout.readline()
    process.stdout.close()
    process.stderr.close()
    assert process.wait(20) != 0


def test_long_lines_are_cut(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        lines = Lines(file.fileno(), "[7] ")
        lines.feed(b"x" * (3 << 20))
        lines.close()
    text = (tmp_path / "out").read_bytes()
    assert text.startswith(b"[7] x")
    assert text.count(b"x") == 3 << 20


# -- what is run -----------------------------------------------------------------------------------------------------


def test_module_with_arguments(ranks: Ranks) -> None:
    ranks.script("import sys; print(sys.argv[1:])", "hello.py")
    done = ranks.onehop("launch", "-n", 1, "-m", "hello", "--flag", "-n", "7", cwd=ranks.folder)
    assert done.stdout == "[0] ['--flag', '-n', '7']\n"


def test_any_program(ranks: Ranks) -> None:
    done = ranks.onehop("launch", "-n", 2, "sh", "-c", "echo $ONEHOP_RANK of $ONEHOP_RANKS")
    assert lines_of(done.stdout) == ["[0] 0 of 2", "[1] 1 of 2"]


def test_missing_program_is_bad_input(ranks: Ranks) -> None:
    for name in ("no_such_program", "no_such_program.py", "./no_such_program"):
        done = ranks.onehop("launch", "-n", 2, name)
        assert done.returncode == 2
        assert "no_such_program" in done.stderr
        assert "Traceback" not in done.stderr


def test_file_that_is_no_program_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program")
    with pytest.raises(onehop.BadInput, match=r"chmod \+x"):
        command_of(str(tmp_path / "data"))


def test_folder_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(onehop.BadInput, match="is a folder; expected a program"):
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
        time.sleep(60)
    """
    begin = time.monotonic()
    done = ranks.launch(3, source)
    assert time.monotonic() - begin < 10
    assert done.returncode == 7
    assert done.stderr == "onehop: rank 2 failed with exit code 7; the others were stopped\n"


def test_rank_that_ignores_sigterm_is_killed(ranks: Ranks) -> None:
    source = """
        import os, signal, sys, time
        if os.environ["ONEHOP_RANK"] == "0":
            time.sleep(1)
            sys.exit(4)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)
    """
    begin = time.monotonic()
    assert ranks.launch(2, source).returncode == 4
    assert 2 < time.monotonic() - begin < 20


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_killed_rank_is_named_with_its_signal(ranks: Ranks, number: signal.Signals) -> None:
    source = f"""
        import os, time
        if os.environ["ONEHOP_RANK"] == "1":
            os.kill(os.getpid(), {number})
        time.sleep(60)
    """
    done = ranks.launch(2, source)
    assert done.returncode == 128 + number
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
    done = ranks.launch(3, WAIT_FOR_EVER, "--grace", 3)
    assert done.returncode == 137
    assert done.stderr.splitlines()[-1].startswith("onehop: rank 1 was killed by signal 9 (SIGKILL)")


def test_peer_lost_names_the_rank_within_two_seconds(ranks: Ranks) -> None:
    begin = time.monotonic()
    done = ranks.launch(2, WAIT_FOR_EVER, "--grace", 5)
    assert time.monotonic() - begin < 4
    assert "onehop.error.PeerLost" in done.stderr
    assert "rank 1" in done.stderr


def test_rank_that_ends_early_without_an_error(ranks: Ranks) -> None:
    source = """
        import numpy as np, onehop
        group = onehop.Group.world()
        peer = 1 - group.rank
        ends = group.channels(send={peer: 8}, receive={peer: 8})
        if group.rank == 1:
            ends.receive[peer].get(np.zeros(1))
    """
    done = ranks.launch(2, source)
    assert done.returncode == 3
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
    done = ranks.launch(1, f"import onehop\nraise {raised}")
    assert done.returncode == code
    assert ("Traceback" in done.stderr) == (not raised.startswith("SystemExit"))


def test_exit_codes() -> None:
    assert exit_code(onehop.Error("")) == 1
    assert exit_code(onehop.BadInput("")) == 2
    assert exit_code(onehop.PeerLost("", 1)) == 3
    assert exit_code(KeyboardInterrupt()) == 130


# -- nothing is left behind (the fixture looks) ----------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_stop_all(ranks: Ranks, number: signal.Signals) -> None:
    process = ranks.start(2, SLEEP)
    assert {process.stdout.readline(), process.stdout.readline()} == {"[0] here\n", "[1] here\n"}
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert errors.endswith("; all ranks were stopped\n")


def test_killed_launcher_takes_all_with_it(
    ranks: Ranks, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    # Each rank starts a process of its own; that, too, must go.
    source = "import subprocess; child = subprocess.Popen(['sleep', '60']); print('here', flush=True); child.wait()"
    process = ranks.start(2, source)
    for _ in range(2):
        process.stdout.readline()
    assert len(ranks.processes()) >= 5
    process.kill()
    process.communicate(timeout=20)
    eventually(lambda: ranks.processes() == [])


def test_what_a_rank_leaves_running_is_ended(ranks: Ranks) -> None:
    source = "import subprocess; subprocess.Popen(['sleep', '60'])"
    begin = time.monotonic()
    assert ranks.launch(2, source).returncode == 0
    assert time.monotonic() - begin < 20


def test_killed_rank_in_the_middle_of_an_exchange(ranks: Ranks) -> None:
    source = """
        import os, signal, threading, onehop
        group = onehop.Group.world()
        field = group.empty((66, 66))
        plan = onehop.Plan(onehop.halo(extents=(64 * group.size, 64), grid=(group.size, 1)), group, [field])
        if group.rank == 1:
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
        while True:
            plan.run()
    """
    assert ranks.launch(4, source, "--grace", 4).returncode == 137


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
    process.communicate(timeout=20)
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
            time.sleep(60)
    """
    done = ranks.launch(3, source, "--json", "end.json")
    assert done.returncode == 7
    told = json.loads((ranks.folder / "end.json").read_text())
    assert (told["exit_code"], told["failed"]) == (7, 1)
    assert told["command"][-1] == str(ranks.folder / "program.py")
    assert [(one["exit_code"], one["signal"], one["stopped"]) for one in told["ranks"]] == [
        (0, None, False), (7, None, False), (None, "SIGTERM", True),
    ]  # fmt: skip
    seconds = [one["seconds"] for one in told["ranks"]]
    assert 0.3 <= seconds[1] <= seconds[2] <= told["seconds"] < 30


@pytest.mark.parametrize(("output", "said"), [("prefix", ["[0] hello", "[1] hello"]), ("raw", ["hello"] * 2)])
def test_json_has_stdout_for_itself(ranks: Ranks, output: str, said: list[str]) -> None:
    done = ranks.launch(2, "print('hello')", "--output", output, "--json", "-")
    assert lines_of(done.stderr) == said
    told = json.loads(done.stdout)
    assert (told["exit_code"], told["failed"], len(told["ranks"])) == (0, None, 2)


# -- cores -----------------------------------------------------------------------------------------------------------


def test_ranks_are_bound_to_cores_of_their_own(ranks: Ranks) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("needs two cores")
    source = "import os; print(sorted(os.sched_getaffinity(0)))"
    bound = {line.split("] ", 1)[1] for line in ranks.launch(2, source).stdout.splitlines()}
    assert len(bound) == 2
    assert all(len(eval(one)) == 1 for one in bound)
    for done in (ranks.launch(2, source, "--no-bind"), ranks.launch(len(cores) + 1, source)):
        assert {line.split("] ", 1)[1] for line in done.stdout.splitlines()} == {str(cores)}


def test_more_cores_than_there_are(ranks: Ranks) -> None:
    here = len(os.sched_getaffinity(0))
    done = ranks.launch(2, "print('never')", "--cores", here)
    assert done.returncode == (2 if here > 1 else 0)
    done = ranks.launch(1, "print('never')", "--cores", here + 1)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"need {here + 1} cores, but there are {here} here" in done.stderr
    assert ranks.launch(1, "print('shared')", "--cores", here + 1, "--no-bind").stdout == "[0] shared\n"


# -- launches of others ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "launcher"),
    [
        ({"ONEHOP_CONTROL": "x", "ONEHOP_RANK": "1", "ONEHOP_RANKS": "3"}, "onehop launch"),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3"}, "Open MPI"),
        ({"PMI_RANK": "1", "PMI_SIZE": "3"}, "PMI"),
        ({"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "3"}, "MVAPICH"),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "3", "SLURM_STEP_ID": "0"}, "srun"),
        ({"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "localhost"}, "torchrun"),
    ],
)
def test_launches_are_recognised(environment: dict[str, str], launcher: str) -> None:
    found = current_launch(environment)
    assert found is not None
    assert (found.launcher, found.rank, found.ranks) == (launcher, 1, 3)


@pytest.mark.parametrize(
    "environment", [{}, {"RANK": "1", "WORLD_SIZE": "2"}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}]
)
def test_no_launch(environment: dict[str, str]) -> None:
    assert current_launch(environment) is None


def test_variables_that_are_no_numbers() -> None:
    with pytest.raises(onehop.BadInput, match="PMI_RANK"):
        current_launch({"PMI_RANK": "first", "PMI_SIZE": "2"})


def test_other_number_of_ranks_than_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    ensure_ranks(None)
    ensure_ranks(2)
    with pytest.raises(onehop.BadInput, match="-n 4 was asked for, but this runs inside a launch of 2 ranks"):
        ensure_ranks(4)


def test_launch_inside_a_launch_is_refused(ranks: Ranks) -> None:
    done = ranks.onehop("launch", "-n", 2, sys.executable, "-m", "onehop", "launch", "-n", "2", "true")
    assert done.returncode == 2
    assert "already" in done.stderr


def test_under_an_mpi(ranks: Ranks, capfd: pytest.CaptureFixture[str]) -> None:
    try:
        found = find_mpi_launcher()
    except onehop.BadInput as error:
        pytest.skip(str(error))
    program = ranks.script("from onehop.launch import current_launch; print(current_launch())")
    assert launch_under_mpi(2, command_of(program), environment=ranks.environment) == 0
    launcher = {"openmpi": "Open MPI", "mpich": "PMI"}[found.kind]
    expected = {f"Launched(launcher='{launcher}', rank={rank}, ranks=2)" for rank in range(2)}
    assert set(capfd.readouterr().out.splitlines()) == expected


def test_no_such_mpi() -> None:
    with pytest.raises(onehop.BadInput, match="expected openmpi, mpich or the path"):
        find_mpi_launcher("no/such/folder")
    with pytest.raises(onehop.BadInput, match="does not say"):
        find_mpi_launcher("/bin/true")


def test_the_launcher_works_without_a_terminal_or_input(ranks: Ranks) -> None:
    done = ranks.launch(2, "print('fine')", stdin=subprocess.DEVNULL)
    assert done.returncode == 0


def test_more_ranks_than_a_machine_bears_are_refused() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "onehop", "launch", "-n", "100000", "/bin/true"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert result.returncode == 2
    assert "at most 1024 ranks" in result.stderr
