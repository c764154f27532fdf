"""Launching small programs on ranks."""

import os
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from onehop.error import BadInput
from onehop.launch.environment import variables
from onehop.launch.mpi import find_mpi_launcher, mpi_command

#: Seconds that a test waits for what comes about by itself: more than a busy machine needs, and less than pytest gives
#: a test, so that the test says what did not come.
PATIENCE = 250
#: Options of a launch whose ranks say what they find after one of them has failed. They end by themselves.
SURVIVORS = ("--grace", 100)

PYTHON_FOLDER = Path(__file__).resolve().parents[2] / "python"


def completed(
    line: Sequence[str | Path], *, status: int | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program, which must end with the exit code `status`, and return what it writes. None: with any."""
    done = subprocess.run(line, capture_output=True, text=True, check=False, **{"timeout": PATIENCE, **more})
    assert status in (None, done.returncode), f"exit code {done.returncode}: {done.stdout}{done.stderr}"
    return done


class Ranks:
    """Starts programs under `onehop launch`; every process of them carries a mark in its environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.mark = f"ONEHOP_TEST_MARK={uuid.uuid4()}"
        hidden = variables()
        self.environment = {name: value for name, value in os.environ.items() if name not in hidden}
        self.environment["TMPDIR"] = str(self.temporary)
        self.environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(PYTHON_FOLDER), os.environ.get("PYTHONPATH")])
        )
        name, _, value = self.mark.partition("=")
        self.environment[name] = value

    def script(self, source: str, name: str = "program.py") -> str:
        """Write a program and return its path."""
        path = self.folder / name
        path.write_text(textwrap.dedent(source))
        return str(path)

    def run(self, line: Sequence[str | Path], **more: Any) -> subprocess.CompletedProcess[str]:
        """Run a command and wait for it."""
        return completed(line, **{"env": self.environment, **more})

    def onehop(self, *arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run a command of onehop and wait for it."""
        return self.run([sys.executable, "-m", "onehop", *map(str, arguments)], **more)

    def run_python(self, *arguments: str, status: int | None = None) -> subprocess.CompletedProcess[str]:
        """Run Python without a launcher and wait for it."""
        return self.run([sys.executable, *arguments], status=status, cwd=self.folder)

    def launch(
        self, ranks: int, source: str, *options: object, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on ranks, in a folder of its own, and wait for it."""
        more.setdefault("cwd", self.folder)
        return self.onehop("launch", "-n", ranks, *options, self.script(source), **more)

    def mpiexec(
        self, ranks: int, *command: str, mpi: str | None = None, status: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on ranks under an MPI's mpiexec and wait for it; the test is skipped if there is none."""
        try:
            launcher = find_mpi_launcher(mpi)
        except BadInput as error:
            pytest.skip(str(error))
        line, environment = mpi_command(launcher, ranks, [sys.executable, *command])
        return self.run(line, status=status, env={**environment, **self.environment})

    def torchrun(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of torch on two ranks and wait for it."""
        torch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
        environment = {**self.environment, "OMP_NUM_THREADS": "1", "TMPDIR": str(self.folder)}
        return self.run([*torch, *command], env=environment)

    def start(self, ranks: int, source: str, *options: object) -> subprocess.Popen[str]:
        """Start a program on ranks; its output comes through pipes."""
        return self.popen("-m", "onehop", "launch", "-n", ranks, *options, self.script(source))

    def popen(
        self,
        *arguments: object,
        stdin: int = subprocess.DEVNULL,
        before: Sequence[str] = (),
        **variables: str,
    ) -> subprocess.Popen[str]:
        """Start Python with more variables in its environment; its output comes through pipes."""
        return subprocess.Popen(
            [*before, sys.executable, *map(str, arguments)],
            env={**self.environment, **variables},
            cwd=self.folder,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def processes(self) -> list[int]:
        """The processes, zombies aside, that carry the mark."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def assert_nothing_left_running(self, within: float = 100.0) -> None:
        """No process is left behind."""
        until = time.monotonic() + within
        while (left := self.processes()) and time.monotonic() < until:
            time.sleep(0.02)
        assert left == []

    def assert_nothing_left(self, within: float = 100.0) -> None:
        """No process, and no temporary file, is left behind."""
        self.assert_nothing_left_running(within)
        assert list(self.temporary.iterdir()) == []
