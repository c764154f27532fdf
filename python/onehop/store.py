"""All-gathers through a key-value store, for groups of ranks that no launcher of MPI has started."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

from onehop.error import BadInput, Error

__all__ = ["Store", "allgathers_through", "store_of_torchrun"]

AllGather = Callable[[bytes], list[bytes]]
_EMPTY = b"\0"  # some stores keep no empty values


class Store(Protocol):
    """A key-value store that all ranks reach, such as `torch.distributed.Store`."""

    def set(self, key: str, value: bytes) -> Any:
        """Store a value."""

    def get(self, key: str) -> bytes:
        """Wait until the key has a value, and return it."""


def allgathers_through(store: Store, prefix: str) -> Callable[[str, int, int], AllGather]:
    """Return a function that makes the all-gather of the ranks of a group, or of a part of it.

    Parameters
    ----------
    store : Store
        The store. Entries that all ranks have read are deleted if it has a method `delete_key`.
    prefix : str
        Begins every key. No other group, also of an earlier run, may have used it in this store.
    """
    for name in ("set", "get"):
        if not callable(getattr(store, name, None)):
            raise BadInput(
                f"expected a store with the methods set(key, value) and get(key), found {type(store).__name__} "
                f"without {name}"
            )
    delete = getattr(store, "delete_key", None)

    def make(name: str, rank: int, size: int) -> AllGather:
        step = 0

        def key(number: int, of: int) -> str:
            return f"{prefix}{name}/{number}/{of}"

        def allgather(mine: bytes) -> list[bytes]:
            nonlocal step
            number, step = step, step + 1
            store.set(key(number, rank), mine or _EMPTY)
            parts = [bytes(store.get(key(number, other))) for other in range(size)]
            # Every rank has reached step number - 1, so it has read the entries of step number - 2.
            if delete is not None and number >= 2:
                delete(key(number - 2, rank))
            return [b"" if part == _EMPTY else part for part in parts]

        return allgather

    return make


def store_of_torchrun() -> tuple[Any, int, int, str] | None:
    """Connect to the store of a torchrun on several machines.

    Returns
    -------
    tuple or None
        The store, the rank, the number of ranks and a prefix for keys; None if no torchrun has started this process, or
        one on this machine only, or if another launcher comes first.

    Raises
    ------
    Error
        The store cannot be reached, or torch is not installed.
    """
    from_environment = os.environ.get
    others = ("ONEHOP_CONTROL", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_ID")
    names = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    values = [from_environment(name) for name in names]
    if any(from_environment(name) for name in others) or not all(values):
        return None
    try:
        rank, size, here, port = (int(values[i] or "") for i in (0, 1, 2, 4))
    except ValueError:
        return None  # Group.world says which variable is wrong
    if here >= size:
        return None
    try:
        from torch.distributed import TCPStore
    except ImportError as error:
        raise Error(
            f"torchrun started {size} ranks on several machines, which connect through torch's store, but torch cannot "
            f"be imported: {error}"
        ) from error
    is_master = rank == 0 and from_environment("TORCHELASTIC_USE_AGENT_STORE") != "True"
    try:
        store = TCPStore(values[3], port, size, is_master, wait_for_workers=False)
    except (RuntimeError, ValueError) as error:
        raise Error(f"the store of torchrun at {values[3]}:{port} cannot be reached: {error}") from error
    launch = [from_environment(f"TORCHELASTIC_{name}", "") for name in ("RUN_ID", "RESTART_COUNT")]
    return store, rank, size, "/".join(["onehop", "world", *launch])
