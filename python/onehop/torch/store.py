"""Ranks that meet through a store of torch."""

from __future__ import annotations

import os
from typing import Any

from onehop.group import Group

__all__ = ["group_from_store"]


def group_from_store(store: Any, rank: int, size: int) -> Group:
    """A group of ranks that meet through a store of torch.

    Parameters
    ----------
    store : torch.distributed.Store
        Used by these ranks for this group alone (a `PrefixStore`, say). It may outlive them: ranks that torchrun starts
        again find nothing of the attempt before.
    rank, size : int
        Who this is, and of how many.
    """
    rounds = iter(range(1 << 62))
    # torchrun keeps the store when it starts failed ranks again: what they wrote before must not be met.
    launch = [os.environ.get(f"TORCHELASTIC_{name}", "") for name in ("RUN_ID", "RESTART_COUNT")]
    prefix = "/".join(["onehop", *launch])

    def allgather(mine: bytes) -> list[bytes]:
        number = next(rounds)
        store.set(f"{prefix}/{number}/{rank}", mine or b"\0")
        empty = b"\0"
        everybody = [bytes(store.get(f"{prefix}/{number}/{other}")) for other in range(size)]
        if number >= 2:  # everybody who is here has read what was there two rounds ago
            store.delete_key(f"{prefix}/{number - 2}/{rank}")
        return [b"" if other == empty else other for other in everybody]

    return Group.from_allgather(rank, size, allgather)
