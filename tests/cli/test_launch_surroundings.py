"""The built-in launcher with other software: cores, MPI launchers, and launches by other launchers."""

import errno
import os
import sys

import pytest

import onehop
import refused_calls
from commands import refused
from onehop.launch import command_of, current_launch, ensure_ranks, find_mpi_launcher, launch_under_mpi
from ranks import Ranks
from refused_calls import run_command, run_with_refused_calls

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
    done = ranks.launch(2, "print('never')", "--cores", here, status=2 if here > 1 else 0)
    done = ranks.launch(1, "print('never')", "--cores", here + 1)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"expected {here + 1} cores" in done.stderr
    assert ranks.launch(1, "print('shared')", "--cores", here + 1, "--no-bind").stdout == "[0] shared\n"


@pytest.mark.parametrize(
    ("calls", "error"),
    [
        ("sched_setaffinity", "EPERM"),
        ("sched_setaffinity", "ENOSYS"),
        ("sched_getaffinity,setsid,waitid,prctl", "EPERM"),
        ("getppid", "EPERM"),
        ("getppid", "ENOSYS"),
    ],
)
def test_a_sandbox_that_refuses_calls_of_the_launcher(ranks: Ranks, calls: str, error: str) -> None:
    """The launch goes on without what is only an improvement, and says so if times change."""
    source = "from onehop import Group; print(Group.world().allgather(b'x'))"
    done = run_with_refused_calls(ranks, error, calls, ranks.script(source))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] [b'x', b'x']" for rank in (0, 1)]
    binds = calls == "sched_setaffinity" and len(os.sched_getaffinity(0)) > 1
    assert ("not bound to cores, which this system refuses (sched_setaffinity: " in done.stderr) == binds, (
        done.stderr
    )
    assert done.stderr.count("\n") == binds


def test_a_sandbox_that_refuses_what_the_launcher_needs(ranks: Ranks) -> None:
    done = run_with_refused_calls(ranks, "EPERM", "setpgid", ranks.script("print('never')"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot make a process group (setpgid: Operation not permitted)" in done.stderr
    assert "Traceback" not in done.stderr
    done = run_with_refused_calls(ranks, "ENOSYS", "socketpair", ranks.script("print('never')"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert "Function not implemented; a sandbox refuses the launcher socketpair" in done.stderr


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("getpid", "cannot start ranks: the system refuses getpid (Operation not permitted)"),
        ("geteuid", "cannot start ranks: the system refuses geteuid (Operation not permitted)"),
        ("uname", "cannot start ranks: the system refuses uname (Operation not permitted)"),
        ("wait4", "a sandbox refuses the launcher wait4"),
        ("epoll_ctl", "a sandbox refuses the launcher epoll_create1, epoll_ctl or epoll_wait"),
        ("ioctl", "a sandbox refuses the launcher ioctl"),
    ],
)
def test_a_refused_call_is_named_in_one_line(ranks: Ranks, call: str, told: str) -> None:
    done = run_with_refused_calls(ranks, "EPERM", call, ranks.script("print('never')"))
    assert (done.returncode, done.stdout.replace("[0] never\n", "").replace("[1] never\n", "")) == (1, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_ranks_that_may_not_ask_for_their_user(ranks: Ranks, error: str) -> None:
    """The launcher may: the refusal is of the ranks, and neither their number nor another user is to blame."""
    source = "import onehop\ntry: onehop.Group.world()\nexcept onehop.Error as wrong: print(wrong)"
    words = [refused_calls.__file__, error, "geteuid", sys.executable, ranks.script(source)]
    done = ranks.onehop("launch", "-n", 2, *words)
    told = f"the system refuses geteuid ({os.strerror(getattr(errno, error))}); allow it in this sandbox"
    assert done.stdout.count(told) == 2, done.stdout + done.stderr


def test_a_refused_call_of_a_library_is_named_in_one_line(ranks: Ranks) -> None:
    """NumPy asks for the name of the machine when it is imported."""
    done = run_command(ranks, "EPERM", "uname", "schedule", "halo", "--extent", "4x4", "--grid", "2x1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "a sandbox refuses the system call uname (Operation not permitted); allow it" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("call", ["socket", "bind", "setsockopt"])
def test_a_sandbox_without_sockets_has_no_mpiexec(ranks: Ranks, call: str) -> None:
    """Open MPI's own text, or a rank that waits, would be all that the user sees."""
    source = "from onehop.launch import launch_under_mpi; launch_under_mpi(2, ['true'])"
    done = ranks.run_python(refused_calls.__file__, "EPERM", call, sys.executable, "-c", source, status=1)
    told = done.stderr.splitlines()[-1]
    assert "the system refuses socket, setsockopt, bind, listen or connect (Operation not permitted)" in told
    source = (
        "from onehop.launch import ensure_ranks_beside_mpi, ranks\n"
        "ranks.ensure_ranks = lambda *_, launcher, **__: print(launcher)\n"
        "ensure_ranks_beside_mpi(2, None, default=2)"
    )
    done = ranks.run_python(refused_calls.__file__, "EPERM", call, sys.executable, "-c", source)
    assert done.stdout == "local\n", done.stderr


def test_a_sandbox_in_which_mpiexec_would_hang(ranks: Ranks) -> None:
    source = "from onehop.launch import launch_under_mpi; launch_under_mpi(2, ['true'])"
    done = ranks.run_python(
        refused_calls.__file__, "EPERM", "sched_getaffinity", sys.executable, "-c", source, status=1
    )
    assert (
        "refuses sched_getaffinity (Operation not permitted), without which Open MPI's mpiexec" in done.stderr
    )


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


@pytest.mark.parametrize("given", ["ONEHOP_RANK", "ONEHOP_RANKS", "ONEHOP_CONTROL"])
def test_a_part_of_the_variables_of_a_launch_is_one_error(
    given: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(given, "2")
    told = refused("schedule show none.json", capsys)
    assert told.startswith("expected ONEHOP_")
    assert f"in the environment beside {given}, as `onehop launch` sets them: unset {given}" in told


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
    done = ranks.onehop(
        "launch", "-n", 2, sys.executable, "-m", "onehop", "launch", "-n", "2", "true", status=2
    )
    assert "expected `onehop launch` outside of a launch" in done.stderr


def test_torchrun_inside_a_launch_is_refused(ranks: Ranks) -> None:
    """Its workers inherit the seat of the one rank that started it. The error names both launchers."""
    source = """
        import os
        from onehop import Error, Group
        if os.environ.get("TORCHELASTIC_RUN_ID") == "outer":
            raise SystemExit("the mark of a torchrun around the launch has reached a rank")
        worker = 2 * int(os.environ["ONEHOP_RANK"]) + 1
        os.environ.update(RANK=str(worker), WORLD_SIZE="4", LOCAL_WORLD_SIZE="4", MASTER_ADDR="localhost")
        os.environ.update(MASTER_PORT="29500", TORCHELASTIC_RUN_ID="inner")
        try:
            Group.world()
        except Error as error:
            print(error)
    """
    ranks.environment["TORCHELASTIC_RUN_ID"] = "outer"
    done = ranks.launch(2, source, status=0)
    for rank in (0, 1):
        assert (
            f"[{rank}] torchrun started this program as rank {2 * rank + 1} of 4, but inside" in done.stdout
        )
        assert f", rank {rank} of 2), whose ranks the workers of torchrun are not" in done.stdout, done.stdout


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


def test_ranks_that_cannot_be_bound_yield_to_each_other(ranks: Ranks) -> None:
    program = ranks.script("""
        from onehop.launch.mpi import find_mpi_launcher, mpi_command
        line, environment = mpi_command(find_mpi_launcher("openmpi"), 1, ["true"])
        print(environment.get("OMPI_MCA_mpi_yield_when_idle"), line[3:])
    """)
    run = [sys.executable, program]
    assert "None ['--bind-to', 'core'" in ranks.run(run).stdout
    refused_run = ranks.run([sys.executable, refused_calls.__file__, "EPERM", "sched_setaffinity", *run])
    assert "1 ['--bind-to', 'none'" in refused_run.stdout, refused_run.stderr


def test_no_such_mpi() -> None:
    with pytest.raises(onehop.BadInput, match="expected openmpi, mpich or the path"):
        find_mpi_launcher("no/such/folder")
    with pytest.raises(onehop.BadInput, match="whose version text names neither"):
        find_mpi_launcher("/bin/true")
