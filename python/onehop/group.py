"""`Group`: the ranks of a run."""

from __future__ import annotations

import atexit
import math
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onehop import _core
from onehop.channel import Channels, End, Message, open_channels
from onehop.error import BadInput

_world: list[Group] = []
_worlds_of_parents: list[Group] = []
_MOST_DIMENSIONS = 32  # of every NumPy


def _extents(shape: Any) -> tuple[int, ...]:
    """A shape as NumPy takes it, checked."""
    try:
        extents = (operator.index(shape),)
    except TypeError:
        try:
            extents = tuple(operator.index(one) for one in shape)
        except TypeError as error:
            raise BadInput(
                f"expected a shape as an integer or a sequence of them, found {shape!r}"
            ) from error
    if len(extents) > _MOST_DIMENSIONS:
        raise BadInput(f"expected a shape of at most {_MOST_DIMENSIONS} dimensions, found {len(extents)}")
    if any(extent >= 2**63 for extent in extents):
        raise BadInput("expected a shape with extents below 2^63, found a larger one")
    if any(extent < 0 for extent in extents):
        raise BadInput(f"expected a shape without negative extents, found {shape}")
    return extents


def _leave_world_to_parent() -> None:
    """Let a forked child neither use nor close the world of its parent."""
    _worlds_of_parents.extend(_world)
    _world.clear()


os.register_at_fork(after_in_child=_leave_world_to_parent)


@atexit.register
def _close_world() -> None:
    """Close the world before the interpreter goes.

    The other ranks hear that this one left in order once the exit status turns out to be 0: atexit does not know it.
    """
    _core.Group.process_is_ending()
    _world.clear()
    _core.Group.close_world()


class Group(_core.Group):
    """The ranks of a run: who I am, who shares memory with me, and an all-gather of bytes for set-up.

    Made by `world`, `alone`, `from_mpi` or `from_allgather`. Making a group, `split`, `barrier`, `allgather` and
    `channels` are collective: every rank of the group calls them, in the same order. Data moves through channels and
    plans.

    Attributes
    ----------
    rank, size : int
        Who this is, and of how many.
    origin : str
        How the group came to be: "launcher", "mpi", "torchrun", "srun", "alone", "allgather" or "split".
    timeout : float
        Limit in seconds for every wait in this group; 0: none. The environment's ONEHOP_TIMEOUT sets another default.
    local_ranks : list of int
        The ranks that share memory with this one, itself included.
    """

    @classmethod
    def world(cls) -> Group:
        """The ranks that the launcher of this program started; one rank when there is no launcher.

        Launchers are `onehop launch`, mpiexec, srun and torchrun. MPI is initialised if an MPI launcher started the
        program and nobody has done so yet. The group is made once; every further call returns the same.

        Raises
        ------
        Error
            A launcher says that there are several ranks, but this one finds itself alone. Or this process was forked
            from a rank after that had made its world: the group belongs to that rank.
        """
        if not _world:
            _world.append(cls(_core.Group.world()))
        return _world[0]

    @classmethod
    def alone(cls) -> Group:
        """One rank, whatever the launcher says."""
        return cls(_core.Group.alone())

    @classmethod
    def from_mpi(cls, comm: Any) -> Group:
        """The ranks of an MPI communicator of mpi4py, which is duplicated.

        Raises
        ------
        BadInput
            `comm` is no communicator of mpi4py.
        """
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise BadInput(
                f"expected a communicator of mpi4py, but mpi4py cannot be imported: {error}"
            ) from error
        if not isinstance(comm, MPI.Comm):
            raise BadInput(f"expected a communicator of mpi4py, found {type(comm).__name__}")
        if comm == MPI.COMM_NULL:
            raise BadInput("expected a communicator that this rank belongs to, found MPI.COMM_NULL")
        return cls(_core.Group.from_mpi_handle(MPI._addressof(comm)))

    @classmethod
    def from_allgather(cls, rank: int, size: int, allgather: Callable[[bytes], Sequence[bytes]]) -> Group:
        """A group from any all-gather of bytes; its ranks may be processes or threads.

        Parameters
        ----------
        rank, size : int
            Who this is, and of how many.
        allgather : callable
            Takes this rank's bytes and returns everybody's, in the order of ranks. Lengths may differ.
        """
        return cls(_core.Group.from_allgather(rank, size, allgather))

    def split(self, color: int, key: int = 0) -> Group | None:
        """Split the group as MPI_Comm_split does: ranks that pass the same color form a new group. Collective.

        Parameters
        ----------
        color : int
            Selects the new group. A rank that passes a negative color joins none and gets None.
        key : int
            Orders the ranks of a new group; equal keys keep the order of this group.
        """
        part = super().split(color, key)
        return Group(part) if part.valid else None

    def empty(self, shape: int | Sequence[int], dtype: Any = "float64") -> np.ndarray:
        """An array, all zero, in memory that the ranks on this machine can reach directly. Not collective.

        It lives as long as the array or a view of it does. Any array works in a plan; between arrays like this one it
        can leave out a copy.

        Raises
        ------
        BadInput
            A shape that no array has: negative, more than 2^63 bytes, no integers; a dtype of Python objects, or of no
            bytes.
        Error
            The machine has not enough memory; the message says how much there is.
        """
        try:
            kind = np.dtype(dtype)
        except (TypeError, ValueError) as error:
            raise BadInput(f"expected a NumPy dtype, found {dtype!r} ({error})") from error
        if kind.hasobject or kind.itemsize == 0:
            what = "Python objects cannot be shared" if kind.hasobject else "it has no size"
            raise BadInput(f"expected a dtype of plain bytes, found {kind}: {what}")
        extents = _extents(shape)
        size = math.prod(extents) * kind.itemsize
        # NumPy counts bytes as if an extent of 0 were 1.
        if math.prod(max(extent, 1) for extent in extents) * kind.itemsize >= 2**63:
            raise BadInput(f"expected a shape of fewer than 2^63 bytes, found {shape} of {kind}")
        return self.allocate(max(size, 1))[:size].view(kind).reshape(extents)

    def channels(
        self,
        *,
        send: Mapping[End, Message] | None = None,
        receive: Mapping[End, Message] | None = None,
        slots: int = 0,
        slot_bytes: int = 0,
        chunk_bytes: int = 0,
        transport: str = "auto",
    ) -> Channels:
        """Prepare channels to and from other ranks. Collective: a rank without any calls it with nothing.

        Parameters
        ----------
        send, receive : mapping
            From the other rank, or (rank, tag) for several channels between the same two, to what one message is: a
            number of bytes, an array like it, or (shape, dtype). What one rank sends the other must receive.
        slots : int
            Messages under way at once, as the sender sees it; 0: onehop chooses (two).
        slot_bytes : int
            Limit of one slot: longer messages pass through in pieces; 0: onehop chooses.
        chunk_bytes : int
            How much of a message is announced at a time; 0: onehop chooses.
        transport : str
            "auto", "shared_memory", "mpi" or "mock".

        Returns
        -------
        Channels
            `.send[rank]` and `.receive[rank]`, with the keys that were given.

        Raises
        ------
        Mismatch
            On all ranks: an end has no partner, or two ends disagree about the size.
        BadInput
            No such rank, or a message that is none of the above. All other ranks raise Error.

        Examples
        --------
        A ring, in which every rank passes its number on:

        >>> import numpy as np, onehop
        >>> group = onehop.Group.world()
        >>> right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
        >>> ring = group.channels(send={right: 8}, receive={left: 8})
        >>> ring.send[right].put(np.array([group.rank]))
        >>> number = np.zeros(1, int)
        >>> ring.receive[left].get(number)
        """
        return open_channels(
            self,
            send=send,
            receive=receive,
            slots=slots,
            slot_bytes=slot_bytes,
            chunk_bytes=chunk_bytes,
            transport=transport,
        )

    def __repr__(self) -> str:
        return f"<Group: rank {self.rank} of {self.size}, {self.origin}>"
