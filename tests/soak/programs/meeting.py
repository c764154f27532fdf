"""How the ranks of a trial meet: in the group of their launcher, or through a store, on hosts that are pretended.

With SOAK_STORE=FOLDER the group is made by `Group.from_store` from files in this folder, and the ranks take turns on
SOAK_HOSTS hosts. Ranks of different hosts share no memory and exchange messages over UCX.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

import onehop
from file_store import FileStore


def is_stored() -> bool:
    """Whether the ranks meet through a store."""
    return "SOAK_STORE" in os.environ


def host_of(rank: int) -> str:
    """Return the name of the host on which a rank is pretended to be."""
    return f"h{rank % int(os.environ.get('SOAK_HOSTS', '1'))}"


def meet() -> onehop.Group:
    """Return the group of all ranks. Collective."""
    folder = os.environ.get("SOAK_STORE")
    if folder is None:
        return onehop.Group.world()
    rank, size = (int(os.environ[name]) for name in ("ONEHOP_RANK", "ONEHOP_RANKS"))
    os.environ["ONEHOP_TEST_HOST"] = host_of(rank)
    return onehop.Group.from_store(FileStore(folder), rank, size)
