"""Programs of torch ranks: what they begin with, how they are started, and why a test of them is skipped."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ranks import PATIENCE, Ranks

WITHOUT_TORCH = "there is no torch in this environment; `make setup-torch` brings one"

# Joins the ranks to a group of torch, with the store in the file that is the first argument. `raised` calls a function
# that must raise an error of a kind, and returns the error's text.
START = """
    import os, signal, sys, threading, time
    from datetime import timedelta
    from pathlib import Path
    from types import SimpleNamespace
    import torch
    import torch.distributed as dist
    import onehop.torch

    world = onehop.Group.world()
    rank, size = world.rank, world.size
    torch.set_num_threads(1)
    dist.init_process_group("onehop", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=size)
    group = dist.group.WORLD

    def raised(kind, call):
        try:
            call()
        except kind as error:
            return str(error)
        raise SystemExit(f"expected {kind.__name__}")
"""


def launch(ranks: Ranks, size: int, source: str, said: str) -> None:
    """Launch a program on ranks that meet in a store; each of them must print `said` and end well."""
    ranks.environment["TMPDIR"] = str(ranks.folder)  # torch leaves the folder of its compiler there
    done = ranks.onehop("launch", "-n", size, ranks.script(source), ranks.folder / "store")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(said) == size


@contextmanager
def started(
    ranks: Ranks, script: str, arguments: Sequence[Sequence[object]], **environment: str
) -> Iterator[list[subprocess.Popen[str]]]:
    """A process of the script for each sequence of arguments, without a launcher; all are killed in the end."""
    fixed = {"OMP_NUM_THREADS": "1", "TMPDIR": str(ranks.folder)}
    processes = [
        ranks.popen(script, *words, stdin=subprocess.PIPE, **{**fixed, **environment}) for words in arguments
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def outcomes(
    ranks: Ranks, script: str, arguments: Sequence[Sequence[object]], **environment: str
) -> list[tuple[int, str, str]]:
    """The exit code, the output and the errors of each of these processes."""
    with started(ranks, script, arguments, **environment) as processes:
        outputs = [process.communicate(timeout=PATIENCE) for process in processes]
        return [(process.returncode, *output) for process, output in zip(processes, outputs, strict=True)]
