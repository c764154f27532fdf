"""A torchrun on two hosts: the ranks meet through torch's store and exchange messages over UCX, without MPI."""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import pytest

from hosts_runner import PACKAGE
from onehop import _core
from onehop.hosts import Unavailable, emulated_hosts

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not _core.ucx_library()["path"], reason="no UCX library was found")
PROGRAM = """
    import numpy as np
    from onehop import Group, Plan, halo, halo_block
    from onehop.collectives import allreduce

    group = Group.world()
    here = group.rank // 2 * 2
    assert group.size == 4 and group.local_ranks == [here, here + 1]
    total = allreduce(group, np.full(100_000, group.rank + 1, np.float32))
    assert (total == 10).all()
    layout = {"extents": [400], "grid": [4], "width": 1, "periodic": [True]}
    array = np.full(halo_block(**layout, rank=group.rank).shape, float(group.rank))
    Plan(halo(**layout), group, [array]).run()
    assert (array[0], array[-1]) == ((group.rank - 1) % 4, (group.rank + 1) % 4)
    print("rank", group.rank, "is right", flush=True)
"""


def test_two_hosts(tmp_path: Path) -> None:
    """All-reduce and halo of four ranks."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    results: list[tuple[int, str]] = [(1, "")] * 2
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PACKAGE),
        "ONEHOP_TIMEOUT": "60",
        "OMP_NUM_THREADS": "1",
    }
    try:
        context = emulated_hosts(2)
        hosts = context.__enter__()
    except Unavailable as error:
        pytest.skip(str(error))
    try:

        def run(host: int) -> None:
            words = ["-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2", f"--node-rank={host}"]
            words += [f"--master-addr={hosts.hosts[0].addresses[0]}", "--master-port=29500", str(program)]
            with tempfile.TemporaryFile("w+") as out, Path(os.devnull).open() as null:
                descriptors = (null.fileno(), out.fileno(), out.fileno())
                code = hosts.run(host, [sys.executable, *words], environment, descriptors)
                out.seek(0)
                results[host] = (code, out.read())

        threads = [threading.Thread(target=run, args=(host,)) for host in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        context.__exit__(None, None, None)
    for host, (code, text) in enumerate(results):
        assert code == 0, results
        assert all(f"rank {2 * host + place} is right" in text for place in range(2)), text
