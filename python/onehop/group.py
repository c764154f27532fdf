"""`Group`: the ranks of a run."""

from __future__ import annotations

import atexit
import contextlib
import math
import operator
import os
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onehop import _core
from onehop.arguments import instance, whole_number
from onehop.channel import Channels, End, Message, open_channels
from onehop.error import BadInput, Mismatch, PeerLost, Timeout
from onehop.store import Store, agree_on_survivors, allgathers_through, refuse_used, store_of_torchrun
from onehop.text import counted, message_bytes
from onehop.time_limit import call_within

_world: list[Group] = []
_worlds_of_parents: list[Group] = []
_MAX_DIMENSIONS = 32  # the limit of NumPy 1; NumPy 2 allows 64


def _extents(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple, or raise BadInput if NumPy has no such shape."""
    try:
        extents = (operator.index(shape),)
    except TypeError:
        try:
            extents = tuple(operator.index(one) for one in shape)
        except TypeError as error:
            raise BadInput(
                f"expected a shape as an integer or a sequence of them, found {shape!r}"
            ) from error
    if len(extents) > _MAX_DIMENSIONS:
        raise BadInput(f"expected a shape of at most {_MAX_DIMENSIONS} dimensions, found {len(extents)}")
    if any(extent >= 2**63 for extent in extents):
        raise BadInput(
            f"expected a shape with extents below 2^63, found one of {counted(max(extents).bit_length(), 'bit')}"
        )
    if any(extent < 0 for extent in extents):
        raise BadInput(f"expected a shape without negative extents, found {shape}")
    return extents


def _limit_of(made: list[weakref.ref[Group]]) -> float:
    """The time limit of a group, which may be under construction."""
    group = made[0]() if made else None
    # The core has checked the variable before it calls a function of the program.
    return float(os.environ.get("ONEHOP_TIMEOUT") or 0) if group is None else group.timeout


def _leave_world_to_parent() -> None:
    """Let a forked child neither use nor close the world of its parent."""
    _worlds_of_parents.extend(_world)
    _world.clear()


os.register_at_fork(after_in_child=_leave_world_to_parent)


@atexit.register
def _close_world() -> None:
    """Close the world group before the interpreter ends.

    atexit does not know the exit status. The other ranks learn that this one left in order once the status is 0.
    """
    _core.Group.process_is_ending()
    _world.clear()
    _core.Group.close_world()


class Group(_core.Group):
    """The ranks of a run: the number of this rank, the ranks on the same machine, and set-up operations.

    A group is made by `world`, `alone`, `from_mpi`, `from_store` or `from_allgather`. These constructors, `split`,
    `barrier`, `allgather` and `channels` are collective: every rank of the group calls them, in the same order.
    Channels and plans move data; `allgather` is meant for the few bytes of a set-up.

    Attributes
    ----------
    rank, size : int
        Number of this rank, and number of ranks.
    origin : str
        How the group was made: "launcher", "mpi", "pmix", "torchrun", "srun", "alone", "allgather" or "split".
    timeout : float
        Limit in seconds for every wait in this group; 0: no limit. The environment variable ONEHOP_TIMEOUT sets the
        default.
    local_ranks : list of int
        The ranks that share memory with this one, itself included.
    """

    _store: tuple[Store, str] | None = None  # with the prefix of its keys

    @classmethod
    def world(cls) -> Group:
        """Return the group of all ranks that the launcher of this program started; one rank without a launcher.

        Launchers are `onehop launch`, mpiexec, srun, prterun and torchrun. The call initialises MPI if an MPI
        launcher started the program and MPI is not initialised yet. The group is made once; every further call
        returns the same group.

        Raises
        ------
        Error
            A launcher announces several ranks, but this rank cannot find the others. Or this process was forked from a
            rank that had already made its world: that group belongs to the parent.
        """
        if not _world:
            torchrun = store_of_torchrun()
            if torchrun is not None:
                store, rank, size, prefix = torchrun
                _world.append(cls.from_store(store, rank, size, prefix))
            else:
                _world.append(cls(_core.Group.world()))
        return _world[0]

    @classmethod
    def alone(cls) -> Group:
        """Return a group of this process alone, whatever the launcher."""
        return cls(_core.Group.alone())

    def __deepcopy__(self, memo: Any) -> Group:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.size > 1:
            raise BadInput(
                f"expected a group of one rank to pickle, found one of {self.size}: other processes are no ranks of it"
            )
        return Group.alone, ()

    @classmethod
    def from_mpi(cls, comm: Any) -> Group:
        """Make a group of the ranks of an mpi4py communicator. The communicator is duplicated.

        Raises
        ------
        BadInput
            `comm` is not an mpi4py communicator, or is MPI.COMM_NULL or an intercommunicator, or mpi4py is not
            installed.
        """
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise BadInput(
                f"expected an mpi4py communicator, but mpi4py cannot be imported: {error}; `pip install mpi4py`"
            ) from error
        if not isinstance(comm, MPI.Comm):
            raise BadInput(f"expected an mpi4py communicator, found {type(comm).__name__}")
        return cls(_core.Group.from_mpi_handle(MPI._addressof(comm)))

    @classmethod
    def from_allgather(cls, rank: int, size: int, allgather: Callable[[bytes], Sequence[bytes]]) -> Group:
        """Make a group from a user-supplied all-gather of bytes. Its ranks may be processes or threads.

        Parameters
        ----------
        rank, size : int
            Number of this rank, and number of ranks.
        allgather : callable
            Takes the bytes of this rank and returns those of all ranks, in the order of ranks. Lengths may differ.
        """
        made: list[weakref.ref[Group]] = []  # once it is made
        size = whole_number(size, "size")

        def limited(mine: bytes) -> Sequence[bytes]:
            return call_within(
                _limit_of(made),
                lambda: f"rank {rank} waited for other ranks in the function of Group.from_allgather",
                lambda: allgather(mine),
            )

        group = cls(
            _core.Group.from_allgather(rank, size, limited if size > 1 and callable(allgather) else allgather)
        )
        made.append(weakref.ref(group))
        return group

    @classmethod
    def from_store(cls, store: Store, rank: int, size: int, prefix: str = "onehop") -> Group:
        """Make a group of ranks that connect through a key-value store; between machines they use UCX. Collective.

        Making a group, splitting it and opening channels write and read one entry of each rank. Messages do not pass
        through the store.

        Parameters
        ----------
        store : object
            Has the methods `set(key, value)` and `get(key)`, which waits until the key has a value: a
            `torch.distributed.Store`, or any other. If it has a method `delete_key(key)`, entries that all ranks have
            read are deleted.
        rank, size : int
            Number of this rank, and number of ranks.
        prefix : str
            Begins the keys. No other group, also of an earlier run, may have used it in this store.

        Raises
        ------
        BadInput
            The store lacks a method. Or this rank has joined a group with this prefix before; known if the store has a
            method `check(keys)`.
        """
        groups: list[weakref.ref[Group]] = []  # this one, once it is made
        maker = allgathers_through(store, prefix, lambda: _limit_of(groups))
        if size > 1:
            refuse_used(store, prefix, rank)
        made = cls(_core.Group.from_allgathers(rank, size, maker))
        made._store = store, prefix
        groups.append(weakref.ref(made))
        return made

    def survivors(self, lost: Collection[int] = (), wait: float = 10) -> Group:
        """Return a group of the ranks that are left after some were lost. Collective over those that are left.

        Every rank that is left calls it, usually after `PeerLost` or `Timeout`. The ranks keep their order, and are
        numbered anew. Close the old group's plans and channels: they cannot be used again.

        Parameters
        ----------
        lost : collection of int
            Ranks known to be lost, such as the number in `PeerLost`. Nobody waits for them.
        wait : float
            Seconds after which ranks that have not called this count as lost. The same on all ranks.

        Raises
        ------
        BadInput
            This group was not made by `from_store`, nor by `world` under a torchrun on several machines. Or the store
            lacks a method: `check(keys)` and `compare_set(key, expected, desired)`, as those of
            `torch.distributed.Store`.
        PeerLost
            The others have gone on without this rank, which came too late.

        Examples
        --------
        A run that goes on from its checkpoint on the ranks that are left:

        >>> try:
        ...     result = simulate(circuit, group, shots=1000, seed=7, checkpoint="run.h5")
        ... except PeerLost as error:
        ...     group = group.survivors(lost=[error.rank])
        ...     result = simulate(circuit, group, shots=1000, seed=7, checkpoint="run.h5")
        """
        if self._store is None:
            raise BadInput(
                f"survivors() needs a group that was made from a store, found one made by {self.origin}: with other "
                "launchers, end and start all ranks again"
            )
        store, prefix = self._store
        own = f"{prefix}/survivors"
        left = agree_on_survivors(store, own, self.rank, self.size, lost, wait)
        return Group.from_store(store, left.index(self.rank), len(left), own)

    def split(self, color: int, key: int = 0) -> Group | None:
        """Split the group as MPI_Comm_split does: ranks that pass the same color form a new group. Collective.

        Parameters
        ----------
        color : int
            Selects the new group. A rank that passes a negative color joins none and gets None.
        key : int
            Orders the ranks of a new group; equal keys keep the order of this group.

        Returns
        -------
        Group or None
            The new group of this rank; None for a negative color.
        """
        part = super().split(color, key)
        return Group(part) if part.valid else None

    def empty(self, shape: int | Sequence[int], dtype: Any = "float64") -> np.ndarray:
        """Allocate a zero-filled array in memory that the other ranks of this machine can read and write directly.

        Not collective. The memory lives as long as the array or a view of it. A plan accepts any array, but between
        arrays of this kind it can save a copy.

        Parameters
        ----------
        shape : int or sequence of int
            Shape of the array.
        dtype : dtype
            Type of its elements.

        Raises
        ------
        BadInput
            The shape is negative, not of integers or of 2^63 bytes or more; or the dtype has Python objects or no
            bytes.
        Error
            The machine does not have enough memory; the message says how much there is.
        """
        try:
            kind = np.dtype(dtype)
        except (TypeError, ValueError) as error:
            raise BadInput(f"expected a NumPy dtype, found {dtype!r} ({error})") from error
        if kind.hasobject or kind.itemsize == 0:
            reason = "Python objects cannot be shared" if kind.hasobject else "it has no size"
            raise BadInput(f"expected a dtype of plain bytes, found {kind}: {reason}")
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
        """Open channels to and from other ranks. Collective: a rank without channels calls it without arguments.

        Parameters
        ----------
        send, receive : mapping
            One entry per channel. The key is the other rank, or (rank, tag) for several channels between the same two
            ranks. The value describes one message: a number of bytes, an array of the same size, or (shape, dtype).
            Every sending end needs a receiving end of the same size on the other rank.
        slots : int
            Messages that the sender can have in flight; 0: onehop chooses (two).
        slot_bytes : int
            Largest size of a slot; longer messages pass through in pieces. 0: onehop chooses.
        chunk_bytes : int
            Bytes of a message that are announced at a time; 0: onehop chooses.
        transport : str
            "auto", "shared_memory", "mpi", "ucx" or "mock".

        Returns
        -------
        Channels
            `.send[key]` and `.receive[key]`, with the keys of `send` and `receive`.

        Raises
        ------
        Mismatch
            On all ranks: an end has no partner, or two ends disagree about the size.
        BadInput
            There is no such rank, or a message is none of the above. All other ranks raise Error.

        Examples
        --------
        A ring in which every rank sends its number to the next one:

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


def group_or_alone(group: Any) -> Group:
    """Return the group that a function was given; if it was given none, the group of this process alone."""
    return Group.alone() if group is None else instance(group, Group, "group")


def require_same(group: Group, function: str, **values: Any) -> None:
    """Raise Mismatch on every rank unless all call a function with the same numbers and texts. Collective.

    The number of threads, and values of other types, may differ.
    """
    if group.size == 1:
        return
    texts = {}
    for name, value in values.items():
        with contextlib.suppress(ValueError):  # rows of several lengths, which the function refuses
            array = np.asarray(value)
            if array.dtype.kind == "f" and np.all((abs(array) < 2**53) & (array == np.rint(array))):
                array = array.astype(np.int64)  # 6.0 is 6
            if name != "threads" and (value is None or array.dtype != object):
                texts[name] = str(array.tolist())
    _core.require_same(group, function, list(texts.items()))


@contextlib.contextmanager
def together(group: Group, cannot: str = "", remedy: str = "") -> Iterator[None]:
    """Raise an exception of a `with` block on every rank, whichever rank it occurs on: BadInput on others. Collective.

    With `cannot`, what the system refuses becomes a BadInput that begins with this text and ends with the remedy; other
    texts on other ranks, for example with another file, are a Mismatch on every rank.
    """
    failure: Exception | None = None
    try:
        yield
    except (PeerLost, Timeout):
        raise
    except Exception as error:  # of any type, since the other ranks wait for the outcome
        failure = error
        if cannot and isinstance(error, OSError | MemoryError):
            # The text of another library may have several lines and name a temporary file.
            number = getattr(error, "errno", None)
            reason = os.strerror(number) if number else " ".join(str(error).split()) or type(error).__name__
            failure = BadInput(f"{cannot}: {reason}{remedy}")
    message = "" if failure is None else str(failure) or type(failure).__name__
    told = [one.partition(b"\0") for one in group.allgather(message_bytes(f"{cannot}\0{message}"))]
    tasks = [repr(one[0].decode(errors="replace").removeprefix("cannot "))[:300] for one in told]
    for rank, (task, end, _) in enumerate(told):
        if task != told[0][0] or not end:  # another file, or another function
            found = f"{tasks[0]} on rank 0 and {tasks[rank]} on rank {rank}"
            raise Mismatch(f"expected the same calls on every rank, found {found}")
    for rank, (_, _, text) in enumerate(told):
        if failure is not None and rank == group.rank:
            raise failure
        if text:
            raise BadInput(text.decode())
