"""Commands at a limit of the system, and options without effect, end with one line of an error."""

import subprocess
import sys
from pathlib import Path

import pytest

from onehop.error import BadInput
from onehop.launch import find_mpi_launcher
from ranks import completed

ONEHOP = f"{sys.executable} -m onehop"


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell in a folder."""
    return completed(["bash", "-c", line], cwd=folder, timeout=120)


def check_one_line(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    """Check that a command has failed, and that it has printed one line with these parts."""
    assert done.returncode in (1, 2), done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1, done.stderr
    for part in parts:
        assert part in done.stderr


@pytest.mark.parametrize("files", [6, 7, 8, 10])
def test_few_open_files(files: int, tmp_path: Path) -> None:
    """Before, the launcher's own pipes were a traceback."""
    done = shell(f"ulimit -n {files}; {ONEHOP} launch -n 2 /bin/true", tmp_path)
    check_one_line(done, "could not run '/bin/true' on 2 ranks: Too many open files", "ulimit -n")
    assert shell(f"ulimit -n 64; {ONEHOP} launch -n 2 /bin/true", tmp_path).returncode == 0


def test_little_memory(halo: str, tmp_path: Path) -> None:
    """The limit is looked for, because what a Python needs differs between machines."""
    failed = []
    for kibibytes in range(50_000, 1_000_000, 50_000):
        done = shell(f"ulimit -v {kibibytes}; {ONEHOP} schedule verify {halo}", tmp_path)
        if done.returncode == 0:
            break
        assert (
            "onehop/cli" not in done.stderr
        )  # no traceback; Python itself may fail with one, and OpenBLAS ends it
        if done.stderr.startswith("error: "):
            failed.append(kibibytes)
            check_one_line(done, "memory")
    if not failed:
        pytest.skip("no limit lets Python start and stops the command")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("launch -n 2 program.py", "found no file program.py in a folder that no longer exists"),
        ("schedule halo --extent 8x8 --grid 2x1 -o halo.json", "there is no folder"),
        ("run circuit.qasm -n 2", "circuit.qasm"),
    ],
)
def test_a_folder_that_is_gone(words: str, part: str, tmp_path: Path) -> None:
    done = shell(f"mkdir gone && cd gone && rmdir ../gone && {ONEHOP} {words}", tmp_path)
    check_one_line(done, part)


def test_few_open_files_for_mpiexec(tmp_path: Path) -> None:
    """Open MPI's own text speaks of pipes, and its exit code is 186."""
    try:
        find_mpi_launcher("openmpi")
    except BadInput as error:
        pytest.skip(str(error))
    done = shell(f"ulimit -n 20; {ONEHOP} bench pingpong --quick", tmp_path)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert "expected a limit of at least 34 open files for 2 ranks, found 20; raise it (`ulimit -n`)" in last


@pytest.mark.parametrize("prefix", ["rank", "raw", "rank0"])
def test_a_reader_that_leaves_is_no_traceback_of_onehop(prefix: str, tmp_path: Path) -> None:
    (tmp_path / "talk.sh").write_text("#!/bin/sh\nyes 2>/dev/null | head -n 200000 2>/dev/null\nexit 0\n")
    (tmp_path / "talk.sh").chmod(0o755)
    line = f"{ONEHOP} launch -n 2 --prefix {prefix} ./talk.sh | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = shell(line, tmp_path)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 141)
    assert done.stdout.removeprefix("[0] ").removeprefix("[1] ") == "y\n"
