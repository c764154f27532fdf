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
import socket
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from onehop import tensors
from onehop.error import BadInput, Mismatch, PeerLost
from onehop.group import Group
from onehop.tensors import Verdict

__all__ = [
    "PROFILES",
    "allreduce",
    "get_comm_handle",
    "init",
    "set_comm_handles",
    "should_allreduce",
]

#: How numbers travel, by the number that QuickReduce gives it.
PROFILES = {1: "fp16", 2: "fp8", 3: "q8", 4: "q6", 5: "q4"}


class _Communicator:
    """Rank 0 listens at an address without a file; the others learn it from its handle, and come with its key."""

    def __init__(self, size: int, rank: int) -> None:
        if not 0 <= rank < size:
            raise BadInput(f"expected a rank from 0 to {size - 1}, found {rank}")
        self.size, self.rank = size, rank
        self.group: Group | None = None
        self._key = os.urandom(16)
        self._address = f"\0onehop-quickreduce-{os.getpid()}-{os.urandom(8).hex()}"
        self._listener: socket.socket | None = None
        if rank == 0:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(self._address)
            self._listener.listen(size)
        self._connections: dict[int, Connection] = {}

    def handle(self) -> bytes:
        return pickle.dumps((self.size, self.rank, os.getpid(), self._address, self._key))

    def connect(self, handles: Sequence[bytes]) -> None:
        if self.group is not None:
            raise BadInput("these ranks are connected; call init(world_size, rank) before connecting others")
        everybody = [pickle.loads(bytes(handle)) for handle in handles]
        found = [(size, rank) for size, rank, *_ in everybody]
        if found != [(self.size, rank) for rank in range(self.size)]:
            raise Mismatch(
                f"expected the handles of ranks 0 to {self.size - 1} of {self.size}, in this order, "
                f"found those of (ranks, rank) {found}"
            )
        if self._listener is not None:
            self._accept(self._listener, [pid for _, _, pid, *_ in everybody])
            self._listener.close()
            self._listener = None
        else:
            self._call(*everybody[0][2:])
        self.group = Group.from_allgather(self.rank, self.size, self._allgather)

    def _accept(self, listener: socket.socket, pids: Sequence[int]) -> None:
        listener.settimeout(0.2)
        while len(self._connections) < self.size - 1:
            try:
                connection = Connection(listener.accept()[0].detach())
                if connection.poll(5) and connection.recv_bytes(64) == self._key:
                    self._connections[connection.recv()] = connection
            except TimeoutError:
                for rank, pid in enumerate(pids):
                    if rank not in self._connections and not _lives(pid):
                        raise PeerLost(
                            f"rank {rank} (process {pid}) has ended before it was connected", rank
                        ) from None
            except (EOFError, ConnectionError):
                continue  # it is missed above

    def _call(self, pid: int, address: str, key: bytes) -> None:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(address)
        except OSError as error:
            raise PeerLost(
                f"rank 0 (process {pid}) does not answer: {error}; it must live until all are connected", 0
            ) from error
        self._connections[0] = Connection(line.detach())
        self._connections[0].send_bytes(key)
        self._connections[0].send(self.rank)

    def _allgather(self, mine: bytes) -> list[bytes]:
        if self.rank != 0:
            self._connections[0].send(mine)
            return self._from(0)
        everybody = [mine] + [self._from(rank) for rank in range(1, self.size)]
        for connection in self._connections.values():
            connection.send(everybody)
        return everybody

    def _from(self, rank: int) -> Any:
        try:
            return self._connections[rank].recv()
        except (EOFError, ConnectionError):
            raise PeerLost(f"rank {rank} has ended while the ranks were being connected", rank) from None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except PermissionError:
        return True
    except OSError:
        return False
    return state not in "ZX"


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
    verdict = should_allreduce(tensor, profile)
    if not verdict:
        raise BadInput(verdict.reason)
    return tensors.allreduce(group, tensor, "sum", PROFILES[profile])


def should_allreduce(tensor: Any, profile: int = 1) -> Verdict:
    """Whether `allreduce(profile, tensor)` is possible, for programs with another way at hand. Asks no other rank.

    Returns
    -------
    Verdict
        True or false by itself; `.reason` says why not.
    """
    if profile not in PROFILES:
        return Verdict(False, f"expected a profile from 1 to 5, found {profile!r}")
    if not _current or _current[0].group is None:
        return Verdict(False, "the ranks are not connected; call init() and set_comm_handles()")
    return tensors.should_allreduce(tensor, PROFILES[profile])
