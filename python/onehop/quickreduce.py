"""The interface of QuickReduce, for ranks of one machine and tensors on the processor.

A program written for it changes the import:

    import onehop.quickreduce as qr

    qr.init(world_size, rank)
    handles = ...  # gather qr.get_comm_handle() of all ranks, by whatever means, in the order of ranks
    qr.set_comm_handles(handles)
    result = qr.allreduce(1, tensor)

Unlike there, several groups after each other are possible: `init` forgets what was before.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from onehop import tensors
from onehop.error import BadInput, Mismatch
from onehop.group import Group

__all__ = ["PROFILES", "allreduce", "get_comm_handle", "init", "set_comm_handles"]

#: How numbers travel, by the number that QuickReduce gives it.
PROFILES = {1: "fp16", 2: "fp8", 3: "q8", 4: "q6", 5: "q4"}


class _Communicator:
    """Rank 0 listens at an address without a file; the others learn it from its handle."""

    def __init__(self, size: int, rank: int) -> None:
        if not 0 <= rank < size:
            raise BadInput(f"expected a rank from 0 to {size - 1}, found {rank}")
        self.size, self.rank = size, rank
        self.group: Group | None = None
        self._key = os.urandom(16)
        self._address = f"\0onehop-quickreduce-{os.getpid()}-{os.urandom(8).hex()}"
        self._listener = Listener(self._address, "AF_UNIX", authkey=self._key) if rank == 0 else None
        self._connections: dict[int, Connection] = {}

    def handle(self) -> bytes:
        return pickle.dumps((self.size, self.rank, self._address, self._key))

    def connect(self, handles: Sequence[bytes]) -> None:
        everybody = [pickle.loads(bytes(handle)) for handle in handles]
        found = [(size, rank) for size, rank, *_ in everybody]
        if found != [(self.size, rank) for rank in range(self.size)]:
            raise Mismatch(
                f"expected the handles of ranks 0 to {self.size - 1} of {self.size}, in this order, "
                f"found those of (ranks, rank) {found}"
            )
        if self._listener is not None:
            for _ in range(self.size - 1):
                connection = self._listener.accept()
                self._connections[connection.recv()] = connection
            self._listener.close()
        else:
            _, _, address, key = everybody[0]
            self._connections[0] = Client(address, "AF_UNIX", authkey=key)
            self._connections[0].send(self.rank)
        self.group = Group.from_allgather(self.rank, self.size, self._allgather)

    def _allgather(self, mine: bytes) -> list[bytes]:
        if self.rank != 0:
            self._connections[0].send(mine)
            return self._connections[0].recv()
        everybody = [mine] + [self._connections[rank].recv() for rank in range(1, self.size)]
        for connection in self._connections.values():
            connection.send(everybody)
        return everybody


_current: list[_Communicator] = []


def init(world_size: int, rank: int) -> None:
    """Say how many ranks there are, and which this is."""
    _current[:] = [_Communicator(world_size, rank)]


def _communicator() -> _Communicator:
    if not _current:
        raise BadInput("expected init(world_size, rank) before this")
    return _current[0]


def get_comm_handle() -> bytes:
    """What the other ranks must know of this one."""
    return _communicator().handle()


def set_comm_handles(handles: Sequence[bytes]) -> None:
    """Connect all ranks, given their handles in the order of ranks. Every rank calls it."""
    _communicator().connect(handles)


def allreduce(profile: int, tensor: Any) -> Any:
    """The sum over all ranks, which travels as `PROFILES[profile]` says.

    Parameters
    ----------
    profile : int
        1 to 5: FP16, FP8, Q8, Q6, Q4.
    tensor : array or tensor
        C-contiguous, of a floating-point type; it stays as it is.

    Returns
    -------
    array or tensor
        A new one.
    """
    group = _communicator().group
    if group is None:
        raise BadInput("expected set_comm_handles(handles) before allreduce")
    if profile not in PROFILES:
        raise BadInput(f"expected a profile from 1 to 5, found {profile!r}")
    return tensors.allreduce(group, tensor, "sum", PROFILES[profile])
