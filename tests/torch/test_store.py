"""A store of torch that goes away: groups that exist go on, and new ones are an error at once."""

import pytest

from ranks import Ranks
from torch_program import WITHOUT_TORCH, started

pytest.importorskip("torch", reason=WITHOUT_TORCH)

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
    server_program, rank_program = ranks.script(SERVER, "server.py"), ranks.script(RANK)
    with started(ranks, server_program, [()]) as (server,):
        port = server.stdout.readline().strip()
        with started(ranks, rank_program, [(rank, port) for rank in range(2)]) as processes:
            for process in processes:
                assert process.stdout.readline() == "met\n"
            server.kill()
            server.wait()
            for process in processes:
                process.stdin.write("go\n")
                process.stdin.flush()
            for process in processes:
                output, errors = process.communicate(timeout=100)
                assert process.returncode == 0, errors
                assert output == "went on\n"
