"""A store of torch that goes away: groups that exist go on, and new ones are an error at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ranks import Ranks
from torch_program import WITHOUT_TORCH

SERVER = """
    import sys
    import torch.distributed as dist

    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    print(store.port, flush=True)
    sys.stdin.read()
"""

RANK = """
    import os, sys
    from datetime import timedelta
    import torch
    import torch.distributed as dist
    import onehop.torch

    rank, port = int(sys.argv[1]), int(sys.argv[2])
    limit = timedelta(seconds=20)
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=limit)
    dist.init_process_group("onehop", store=store, rank=rank, world_size=2, timeout=limit)
    dist.barrier()
    print("met", flush=True)
    sys.stdin.readline()  # until the store is gone
    tensor = torch.ones(3)
    for make in (lambda: dist.new_group([0, 1]), lambda: dist.group.WORLD.split_group([0, 1])):
        dist.all_reduce(tensor)
        try:
            make()
        except RuntimeError as error:
            print(type(error).__name__, error, file=sys.stderr)
        else:
            raise SystemExit("made a group without a store")
    dist.all_reduce(tensor)
    assert (tensor == 8).all()
    dist.destroy_process_group()
    print("went on", flush=True)
    os._exit(0)  # without the farewell of a store that is gone
"""


def test_a_store_that_goes_away(ranks: Ranks) -> None:
    pytest.importorskip("torch", reason=WITHOUT_TORCH)

    def start(*command: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        environment = {**ranks.environment, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            [sys.executable, *command], env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    server_program, rank_program = ranks.folder / "server.py", ranks.script(RANK)
    server_program.write_text("\n".join(line[4:] for line in SERVER.splitlines()))
    processes = [start(str(server_program))]
    try:
        server = processes[0]
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        processes += [start(rank_program, str(rank), port) for rank in range(2)]
        for process in processes[1:]:
            assert process.stdout is not None
            assert process.stdout.readline() == "met\n"
        server.kill()
        server.wait()
        for process in processes[1:]:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes[1:]:
            output, errors = process.communicate(timeout=100)
            assert process.returncode == 0, errors
            assert output == "went on\n"
    finally:
        for process in processes:
            process.kill()
            process.communicate()
