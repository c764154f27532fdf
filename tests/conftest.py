"""Launching small programs on ranks, and looking for what they leave behind."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from commands import Command
from onehop.cli import main
from ranks import PATIENCE, Ranks

# An example takes as long as a busy machine lets it. In CI the examples are always the same ones, so that a failure
# there is a failure at a desk too; at a desk they vary, and find more.
settings.register_profile("onehop", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("onehop")

# Several tests run at once, many of them with several ranks. Threads of NumPy's BLAS would only wait for each other,
# and starting them takes as long as importing the rest of NumPy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What a run keeps for later ones, and what `onehop tune` has saved on this machine, is not for tests. Matplotlib and
# ccache keep their folders.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
os.environ.setdefault("MPLCONFIGDIR", str(CACHE / "matplotlib"))
os.environ.setdefault("CCACHE_DIR", str(CACHE / "ccache"))
os.environ["XDG_CACHE_HOME"] = "/dev/null"

# A shell that starts the tests in the background makes them ignore SIGINT, and nohup makes them ignore SIGHUP. The
# programs that they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start programs."""
    for item in items:
        if "ranks" in getattr(item, "fixturenames", ()):
            item.add_marker("programs")


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
    # Tests that run beside this one have files there, too, but not for long.
    until = time.monotonic() + 30
    while (left := _shared_memory_files() - before) and time.monotonic() < until:
        time.sleep(0.02)
    assert left == set()


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command of onehop on one rank in this process, which takes a tenth of the time of a process of its own."""

    def run(*arguments: object, status: int | None = None) -> subprocess.CompletedProcess[str]:
        words = [str(one) for one in arguments]
        capsys.readouterr()
        code = main(words)
        out, err = capsys.readouterr()
        assert status in (None, code), f"exit code {code}: {out}{err}"
        return subprocess.CompletedProcess(words, code, out, err)

    return run


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Waits until something is so."""

    def wait(condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < until, f"it did not come about within {PATIENCE} s"
            time.sleep(0.01)

    return wait
