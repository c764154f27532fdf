"""Ranks in containers of their own: whether two share memory is found out by trying."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hosts_runner import PACKAGE
from onehop import BadInput
from onehop.launch.mpi import find_mpi_launcher
from ranks import completed

PROGRAM = """
import os
import numpy as np
from onehop import Group
from onehop.collectives import allreduce

group = Group.world()
assert not os.listdir("/dev/shm")
for elements in (10, 100_000):
    assert (allreduce(group, np.full(elements, group.rank + 1, np.float32)) == 3).all()
print(group.rank, group.local_ranks, flush=True)
"""
# Nothing in /dev/shm, where the container has its own.
CONTAINER = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/dev/shm"]
NUMBERS_OF_ITS_OWN = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--proc", "/proc"]


def _run(folder: Path, container: list[str]) -> list[str]:
    if shutil.which("bwrap") is None:
        pytest.skip("there is no bwrap (Debian: bubblewrap)")
    if subprocess.run([*container, "true"], check=False).returncode != 0:
        pytest.skip("bwrap may not make containers here")
    try:
        launcher = find_mpi_launcher("openmpi")
    except BadInput as error:
        pytest.skip(str(error))
    program = folder / "program.py"
    program.write_text(PROGRAM)
    # Open MPI's own shared memory fails in containers with process numbers of their own.
    options = ["--map-by", ":OVERSUBSCRIBE", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
    run = completed(
        [launcher.path, "-n", "2", *options, *container, sys.executable, str(program)],
        env={
            **os.environ,
            "PYTHONPATH": str(PACKAGE),
            "ONEHOP_TIMEOUT": "60",
            **{f"OMPI_ALLOW_RUN_AS_ROOT{end}": "1" for end in ("", "_CONFIRM")},
        },
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return sorted(run.stdout.split("\n")[:-1])


def test_containers_with_common_process_numbers_share_memory(tmp_path: Path) -> None:
    assert _run(tmp_path, CONTAINER) == ["0 [0, 1]", "1 [0, 1]"]


# The ranks have the same process number and host name.
def test_containers_with_process_numbers_of_their_own_do_not(tmp_path: Path) -> None:
    assert _run(tmp_path, [*CONTAINER, *NUMBERS_OF_ITS_OWN]) == ["0 [0]", "1 [1]"]
