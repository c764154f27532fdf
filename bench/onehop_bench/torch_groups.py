"""Process groups of torch for benchmarks, one for each backend, on the ranks of a group of onehop."""

from __future__ import annotations

import importlib.util
import socket
from datetime import timedelta
from typing import Any

from onehop.error import BadInput
from onehop.group import Group
from onehop_bench.measure import check
from onehop_bench.options import RanksBenchOptions

_LIMIT = timedelta(seconds=60)
_stores: list[Any] = []


def has_torch() -> bool:
    """Whether torch is installed. It is not imported."""
    return importlib.util.find_spec("torch") is not None


def check_torch(options: RanksBenchOptions) -> None:
    """Check the options of ranks, and that torch is installed."""
    check(options)
    if not has_torch():
        raise BadInput("expected PyTorch for this benchmark, found none; pip install torch")


def end_torch() -> None:
    """End torch's groups, so that none of their threads outlives the interpreter."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def _torch_store(group: Group) -> Any:
    """Make a store of torch on all ranks. Collective. Between hosts they meet at the first rank's host name."""
    import torch.distributed as dist

    name = socket.gethostname() if len(group.local_ranks) != group.size else "127.0.0.1"
    meeting = group.allgather(name.encode())[0].decode()

    def store() -> Any:
        return dist.TCPStore(meeting, port, group.size, group.rank == 0, timedelta(seconds=30), False)

    port = 0
    made = store() if group.rank == 0 else None
    port = int(group.allgather(str(made.port if made else 0).encode())[0])
    return made or store()


def gloo_group(group: Group) -> Any:
    """Make a process group of the backend gloo, with its functions of C++ alone. Collective."""
    import torch.distributed as dist

    store = _torch_store(group)
    made = dist.ProcessGroupGloo(store, group.rank, group.size, _LIMIT)
    _stores.append(store)  # which must live as long
    return made


def process_groups(group: Group, threads: int) -> dict[str, Any]:
    """Initialise torch on all ranks with `threads` computing threads each, and return a process group per backend."""
    import torch
    import torch.distributed as dist

    import onehop.torch  # noqa: F401 registers the backend

    torch.set_num_threads(threads)
    store = _torch_store(group)
    dist.init_process_group("onehop", store=store, rank=group.rank, world_size=group.size, timeout=_LIMIT)
    return {"onehop": dist.group.WORLD, "gloo": dist.new_group(backend="gloo", timeout=_LIMIT)}
