"""Groups whose ranks connect through a store of torch, or through one of its process groups."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist

from onehop.group import Group
from onehop.torch.agreement import gather_rows


def group_from_store(store: Any, rank: int, size: int) -> Group:
    """Make a group of ranks that connect through a store of torch. Collective.

    Parameters
    ----------
    store : torch.distributed.Store
        A store that these ranks use for this group only, for example a `PrefixStore`. It may outlive the ranks: ranks
        that torchrun restarts do not see the entries of the previous attempt. The ranks may make further groups in it,
        one after the other, if each of them makes all that have its number of ranks.
    rank, size : int
        Number of this rank, and number of ranks.
    """
    # torchrun keeps the store when it restarts failed ranks. The prefix hides the entries of the previous attempt.
    launch = [os.environ.get(f"TORCHELASTIC_{name}", "") for name in ("RUN_ID", "RESTART_COUNT")]
    prefix = "/".join(["onehop", *launch, str(size)])
    if size > 1:  # the count of groups hides the entries of earlier ones
        prefix = f"{prefix}/{store.add(f'{prefix}/made/{rank}', 1)}"
    return Group.from_store(store, rank, size, prefix)


def group_from_process_group(process_group: Any = None) -> Group:
    """Make a group of the ranks of a torch process group of any backend. Collective.

    Parameters
    ----------
    process_group : ProcessGroup, optional
        The process group; None: the default group.
    """
    size = dist.get_world_size(process_group)
    # NCCL moves only tensors on its device.
    device = "cpu" if "cpu:" in str(dist.get_backend_config(process_group)) else "cuda"

    def gather(tensor: torch.Tensor) -> list[torch.Tensor]:
        return [one.cpu() for one in gather_rows(tensor.to(device), process_group)]

    def allgather(mine: bytes) -> list[bytes]:
        # all_gather_object of torch would unpickle the data of other ranks, which can run code.
        lengths = [int(one) for one in gather(torch.tensor([len(mine)]))]
        padded = torch.zeros(max(lengths), dtype=torch.uint8)
        padded[: len(mine)] = torch.tensor(list(mine), dtype=torch.uint8)
        parts = gather(padded)
        return [part[:length].numpy().tobytes() for part, length in zip(parts, lengths, strict=True)]

    return Group.from_allgather(dist.get_rank(process_group), size, allgather)
