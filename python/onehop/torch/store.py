"""Ranks that meet through a store of torch."""

from __future__ import annotations

from typing import Any

from onehop.group import Group

__all__ = ["group_from_store"]


def group_from_store(store: Any, rank: int, size: int) -> Group:
    """A group of ranks that meet through a store of torch.

    Parameters
    ----------
    store : torch.distributed.Store
        Used by these ranks for this group alone (a `PrefixStore`, say).
    rank, size : int
        Who this is, and of how many.
    """
    rounds = iter(range(1 << 62))

    def allgather(mine: bytes) -> list[bytes]:
        number = next(rounds)
        store.set(f"onehop/{number}/{rank}", mine or b"\0")
        empty = b"\0"
        everybody = [bytes(store.get(f"onehop/{number}/{other}")) for other in range(size)]
        if number >= 2:  # everybody who is here has read what was there two rounds ago
            store.delete_key(f"onehop/{number - 2}/{rank}")
        return [b"" if other == empty else other for other in everybody]

    return Group.from_allgather(rank, size, allgather)
