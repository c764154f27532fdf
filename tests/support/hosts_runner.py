"""Running small programs on emulated hosts."""

import os
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from onehop_bench.hosts import EmulatedHosts, launch_on_hosts

SUPPORT = Path(__file__).parent
PACKAGE = Path(__file__).parents[2] / "python"


def launched(
    hosts: EmulatedHosts,
    per_host: int | Sequence[int],
    words: Sequence[str],
    options: Sequence[str] = (),
    **more: str,
) -> tuple[int, str]:
    """Run a command on ranks of hosts, with more variables; return the exit code and what the ranks write."""
    with tempfile.TemporaryFile("w+") as out, Path(os.devnull).open() as null:
        descriptors = (null.fileno(), out.fileno(), out.fileno())
        code = launch_on_hosts(
            hosts, per_host, [*words], environment=more, options=tuple(options), descriptors=descriptors
        )
        out.seek(0)
        return code, out.read()


class OnHosts:
    """Runs programs on hosts."""

    def __init__(self, hosts: EmulatedHosts, folder: Path) -> None:
        self.hosts = hosts
        self.folder = folder

    def run(self, source: str, per_host: int = 2, options: tuple[str, ...] = ()) -> tuple[int, str]:
        """Run a Python program on `per_host` ranks per host; return the exit code and what the ranks write."""
        program = self.folder / "program.py"
        program.write_text(textwrap.dedent(source))
        paths = os.pathsep.join([str(PACKAGE), str(SUPPORT), os.environ.get("PYTHONPATH", "")])
        words = [sys.executable, str(program)]
        return launched(self.hosts, per_host, words, options, PYTHONPATH=paths, ONEHOP_TIMEOUT="60")

    def check(self, source: str, per_host: int = 2) -> str:
        """Run a program that must succeed on all ranks."""
        code, text = self.run(source, per_host)
        assert code == 0, text
        return text


# What programs without MPI begin with: a group of all ranks from a store of files.
HEAD = """
    import sys
    import numpy as np
    from file_store import FileStore
    from onehop import Group, PeerLost, Plan, halo, halo_block
    rank, folder = int(sys.argv[1]), sys.argv[2]
    group = Group.from_store(FileStore(folder), rank, int(sys.argv[3]))
"""


def run_without_mpi(
    hosts: EmulatedHosts,
    folder: Path,
    source: str,
    meanwhile: Callable[[], None] = lambda: None,
    ended: dict[int, float] | None = None,
    per_host: Sequence[int] = (2, 2),
    **variables: str,
) -> list[tuple[int, str]]:
    """Run a program on so many ranks of each host, behind `HEAD`; return exit code and output of each.

    `ended` receives when each process has ended, by CLOCK_MONOTONIC.
    """
    program = folder / "program.py"
    program.write_text(textwrap.dedent(HEAD) + textwrap.dedent(source))
    store = folder / "store"
    store.mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(SUPPORT)]),
        "ONEHOP_TIMEOUT": "40",
        "ONEHOP_MPI": "none",
        **variables,
    }
    host_of = [host for host, count in enumerate(per_host) for _ in range(count)]
    results: list[tuple[int, str]] = [(0, "")] * len(host_of)

    def rank(number: int) -> None:
        with tempfile.TemporaryFile("w+") as out, Path(os.devnull).open() as null:
            words = [sys.executable, str(program), str(number), str(store), str(len(host_of))]
            descriptors = (null.fileno(), out.fileno(), out.fileno())
            code = hosts.run(host_of[number], words, environment, descriptors)
            if ended is not None:
                ended[number] = time.clock_gettime(time.CLOCK_MONOTONIC)
            out.seek(0)
            results[number] = (code, out.read())

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(len(host_of))]
    for thread in threads:
        thread.start()
    try:
        meanwhile()
    finally:
        hosts.continue_all()  # or the ranks of a host that a failed `meanwhile` has paused would never end
        for thread in threads:
            thread.join()
    return results
