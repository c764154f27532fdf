"""Drop-in replacement for QuickReduce, for the ranks of one machine and tensors in CPU memory or on cards.

A program written for QuickReduce changes the import:

    import onehop.quickreduce as qr

    qr.init(world_size, rank)
    handles = ...  # gather qr.get_comm_handle() of all ranks by any means, in the order of ranks
    qr.set_comm_handles(handles)
    result = qr.allreduce(1, tensor)

Unlike QuickReduce, a program can use several groups one after the other: `init` discards the previous one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onehop import _core, collectives
from onehop.codec import TABLE
from onehop.collectives import Verdict
from onehop.error import BadInput, Mismatch
from onehop.group import Group
from onehop.serialization import decode, encode

__all__ = [
    "PROFILES",
    "allreduce",
    "get_comm_handle",
    "init",
    "set_comm_handles",
    "should_allreduce",
]

#: The codec of each profile number of QuickReduce, and of onehop's own number 6, which is for two ranks.
PROFILES = {1: "fp16", 2: "fp8", 3: "q8", 4: "q6", 5: "q4", 6: "q3"}

_LARGEST_PID = 2**31 - 1
_KEY_BYTES = 32


@dataclass(frozen=True)
class _Handle:
    """The data of one rank that the other ranks need to connect to it."""

    size: int
    rank: int
    pid: int
    key: bytes  # that of rank 0 is the secret by which the ranks meet

    def encode(self) -> bytes:
        return encode("quickreduce", {"size": self.size, "rank": self.rank, "pid": self.pid}, [self.key])

    @classmethod
    def decode(cls, data: Any) -> _Handle:
        try:
            message = decode(bytes(data), "quickreduce")
            key = message.bytes_of(0)
            if len(key) != _KEY_BYTES:
                raise BadInput(f"expected a key of {_KEY_BYTES} bytes, found {len(key)}")
            pid = message.get("pid", int, least=1)
            if pid > _LARGEST_PID:
                raise BadInput(f"expected a process number of at most {_LARGEST_PID}, found {pid}")
            size, rank = message.get("size", int, least=1), message.get("rank", int, least=0)
            return cls(size, rank, pid, key)
        except (BadInput, TypeError) as error:
            raise BadInput(
                f"expected handles from get_comm_handle(), found something else: {error}"
            ) from None


class _Communicator:
    """Connects the ranks to a group, by the key in the handle of rank 0."""

    def __init__(self, size: int, rank: int) -> None:
        if not 0 <= rank < size:
            raise BadInput(f"expected a rank from 0 to {size - 1}, found {rank}")
        self.size, self.rank = size, rank
        self.group: Group | None = None
        self._key = secrets.token_bytes(_KEY_BYTES)

    def handle(self) -> bytes:
        return _Handle(self.size, self.rank, os.getpid(), self._key).encode()

    def connect(self, handles: Sequence[bytes]) -> None:
        if self.group is not None:
            raise BadInput(
                "expected one call of set_comm_handles(), but these ranks are connected already; "
                "call init(world_size, rank) before connecting others"
            )
        decoded = [_Handle.decode(handle) for handle in handles]
        found = [(one.size, one.rank) for one in decoded]
        if found != [(self.size, rank) for rank in range(self.size)]:
            raise Mismatch(
                f"expected the handles of ranks 0 to {self.size - 1} of {self.size}, in this order, "
                f"found those of (ranks, rank) {found}"
            )
        processes = [one.pid for one in decoded]
        self.group = Group(_core.Group.meet(decoded[0].key.hex(), self.rank, self.size, processes))


_current: list[_Communicator] = []


def init(world_size: int, rank: int) -> None:
    """Set the number of ranks and the number of this rank.

    Raises
    ------
    BadInput
        The rank is not from 0 to world_size - 1.
    """
    _current[:] = [_Communicator(world_size, rank)]


def _communicator() -> _Communicator:
    if not _current:
        raise BadInput("expected a call of init(world_size, rank) before this one, found none")
    return _current[0]


def get_comm_handle() -> bytes:
    """Return the handle of this rank, which every rank passes to `set_comm_handles`."""
    return _communicator().handle()


def set_comm_handles(handles: Sequence[bytes]) -> None:
    """Connect all ranks, given their handles in the order of ranks. Every rank calls it.

    Raises
    ------
    BadInput
        A handle is not from `get_comm_handle`, or the ranks are connected already.
    Mismatch
        The handles are not those of all ranks, in order.
    PeerLost, Timeout
        A rank has ended, or has not connected in time.
    """
    _communicator().connect(handles)


def allreduce(profile: int, tensor: Any) -> Any:
    """Return the sum of a tensor over all ranks, sent with the codec `PROFILES[profile]`.

    Parameters
    ----------
    profile : int
        1 to 5: FP16, FP8, Q8, Q6, Q4. 6: Q3, on two ranks only.
    tensor : array or tensor
        C-contiguous, of a floating-point type; it is not changed.

    Returns
    -------
    array or tensor
        A new array or tensor of the same shape and type.

    Raises
    ------
    BadInput
        The ranks are not connected, or `should_allreduce` is false.
    """
    group = _communicator().group
    if group is None:
        raise BadInput("expected a call of set_comm_handles(handles) before allreduce, found none")
    verdict = should_allreduce(tensor, profile)
    if not verdict:
        raise BadInput(verdict.reason)
    return collectives.allreduce(group, tensor, "sum", PROFILES[profile])


def should_allreduce(tensor: Any, profile: int = 1) -> Verdict:
    """Say whether `allreduce(profile, tensor)` is possible, so that a program can fall back to another library.

    Not collective.

    Returns
    -------
    Verdict
        True or false; `.reason` says why not.
    """
    if profile not in PROFILES:
        return Verdict(False, f"expected a profile from 1 to {len(PROFILES)}, found {profile!r}")
    if not _current or _current[0].group is None:
        return Verdict(False, "the ranks are not connected; call init() and set_comm_handles()")
    codec, size = PROFILES[profile], _current[0].group.size
    most = TABLE[codec].most_ranks
    if size > most:
        return Verdict(False, f"the codec {codec} is for groups of {most} ranks, found {size}")
    return collectives.should_allreduce(tensor, codec)
