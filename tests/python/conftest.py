"""Launching small programs on ranks, and looking for what they leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from onehop.error import BadInput
from onehop.launch.environment import variables
from onehop.launch.mpi import find_mpi_launcher, mpi_command

# An example takes as long as a busy machine lets it. In CI the examples are always the same ones, so that a failure
# there is a failure at a desk too; at a desk they vary, and find more.
settings.register_profile("onehop", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("onehop")

# A shell that starts the tests in the background lets them ignore SIGINT, and what they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

PYTHON_FOLDER = Path(__file__).resolve().parents[2] / "python"


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

    def onehop(
        self, *arguments: object, timeout: float = 60, **more: object
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of onehop and wait for it."""
        return subprocess.run(
            [sys.executable, "-m", "onehop", *map(str, arguments)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            **more,
        )

    def launch(
        self, ranks: int, source: str, *options: object, **more: object
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on ranks, in a folder of its own, and wait for it."""
        more.setdefault("cwd", self.folder)
        return self.onehop("launch", "-n", ranks, *options, self.script(source), **more)

    def mpiexec(self, ranks: int, *command: str, mpi: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command on ranks under an MPI's mpiexec and wait for it; the test is skipped if there is none."""
        try:
            launcher = find_mpi_launcher(mpi)
        except BadInput as error:
            pytest.skip(str(error))
        line, environment = mpi_command(launcher, ranks, [sys.executable, *command])
        return subprocess.run(
            line,
            env={**environment, **self.environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def torchrun(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of torch on two ranks and wait for it."""
        return subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", *command],
            env={**self.environment, "OMP_NUM_THREADS": "1", "TMPDIR": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def start(self, ranks: int, source: str, *options: object) -> subprocess.Popen[str]:
        """Start a program on ranks; its output comes through pipes."""
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "onehop",
                "launch",
                "-n",
                str(ranks),
                *map(str, options),
                self.script(source),
            ],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
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

    def assert_nothing_left(self, within: float = 3.0) -> None:
        """No process, and no temporary file, is left behind."""
        until = time.monotonic() + within
        while (left := self.processes()) and time.monotonic() < until:
            time.sleep(0.02)
        assert left == []
        assert list(self.temporary.iterdir()) == []


def _shared_memory_files() -> set[str]:
    """Names in /dev/shm, but for those that an MPI of somebody else's makes."""
    folder = Path("/dev/shm")
    if not folder.is_dir():
        return set()
    foreign = ("sm_segment", "vader_segment", "osc_", "psm", "mpich", "sem.")
    return {path.name for path in folder.iterdir() if not path.name.startswith(foreign)}


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[Ranks]:
    """A launcher of small programs, whose leftovers are looked for after the test."""
    before = _shared_memory_files()
    here = Ranks(tmp_path)
    yield here
    here.assert_nothing_left()
    assert _shared_memory_files() - before == set()


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Waits up to ten seconds until something is so."""

    def wait(condition: Callable[[], bool]) -> None:
        until = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < until, "it did not come about within ten seconds"
            time.sleep(0.01)

    return wait
