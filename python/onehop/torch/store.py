"""Groups whose ranks connect through a store of torch."""

from __future__ import annotations

import os
from typing import Any

from onehop.group import Group

__all__ = ["group_from_store"]


def group_from_store(store: Any, rank: int, size: int) -> Group:
    """Make a group of ranks that connect through a store of torch. Collective.

    Parameters
    ----------
    store : torch.distributed.Store
        A store that these ranks use for this group only, for example a `PrefixStore`. It may outlive the ranks: ranks
        that torchrun restarts do not see the entries of the previous attempt.
    rank, size : int
        Number of this rank, and number of ranks.
    """
    # torchrun keeps the store when it restarts failed ranks. The prefix hides the entries of the previous attempt.
    launch = [os.environ.get(f"TORCHELASTIC_{name}", "") for name in ("RUN_ID", "RESTART_COUNT")]
    return Group.from_store(store, rank, size, "/".join(["onehop", *launch]))
