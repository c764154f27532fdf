"""The C++ library onehop."""

from collections.abc import Callable, Sequence
import os
from typing import Annotated, Any, overload

import numpy
from numpy.typing import NDArray

def _throw(arg0: str, arg1: str, /) -> None: ...
def simd_levels() -> list[str]:
    """
    List the instruction sets that this processor supports, the best one last. They are values of ONEHOP_SIMD.
    """

def simd_level() -> str:
    """
    Return the instruction set that all kernels use. Raises BadInput if ONEHOP_SIMD names one that this
    processor does not support.
    """

def environment_variables() -> list[dict[str, str]]:
    """
    List the environment variables sorted by name, each as name, values, default, meaning, read_in and set_by.
    """

def environment_number(name: str) -> float | None:
    """
    Return the value of an environment variable that is a number, or None if it is unset or empty. Raises
    BadInput for an invalid value.
    """

def check_environment() -> None:
    """
    Check ONEHOP_SIMD and all environment variables that are numbers. Raises BadInput for an invalid value.
    """

def encoded_bytes(codec: str, type: str, elements: int) -> int:
    """Return the bytes on the wire of an array of `elements` numbers."""

def most_ranks(codec: str) -> int:
    """Return the largest group whose reductions take a codec."""

def encode(codec: str, type: str, source: object, wire: object) -> None:
    """
    Encode the numbers of the array `source` into the array `wire`, which must have `encoded_bytes` bytes.
    """

def decode(codec: str, type: str, wire: object, target: object, add: bool) -> None:
    """Decode `wire` into the array `target`, or with `add` add the numbers to it."""

def lossless_most_bytes(type: str, elements: int) -> int:
    """Return the most bytes that `elements` numbers take."""

def lossless_encode(type: str, source: object, wire: object) -> int:
    """
    Encode the array `source` into the array `wire`, which must have `lossless_most_bytes` bytes. Returns the
    number of bytes used.
    """

def lossless_decode(type: str, wire: object, target: object) -> None:
    """Decode exactly the bytes `wire` into the array `target`."""

class Slice:
    """
    A region of an array: a strided box or a list of element numbers, without memory.

    Elements travel in the order in which the slice lists them.
    """

    def __init__(self) -> None:
        """Make an empty slice."""

    @staticmethod
    def range(offset: int, count: int) -> Slice:
        """Make a slice of `count` elements that begins with number `offset`."""

    @staticmethod
    def box(offset: int, extents: Sequence[int], strides: Sequence[int]) -> Slice:
        """
        Make a box: element (i0, i1, ...) has number offset + sum(i_d * strides[d]), and the last index runs
        fastest.
        """

    @staticmethod
    def subarray(shape: Sequence[int], start: Sequence[int], extents: Sequence[int]) -> Slice:
        """Make the region [start, start + extents) of a C-ordered array of this shape."""

    @staticmethod
    def list(indices: Sequence[int]) -> Slice:
        """Make a slice of the elements with these numbers, in this order."""

    @property
    def is_list(self) -> bool:
        """Whether this is a list of element numbers rather than a box."""

    @property
    def elements(self) -> int:
        """Number of elements."""

    @property
    def pieces(self) -> int:
        """Number of maximal runs of consecutive elements; 1 is contiguous."""

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest element number and one past the largest."""

    @property
    def offset(self) -> int:
        """Number of the first element of a box."""

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents of a box in its simplest form."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides of a box in its simplest form."""

    @property
    def indices(self) -> tuple[int, ...]:
        """Element numbers of a list."""

    def runs(self) -> Sequence[tuple[int, int]]:
        """List the maximal runs of consecutive elements in order, as (offset, count)."""

    def element_numbers(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Return all element numbers in order, as an array of int64."""

    def cut(self, first: int, last: int) -> Sequence[Slice]:
        """Return the elements [first, last) of this slice, as slices."""

    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class ArraySpec:
    """An array of a schedule. Every rank provides one."""

    def __init__(
        self, name: str, elements: int | Sequence[int], element_bytes: int = 8, type: str = "bytes"
    ) -> None:
        """
        Describe an array: its name in messages, its number of elements (one value for all ranks, or one per
        rank), the bytes of an element, and its type (bytes, float32, float64, int32 or int64).
        """

    @property
    def name(self) -> str:
        """Name in messages."""

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""

    @property
    def type(self) -> str:
        """Type of an element: bytes, float32, float64, int32 or int64."""

    @property
    def elements(self) -> tuple[int, ...]:
        """Number of elements: one value for all ranks, or one per rank."""

    def elements_on(self, rank: int) -> int:
        """Return the number of elements on a rank."""

    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class Place:
    """One end of a transfer: a slice of an array on a rank."""

    def __init__(self, rank: int, array: int, slice: Slice) -> None: ...
    @property
    def rank(self) -> int:
        """Rank that holds the array."""

    @property
    def array(self) -> int:
        """Index of the array in the schedule."""

    @property
    def slice(self) -> Slice:
        """Elements of the array."""

    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class Transfer:
    """One movement of data from a place to a place. Between a rank and itself it is a local copy."""

    def __init__(self, from_: Place, to: Place, combine: str = "replace", codec: str = "raw") -> None:
        """
        Make a transfer. `combine` says how arriving elements combine with those of the target: replace, add,
        min, max or prod. `codec` encodes them on the wire.
        """

    @property
    def from_(self) -> Place:
        """Place that is read."""

    @property
    def to(self) -> Place:
        """Place that is written."""

    @property
    def combine(self) -> str:
        """How arriving elements combine with those of the target."""

    @property
    def codec(self) -> str:
        """Codec on the wire."""

    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class Round:
    """Transfers that happen at the same time: each reads the contents from before the round."""

    def __init__(self, transfers: Sequence[Transfer]) -> None: ...
    @property
    def permutation(self) -> tuple[int, ...] | None:
        """Target of each index bit if the round is a permutation of bits, otherwise None."""

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """Transfers of the round."""

    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class Schedule:
    """
    Rounds of transfers between ranks, as pure data. A schedule can be counted, verified, saved, and executed
    by a `Plan`.
    """

    def __init__(
        self,
        name: str,
        ranks: int,
        arrays: Sequence[ArraySpec],
        rounds: Sequence[Round],
        must_cover: Sequence[Place] = [],
    ) -> None:
        """
        Make a schedule from its name, number of ranks, arrays and rounds. `must_cover` lists places that the
        rounds together must write; `verify` checks them.
        """

    @property
    def name(self) -> str:
        """Name in messages."""

    @property
    def ranks(self) -> int:
        """Number of ranks."""

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """Arrays that every rank provides."""

    @property
    def rounds(self) -> tuple[Round, ...]:
        """Rounds in the order of execution."""

    @property
    def must_cover(self) -> tuple[Place, ...]:
        """Places that the rounds together must write."""

    def part(self, rank: int) -> Schedule:
        """Return the schedule with only the transfers of one rank."""

    def bytes(self, transfer: Transfer) -> int:
        """Return the bytes on the wire of a transfer of this schedule."""

    def describe(self, round: int, transfer: int) -> str:
        """Describe a transfer in words, as messages do."""

    def to_json(self, indent: int = -1) -> str:
        """Return the schedule as JSON text. `indent` below 0 writes one line."""

    @staticmethod
    def from_json(text: str) -> Schedule:
        """Read a schedule from the text of `to_json`. Raises BadInput if the text is no schedule."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """
        Write the schedule to a JSON file. If that fails, an existing file stays as it was. Raises BadInput if
        the file cannot be written.
        """

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Schedule:
        """Read a schedule from a JSON file. Raises BadInput if the file is no schedule."""

    def __eq__(self, other: object, /) -> bool: ...
    def __getstate__(self) -> str: ...
    def __setstate__(self, arg: str, /) -> None: ...
    def __repr__(self) -> str: ...

def merge(parts: Sequence[Schedule]) -> Schedule:
    """Merge the parts of all ranks (see `Schedule.part`) into the whole schedule."""

class PairCount:
    """The messages and bytes that one rank sends to another."""

    @property
    def from_(self) -> int:
        """The sender."""

    @property
    def to(self) -> int:
        """The receiver."""

    @property
    def messages(self) -> int:
        """Number of messages. All data for one rank in one round is one message."""

    @property
    def bytes(self) -> int:
        """Bytes on the wire."""

    @property
    def pieces(self) -> int:
        """Contiguous pieces that the sender gathers in all messages."""

    @property
    def pieces_received(self) -> int:
        """Contiguous pieces that the receiver scatters."""

    def __eq__(self, other: object, /) -> bool: ...

class RankCount:
    """The messages and bytes that one rank sends and receives."""

    @property
    def messages_sent(self) -> int:
        """Messages to other ranks."""

    @property
    def messages_received(self) -> int:
        """Messages from other ranks."""

    @property
    def bytes_sent(self) -> int:
        """Bytes to other ranks."""

    @property
    def bytes_received(self) -> int:
        """Bytes from other ranks."""

    @property
    def bytes_local(self) -> int:
        """Bytes copied inside the rank."""

    @property
    def pieces_sent(self) -> int:
        """Contiguous pieces that the rank gathers."""

    @property
    def pieces_received(self) -> int:
        """Contiguous pieces that the rank scatters."""

    def __eq__(self, other: object, /) -> bool: ...

class Count:
    """The messages and bytes of a schedule."""

    @property
    def rounds(self) -> int:
        """Rounds that move data."""

    @property
    def messages(self) -> int:
        """Messages between ranks."""

    @property
    def bytes(self) -> int:
        """Bytes between ranks."""

    @property
    def bytes_local(self) -> int:
        """Bytes copied inside ranks; not part of `bytes`."""

    @property
    def ranks(self) -> tuple[RankCount, ...]:
        """Counts of each rank."""

    @property
    def pairs(self) -> tuple[PairCount, ...]:
        """Counts of each pair of ranks that exchange data, sorted."""

    def to_json(self, indent: int = -1) -> str:
        """Return the counts as JSON text. `indent` below 0 writes one line."""

    def __repr__(self) -> str: ...

def count(schedule: Schedule) -> Count:
    """Count the messages and bytes of a schedule without running it."""

class Violation:
    """A rule that a schedule breaks, with the place."""

    @property
    def rule(self) -> str:
        """Rule: shape, writes, reads or coverage."""

    @property
    def round(self) -> int:
        """Index of the round; -1 for coverage."""

    @property
    def transfer(self) -> int:
        """Index of the transfer in its round; for coverage, the index in must_cover."""

    @property
    def other(self) -> int:
        """Index of the transfer that it collides with; -1 if there is none."""

    @property
    def message(self) -> str:
        """Description of the violation."""

    def __repr__(self) -> str: ...

def verify(schedule: Schedule, limit: int = 10) -> list[Violation]:
    """
    Return the first `limit` violations of a schedule. An empty list proves that no data is lost or
    overwritten.
    """

def verify_or_throw(schedule: Schedule) -> None:
    """Verify a schedule; raise BadInput with the message of the first violation, if there is one."""

class HaloSpec:
    """
    An array split over a grid of ranks, with ghost layers around every block.

    Parameters
    ----------
    extents : sequence of int
        Shape of the global array without ghosts (C order).
    grid : sequence of int
        Ranks per dimension.
    widths : sequence of (int, int)
        Ghost layers below and above, per dimension.
    periodic : sequence of bool
        Whether the boundaries of a dimension are periodic.
    corners : bool
        Whether to exchange edges and corners, too.
    element_bytes : sequence of int
        Bytes of an element, per field.
    codec : str
        Codec on the wire.
    types : sequence of str
        Type of the numbers of each field, for codecs. Empty: bytes.
    rank_at : sequence of int
        Rank at each position of the grid. Empty: its own number.
    """

    def __init__(
        self,
        extents: Sequence[int],
        grid: Sequence[int],
        widths: Sequence[tuple[int, int]],
        periodic: Sequence[bool],
        corners: bool,
        element_bytes: Sequence[int],
        codec: str = "raw",
        types: Sequence[str] = [],
        rank_at: Sequence[int] = [],
    ) -> None: ...
    @property
    def extents(self) -> list[int]:
        """Shape of the global array without ghosts."""

    @property
    def grid(self) -> list[int]:
        """Ranks per dimension."""

    @property
    def widths(self) -> list[tuple[int, int]]:
        """Ghost layers below and above, per dimension."""

class HaloBlock:
    """The block of one rank of a global array."""

    @property
    def start(self) -> list[int]:
        """Global index of the first interior site."""

    @property
    def extents(self) -> list[int]:
        """Interior sites per dimension."""

    @property
    def shape(self) -> list[int]:
        """Shape of the local array, including ghosts."""

    @property
    def coords(self) -> list[int]:
        """Position of the rank in the grid."""

def permute_bits(
    bits: int,
    local_bits: int,
    permutation: Sequence[int],
    element_bytes: int,
    codec: str,
    only_rank: int | None = None,
    type: str = "bytes",
) -> Schedule:
    """
    Make the schedule of a permutation of index bits: bit i of an element's index goes to bit permutation[i].
    A rank's array has 2^local_bits elements. `permute_bits` needs one round, the variant `one_swap_at_a_time`
    one round per swap. `only_rank` limits the schedule to the part of one rank. Raises BadInput for an
    invalid permutation.
    """

def permute_bits_one_swap_at_a_time(
    bits: int,
    local_bits: int,
    permutation: Sequence[int],
    element_bytes: int,
    codec: str,
    only_rank: int | None = None,
    type: str = "bytes",
) -> Schedule:
    """
    Make the schedule of a permutation of index bits: bit i of an element's index goes to bit permutation[i].
    A rank's array has 2^local_bits elements. `permute_bits` needs one round, the variant `one_swap_at_a_time`
    one round per swap. `only_rank` limits the schedule to the part of one rank. Raises BadInput for an
    invalid permutation.
    """

def halo(spec: HaloSpec, only_rank: int | None = None) -> Schedule:
    """
    Make the schedule of a halo exchange in one round. Array f is field f, with the local shape of
    `halo_block`. `only_rank` limits the schedule to the part of one rank. Raises BadInput for an invalid
    specification.
    """

def halo_block(spec: HaloSpec, rank: int) -> HaloBlock:
    """Return the block of a rank. Raises BadInput if there is no such rank."""

def allgather(ranks: int, elements: int, element_bytes: int, only_rank: int | None = None) -> Schedule:
    """
    Make the schedule of an all-gather: block [rank * elements, (rank + 1) * elements) of array 0 of every
    rank goes to the same place on every other rank.
    """

class Memory:
    """
    The memory of an array, which stays in place as long as this object lives.

    Parameters
    ----------
    array : NumPy array, buffer or DLPack object
        C-contiguous array in the processor's memory.
    writable : bool
        Whether the memory must be writable.
    what : str
        Name of the array in messages.

    Raises
    ------
    BadInput
        The object has no such memory, is not contiguous, or is read-only.
    """

    def __init__(self, array: object, writable: bool = True, what: str = "the array") -> None: ...
    @property
    def bytes(self) -> int:
        """Size of the memory in bytes."""

    @property
    def item_bytes(self) -> int:
        """Bytes of one element."""

    @property
    def address(self) -> int:
        """Address of the memory."""

def status_of_process(process: int) -> list[dict[str, Any]]:
    """Return what each group of a process of this machine waits for; see `onehop status`."""

def interrupt_thread(thread: int, interrupted: bool = True) -> None:
    """
    Make every wait of the thread with this `threading.get_ident()` raise Error, or with `interrupted` False
    allow it to wait again.
    """

class Group:
    """A group of ranks; see `onehop.Group`."""

    def __init__(self, group: Group) -> None:
        """Make another handle of a group."""

    @staticmethod
    def world() -> Group:
        """
        Return the group of all ranks of the launch, or of this process alone without a launcher. The first
        call is collective. Raises Error if this rank cannot reach the others.
        """

    @staticmethod
    def close_world() -> None:
        """Drop the reference that `world` holds, so that the group closes with its last other user."""

    @staticmethod
    def process_is_ending() -> None:
        """
        Announce the end of the process. Groups that close later count as closed in order only if the exit
        status is 0.
        """

    @staticmethod
    def alone() -> Group:
        """Return a group of this process alone."""

    @staticmethod
    def from_allgather(rank: int, size: int, allgather: Callable[[bytes], Sequence[bytes]]) -> Group:
        """Make a group from a function that gathers the bytes of all ranks in rank order. Collective."""

    @staticmethod
    def from_allgathers(
        rank: int, size: int, maker: Callable[[str, int, int], Callable[[bytes], Sequence[bytes]]]
    ) -> Group:
        """
        Make a group from a function that makes the all-gathers of the group and of its parts by their names,
        ranks and sizes. Collective.
        """

    @staticmethod
    def from_mpi_handle(address: int) -> Group:
        """
        Make a group from the communicator whose MPI_Comm handle lies at this address. The communicator is
        duplicated. Collective.
        """

    @property
    def rank(self) -> int:
        """Number of this rank, from 0."""

    @property
    def size(self) -> int:
        """Number of ranks."""

    @property
    def origin(self) -> str:
        """How the group was made: launcher, mpi, torchrun, srun, alone, allgather or split."""

    @property
    def valid(self) -> bool:
        """False for the result of `split` on a rank that joins no group."""

    @property
    def timeout(self) -> float:
        """
        Time limit in seconds of every wait in this group; 0: none. Lost peers are noticed without a limit.
        """

    @timeout.setter
    def timeout(self, arg: float, /) -> None: ...
    def shares_memory(self, rank: int) -> bool:
        """Return whether a rank runs on this machine and shares memory with this rank."""

    @property
    def local_ranks(self) -> list[int]:
        """Ranks that share memory with this rank, itself included, in ascending order."""

    @property
    def gone_rank(self) -> int:
        """
        A rank that has died, closed its group or cannot be reached, as far as this rank knows without
        waiting; -1: none.
        """

    def abort(self) -> None:
        """
        Give the group up, from any thread: waits of this rank in it raise Error, and waits of the other ranks
        of this machine raise PeerLost, which names this rank. The group cannot be used afterwards.
        """

    def barrier(self) -> None:
        """Wait until all ranks have called it."""

    def allgather(self, mine: bytes) -> list[bytes]:
        """Return the bytes of all ranks in rank order. Lengths may differ. Collective."""

    def split(self, color: int, key: int) -> Group:
        """
        Split the group as MPI_Comm_split does: ranks with the same color form a group, ordered by key. A rank
        with a negative color joins none. Collective.
        """

    def allocate(self, bytes: int) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """
        Allocate zeroed memory that the other ranks of this machine can access, as an array of uint8. Not
        collective. Raises Error if there is too little memory.
        """

def require_memory(group: Group, bytes: int, what: str, advice: str) -> None:
    """
    Raise Error on all ranks if the ranks of a machine or control group are together about to take more memory
    than it has left: `bytes` on this rank. `what` names the purpose, and `advice` ends the message.
    Collective.
    """

def memory_left_to_control_groups() -> int | None:
    """Return the bytes that the control groups of this process still allow; None without a limit."""

class ChannelSpec:
    """
    One end of a channel, as a rank requests it from `open_channels`.

    Parameters
    ----------
    send : bool
        Whether this is the sending end.
    peer : int
        Rank at the other end; may be this rank.
    bytes : int
        Length of one message; 0 makes a bare signal.
    tag : int
        Distinguishes channels between the same two ranks.
    slots, slot_bytes, chunk_bytes : int
        Number and size of the slots, and bytes between two flags. The sender's values count; 0 lets onehop
        choose.
    signature : int
        Identifies the meaning of the messages; must be equal on both ends.
    """

    def __init__(
        self,
        send: bool,
        peer: int,
        bytes: int,
        tag: int = 0,
        slots: int = 0,
        slot_bytes: int = 0,
        chunk_bytes: int = 0,
        signature: int = 0,
    ) -> None: ...

def carrier(group: Group, rank: int, transport: str) -> str:
    """
    Say what carries messages to a rank over a transport: `shared_memory`, `mpi`, `ucx: active messages over
    ...`.
    """

class Sender:
    """The sending end of a channel. Only one thread at a time may use it."""

    @property
    def bytes(self) -> int:
        """Bytes of one message."""

    @property
    def peer(self) -> int:
        """The rank at the other end."""

    @property
    def in_place(self) -> bool:
        """Whether a whole message fits into a slot, so that `slot` can be used."""

    @property
    def ready(self) -> bool:
        """Whether the next slot is free."""

    def slot(self) -> numpy.ndarray:
        """Wait until the next slot is free; return its memory. Write the message there, then call `put`."""

    def put(self, message: Any = None) -> None:
        """Send the message that was written into `slot()`, or a copy of `message`."""

class Receiver:
    """The receiving end of a channel. Only one thread at a time may use it."""

    @property
    def bytes(self) -> int:
        """Bytes of one message."""

    @property
    def peer(self) -> int:
        """The rank at the other end."""

    @property
    def in_place(self) -> bool:
        """Whether a whole message fits into a slot, so that `wait` can be used."""

    @property
    def ready(self) -> bool:
        """Whether the next message has arrived."""

    def wait(self) -> numpy.ndarray:
        """Wait for the next message; return a read-only view of it, which is valid until `release`."""

    def release(self) -> None:
        """Return the slot to the sender."""

    def get(self, array: Any) -> None:
        """Wait for the next message, copy it into `array` and release its slot."""

def open_channels(group: Group, specs: Sequence[ChannelSpec], shapers: list, transport: str) -> list:
    """
    Open channels between the ranks of a group. Collective.

    Parameters
    ----------
    group : Group
        All ranks that open channels.
    specs : list of ChannelSpec
        Ends of this rank; may be empty.
    shapers : list
        For each spec a function that converts an array of bytes to the array that the user gets, or None.
    transport : str
        auto, shared_memory, mpi or mock.

    Returns
    -------
    list of Sender or Receiver
        Ends in the order of the specs.
    """

def refuse_channels(group: Group, why: str) -> None:
    """
    Take part in a collective `open_channels`, or construction of a plan, that this rank cannot complete. The
    other ranks raise Error with the text `why`.
    """

class PlanCounters:
    """The messages and bytes that a plan has moved on this rank."""

    @property
    def runs(self) -> int:
        """Number of finished runs."""

    @property
    def messages_sent(self) -> int:
        """Messages to other ranks."""

    @property
    def messages_received(self) -> int:
        """Messages from other ranks."""

    @property
    def bytes_sent(self) -> int:
        """Bytes sent to other ranks."""

    @property
    def bytes_received(self) -> int:
        """Bytes received from other ranks."""

    @property
    def bytes_local(self) -> int:
        """Bytes copied inside the rank."""

    def __repr__(self) -> str: ...

class Plan:
    """
    A schedule bound to a group and to memory. The constructor is collective; see `onehop.Plan`.

    Parameters
    ----------
    group : Group
        Ranks of the schedule.
    schedule : Schedule
        Schedule to execute.
    arrays : list of Memory
        Memory of each array of the schedule on this rank.
    transport : str
        auto, shared_memory, mpi or mock.
    slots, slot_bytes, chunk_bytes : int
        Number and size of the slots, and bytes between two flags; 0 lets onehop choose.
    direct_puts : bool
        Whether senders write straight into the receiver's array where the ranks share it.
    rails : list of list of RailAssignment or None
        The network interface of each message; None: onehop chooses.
    verify : bool
        Whether to refuse every schedule that `verify` refuses.
    """

    def __init__(
        self,
        group: Group,
        schedule: Schedule,
        arrays: Sequence[Memory],
        transport: str,
        slots: int,
        slot_bytes: int,
        chunk_bytes: int,
        direct_puts: bool,
        rails: Sequence[Sequence[RailAssignment]] | None,
        verify: bool,
    ) -> None: ...
    def start(self) -> None:
        """Start a run without waiting."""

    def finish(self) -> None:
        """Complete the run. The GIL is released meanwhile; Ctrl-C ends the wait."""

    def run(self) -> None:
        """Call `start` and `finish`."""

    def __enter__(self) -> Plan:
        """Call `start`."""

    def __exit__(self, type: object, error: object, trace: object) -> None:
        """Call `finish`, unless the block has raised an exception."""

    def test(self) -> bool:
        """Move what can be moved without waiting. Returns whether `finish` would return at once."""

    @property
    def counters(self) -> PlanCounters:
        """Messages and bytes moved so far."""

    @property
    def staging_bytes(self) -> int:
        """Bytes of staging for incoming messages on this rank."""

    def _channels(self) -> list:
        """This rank's ends of channels, as dictionaries for `explain`."""

def array_use(schedule: Schedule, rank: int) -> list[tuple[bool, bool]]:
    """Return for each array whether a schedule reads it on a rank, and whether it writes it."""

def allreduce_schedule(
    ranks: int,
    elements: int,
    type: str = "float32",
    combine: str = "add",
    algorithm: str = "two_shot",
    only_rank: int | None = None,
) -> Schedule:
    """
    Make the schedule of an all-reduce: array 0 of all ranks, combined in the order of ranks, goes to array 1
    of every rank. `combine` is add, min, max or prod; `algorithm` is one_shot or two_shot.
    """

def reduce_scatter_schedule(
    ranks: int, elements: int, type: str = "float32", combine: str = "add", only_rank: int | None = None
) -> Schedule:
    """Make the schedule of a reduce-scatter of blocks of `elements` elements."""

def broadcast_schedule(
    ranks: int, elements: int, element_bytes: int, root: int = 0, only_rank: int | None = None
) -> Schedule:
    """Make the schedule of a broadcast of array 0 from rank `root`."""

class Collective:
    """
    A prepared collective operation, which can run any number of times. Only one operation of the same
    `Collectives` runs at a time, and every rank runs them in the same order.
    """

    def start(self, source: Memory, result: Memory) -> None:
        """
        Start the operation without waiting. Until `finish` returns, do not write `source` and do not access
        `result`.
        """

    def finish(self) -> None:
        """Complete the operation."""

    def run(self, source: Memory, result: Memory) -> None:
        """start() and finish()."""

    def run_parts(self, parts: Sequence[tuple[int, int, int]]) -> None:
        """
        Run an all-reduce on several arrays: (address of the source, address of the result, elements) of each.
        """

    def run_at(self, source: int, result: int) -> None:
        """Run the operation on arrays at these addresses, of `source_bytes` and `result_bytes` bytes."""

    @property
    def source_bytes(self) -> int:
        """Length of the source in bytes."""

    @property
    def result_bytes(self) -> int:
        """Length of the result in bytes."""

    @property
    def chunk_bytes(self) -> int:
        """Size of the chunks in which the data travels, in bytes."""

    @property
    def algorithm(self) -> str:
        """Algorithm of a reduction: one_shot, two_shot or by_host."""

class Collectives:
    """
    Channels between all ranks of a group, and the operations on them. The constructor is collective.

    Parameters
    ----------
    group : Group
        Ranks that take part.
    transport : str
        auto, shared_memory or mpi.
    slots, slot_bytes : int
        Number and size of the slots per channel; 0 lets onehop choose.
    """

    def __init__(
        self, group: Group, transport: str = "auto", slots: int = 0, slot_bytes: int = 0
    ) -> None: ...
    def allreduce(
        self,
        elements: int,
        type: str,
        op: str = "sum",
        codec: str = "raw",
        algorithm: str = "auto",
        chunk_bytes: int = 0,
        shape: Sequence[int] = [],
    ) -> Collective:
        """
        Prepare an all-reduce. Not collective.

        Parameters
        ----------
        elements : int
            Number of elements of the array.
        type : str
            Type of an element, such as "float32".
        op : str
            Operator, such as "sum".
        codec : str
            Codec on the wire; "raw" is exact.
        algorithm : str
            auto, one_shot, two_shot or by_host.
        chunk_bytes : int
            Size of the chunks in which the data travels; 0 lets onehop choose.
        shape : sequence of int
            Extents of the array, or of several arrays with -1 between them. Ranks with different shapes raise
            Mismatch. Empty: one dimension.
        """

    def reduce_scatter(
        self,
        elements: int,
        type: str,
        op: str = "sum",
        codec: str = "raw",
        chunk_bytes: int = 0,
        shape: Sequence[int] = [],
        algorithm: str = "auto",
    ) -> Collective:
        """
        Prepare a reduce-scatter: the source has a block of `elements` elements per rank, the result is the
        reduced block of this rank. Other arguments as for `allreduce`.
        """

    def allgather(self, bytes: Sequence[int], type: str = "bytes", shape: Sequence[int] = []) -> Collective:
        """
        Prepare an all-gather of blocks of bytes[r] bytes on rank r. Ranks with different types or shapes
        raise Mismatch.
        """

    def broadcast(
        self, bytes: int, root: int = 0, type: str = "bytes", shape: Sequence[int] = []
    ) -> Collective:
        """Prepare a broadcast of `bytes` bytes from rank `root`."""

    def all_to_all(
        self,
        bytes_to: Sequence[int],
        bytes_from: Sequence[int],
        type: str = "bytes",
        shape: Sequence[int] = [],
    ) -> Collective:
        """
        Prepare an exchange in which rank r gets block r of the source, of bytes_to[r] bytes, and block r of
        the result, of bytes_from[r] bytes, comes from rank r.
        """

    def barrier(self) -> None:
        """Wait until all ranks have called it."""

    @property
    def counters(self) -> tuple:
        """Number of operations, bytes sent and bytes received so far."""

    @property
    def staging_bytes(self) -> int:
        """Bytes of shared memory that currently back the channels to this rank."""

    def compress_above(self, codec: str) -> int | None:
        """
        Return the length in bytes from which an all-reduce of float32 is faster with this codec than raw, or
        None.
        """

def compress_above(codec: str, in_memory: bool, ranks: int) -> int | None:
    """
    Return the length in bytes from which an all-reduce of float32 over so many ranks, which share memory or
    not, is faster with this codec than raw, or None. The table is that of this process.
    """

def built_in_reduce_tables() -> str:
    """
    Return the built-in tables of all-reduce algorithms by length as JSON. They apply without a tuning file.
    """

def check_reduce_tables(json: str) -> str:
    """Check such tables; return them as onehop reads them. Raises BadInput if the text is invalid."""

class PoissonSpec:
    """A Poisson problem on a periodic two-dimensional lattice, and the grid of ranks that solves it."""

    def __init__(self, extents: Sequence[int], grid: Sequence[int], mass: float, seed: int) -> None: ...
    @property
    def extents(self) -> list[int]:
        """Sites of the lattice per dimension."""

    @property
    def grid(self) -> list[int]:
        """Ranks per dimension."""

    @property
    def mass(self) -> float:
        """Mass term; a larger one converges faster."""

    @property
    def seed(self) -> int:
        """Seed of the random right-hand side."""

class PoissonBlock:
    """The block of one rank of the lattice."""

    @property
    def start(self) -> list[int]:
        """First site of the block."""

    @property
    def extents(self) -> list[int]:
        """Sites of the block per dimension."""

class PoissonTimes:
    """The times of one rank in seconds per iteration."""

    @property
    def start(self) -> float:
        """Time to pack and send the faces."""

    @property
    def interior(self) -> float:
        """Time to update the interior while the faces travel."""

    @property
    def wait(self) -> float:
        """Time to wait for the faces and unpack them."""

    @property
    def boundary(self) -> float:
        """Time to update the boundary."""

    @property
    def residual(self) -> float:
        """Time to sum the residual over the ranks."""

class PoissonResult:
    """The result of a solve."""

    @property
    def iterations(self) -> int:
        """Number of iterations."""

    @property
    def reached_tolerance(self) -> bool:
        """Whether the residual reached the tolerance."""

    @property
    def seconds(self) -> float:
        """Time for all iterations."""

    @property
    def times(self) -> PoissonTimes:
        """Times of this rank per iteration."""

    @property
    def history(self) -> list[tuple[int, float]]:
        """Pairs (iteration, |b - M x|); the last one is that of the solution."""

class Poisson:
    """Jacobi's method for the Poisson equation on a grid of ranks. The constructor is collective."""

    def __init__(
        self, group: Group, spec: PoissonSpec, buffers: int, enlargement: int, transport: str
    ) -> None: ...
    def set_source(self, block: Memory) -> None:
        """
        Set the right-hand side: this rank's block of float64 in C order. Collective. Raises BadInput for a
        wrong length or values that are not finite or above 1e140.
        """

    def solve(
        self, iterations: int, residual_every: int, tolerance: float, progress: object | None = None
    ) -> PoissonResult:
        """
        Solve from x = 0. Collective.

        Parameters
        ----------
        iterations : int
            Maximum number of iterations.
        residual_every : int
            Number of iterations between two residuals.
        tolerance : float
            Stop when |b - M x| <= tolerance |b|; 0: run all iterations.
        progress : callable, optional
            Called as progress(iteration, residual); may raise to end the solve.
        """

    @property
    def solution(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """This rank's block of the solution."""

    @property
    def source(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """This rank's block of the right-hand side."""

    def gather(self, block: Memory) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """Return the whole lattice on every rank, from the block of each rank. Collective."""

    @property
    def spec(self) -> PoissonSpec:
        """The problem."""

    @property
    def block(self) -> PoissonBlock:
        """This rank's block of the lattice."""

    @property
    def bytes_sent(self) -> int:
        """Bytes that this rank sends in one iteration, including padding."""

def poisson_grid(extents: Sequence[int], ranks: int) -> list[int]:
    """Return the grid of ranks with the shortest faces. Raises BadInput if no grid fits."""

def poisson_faces(spec: PoissonSpec, enlargement: int = 1) -> Schedule:
    """Return the schedule of one iteration. Faces are padded to `enlargement` times their length."""

def poisson_source(spec: PoissonSpec) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
    """Return the random right-hand side on the whole lattice, as an array of float64."""

class LatticeGeometry:
    """
    The layout of a periodic lattice of 1 to 4 dimensions: the rank and the place of every site.

    Parameters
    ----------
    extents, grid : sequence of int
        Sites and ranks per direction, x first.
    lanes : int
        Sites in a SIMD vector, a power of two.
    width : int
        Distance of the neighbours of a site.
    parities : int
        2 stores even and odd sites apart, 1 stores all sites together.
    rank_at : sequence of int
        The rank at each position of the grid. Empty: its own number.

    Raises
    ------
    BadInput
        The grid does not divide the extents, or blocks or sub-blocks are too thin.
    """

    def __init__(
        self,
        extents: Sequence[int],
        grid: Sequence[int],
        lanes: int,
        width: int,
        parities: int,
        rank_at: Sequence[int] = [],
    ) -> None: ...
    @property
    def extents(self) -> tuple[int, ...]:
        """Sites of the whole lattice per direction, x first."""

    @property
    def grid(self) -> tuple[int, ...]:
        """Ranks per direction."""

    @property
    def lanes(self) -> int:
        """Sites in a vector."""

    @property
    def width(self) -> int:
        """Distance of the neighbours of a site."""

    @property
    def parities(self) -> int:
        """2 if even and odd sites are stored apart, otherwise 1."""

    @property
    def ranks(self) -> int:
        """Number of ranks."""

    @property
    def rank_at(self) -> tuple[int, ...]:
        """The rank at each position of the grid; empty: its own number."""

    @property
    def block(self) -> tuple[int, ...]:
        """Sites of a rank's block per direction."""

    @property
    def lane_grid(self) -> tuple[int, ...]:
        """Sub-blocks of a rank's block per direction, one for each lane."""

    @property
    def sub_block(self) -> tuple[int, ...]:
        """Sites of a sub-block per direction."""

    @property
    def vectors(self) -> int:
        """Number of a rank's own vectors."""

    @property
    def ghosts(self) -> int:
        """Number of ghost vectors, which hold sites of other ranks."""

    def origin(self, rank: int) -> tuple[int, ...]:
        """Return the first site of a rank's block."""

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Return the coordinates of a rank in the grid."""

    def origin_parity(self, rank: int) -> int:
        """Return the parity of the first site of a rank's block."""

    def parity_range(self, parity: int) -> tuple[int, int, int]:
        """Return the range of the vectors of a local parity: first vector, end of the interior, end."""

    @property
    def sites(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None))]:
        """
        Lexicographic number within the block of the site in every vector and lane, of shape (vectors, lanes).
        """

    def neighbours(
        self, distance: int
    ) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None, None, None))]:
        """
        Return the neighbours at a distance as an array of shape (vectors, dims, 2, 2): for each vector,
        direction and side (below, above) the neighbour's vector, and 1 if its lanes must be rotated.
        """

    def lane_source(self, direction: int, side: str) -> tuple[int, ...]:
        """Return the lane from which each lane of a rotated neighbour comes. `side` is below or above."""

    def face(self, direction: int, side: str, parity: int) -> Slice:
        """Return the vectors of a local parity that another rank needs."""

    def ghost(self, direction: int, side: str, parity: int) -> Slice:
        """Return the ghosts of a local parity beyond an end of the block."""

    def lexicographic_pieces(self, direction: int, side: str, parity: int) -> int:
        """Return the number of contiguous pieces of a face if sites were stored in lexicographic order."""

    def halo(
        self, element_bytes: int, type: str, parity: int | None = None, only_rank: int | None = None
    ) -> Schedule:
        """
        Return the schedule of the halo exchange of a field with vectors of `element_bytes` bytes. `parity`
        limits it to sites of one global parity, `only_rank` to what one rank sends and receives.
        """

def lattice_geometry_grid(extents: Sequence[int], ranks: int, width: int) -> list[int]:
    """Return the grid of ranks whose blocks have the smallest surface. Raises BadInput if no grid fits."""

def lattice_geometry_lanes(
    extents: Sequence[int], grid: Sequence[int], width: int, parities: int, max_lanes: int
) -> int:
    """
    Return the largest valid number of lanes, at most `max_lanes`. Raises BadInput if the geometry is invalid.
    """

class LatticeGauge:
    """An SU(3) gauge field on a periodic lattice that is split over a grid of ranks."""

    def __init__(
        self, group: Group, extents: Sequence[int], grid: Sequence[int], rank_at: Sequence[int] = []
    ) -> None:
        """
        Make a field of unit links. `extents` and `grid` list direction x first; `rank_at` is the rank at each
        position of the grid. Collective.
        """

    @staticmethod
    def bytes_on_a_rank(extents: Sequence[int], grid: Sequence[int], ranks: int) -> float:
        """
        Return the bytes that one of `ranks` ranks needs for a field, with the copies that its methods make.
        An empty grid means one that is not chosen yet.
        """

    def set_links(self, links: Memory) -> None:
        """
        Set the links of this rank's block: complex128 in lexicographic order, [site][direction][row][column].
        Collective.
        """

    def get_links(self) -> NDArray[numpy.complex128]:
        """Return the links of this rank's block as complex128 of shape (..., y, x, direction, 3, 3)."""

    def set_random(self, seed: int) -> None:
        """Draw every link from the Haar measure of SU(3). Collective."""

    def plaquettes(self) -> tuple[float, float, float]:
        """
        Return the averages of Re tr / 3 over all plaquettes, over the spatial ones, and over those in time.
        Collective.
        """

    def link_trace(self) -> float:
        """Return the average of Re tr / 3 over all links. Collective."""

    def deviation(self) -> tuple[float, tuple[int, ...], int]:
        """
        Return the largest deviation of a link from SU(3), and the site and direction of that link.
        Collective.
        """

    def reunitarise(self) -> None:
        """
        Project every link back to SU(3). Collective. Raises BadInput, and leaves the field as it is, if a
        link is singular.
        """

    def heat_bath(self, beta: float, seed: int, sweep: int) -> None:
        """
        Make a heat bath sweep for the Wilson action. The links depend on `seed` and the number `sweep`.
        Collective.
        """

    def over_relax(self) -> None:
        """Make an over-relaxation sweep. Collective."""

def lattice_field_strength(gauge: LatticeGauge) -> tuple[float, float, float]:
    """
    Measure the energy density from plaquettes and from clover leaves, and the topological charge. Collective.
    """

def lattice_polyakov_loop(gauge: LatticeGauge) -> complex:
    """Return the average of tr / 3 of the product of all links in time. Collective."""

def longest_stable_flow_step(dims: int) -> float:
    """Return the longest step of the flow that is stable on smooth fields of `dims` dimensions."""

class LatticeFlow:
    """The gradient flow of a gauge field by the Wilson action (Wilson flow)."""

    def __init__(self, gauge: LatticeGauge) -> None:
        """Start from a copy of these links. Collective."""

    @property
    def time(self) -> float:
        """Flow time in units of the squared lattice spacing."""

    def step(self, epsilon: float) -> None:
        """Make a step of length `epsilon`, above 0 to 1. Collective."""

    def try_step(self, epsilon: float, tolerance: float) -> float:
        """
        Make a step if its error is at most the tolerance; otherwise leave the links as they are. Returns the
        error. Collective.
        """

    def step_within(self, epsilon: float, tolerance: float) -> tuple[float, float, float]:
        """
        Make a step of at most `epsilon`, shortened until its error is at most `tolerance`. Returns its
        length, its error, and the proposed length of the next step. Collective.
        """

    def field_strength(self) -> tuple[float, float, float]:
        """
        Measure the energy density from plaquettes and from clover leaves, and the topological charge.
        Collective.
        """

    def copy_to(self, gauge: LatticeGauge) -> None:
        """Copy the links to a gauge field. Collective."""

class LatticeHmc:
    """
    Hybrid Monte Carlo for the Wilson gauge action.

    Parameters
    ----------
    gauge : LatticeGauge
        Initial field, which is copied.
    beta : float
        Inverse coupling, 0 to 1e6.
    length : float
        Length of a trajectory, above 0.
    steps : int
        Number of integrator steps per trajectory.
    leapfrog : bool
        Use the leapfrog integrator instead of Omelyan's.
    seed : int
        Seed of momenta and decisions.
    """

    def __init__(
        self, gauge: LatticeGauge, beta: float, length: float, steps: int, leapfrog: bool, seed: int
    ) -> None: ...
    def run(self, number: int) -> tuple[float, bool]:
        """Run trajectory `number`; return the change of H, and whether it was accepted. Collective."""

    def reverse(self, number: int) -> tuple[float, float]:
        """
        Run a trajectory forwards and backwards, and restore the field. Returns the remaining differences of H
        and of the links. Collective.
        """

    def copy_to(self, gauge: LatticeGauge) -> None:
        """Copy the links to a gauge field. Collective."""

def lattice_fat_links(
    gauge: LatticeGauge,
    one: float,
    three: float,
    five: float,
    seven: float,
    lepage: float,
    long_links: float,
    precision: str,
) -> tuple:
    """
    Compute the fat and long links of this rank's block. Arguments: weights of paths of 1, 3, 5 and 7 links,
    of the Lepage term and of the long links. Collective.
    """

def lattice_hisq_links(gauge: LatticeGauge, naik_epsilon: float, precision: str) -> tuple:
    """Compute the HISQ fat, long and reunitarised links of this rank's block. Collective."""

def lattice_path_weights(name: str, parameter: float) -> tuple:
    """
    Return the conventional path weights of fat3, fat5, fat7, asqtad (parameter: u0) or the second step of
    HISQ (parameter: Naik epsilon): one, three, five, seven links, Lepage, long links.
    """

def lattice_smear_ape(gauge: LatticeGauge, alpha: float, steps: int, space_only: bool) -> None:
    """Apply APE smearing in place. Collective."""

def lattice_smear_stout(gauge: LatticeGauge, rho: float, steps: int, space_only: bool) -> None:
    """Apply stout smearing in place. Collective."""

def lattice_multiply_staggered_phases(
    links: Annotated[NDArray[numpy.complex128], dict(order="C", device="cpu")],
    geometry: LatticeGeometry,
    rank: int,
    length: int,
    antiperiodic: bool,
    milc_phases: bool,
) -> None:
    """Multiplies a rank's block of links with the staggered phases, in place."""

class LatticeSolverReport:
    """The report of a solve. Times, flops and bytes are those of this rank."""

    @property
    def iterations(self) -> int:
        """Number of iterations."""

    @property
    def reliable_updates(self) -> int:
        """Number of times that the residual was recomputed in the outer precision."""

    @property
    def residuals(self) -> list[float]:
        """|b - M x| / |b| of each solution."""

    @property
    def true_residual(self) -> float:
        """Largest of the residuals."""

    @property
    def converged(self) -> bool:
        """Whether every residual reached the tolerance."""

    @property
    def seconds(self) -> float:
        """Time of the solve."""

    @property
    def communication_seconds(self) -> float:
        """Time that the solve spent in communication."""

    @property
    def flops(self) -> float:
        """Floating-point operations."""

    @property
    def bytes(self) -> float:
        """Bytes that these operations read and wrote."""

class LatticeStaggered:
    """
    The staggered operator M = 2 m + D of a gauge field, or of fat and long links. Fields are complex128 of
    this rank's block in lexicographic order, three numbers per site, several fields one after the other.
    Methods that take fields are collective.
    """

    def __init__(
        self, gauge: LatticeGauge, antiperiodic: bool, lanes: int, threads: int, milc_phases: bool
    ) -> None:
        """
        Make the naive operator of a gauge field. `lanes` is the largest number of lanes, `threads` the number
        of threads (0: the rank's share of the cores). Collective.
        """

    @staticmethod
    def of_links(
        group: Group,
        extents: Sequence[int],
        grid: Sequence[int],
        fat: Memory,
        long_links: Memory | None,
        lanes: int,
        threads: int,
        rank_at: Sequence[int] = [],
    ) -> LatticeStaggered:
        """
        Make the operator of given fat and long links: complex128 of this rank's block,
        [site][direction][row][column]. Collective.
        """

    @staticmethod
    def for_bench(
        variant: str,
        group: Group,
        extents: Sequence[int],
        grid: Sequence[int],
        fat: Memory,
        long_links: Memory,
        threads: int,
    ) -> LatticeStaggered:
        """
        Make a variant for benchmarks: "MPI" exchanges faces and sums by MPI, "scalar" uses scalar loops.
        """

    def link_bytes(self, precision: str) -> int:
        """Return the bytes of this rank's links as applications in this precision read them."""

    @property
    def lanes(self) -> int:
        """Sites in a vector."""

    @property
    def threads(self) -> int:
        """Threads of this rank."""

    @property
    def has_long_links(self) -> bool:
        """Whether the operator has long links."""

    def dslash(self, fields: Memory, precision: str, parity: int) -> NDArray[numpy.complex128]:
        """
        Apply the hopping term D. With `parity` 0 or 1 only even or odd sites are computed; the others are 0.
        """

    def apply(self, fields: Memory, mass: float, dagger: bool, precision: str) -> NDArray[numpy.complex128]:
        """Apply M = 2 m + D, or its adjoint."""

    def apply_mdagm(self, fields: Memory, mass: float, precision: str) -> NDArray[numpy.complex128]:
        """Apply M^dagger M = 4 m^2 - D D."""

    def solve(
        self,
        source: Memory,
        masses: Sequence[float],
        tolerance: float,
        iterations: int,
        precision: str,
        sloppy_precision: str,
        reproducible: bool,
        half_halo: bool,
        progress: object,
    ) -> tuple[NDArray[numpy.complex128], LatticeSolverReport]:
        """
        Solve M x = b for several right-hand sides and one mass, or for one right-hand side and several
        masses. Returns the solutions and the report.

        Parameters
        ----------
        source : Memory
            Right-hand sides.
        masses : sequence of float
            Quark masses, above 0.
        tolerance : float
            Relative residual at which the solve ends.
        iterations : int
            Maximum number of iterations.
        precision, sloppy_precision : str
            Precision of the solution and of most iterations.
        reproducible : bool
            Give the same bits on every number of ranks.
        half_halo : bool
            Send the halo of sloppy iterations as 16-bit numbers.
        progress : callable, optional
            Called as progress(iteration, residual).
        """

class LatticeWilson:
    """
    The Wilson operator M = A - kappa D of a gauge field, with or without the clover term. Fields are
    complex128 of this rank's block in lexicographic order, [site][spin][colour], several fields one after the
    other. Methods that take fields are collective.
    """

    def __init__(
        self,
        gauge: LatticeGauge,
        kappa: float,
        csw: float,
        antiperiodic: bool,
        recon: int,
        precision: str,
        lanes: int,
        threads: int,
    ) -> None:
        """
        Make the operator of a gauge field. Collective.

        Parameters
        ----------
        gauge : LatticeGauge
            Links, which are copied.
        kappa : float
            Hopping parameter.
        csw : float
            Clover coefficient; 0: no clover term.
        antiperiodic : bool
            Boundary condition in time.
        recon : int
            Real numbers kept per link: 18 or 12.
        precision : str
            Precision of `apply`, `dslash` and `precondition`.
        lanes : int
            Largest number of lanes; 0: those of the processor's vectors.
        threads : int
            Threads of this rank; 0: its share of the cores.
        """

    @property
    def lanes(self) -> int:
        """Sites in a vector."""

    @property
    def threads(self) -> int:
        """Threads of this rank."""

    def dslash(self, fields: Memory, dagger: bool) -> NDArray[numpy.complex128]:
        """Apply the hopping term D, or its adjoint."""

    def apply(self, fields: Memory, dagger: bool) -> NDArray[numpy.complex128]:
        """Apply M, or its adjoint."""

    def precondition(self, fields: Memory, dagger: bool) -> NDArray[numpy.complex128]:
        """
        Apply the even-odd preconditioned operator A - kappa^2 D A^-1 D on even sites, or its adjoint. Odd
        sites of the result are 0.
        """

    def solve(
        self,
        source: Memory,
        tolerance: float,
        iterations: int,
        precision: str,
        sloppy_precision: str,
        reproducible: bool,
        half_halo: bool,
        cgnr: bool,
        schwarz: int,
        progress: object,
    ) -> tuple[NDArray[numpy.complex128], LatticeSolverReport]:
        """
        Solve M x = b with even-odd preconditioning. Returns the solution and the report.

        Parameters
        ----------
        source : Memory
            Right-hand sides.
        tolerance : float
            Relative residual at which the solve ends.
        iterations : int
            Maximum number of iterations.
        precision, sloppy_precision : str
            Precision of the solution and of most iterations.
        reproducible : bool
            Give the same bits on every number of ranks.
        half_halo : bool
            Send the halo of sloppy iterations as 16-bit numbers.
        cgnr : bool
            Use conjugate gradients on the normal equations instead of BiCGStab.
        schwarz : int
            Number of Schwarz preconditioner steps (BiCGStab only).
        progress : callable, optional
            Called as progress(iteration, residual).
        """

def lattice_clover_leaves(gauge: LatticeGauge) -> NDArray[numpy.complex128]:
    """
    Compute the field strength F of every site of the block from its clover leaves:
    [site][plane][row][column]. Collective.
    """

def lattice_clover_blocks(clover_leaves: Memory, weight: float, inverse: bool) -> NDArray[numpy.complex128]:
    """Compute the blocks of the clover term, or their inverses: [site][half][row][column]."""

def lattice_targets() -> list[str]:
    """List the kinds of processors whose kernels this processor can run."""

def lattice_use_target(name: str) -> None:
    """Select the kernels of a kind of processor for this process; "" selects the best one."""

class HostLayout:
    """
    Which host each rank runs on, and how the hosts are joined.

    Parameters
    ----------
    host_of_rank : sequence of int
        The host of each rank; hosts are numbered from 0.
    groups : sequence of int
        Hosts in a unit, units in a larger unit, and so on.
    costs : sequence of int
        Cost of a byte that leaves a host, a unit, ...; empty: 1.
    torus : sequence of int
        Extents of a torus of hosts; empty: no torus.
    """

    def __init__(
        self,
        host_of_rank: Sequence[int],
        groups: Sequence[int] = [],
        costs: Sequence[int] = [],
        torus: Sequence[int] = [],
    ) -> None: ...
    @staticmethod
    def of_sizes(sizes: Sequence[int]) -> HostLayout:
        """Return hosts that ranks fill one after the other; host h holds sizes[h] ranks."""

    @staticmethod
    def of_equal(hosts: int, per_host: int) -> HostLayout:
        """Return hosts that ranks fill one after the other, with as many ranks on each."""

    @staticmethod
    def of_group(group: Group) -> HostLayout:
        """
        Return the hosts of a group: ranks that share memory are on one host. Hosts are numbered in the order
        of their first ranks. Collective.
        """

    @property
    def host_of_rank(self) -> tuple[int, ...]:
        """The host of each rank."""

    @property
    def hosts(self) -> int:
        """Number of hosts."""

    @property
    def groups(self) -> tuple[int, ...]:
        """Hosts in a unit, units in a larger unit, and so on."""

    @property
    def costs(self) -> tuple[int, ...]:
        """Cost of a byte that leaves a host, a unit, ...; empty: 1."""

    @property
    def torus(self) -> tuple[int, ...]:
        """Extents of a torus of hosts; empty: no torus."""

class MapCost:
    """What a map costs. An edge is an ordered pair of positions with traffic."""

    @property
    def edges_between_hosts(self) -> int:
        """Edges between different hosts."""

    @property
    def busiest_host_edges(self) -> int:
        """Most edges that leave or enter one host."""

    @property
    def bytes_between_hosts(self) -> int:
        """Bytes between different hosts."""

    @property
    def busiest_host_bytes(self) -> int:
        """Most bytes that leave or enter one host."""

    @property
    def weighted_bytes(self) -> int:
        """Bytes between hosts, times the cost of their border."""

    @property
    def byte_hops(self) -> int:
        """Bytes between hosts, times their hops on the torus."""

    @property
    def bytes_by_level(self) -> tuple[int, ...]:
        """Bytes inside hosts, between hosts of a unit, between units, ..."""

class MapCandidate:
    """One of the maps that were compared."""

    @property
    def name(self) -> str:
        """Name of the algorithm."""

    @property
    def cost(self) -> MapCost:
        """Cost of its map."""

class RankMap:
    """Which rank takes which position of a grid."""

    @property
    def rank_at(self) -> tuple[int, ...]:
        """The rank at each position."""

    @property
    def position_of(self) -> tuple[int, ...]:
        """The position of each rank; -1 for ranks that the grid does not need."""

    @property
    def host_at(self) -> tuple[int, ...]:
        """The host of each position."""

    @property
    def candidates(self) -> tuple[MapCandidate, ...]:
        """The maps that were compared."""

    @property
    def skipped(self) -> dict[str, str]:
        """Algorithms without a map, and why."""

    @property
    def chosen(self) -> str:
        """Name of the chosen candidate."""

    @property
    def lower_bound(self) -> int | None:
        """No map has fewer bytes between hosts than this; None if unknown."""

    @property
    def seconds(self) -> float:
        """Time to find the map."""

    @property
    def cost(self) -> MapCost:
        """Cost of the chosen map."""

def map_grid(
    extents: Sequence[int],
    hosts: HostLayout,
    periodic: Sequence[bool] = [],
    bytes: Sequence[int] = [],
    refine: bool = True,
    seed: int = 1,
    steps: int = -1,
    scotch: bool = False,
) -> RankMap:
    """Map a grid of ranks with messages between nearest neighbours to hosts. Raises BadInput."""

def map_schedule(
    schedule: Schedule,
    hosts: HostLayout,
    refine: bool = True,
    seed: int = 1,
    steps: int = -1,
    scotch: bool = False,
) -> RankMap:
    """Map the ranks of a schedule to hosts by the bytes between pairs. Raises BadInput."""

def map_cost(
    extents: Sequence[int],
    hosts: HostLayout,
    rank_at: Sequence[int],
    periodic: Sequence[bool] = [],
    bytes: Sequence[int] = [],
) -> MapCost:
    """Return the cost of a map of a grid: rank_at[p] is the rank at position p. Raises BadInput."""

def renumber(schedule: Schedule, rank_at: Sequence[int]) -> Schedule:
    """
    Return the same schedule with other rank numbers: rank_at[r] does what rank r did. Raises BadInput unless
    `rank_at` is a permutation of the ranks.
    """

class Control:
    """The shared memory through which the ranks of a launch find each other."""

    @property
    def path(self) -> str:
        """Path under which ranks open the memory, valid until `close`."""

    def tell_ended(self, rank: int) -> None:
        """Tell the other ranks that the process of this rank has ended."""

    def close(self) -> None:
        """Release the memory."""

def create_control(ranks: int) -> Control:
    """Create the control memory for a launch of `ranks` ranks."""

def ucx_library() -> dict[str, Any]:
    """
    Describe the UCX library that onehop uses or would use, and start it: path, version, networks, mode,
    tried.
    """

def mpi_library() -> dict[str, Any]:
    """
    Describe the MPI library that onehop uses or would use: path, abi, version, tried. Does not initialise it.
    """

def library_beside(folder: str, names: Sequence[str]) -> str:
    """
    Return the first library of these names that may be loaded from the folders beside a program in a folder,
    or ''.
    """

def tuning() -> str:
    """Return the tuning in force as JSON."""

def tuning_origin() -> str:
    """Return the file of the tuning in force, or "built in"."""

def built_in_tuning() -> str:
    """Return the built-in tuning as JSON."""

def tuning_file() -> str:
    """Return the file in which `onehop tune` saves its result."""

def tuning_text() -> str | None:
    """Return the text of that file; None if there is none, or it is too long or no regular file."""

def check_tuning(json: str) -> str:
    """Check a tuning; return it as onehop reads it. Raises BadInput if the text is no tuning."""

def set_sleep_early(early: bool) -> None:
    """
    Set whether all waits of the calling thread sleep after one yield, for threads that communicate while
    others compute on all processors.
    """

class BenchEffort:
    """
    The duration of a benchmark.

    Parameters
    ----------
    seconds : float
        Time to measure.
    block_us : float
        Duration of a block of repetitions in microseconds.
    min_rounds : int
        Minimum number of rounds of all candidates.
    """

    def __init__(self, seconds: float = 1.0, block_us: float = 400.0, min_rounds: int = 5) -> None: ...

def bench_ping_pong(
    group: Group, bytes: int, effort: BenchEffort, get: bool, peers: bool, qspi: bool = False
) -> list:
    """
    Measure one message between two ranks, one way. Like most benchmarks, it returns (name, role, microseconds
    of each round) of each candidate.
    """

def bench_exchange(
    group: Group, bytes: int, messages: int, effort: BenchEffort, peers: bool, qspi: bool = False
) -> list:
    """Measure several messages in both directions at once."""

def bench_codec(group: Group, codec: str, step: str, bytes: int, effort: BenchEffort) -> list:
    """Measure the encoding or decoding of `bytes` bytes of float32."""

def bench_su3(group: Group, operation: str, single: bool, sites: int, effort: BenchEffort) -> list:
    """Measure SU(3) algebra on arrays of `sites` sites."""

def bench_dslash(
    group: Group,
    extents: Sequence[int],
    single: bool,
    threads: int,
    variants: Sequence[tuple[str, str, bool, bool, bool, Sequence[int], bool]],
    effort: BenchEffort,
) -> tuple[float, float, list]:
    """
    Measure the staggered hopping term. A variant is (name, role, simd, put, ordering, grid, faces). Returns
    flop and bytes of a rank, and the samples.
    """

class BenchBandwidth:
    """The read bandwidth of all threads of a rank."""

    def __init__(self, group: Group, bytes: int, threads: int) -> None: ...
    def measure(self, times: int) -> float:
        """Return the GB/s of this rank while all ranks read. Collective."""

def bench_peak_gflops(single: bool) -> float:
    """Measure the GFLOP/s of one thread with fused multiply-adds."""

def bench_wilson(
    group: Group,
    extents: Sequence[int],
    grid: Sequence[int],
    precision: str,
    recon: int,
    clover: bool,
    threads: int,
    effort: BenchEffort,
) -> tuple:
    """
    Measure the Wilson hopping term on the sites of one parity. Returns flop and bytes of a rank, and the
    samples.
    """

def bench_smearing(
    group: Group, extents: Sequence[int], kind: str, single: bool, effort: BenchEffort
) -> tuple[float, float, list]:
    """
    Measure the computation of fat and long links. Returns flop (as MILC counts them) and bytes of a rank, and
    the samples.
    """

def bench_halo_exchange(
    group: Group,
    schedule: Schedule,
    arrays: Sequence[Memory],
    effort: BenchEffort,
    peers: bool,
    mock: bool,
    compute_us: float,
    others: list,
    alone: bool = False,
    shared_arrays: bool = False,
) -> list:
    """Measure one round of a halo exchange, from array to array."""

def bench_mpi_version() -> str:
    """Return the version of the MPI library to compare with."""

def bench_why_no_peers(group: Group) -> str:
    """Return why there is no MPI to compare with, or an empty text if there is. Collective."""

def bench_available_memory() -> int:
    """Return the bytes of memory that this process can still allocate."""

def bench_permutation(
    group: Group,
    local_bits: int,
    pairs: Sequence[tuple[int, int]],
    element_bytes: int,
    transport: str,
    effort: BenchEffort,
    peers: bool,
    codecs: Sequence[str] = [],
    alone: bool = False,
) -> list:
    """
    Measure a permutation that swaps pairs of index bits of a distributed state. `alone` leaves out all
    candidates but onehop.
    """

def bench_poisson(group: Group, local: int, enlargement: int, effort: BenchEffort, peers: bool) -> list:
    """Measure one iteration of the Poisson solver."""

def bench_allreduce(
    group: Group,
    bytes: int,
    effort: BenchEffort,
    peers: bool,
    variants: Sequence[tuple[str, str, str, str, int]],
    others: list,
    in_place: bool = False,
) -> list:
    """
    Measure an all-reduce of float32. Returns (name, role, microseconds of each round, error) of each
    candidate. `in_place`: each candidate has one array, which is source and result.
    """

def bench_collective(
    group: Group, kind: str, bytes: int, effort: BenchEffort, peers: bool, others: list
) -> list:
    """
    Measure reduce_scatter, allgather, broadcast or all_to_all of float32. Returns (name, role, microseconds
    of each round) of each candidate.
    """

def bench_collective_lengths(kind: str, bytes: int, ranks: int) -> tuple[int, int]:
    """Return the lengths of the source and the result of such an operation."""

def bench_try_stores(
    group: Group,
    bytes: int,
    both_ways: bool,
    choices: Sequence[tuple[str, int, int, int]],
    effort: BenchEffort,
) -> list:
    """Measure messages of one size with each setting of (stores, chunk_bytes, slot_bytes, slots)."""

def bench_try_waits(
    group: Group, compute_us: float, choices: Sequence[tuple[int, int, int]], effort: BenchEffort
) -> list:
    """Measure steps of a ring with each setting of (spins, spins_oversubscribed, yields)."""

class Condition:
    """
    The condition of an operation: classical bits, read as a number, must equal a value.

    Parameters
    ----------
    clbits : sequence of int
        Classical bits, the least significant first. Empty: no condition.
    value : int
        Number to compare with.
    negated : bool
        If True, the bits must not equal `value`.
    """

    def __init__(self, clbits: Sequence[int], value: int, negated: bool = False) -> None: ...
    @property
    def clbits(self) -> tuple:
        """Classical bits, the least significant first."""

    @property
    def value(self) -> int:
        """Number that the bits are compared with."""

    @property
    def negated(self) -> bool:
        """Whether the bits must not equal `value`."""

    def __bool__(self) -> bool: ...
    def __eq__(self, other: object) -> bool: ...

class Register:
    """A named register: `size` consecutive classical bits, beginning with bit `first`."""

    def __init__(self, name: str, first: int, size: int) -> None: ...
    @property
    def name(self) -> str:
        """Name of the register."""

    @property
    def first(self) -> int:
        """Number of the first classical bit."""

    @property
    def size(self) -> int:
        """Number of classical bits."""

    def __eq__(self, other: object) -> bool: ...

class Operation:
    """
    One operation of a circuit: a gate, a measurement, a reset, a barrier or an assignment.

    Parameters
    ----------
    kind : str
        matrix, diagonal, swap, pauli_rotation, global_phase, measure, reset, barrier or assign.
    name : str
        Name in messages and noise models.
    targets : sequence of int
        Target qubits. The first one is the least significant bit of the matrix's index.
    controls : sequence of int
        Control qubits.
    control_values : int
        Bit i is the value that controls[i] must have.
    values : array of complex128, optional
        Numbers of a matrix (4^k, row-major) or of a diagonal (2^k) on k targets.
    paulis : str
        Letters X, Y or Z of a Pauli rotation, one per target.
    angle : float
        Angle of a Pauli rotation or a global phase in radians.
    clbits : sequence of int
        Classical bits that the operation writes.
    condition : Condition
        Condition under which the operation is executed.

    Raises
    ------
    BadInput
        There is no such kind. `Circuit.validate` checks everything else.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        targets: Sequence[int],
        *,
        controls: Sequence[int] = [],
        control_values: int = 0,
        values: Annotated[
            NDArray[numpy.complex128], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None = None,
        paulis: str = "",
        angle: float = 0.0,
        clbits: Sequence[int] = [],
        condition: Condition = ...,
    ) -> None: ...
    @property
    def kind(self) -> str:
        """Kind of the operation, such as "matrix" or "measure"."""

    @property
    def name(self) -> str:
        """Name in messages and noise models."""

    @name.setter
    def name(self, arg: str, /) -> None: ...
    @property
    def targets(self) -> tuple[int, ...]:
        """Target qubits."""

    @targets.setter
    def targets(self, arg: Sequence[int], /) -> None: ...
    @property
    def controls(self) -> tuple[int, ...]:
        """Control qubits."""

    @controls.setter
    def controls(self, arg: Sequence[int], /) -> None: ...
    @property
    def control_values(self) -> int:
        """Values of the controls: bit i belongs to controls[i]."""

    @control_values.setter
    def control_values(self, arg: int, /) -> None: ...
    @property
    def values(self) -> Annotated[NDArray[numpy.complex128], dict(shape=(None,))]:
        """Copy of the numbers of a matrix (row-major) or of a diagonal."""

    @property
    def paulis(self) -> str:
        """Letters X, Y or Z of a Pauli rotation, one per target."""

    @property
    def angle(self) -> float:
        """Angle of a Pauli rotation or a global phase in radians."""

    @property
    def clbits(self) -> tuple[int, ...]:
        """Classical bits that the operation writes."""

    @clbits.setter
    def clbits(self, arg: Sequence[int], /) -> None: ...
    @property
    def condition(self) -> Condition:
        """Condition under which the operation is executed."""

    @condition.setter
    def condition(self, arg: Condition, /) -> None: ...
    @property
    def angles(self) -> tuple[tuple[float, tuple[tuple[int, float], ...]], ...]:
        """
        Angles of a gate that depends on parameters: a constant, and a factor for each index of a parameter.
        Empty without parameters.
        """

    @angles.setter
    def angles(self, arg: Sequence[tuple[float, Sequence[tuple[int, float]]]], /) -> None: ...
    @property
    def is_gate(self) -> bool:
        """Whether the operation is a gate: no measurement, reset, barrier or assignment."""

    @property
    def is_diagonal(self) -> bool:
        """Whether the operation is a gate with a diagonal matrix."""

    def matrix(self) -> Annotated[NDArray[numpy.complex128], dict(shape=(None,))]:
        """Return the matrix on the k targets, without controls: 4^k numbers, row-major."""

    def __eq__(self, other: object) -> bool: ...
    def __repr__(self) -> str: ...

def parametrised_gate(
    name: str, qubits: Sequence[int], angles: Sequence[tuple[float, Sequence[tuple[int, float]]]]
) -> Operation:
    """
    Make the operation of a named gate whose angles are linear expressions of parameters.

    Parameters
    ----------
    name, qubits
        As for `gate`.
    angles : sequence of (float, sequence of (int, float))
        For each angle a constant, and index and factor of each parameter.

    Raises
    ------
    BadInput
        As for `gate`.
    """

def bind(circuit: Circuit, values: Sequence[float]) -> Circuit:
    """
    Return the circuit with a value for each of its parameters. Raises BadInput for a wrong number of values,
    or one that is not finite.
    """

def with_rotations(circuit: Circuit) -> Circuit:
    """
    Return the circuit with every gate that depends on parameters as rotations about Pauli strings and phases,
    each with one angle. Raises BadInput that names a gate without such a form.
    """

class Circuit:
    """
    A quantum circuit as plain data; see `onehop.quantum.Circuit`, which adds a builder.

    Parameters
    ----------
    qubits, clbits : int
        Number of qubits and of classical bits.
    name : str
        Name in messages and reports.
    """

    def __init__(self, qubits: int, clbits: int = 0, name: str = "") -> None: ...
    @property
    def name(self) -> str:
        """Name in messages and reports."""

    @name.setter
    def name(self, arg: str, /) -> None: ...
    @property
    def qubits(self) -> int:
        """Number of qubits."""

    @property
    def clbits(self) -> int:
        """Number of classical bits."""

    @property
    def hidden_clbits(self) -> int:
        """
        Number of further classical bits for intermediate results. They follow the others, and no outcome
        shows them.
        """

    @hidden_clbits.setter
    def hidden_clbits(self, arg: int, /) -> None: ...
    @property
    def registers(self) -> tuple[Register, ...]:
        """Named registers of classical bits, which separate the bits of an outcome."""

    @registers.setter
    def registers(self, arg: Sequence[Register], /) -> None: ...
    @property
    def operations(self) -> tuple[Operation, ...]:
        """Copies of the operations in program order."""

    def operation(self, index: int) -> Operation:
        """Return a copy of the operation with this index."""

    def add(self, operation: Operation) -> None:
        """
        Append a copy of an operation, without checking it.

        Angles that depend on parameters refer to them by index into `parameters` of this circuit, also in an
        operation of another circuit.
        """

    def require_bound(self) -> None:
        """Raise BadInput that names an operation and its parameter if a gate depends on one."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""

    @parameters.setter
    def parameters(self, arg: Sequence[str], /) -> None: ...
    def validate(self) -> None:
        """Check all operations. Raises BadInput, which names the first invalid operation."""

    def __len__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

def gate(name: str, qubits: Sequence[int], parameters: Sequence[float] = []) -> Operation:
    """
    Make the operation of a named gate of OpenQASM 2 or 3.

    Parameters
    ----------
    name : str
        One of `gate_names`.
    qubits : sequence of int
        Controls first, then targets.
    parameters : sequence of float
        Angles in radians.

    Raises
    ------
    BadInput
        The name is unknown, or the number of qubits or parameters is wrong.
    """

def gate_names() -> list[tuple[str, int, int]]:
    """List the gates that `gate` knows: (name, number of qubits or -1 for any, number of parameters)."""

class Stage:
    """A stage of a placement: an exchange between ranks (or none), then operations on local amplitudes."""

    @property
    def swaps(self) -> tuple[tuple[int, int], ...]:
        """
        Exchange that begins the stage: pairs of a local bit and a bit of the rank number. Empty: no exchange.
        """

    @property
    def bits(self) -> tuple[int, ...]:
        """Bit of each wire after the exchange."""

    @property
    def operations(self) -> tuple[int, ...]:
        """Indices of the circuit's operations in the order of execution."""

    @property
    def fraction_moved(self) -> float:
        """Fraction of a rank's amplitudes that it sends in the exchange."""

class Placement:
    """
    The execution of a circuit in stages: which qubits are local, and when.

    Stages refer to wires: wire w begins as qubit w, and swaps of the circuit rename wires instead of moving
    data.
    """

    @property
    def qubits(self) -> int:
        """Number of qubits."""

    @property
    def ranks(self) -> int:
        """Number of ranks."""

    @property
    def local_bits(self) -> int:
        """Number of bits of an amplitude's place within a rank."""

    @property
    def bytes_per_amplitude(self) -> int:
        """Bytes of an amplitude: 8 or 16."""

    @property
    def wires(self) -> tuple[int, ...]:
        """Wire of each qubit at the end."""

    @property
    def first_bits(self) -> tuple[int, ...]:
        """Bit of each wire at the beginning."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages in the order of execution."""

    @property
    def exchanges(self) -> int:
        """Number of exchanges between ranks."""

    @property
    def fraction_moved(self) -> float:
        """Fraction of a rank's amplitudes that it sends, summed over all exchanges."""

    @property
    def bytes_per_rank(self) -> int:
        """Bytes that each rank sends in all exchanges."""

    def bytes_by_level(self, units: Sequence[int]) -> tuple[int, ...]:
        """
        Divide `bytes_per_rank` by the outermost border that the bytes cross.

        Parameters
        ----------
        units : sequence of int
            Ranks in a unit of each level, powers of two in ascending order. Ranks fill the units one after
            the other.

        Returns
        -------
        tuple of int
            Bytes inside a unit of units[0] ranks, beyond it but inside a unit of units[1] ranks, ..., beyond
            all units.

        Raises
        ------
        BadInput
            The units are no powers of two, or not in ascending order.
        """

    @property
    def baselines(self) -> dict[str, float]:
        """
        Fractions of a rank's amplitudes that simpler strategies would send: gate_by_gate, one_swap_at_a_time
        and lazy_swaps.
        """

    def groups(self, rank: int = 0) -> list[list[dict[str, Any]]]:
        """
        List for each stage the passes that the engine makes over the amplitudes of a rank, as dictionaries.
        """

    def exchanges_at_least(self) -> int:
        """Return a number of exchanges that no placement of these operations can go below."""

    def passes_at_least(self) -> float:
        """Return a number of passes of rank 0 that no choice of tiles can go below with these stages."""

    def passes(self) -> float:
        """Count the passes that the engine makes over the amplitudes of rank 0 in all stages."""

def place(
    circuit: Circuit,
    ranks: int,
    bytes_per_amplitude: int,
    search_seconds: float,
    bits: Sequence[int] = [],
    ranks_per_host: int = 0,
) -> Placement:
    """
    Compute a placement of a validated circuit.

    Parameters
    ----------
    circuit : Circuit
        Circuit to place.
    ranks : int
        Number of ranks, a power of two.
    bytes_per_amplitude : int
        8 or 16.
    search_seconds : float
        Approximate time to search for a placement that moves fewer bytes; 0 uses the heuristic alone.
    bits : sequence of int
        Bit of each qubit of an existing state. Empty: the state begins as |0...0>, and the placement chooses
        the bits.
    ranks_per_host : int
        Number of ranks on each host, a power of two: exchanges then stay inside a host where possible. 0: all
        on one host, or hosts with different numbers of ranks.

    Raises
    ------
    BadInput
        The number of ranks is no power of two, there are fewer amplitudes than ranks, or an operation needs
        more local bits than there are.
    """

def place_simulation(
    circuit: Circuit, ranks: int, bytes_per_amplitude: int, search_seconds: float, ranks_per_host: int = 0
) -> Placement:
    """
    Return the placement with which `simulate` runs a validated circuit, without its final measurements.

    `simulate` does not place the circuit again as long as the placement lives. Parameters and errors are
    those of `place`.
    """

def place_applied(
    circuit: Circuit,
    ranks: int,
    bytes_per_amplitude: int,
    search_seconds: float,
    bits: Sequence[int],
    ranks_per_host: int = 0,
) -> Placement:
    """
    Return the placement with which `State.apply` applies a circuit to a state with these bits.

    `State.apply` does not place the circuit again as long as the placement lives. Parameters and errors are
    those of `place`.
    """

def plan_cache_counters() -> tuple[int, int]:
    """
    Return how many circuits this process has placed for runs, and how often it has found a placement again.
    """

def usable_ranks(circuit: Circuit, ranks: int) -> int:
    """Return the largest power of two, at most `ranks`, over which the state of a circuit can be split."""

class MemoryNeed:
    """The memory that a state needs and the available memory, in bytes."""

    @property
    def per_rank(self) -> int:
        """Bytes of the amplitudes and staging of one rank."""

    @property
    def in_all(self) -> int:
        """Bytes that all ranks need."""

    @property
    def here(self) -> int:
        """Bytes that the ranks on this machine need."""

    @property
    def available(self) -> int:
        """Bytes available to the ranks on this machine together."""

    @property
    def fits(self) -> bool:
        """Whether the available memory suffices."""

def memory_need(qubits: int, ranks: int, precision: str, ranks_per_node: int) -> MemoryNeed:
    """
    Compute the memory need of a state on `ranks` ranks, `ranks_per_node` of which share this machine.
    `precision` is "double" or "single". Not collective.
    """

class PauliSum:
    """
    A weighted sum of Pauli strings.

    Parameters
    ----------
    terms : sequence of (complex, sequence of (int, str))
        Coefficient, and qubit and letter (X, Y or Z) of each factor.

    Raises
    ------
    BadInput
        A letter is not X, Y or Z.
    """

    def __init__(self, terms: Sequence[tuple[complex, Sequence[tuple[int, str]]]]) -> None: ...
    @staticmethod
    def parse(text: str) -> PauliSum:
        """Parse text such as `0.5 X0 Z2 - Y1`. Raises BadInput if the text has another form."""

    @property
    def qubits(self) -> int:
        """Number of qubits that the sum needs: one more than the highest qubit."""

    def __len__(self) -> int: ...
    @property
    def terms(self) -> tuple[tuple[complex, tuple[tuple[int, str], ...]], ...]:
        """Coefficient, and qubit and letter of each factor, of every term."""

class State:
    """
    A state vector that is split over the ranks of a group; see `onehop.quantum.State`.

    Parameters
    ----------
    group : Group
        Ranks that hold the state, a power of two of them.
    qubits : int
        Number of qubits.
    precision : str
        "double" or "single".
    threads : int
        Threads per rank; 0: the rank's share of the cores.
    staging : int
        Maximum number of bytes that an exchange buffers per partner; 0: 8 MiB.

    Raises
    ------
    BadInput
        The number of ranks is no power of two, or exceeds the number of amplitudes.
    Error
        The memory of a machine does not suffice. Nothing has been allocated then.
    """

    def __init__(self, group: Group, qubits: int, precision: str, threads: int, staging: int) -> None: ...
    @property
    def qubits(self) -> int:
        """Number of qubits."""

    @property
    def local_bits(self) -> int:
        """Number of bits of an amplitude's place within a rank."""

    @property
    def ranks(self) -> int:
        """Number of ranks."""

    @property
    def rank(self) -> int:
        """Number of this rank."""

    @property
    def precision(self) -> str:
        """Precision of an amplitude: "double" or "single"."""

    @property
    def bits(self) -> tuple[int, ...]:
        """
        Bit of each qubit in an amplitude's place. Bits from `local_bits` on are those of the rank number.
        """

    @property
    def flips(self) -> int:
        """Bits of an amplitude's place that hold the opposite of their qubit."""

    @property
    def exchanges(self) -> int:
        """Number of exchanges between ranks so far."""

    @property
    def bytes_sent(self) -> int:
        """Bytes that this rank has sent in the exchanges."""

    @property
    def bytes_between_hosts(self) -> int:
        """Part of these bytes that went to ranks on other hosts."""

    @property
    def ranks_per_host(self) -> int:
        """Ranks on each host, for placements on this state; see the function of this name."""

    @ranks_per_host.setter
    def ranks_per_host(self, arg: int, /) -> None: ...
    def local(self) -> object:
        """
        Return a view of this rank's amplitudes, in the order that `bits` and `flips` define. Not collective.
        """

    def set_layout(self, bits: Sequence[int], flips: int) -> None:
        """Declare other `bits` and `flips` without moving any amplitude. Not collective."""

    def set_basis_state(self, index: int) -> None:
        """Set the state to the basis state with this index."""

    def set_amplitudes(
        self,
        amplitudes: Annotated[
            NDArray[numpy.complex128], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        normalize: bool = False,
        check: bool = True,
    ) -> None:
        """
        Set all 2^qubits amplitudes by index. Every rank passes all of them.

        normalize : bool
            Divide them by their norm, which must be 1 otherwise.
        check : bool
            False: take them as they are.
        """

    def run(self, circuit: Circuit, seed: int) -> list[int]:
        """Run a circuit; measurements collapse the state. Returns the classical bits. Collective."""

    def apply(self, circuit: Circuit, search_seconds: float) -> None:
        """Apply a circuit of gates without conditions. Their matrices need not be unitary. Collective."""

    def restore_order(self) -> None:
        """Move the amplitudes so that qubit i is at bit i of an amplitude's place. Collective."""

    def norm_squared(self) -> float:
        """Return <state|state>. Collective."""

    def amplitudes(
        self,
        indices: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> Annotated[NDArray[numpy.complex128], dict(shape=(None,))]:
        """Return the amplitudes with these indices (uint64). Collective."""

    def gather(self) -> Annotated[NDArray[numpy.complex128], dict(shape=(None,))]:
        """Return all 2^qubits amplitudes by index, on every rank. Collective."""

    def probabilities(self, qubits: Sequence[int]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Return the probabilities of the 2^k values of k qubits (at most 24), the first one least significant.
        Collective.
        """

    def inner_product(self, other: State) -> complex:
        """
        Return <self|other>; the layout of `other` becomes that of this state. Raises BadInput if the states
        differ in size, precision or ranks. Collective.
        """

    def reduced_density_matrix(
        self, qubits: Sequence[int]
    ) -> Annotated[NDArray[numpy.complex128], dict(shape=(None,))]:
        """
        Return the reduced density matrix of k qubits (at most 12): 4^k numbers, row-major, the first qubit
        least significant. Collective.
        """

    def expectations(self, sums: Sequence[PauliSum]) -> list[complex]:
        """Return the expectation value of each observable. Collective."""

    def variances(self, sums: Sequence[PauliSum]) -> list[float]:
        """Return the variance of each Hermitian observable. Needs a second state. Collective."""

    def sample(
        self, qubits: Sequence[int], shots: int, seed: int
    ) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """
        Sample a measurement of some qubits (at most 64) `shots` times, without changing the state. Bit i of
        an outcome is the value of qubits[i]. Collective.
        """

class CheckpointState:
    """
    Everything that a simulation needs besides the amplitudes to continue from a point between two steps.
    """

    def __init__(self) -> None: ...
    @property
    def bits(self) -> list[int]:
        """The bit of each wire."""

    @bits.setter
    def bits(self, arg: Sequence[int], /) -> None: ...
    @property
    def done(self) -> list[bool]:
        """For each operation of the circuit, whether this run has done it."""

    @done.setter
    def done(self, arg: Sequence[bool], /) -> None: ...
    @property
    def clbits(self) -> list[bool]:
        """The classical bits of this run, hidden ones included."""

    @clbits.setter
    def clbits(self, arg: Sequence[bool], /) -> None: ...
    @property
    def events(self) -> int:
        """The number of outcomes drawn in this run."""

    @events.setter
    def events(self, arg: int, /) -> None: ...
    @property
    def runs(self) -> int:
        """The number of finished runs."""

    @runs.setter
    def runs(self, arg: int, /) -> None: ...
    @property
    def expectations(self) -> list[complex]:
        """Weighted sums over the finished runs."""

    @expectations.setter
    def expectations(self, arg: Sequence[complex], /) -> None: ...
    @property
    def outcomes(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """The classical bits of every shot in words of 64; 0 for shots whose run is not finished."""

    @outcomes.setter
    def outcomes(
        self,
        arg: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        /,
    ) -> None: ...
    @property
    def waiting(self) -> list[tuple[list[bool], NDArray[numpy.uint64]]]:
        """Unfinished runs: the measurement record so far and the shots. The last one is in progress."""

    def add_waiting(
        self,
        record: Sequence[bool],
        shots: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None:
        """Appends an unfinished run."""

class Outcomes:
    """The outcomes of all shots. An outcome is the value of the classical bits."""

    @property
    def clbits(self) -> int:
        """Number of classical bits."""

    @property
    def values(self) -> list[int]:
        """Distinct outcomes in ascending order; bit i is classical bit i."""

    @property
    def counts(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Number of shots with each of `values`."""

    @property
    def of_shot(self) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]:
        """Index into `values` of each shot's outcome."""

class SimulationResult:
    """The result of `simulate`; the same on every rank."""

    @property
    def outcomes(self) -> Outcomes:
        """Outcomes of the shots."""

    @property
    def expectations(self) -> Annotated[NDArray[numpy.complex128], dict(shape=(None,))]:
        """Expectation value of each observable."""

    @property
    def seconds(self) -> float:
        """Time for everything after the placement."""

    @property
    def ranks(self) -> int:
        """Number of ranks that share the state."""

    @property
    def runs(self) -> int:
        """Number of runs: one for each measurement record."""

    @property
    def exchanges(self) -> int:
        """Number of exchanges between ranks in all runs."""

    @property
    def bytes_moved(self) -> int:
        """Bytes that all ranks together have sent."""

    @property
    def bytes_between_hosts(self) -> int:
        """Part of these bytes that was sent from one host to another."""

    @property
    def passes(self) -> float:
        """Number of passes over a rank's amplitudes."""

    @property
    def engine_seconds(self) -> float:
        """Time of the passes on this rank."""

    @property
    def pass_seconds(self) -> float:
        """Minimum time of a pass, measured on all ranks at once; 0 without `profile`."""

    @property
    def profile(self) -> list[dict[str, Any]]:
        """Timed steps of this rank in the order in which they ended; empty without `profile`."""

    def take_state(self) -> State:
        """Return the state after the last run. It can be taken once."""

def ranks_per_host(group: Group) -> int:
    """
    Return the number of ranks on each host; 0 unless every host has the same number of ranks, a power of two,
    one after the other. Collective; the same on every rank.
    """

def simulate(
    circuit: Circuit,
    group: Group,
    *,
    shots: int = 0,
    seed: int = 0,
    precision: str = "double",
    observables: Sequence[PauliSum] = [],
    threads: int = 0,
    staging: int = 0,
    search_seconds: float = 1.0,
    profile: bool = False,
    progress: object | None = None,
    due: object | None = None,
    keep: object | None = None,
    resume: CheckpointState | None = None,
    restore: object | None = None,
) -> SimulationResult:
    """
    Run a circuit from |0...0>. Collective; see `onehop.quantum.simulate`.

    Parameters
    ----------
    circuit : Circuit
        Circuit to run.
    group : Group
        Ranks that hold the state, a power of two of them.
    shots : int
        Number of samples of the measurement outcomes.
    seed : int
        The same seed gives the same shots on every number of ranks.
    precision : str
        "double" or "single".
    observables : sequence of PauliSum
        Observables to evaluate.
    threads : int
        Threads per rank; 0: the rank's share of the cores.
    staging : int
        Maximum number of bytes that an exchange buffers per partner; 0: 8 MiB.
    search_seconds : float
        Approximate time to search for a placement that moves fewer bytes.
    profile : bool
        Record the time of each pass and exchange.
    progress : callable, optional
        Called as progress(done, total, run, shots_done).
    due : callable, optional
        Returns whether to save a checkpoint now; must agree on all ranks.
    keep : callable, optional
        Saves a checkpoint, called as keep(state, checkpoint_state). Needed with `due`.
    resume : CheckpointState, optional
        Checkpoint to resume from.
    restore : callable, optional
        Writes the checkpoint's amplitudes, called as restore(state). Needed with `resume`.

    Raises
    ------
    BadInput
        The circuit or an option is invalid.
    Error
        The memory does not suffice. Nothing has run then.
    """

class Gradients:
    """Expectation values with their derivatives; the same on every rank."""

    @property
    def values(self) -> list[float]:
        """Expectation value of each observable."""

    @property
    def derivatives(self) -> NDArray[numpy.float64]:
        """Derivatives, one row for each observable."""

    @property
    def forward_seconds(self) -> float:
        """Time from |0...0> to the final state."""

    @property
    def backward_seconds(self) -> float:
        """Time of everything after it."""

    @property
    def backward_passes(self) -> float:
        """Passes over the ket and bra of this rank."""

    @property
    def backward_multiply_adds(self) -> float:
        """Real multiply-adds per amplitude in these passes."""

class Compiled:
    """A circuit that is planned once; see `onehop.quantum.CompiledCircuit`."""

    def __init__(
        self,
        circuit: Circuit,
        group: Group,
        *,
        precision: str = "double",
        threads: int = 0,
        staging: int = 0,
        search_seconds: float = 1.0,
        reproducible: int = 0,
    ) -> None: ...
    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""

    @property
    def ranks(self) -> int:
        """Number of ranks over which a state is split."""

    @property
    def placement(self) -> Placement:
        """Placement of the circuit."""

    def run(self, values: Sequence[float]) -> State:
        """
        Run the circuit with these values of the parameters. The next call overwrites the returned state.
        Collective.
        """

    def expectations(self, values: Sequence[float], sums: Sequence[PauliSum]) -> list[complex]:
        """Run the circuit with these values; return the expectation values of `sums`. Collective."""

    def simulate(
        self, values: Sequence[float], *, shots: int = 0, seed: int = 0, observables: Sequence[PauliSum] = []
    ) -> SimulationResult:
        """
        Run the circuit with these values and its measurements, as the function `simulate` does. Collective.
        """

    def run_many(
        self,
        bindings: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        sums: Sequence[PauliSum],
    ) -> Annotated[NDArray[numpy.complex128], dict(shape=(None, None))]:
        """
        Return the expectation values of `sums` for each row of `bindings`, shape (rows, sums). Collective.
        """

    def gradients(
        self,
        values: Sequence[float],
        sums: Sequence[PauliSum],
        weights: Sequence[float] = [],
        variance: bool = False,
    ) -> Gradients:
        """Return expectation values, or variances, and derivatives by the adjoint method. Collective."""

class TrajectoryResult:
    """The result of `simulate_trajectories`; the same on every rank."""

    @property
    def counts(self) -> list[int]:
        """Number of trajectories of each history, in the order of the histories' first trajectories."""

    @property
    def values(self) -> Annotated[NDArray[numpy.complex128], dict(shape=(None, None))]:
        """Expectation values, shape (histories, observables)."""

    @property
    def outcomes(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, None))]:
        """Classical bits of each shot, in words of 64, shape (shots, words)."""

    @property
    def seconds(self) -> float:
        """Time of everything."""

    @property
    def ranks(self) -> int:
        """Number of ranks that share a state."""

    @property
    def workers(self) -> int:
        """Number of states that are computed at the same time."""

    @property
    def exchanges(self) -> int:
        """Number of exchanges of this rank's states."""

    @property
    def bytes_moved(self) -> int:
        """Bytes that all ranks together have sent."""

    @property
    def bytes_between_hosts(self) -> int:
        """Part of these bytes that was sent from one host to another."""

    def take_state(self) -> State:
        """Return a final state, None on a rank without work. It can be taken once."""

def simulate_trajectories(
    circuit: Circuit,
    channels: Sequence[tuple[Sequence[Sequence[complex]], Sequence[float]]],
    uses: Sequence[tuple[int, int, Sequence[int]]],
    measured: Sequence[tuple[int, int]],
    group: Group,
    *,
    trajectories: int,
    shots: int,
    seed: int,
    precision: str = "double",
    observables: Sequence[PauliSum] = [],
    threads: int = 0,
    memory: int = 0,
) -> TrajectoryResult:
    """
    Run trajectories of a noisy circuit from |0...0>. Collective; see `onehop.quantum.simulate_trajectories`.

    Parameters
    ----------
    circuit : Circuit
        Circuit of gates without conditions.
    channels : list of (list of list of complex, list of float)
        Kraus operators, row by row, and their probabilities if these do not depend on the state.
    uses : list of (int, int, list of int)
        Index of a gate, the channel after it, and its qubits; by ascending gate.
    measured : list of (int, int)
        Classical bit and qubit of each measurement at the end.
    group : Group
        Ranks that divide the work.
    trajectories, shots, seed, precision, observables, threads
        As for `onehop.quantum.simulate_trajectories`.
    memory : int
        Bytes per rank for states; 0: half of what is available.

    Raises
    ------
    BadInput
        The input is invalid.
    Error
        The memory does not suffice.
    """

class Figure:
    """A number of a machine with its origin."""

    @property
    def value(self) -> float:
        """Value in seconds, bytes, or bytes per second; 0 if absent."""

    @property
    def basis(self) -> str:
        """published, measured or guessed."""

    @property
    def source(self) -> str:
        """Paper, data sheet, or the command that measured the number."""

    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class TimeTable:
    """Measured times of something by its bytes, with their origin."""

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """Bytes and seconds; empty if absent."""

    @property
    def basis(self) -> str:
        """published, measured or guessed."""

    @property
    def source(self) -> str:
        """Paper, data sheet, or the command that measured the numbers."""

    def seconds(self, bytes: float) -> float:
        """
        Return the time of so many bytes: between two points its logarithm is linear in that of the bytes.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class Level:
    """One level of a machine: what a message between two of its members costs."""

    @property
    def name(self) -> str:
        """What one unit of the level is called."""

    @property
    def routing(self) -> str:
        """How the members are joined: all_to_all, mesh, fat_tree, torus or dragonfly."""

    @property
    def extents(self) -> tuple[int, ...]:
        """Members per dimension or tier."""

    @property
    def topology(self) -> str:
        """Where the extents, links, interfaces and taper come from."""

    @property
    def latency(self) -> Figure:
        """Seconds between neighbours, from the first byte sent to the first received."""

    @property
    def hop_latency(self) -> Figure:
        """Seconds for every hop beyond the first."""

    @property
    def overhead(self) -> Figure:
        """Seconds that a processor is busy with each message it sends or receives."""

    @property
    def gap(self) -> Figure:
        """Least seconds between two messages of one processor."""

    @property
    def bandwidth(self) -> Figure:
        """Bytes per second of one link in one direction."""

    @property
    def one_way(self) -> TimeTable:
        """Times of a message that flows alone."""

    @property
    def both_ways(self) -> TimeTable:
        """Times of two messages that flow between the same members in opposite directions."""

    @property
    def in_collective(self) -> TimeTable:
        """Times of two short messages in opposite directions inside a collective operation."""

    @property
    def links(self) -> int:
        """Links of one member; on a torus, per direction of each dimension."""

    @property
    def injection(self) -> Figure:
        """Bytes per second that one member sends at most over all its links."""

    @property
    def interfaces(self) -> int:
        """Network interfaces of one member."""

    @property
    def taper(self) -> tuple[float, ...]:
        """Capacity above each tier of a fat tree; 1: full bisection."""

    @property
    def local_bandwidth(self) -> Figure:
        """Bytes per second between two routers of a dragonfly's group in one direction."""

    @property
    def group_bandwidth(self) -> Figure:
        """Bytes per second between two groups of a dragonfly in one direction."""

    @property
    def members(self) -> int:
        """Number of members."""

    def __repr__(self) -> str: ...

class Machine:
    """The description of a computer: nested levels of processors and the links that join them."""

    @property
    def name(self) -> str:
        """Name of the machine's file."""

    @property
    def title(self) -> str:
        """One line that describes the machine."""

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels, innermost first."""

    @property
    def memory_bandwidth(self) -> Figure:
        """Bytes per second of one processor's memory."""

    @property
    def memory(self) -> Figure:
        """Bytes of memory per processor."""

    @property
    def copies(self) -> TimeTable:
        """Times in which a processor copies in its memory."""

    @property
    def updates(self) -> TimeTable:
        """Times in which a processor exchanges two parts of its memory in place, by the bytes of both."""

    @property
    def shared_updates(self) -> TimeTable:
        """Times in which two processors exchange parts of arrays that they share, by the bytes of each."""

    @property
    def packed_piece(self) -> Figure:
        """Seconds for each contiguous piece of a message that a processor gathers or scatters."""

    @property
    def packed_pieces(self) -> TimeTable:
        """Seconds for each contiguous piece of a message, by the bytes of the piece."""

    @property
    def copied_piece(self) -> Figure:
        """Seconds for each contiguous piece that a processor copies inside its memory."""

    @property
    def used_line(self) -> Figure:
        """Seconds to write a word of a cache line before and read it after an exchange; 0 if not known."""

    @property
    def multiply_adds_double(self) -> Figure:
        """Real multiply-adds per second of one processor in double precision; 0 if they are not known."""

    @property
    def multiply_adds_single(self) -> Figure:
        """Real multiply-adds per second of one processor in single precision; 0 if they are not known."""

    @property
    def processors(self) -> int:
        """Number of processors."""

    def job(self, processors: int) -> Machine:
        """
        Return the part of the machine that a job with this many processors gets: the smallest box that holds
        them.
        """

    def to_json(self, indent: int = -1) -> str:
        """Return the machine as JSON text. `indent` below 0 writes one line."""

    @staticmethod
    def from_json(text: str) -> Machine:
        """Read a machine from the text of `to_json`. Raises BadInput with the place of an error."""

    def __eq__(self, other: object, /) -> bool: ...
    def __getstate__(self) -> str: ...
    def __setstate__(self, arg: str, /) -> None: ...
    def __repr__(self) -> str: ...

class RailAssignment:
    """A piece of a message, and the rail that carries it."""

    def __init__(self, from_: int, to: int, rail: int, first_byte: int, bytes: int) -> None: ...
    @property
    def from_(self) -> int:
        """The sender."""

    @property
    def to(self) -> int:
        """The receiver."""

    @property
    def rail(self) -> int:
        """The rail, from 0."""

    @property
    def first_byte(self) -> int:
        """Where the piece begins in its message."""

    @property
    def bytes(self) -> int:
        """Bytes of the piece."""

    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class RailPlan:
    """The rails of the messages that a host sends at the same time."""

    @property
    def assignments(self) -> tuple[RailAssignment, ...]:
        """One entry per message in their order, or one per piece of a message that is cut."""

    @property
    def loads(self) -> tuple[int, ...]:
        """Bytes on each rail."""

    @property
    def busiest(self) -> float:
        """Seconds until the last rail has finished."""

    @property
    def lower_bound(self) -> float:
        """No assignment of the same kind finishes earlier."""

    @property
    def optimal(self) -> bool:
        """Whether `busiest` is proved to be the least possible."""

def assign_rails(
    messages: Sequence[tuple[int, int, int]],
    speeds: Sequence[float],
    rule: str = "optimum",
    cut: bool = False,
    min_piece: int = 1,
) -> RailPlan:
    """Assign the messages (from, to, bytes) of one host to its rails."""

def assign_schedule_rails(
    schedule: Schedule,
    hosts: Sequence[int],
    speeds: Sequence[float],
    rule: str = "optimum",
    cut: bool = False,
    min_piece: int = 1,
) -> list[list[RailAssignment]]:
    """Assign the messages of a schedule that leave their host to rails, round by round."""

class Traffic:
    """The messages of a schedule, without their contents."""

    @property
    def name(self) -> str:
        """Name of the schedule or pattern."""

    @property
    def ranks(self) -> int:
        """Number of ranks."""

    @property
    def rank_bytes(self) -> int:
        """Bytes of the arrays of the rank that has the most; 0 if they are not known."""

    @property
    def rounds(self) -> int:
        """Number of rounds."""

    def messages(self, round: int) -> tuple[tuple[int, int, int], ...]:
        """Return sender, receiver and bytes of every message of a round."""

    def pieces(self, round: int) -> tuple[tuple[int, int], ...]:
        """
        Return the contiguous pieces that the sender gathers and the receiver scatters, for every message of a
        round; 0: one piece.
        """

    @overload
    def on_rails(self, round: int, rails: Sequence[int]) -> Traffic:
        """
        Return the traffic with the messages of a round, in the order of `messages`, on these interfaces.
        """

    @overload
    def on_rails(self, assignments: Sequence[Sequence[RailAssignment]], hosts: Sequence[int] = []) -> Traffic:
        """
        Return the traffic with messages or their pieces on rails: one list of RailAssignment for each round
        of the traffic, or of the schedule that it was made from. Messages without an assignment stay as they
        are; with `hosts`, the host of every rank, only messages inside a host may be without one.
        """

    def listed(self) -> Traffic:
        """Return the same traffic with every message listed."""

    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

def message_traffic(ranks: int, rounds: Sequence[Sequence[tuple[int, int, int]]]) -> Traffic:
    """Make traffic from lists of (sender, receiver, bytes), one per round."""

def assign_traffic_rails(
    traffic: Traffic,
    hosts: Sequence[int],
    speeds: Sequence[float],
    rule: str = "optimum",
    cut: bool = False,
    min_piece: int = 1,
) -> list[list[RailAssignment]]:
    """Assign the messages of traffic that leave their host to rails, round by round."""

def traffic_of(schedule: Schedule) -> Traffic:
    """Return the messages of a schedule."""

def allreduce_traffic(ranks: int, elements: int, type: str, algorithm: str) -> Traffic:
    """Return the messages of an all-reduce without building its schedule."""

def permutation_traffic(
    bits: int,
    local_bits: int,
    permutation: Sequence[int],
    element_bytes: int,
    codec: str,
    type: str,
    shared: bool = False,
) -> Traffic:
    """Return the messages of a permutation of index bits without building its schedule."""

class LinkLoad:
    """The load of one link of a machine."""

    @property
    def name(self) -> str:
        """Name of the link."""

    @property
    def level(self) -> str:
        """Level of the machine."""

    @property
    def bytes(self) -> float:
        """Bytes that cross it."""

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""

    @property
    def alike(self) -> int:
        """Number of links with this load."""

    @property
    def seconds(self) -> float:
        """The shortest time that the load takes."""

class SimulatedRound:
    """One round of a simulation."""

    @property
    def seconds(self) -> float:
        """Seconds from the end of the round before to the end of this one, each on the slowest rank."""

    @property
    def messages(self) -> int:
        """Number of messages."""

    @property
    def bytes(self) -> float:
        """Bytes of the messages."""

    @property
    def schedule_rounds(self) -> tuple[int, ...]:
        """Rounds of the schedule that it stands for."""

class Simulation:
    """The time that a schedule takes on a machine, and the load of its links."""

    @property
    def schedule(self) -> str:
        """Name of the schedule."""

    @property
    def machine(self) -> str:
        """Name of the machine."""

    @property
    def ranks(self) -> int:
        """Number of ranks."""

    @property
    def seconds(self) -> float:
        """Predicted seconds."""

    @property
    def rounds(self) -> tuple[SimulatedRound, ...]:
        """The rounds."""

    @property
    def links(self) -> tuple[LinkLoad, ...]:
        """Loads of the links, busiest first."""

    @property
    def busiest_link(self) -> LinkLoad | None:
        """The link that is busy for longest."""

    @property
    def bytes_by_level(self) -> dict[str, float]:
        """Bytes of messages between members of each level."""

    @property
    def timeline_ranks(self) -> tuple[int, ...]:
        """The rank that each time line shows."""

    def timeline(self, index: int) -> tuple[tuple[float, float, float, float], ...]:
        """
        Return when a rank begins each round, has started its messages, has computed, and ends the round.
        """

    @property
    def seconds_to_simulate(self) -> float:
        """Seconds that the simulation took."""

    @property
    def by_symmetry(self) -> bool:
        """Whether one rank stands for many."""

    def to_json(self, indent: int = -1, max_links: int = 100, max_timelines: int = 64) -> str:
        """Return the result as JSON text."""

    def __repr__(self) -> str: ...

def simulate_traffic(
    traffic: Traffic,
    machine: Machine,
    places: Sequence[int],
    compute: Sequence[float],
    chunk_bytes: int,
    slot_bytes: int,
    slots: int,
    contention: bool,
    accuracy: float,
    progress: Callable[[float], object] | None,
) -> Simulation:
    """Compute how long the traffic takes on a machine. `onehop.machine.simulate` explains it."""

def to_goal(traffic: Traffic, compute_ns: Sequence[int] = [], copy_ns_per_byte: float = 0.0) -> str:
    """Return the traffic as GOAL, the text format of LogGOPSim and ATLAHS."""

def loggops(
    traffic: Traffic,
    latency: int = 2500,
    overhead: int = 1500,
    gap: int = 1000,
    gap_per_byte: int = 6,
    overhead_per_byte: int = 0,
    compute_ns: Sequence[int] = [],
    copy_ns_per_byte: float = 0.0,
) -> list[int]:
    """
    Return the nanosecond at which each rank ends in the model LogGOPS, without links that messages share.
    """
