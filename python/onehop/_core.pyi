"""The C++ library onehop."""

from collections.abc import Callable, Sequence
import os
from typing import Annotated, Any

import numpy
from numpy.typing import NDArray

def _throw(arg0: str, arg1: str, /) -> None: ...
def encoded_bytes(codec: str, type: str, elements: int) -> int:
    """Bytes on the wire for so many numbers of a type."""

def encode(codec: str, type: str, source: object, wire: object) -> None:
    """Encodes all of an array's numbers."""

def decode(codec: str, type: str, wire: object, target: object, add: bool) -> None:
    """Decodes as many numbers as an array has."""

class Slice:
    """
    A region of an array: a strided box or a list of element numbers. It knows no memory.

    The order in which a slice visits its elements is the order in which they travel.
    """

    def __init__(self) -> None:
        """An empty slice."""

    @staticmethod
    def range(offset: int, count: int) -> Slice:
        """`count` elements from number `offset` on."""

    @staticmethod
    def box(offset: int, extents: Sequence[int], strides: Sequence[int]) -> Slice:
        """
        Element (i0, i1, ...) is number offset + sum(i_d * strides[d]); the last index runs fastest.
        """

    @staticmethod
    def subarray(shape: Sequence[int], start: Sequence[int], extents: Sequence[int]) -> Slice:
        """The region [start, start + extents) of a C-ordered array of `shape`."""

    @staticmethod
    def list(indices: Sequence[int]) -> Slice:
        """The elements with these numbers, in this order."""

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
        """Of a box: the number of its first element."""

    @property
    def extents(self) -> tuple[int, ...]:
        """Of a box, in its simplest form."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Of a box, in its simplest form."""

    @property
    def indices(self) -> tuple[int, ...]:
        """Of a list: its element numbers."""

    def runs(self) -> Sequence[tuple[int, int]]:
        """The maximal runs of consecutive elements, in order: (offset, count)."""

    def element_numbers(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """All element numbers, in order, as a new array."""

    def cut(self, first: int, last: int) -> Sequence[Slice]:
        """The elements number [first, last) of this slice, as slices."""

    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class ArraySpec:
    """One array that a schedule moves data of. Every rank has one of each."""

    def __init__(
        self, name: str, elements: int | Sequence[int], element_bytes: int = 8, type: str = "bytes"
    ) -> None:
        """
        `elements`: how many, one value for all ranks or one per rank. `type`: bytes, float32,
        float64, int32, int64.
        """

    @property
    def name(self) -> str:
        """What it is called in messages."""

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""

    @property
    def type(self) -> str:
        """What an element is."""

    @property
    def elements(self) -> tuple[int, ...]:
        """One value for all ranks, or one per rank."""

    def elements_on(self, rank: int) -> int:
        """Number of elements on a rank."""

    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class Place:
    """One end of a transfer: a slice of one array of one rank."""

    def __init__(self, rank: int, array: int, slice: Slice) -> None: ...
    @property
    def rank(self) -> int:
        """The rank."""

    @property
    def array(self) -> int:
        """The number of the array in the schedule."""

    @property
    def slice(self) -> Slice:
        """The elements."""

    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class Transfer:
    """One movement. Between a rank and itself it is a copy inside that rank."""

    def __init__(self, from_: Place, to: Place, combine: str = "replace", codec: str = "raw") -> None:
        """
        `combine`: how what arrives combines with what is there: replace, add, min, max, prod.
        """

    @property
    def from_(self) -> Place:
        """Where it is read."""

    @property
    def to(self) -> Place:
        """Where it is written."""

    @property
    def combine(self) -> str:
        """How it combines with what is there."""

    @property
    def codec(self) -> str:
        """What it looks like on the wire."""

    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class Round:
    """
    Transfers that happen at once: each reads what was there before the round.
    """

    def __init__(self, transfers: Sequence[Transfer]) -> None: ...
    @property
    def permutation(self) -> tuple[int, ...] | None:
        """
        Where each bit of the index goes, if the transfers are all that a permutation of bits moves.
        """

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """The transfers."""

    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...

class Schedule:
    """
    Rounds of transfers between ranks: pure data, no memory, no network. It is counted, verified, saved
    and executed.
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
        `must_cover`: what the rounds together must write; checked by `verify`.
        """

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def ranks(self) -> int:
        """Number of ranks."""

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """The arrays that every rank brings."""

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The rounds, which follow each other."""

    @property
    def must_cover(self) -> tuple[Place, ...]:
        """What the rounds together must write."""

    def part(self, rank: int) -> Schedule:
        """The part that one rank takes part in."""

    def bytes(self, transfer: Transfer) -> int:
        """Bytes on the wire of one of its transfers."""

    def describe(self, round: int, transfer: int) -> str:
        """A transfer in words, as messages name it."""

    def to_json(self, indent: int = -1) -> str:
        """As JSON text; `indent` below 0: on one line."""

    @staticmethod
    def from_json(text: str) -> Schedule:
        """From what `to_json` wrote."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file, as JSON."""

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Schedule:
        """Reads it from a file."""

    def __eq__(self, other: object, /) -> bool: ...
    def __getstate__(self) -> str: ...
    def __setstate__(self, arg: str, /) -> None: ...
    def __repr__(self) -> str: ...

def merge(parts: Sequence[Schedule]) -> Schedule:
    """The whole schedule of its parts (see `Schedule.part`)."""

class PairCount:
    """What one rank sends to another."""

    @property
    def from_(self) -> int:
        """The sender."""

    @property
    def to(self) -> int:
        """The receiver."""

    @property
    def messages(self) -> int:
        """All for one rank in one round is one message."""

    @property
    def bytes(self) -> int:
        """Bytes on the wire."""

    @property
    def pieces(self) -> int:
        """Contiguous pieces that the sender gathers, over all messages."""

    @property
    def pieces_received(self) -> int:
        """Contiguous pieces that the receiver scatters."""

    def __eq__(self, other: object, /) -> bool: ...

class RankCount:
    """What one rank sends and receives."""

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
        """Contiguous pieces that it gathers."""

    @property
    def pieces_received(self) -> int:
        """Contiguous pieces that it scatters."""

    def __eq__(self, other: object, /) -> bool: ...

class Count:
    """What a schedule moves."""

    @property
    def rounds(self) -> int:
        """Rounds in which anything moves."""

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
        """One per rank."""

    @property
    def pairs(self) -> tuple[PairCount, ...]:
        """Pairs with traffic, sorted."""

    def to_json(self, indent: int = -1) -> str:
        """As JSON text; `indent` below 0: on one line."""

    def __repr__(self) -> str: ...

def count(schedule: Schedule) -> Count:
    """What a schedule will move, without moving it."""

class Violation:
    """A rule that a schedule breaks, and where."""

    @property
    def rule(self) -> str:
        """shape, writes, reads or coverage."""

    @property
    def round(self) -> int:
        """The round; -1 for coverage."""

    @property
    def transfer(self) -> int:
        """The transfer in its round; for coverage the index in must_cover."""

    @property
    def other(self) -> int:
        """The transfer it collides with; -1 if none."""

    @property
    def message(self) -> str:
        """What is wrong, in words."""

    def __repr__(self) -> str: ...

def verify(schedule: Schedule, limit: int = 10) -> list[Violation]:
    """
    The first `limit` rules that a schedule breaks; an empty list is the proof that nothing is lost or
    overwritten.
    """

def verify_or_throw(schedule: Schedule) -> None:
    """Raises BadInput with the first violation's message, if there is one."""

class HaloSpec:
    """
    An array split over a grid of ranks, with ghost layers around every block.
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
    def extents(self) -> list[int]: ...
    @property
    def grid(self) -> list[int]: ...
    @property
    def widths(self) -> list[tuple[int, int]]: ...

class HaloBlock:
    """One rank's block of a halo."""

    @property
    def start(self) -> list[int]: ...
    @property
    def extents(self) -> list[int]: ...
    @property
    def shape(self) -> list[int]: ...
    @property
    def coords(self) -> list[int]: ...

def permute_bits(
    bits: int,
    local_bits: int,
    permutation: Sequence[int],
    element_bytes: int,
    codec: str,
    only_rank: int | None = None,
    type: str = "bytes",
) -> Schedule: ...
def permute_bits_one_swap_at_a_time(
    bits: int,
    local_bits: int,
    permutation: Sequence[int],
    element_bytes: int,
    codec: str,
    only_rank: int | None = None,
    type: str = "bytes",
) -> Schedule: ...
def halo(spec: HaloSpec, only_rank: int | None = None) -> Schedule: ...
def halo_block(spec: HaloSpec, rank: int) -> HaloBlock: ...
def allgather(ranks: int, elements: int, element_bytes: int, only_rank: int | None = None) -> Schedule:
    """
    One round in which every rank's block of array 0 goes to the same place on every other rank.
    """

class Memory:
    """The memory of an array, held in place as long as this object lives."""

    def __init__(self, array: object, writable: bool = True, what: str = "the array") -> None: ...
    @property
    def bytes(self) -> int:
        """Its size."""

    @property
    def item_bytes(self) -> int:
        """Bytes of one element."""

    @property
    def address(self) -> int:
        """Where it lies."""

def interrupt_thread(thread: int, interrupted: bool = True) -> None:
    """
    Ends every wait of the thread with this `threading.get_ident()` with an Error, until told otherwise.
    """

class Group:
    """The ranks of a run."""

    def __init__(self, group: Group) -> None: ...
    @staticmethod
    def world() -> Group: ...
    @staticmethod
    def close_world() -> None: ...
    @staticmethod
    def process_is_ending() -> None: ...
    @staticmethod
    def alone() -> Group: ...
    @staticmethod
    def from_allgather(rank: int, size: int, allgather: Callable[[bytes], Sequence[bytes]]) -> Group: ...
    @staticmethod
    def from_mpi_handle(address: int) -> Group: ...
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def origin(self) -> str: ...
    @property
    def valid(self) -> bool: ...
    @property
    def timeout(self) -> float: ...
    @timeout.setter
    def timeout(self, arg: float, /) -> None: ...
    def shares_memory(self, rank: int) -> bool: ...
    @property
    def local_ranks(self) -> list[int]: ...
    def abort(self) -> None: ...
    def barrier(self) -> None: ...
    def allgather(self, mine: bytes) -> list[bytes]: ...
    def split(self, color: int, key: int) -> Group: ...
    def allocate(self, bytes: int) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]: ...

class ChannelSpec:
    """One end of a channel that this rank wants."""

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

class Sender:
    """The sending end of a channel. Not for two threads at once."""

    @property
    def bytes(self) -> int:
        """Bytes of one message."""

    @property
    def peer(self) -> int:
        """The rank at the other end."""

    @property
    def in_place(self) -> bool:
        """
        Whether a message fits in a slot as a whole, so that `slot` may be used.
        """

    @property
    def ready(self) -> bool:
        """Whether the next slot is free."""

    def slot(self) -> numpy.ndarray:
        """
        The memory of the next message, as soon as it may be written. Write there, then call put().
        """

    def put(self, message: Any = None) -> None:
        """Sends what was written into `slot()`, or a copy of `message`."""

class Receiver:
    """The receiving end of a channel. Not for two threads at once."""

    @property
    def bytes(self) -> int:
        """Bytes of one message."""

    @property
    def peer(self) -> int:
        """The rank at the other end."""

    @property
    def in_place(self) -> bool:
        """
        Whether a message fits in a slot as a whole, so that `wait` may be used.
        """

    @property
    def ready(self) -> bool:
        """Whether the next message has arrived."""

    def wait(self) -> numpy.ndarray:
        """
        Waits for the next message and returns it where it lies, read-only; it stays there until release().
        """

    def release(self) -> None:
        """Gives the slot back to the sender."""

    def get(self, array: Any) -> None:
        """Waits for the next message, copies it into `array` and releases it."""

def open_channels(group: Group, specs: Sequence[ChannelSpec], shapers: list, transport: str) -> list: ...
def refuse_channels(group: Group, why: str) -> None:
    """
    Takes part in an open_channels or the making of a plan without having any: the other ranks raise Error.
    """

class PlanCounters:
    """What a plan has moved since it was made."""

    @property
    def runs(self) -> int:
        """Finished runs."""

    @property
    def messages_sent(self) -> int: ...
    @property
    def messages_received(self) -> int: ...
    @property
    def bytes_sent(self) -> int: ...
    @property
    def bytes_received(self) -> int: ...
    @property
    def bytes_local(self) -> int:
        """Bytes copied inside the rank."""

    def __repr__(self) -> str: ...

class Plan:
    """A schedule bound to a group and to memory."""

    def __init__(
        self,
        group: Group,
        schedule: Schedule,
        arrays: Sequence[Memory],
        transport: str,
        slots: int,
        slot_bytes: int,
        chunk_bytes: int,
    ) -> None: ...
    def start(self) -> None:
        """Begins a run and never waits."""

    def finish(self) -> None:
        """Completes the run. Waits with the GIL released; Ctrl-C ends the wait."""

    def run(self) -> None:
        """start() and finish()."""

    def __enter__(self) -> Plan:
        """start()"""

    def __exit__(self, type: object, error: object, trace: object) -> None:
        """finish(), unless the block raised."""

    def test(self) -> bool:
        """
        Moves on what can be moved without waiting; True if finish() would return at once.
        """

    @property
    def counters(self) -> PlanCounters:
        """What it has moved since it was made."""

    @property
    def staging_bytes(self) -> int:
        """Bytes of staging for incoming messages on this rank."""

def array_use(schedule: Schedule, rank: int) -> list[tuple[bool, bool]]:
    """For every array: whether the rank reads it, and writes it."""

def allreduce_schedule(
    ranks: int,
    elements: int,
    type: str = "float32",
    combine: str = "add",
    algorithm: str = "two_shot",
    only_rank: int | None = None,
) -> Schedule:
    """
    What an all-reduce moves: array 0 of all ranks, combined in their order, to array 1 of every rank.
    """

def reduce_scatter_schedule(
    ranks: int, elements: int, type: str = "float32", combine: str = "add", only_rank: int | None = None
) -> Schedule:
    """What a reduce-scatter of blocks of so many elements moves."""

def broadcast_schedule(
    ranks: int, elements: int, element_bytes: int, root: int = 0, only_rank: int | None = None
) -> Schedule:
    """What a broadcast of array 0 moves."""

class Collective:
    """A prepared operation on tensors."""

    def start(self, source: Memory, result: Memory) -> None:
        """Begins and never waits."""

    def finish(self) -> None:
        """Completes it."""

    def run(self, source: Memory, result: Memory) -> None:
        """start() and finish()."""

    def run_parts(self, parts: Sequence[tuple[int, int, int]]) -> None:
        """
        Runs it on (address of the source, address of the result, elements) of several arrays.
        """

    def run_at(self, source: int, result: int) -> None:
        """Runs it on arrays of the right length at these addresses."""

    @property
    def source_bytes(self) -> int: ...
    @property
    def result_bytes(self) -> int: ...
    @property
    def chunk_bytes(self) -> int:
        """Bytes of the pieces in which it travels."""

    @property
    def algorithm(self) -> str:
        """What was chosen for "auto"."""

class Collectives:
    """Prepared paths between all ranks of a group. Making it is collective."""

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
        `shape`: extents that must be the same on every rank, -1 between those of several arrays; empty: any.
        """

    def reduce_scatter(
        self,
        elements: int,
        type: str,
        op: str = "sum",
        codec: str = "raw",
        chunk_bytes: int = 0,
        shape: Sequence[int] = [],
    ) -> Collective: ...
    def allgather(
        self, bytes: Sequence[int], type: str = "bytes", shape: Sequence[int] = []
    ) -> Collective: ...
    def broadcast(
        self, bytes: int, root: int = 0, type: str = "bytes", shape: Sequence[int] = []
    ) -> Collective: ...
    def all_to_all(
        self,
        bytes_to: Sequence[int],
        bytes_from: Sequence[int],
        type: str = "bytes",
        shape: Sequence[int] = [],
    ) -> Collective: ...
    def barrier(self) -> None: ...
    @property
    def counters(self) -> tuple:
        """Operations, bytes sent, bytes received since it was made."""

    @property
    def staging_bytes(self) -> int:
        """
        Memory shared with the other ranks that stands behind the paths to this rank at the moment.
        """

    def compress_above(self, codec: str) -> int | None:
        """
        Bytes of float32 from which an all-reduce takes less time with this codec than raw; None:
        never does it.
        """

def built_in_reduce_tables() -> str:
    """How all-reduces go about each length without a tuning file, as JSON."""

def check_reduce_tables(json: str) -> str:
    """
    The same tables, as onehop reads them. Raises BadInput if they are none.
    """

class PoissonSpec:
    """
    A Poisson problem on a periodic lattice, and the grid of ranks that solves it.
    """

    def __init__(self, extents: Sequence[int], grid: Sequence[int], mass: float, seed: int) -> None: ...
    @property
    def extents(self) -> list[int]: ...
    @property
    def grid(self) -> list[int]: ...
    @property
    def mass(self) -> float: ...
    @property
    def seed(self) -> int: ...

class PoissonBlock:
    """One rank's block of the lattice."""

    @property
    def start(self) -> list[int]:
        """Its first site."""

    @property
    def extents(self) -> list[int]:
        """Its sites per dimension."""

class PoissonTimes:
    """Where one rank's time goes, in seconds per iteration."""

    @property
    def start(self) -> float:
        """Packing and sending."""

    @property
    def interior(self) -> float:
        """While the faces fly."""

    @property
    def wait(self) -> float:
        """For the faces, and unpacking."""

    @property
    def boundary(self) -> float: ...
    @property
    def residual(self) -> float:
        """The sum over the ranks."""

class PoissonResult:
    """What a solve came to."""

    @property
    def iterations(self) -> int: ...
    @property
    def reached_tolerance(self) -> bool: ...
    @property
    def seconds(self) -> float:
        """For all iterations."""

    @property
    def times(self) -> PoissonTimes: ...
    @property
    def history(self) -> list[tuple[int, float]]:
        """Pairs (iteration, |b - M x|); the last is that of the solution."""

class Poisson:
    """Jacobi's method for the Poisson equation on a grid of ranks."""

    def __init__(
        self, group: Group, spec: PoissonSpec, buffers: int, enlargement: int, transport: str
    ) -> None: ...
    def set_source(self, block: Memory) -> None: ...
    def solve(
        self, iterations: int, residual_every: int, tolerance: float, progress: object | None = None
    ) -> PoissonResult: ...
    @property
    def solution(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]: ...
    @property
    def source(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]: ...
    def gather(self, block: Memory) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]: ...
    @property
    def spec(self) -> PoissonSpec: ...
    @property
    def block(self) -> PoissonBlock: ...
    @property
    def bytes_sent(self) -> int: ...

def poisson_grid(extents: Sequence[int], ranks: int) -> list[int]: ...
def poisson_faces(spec: PoissonSpec, enlargement: int = 1) -> Schedule:
    """What one iteration sends, as a schedule."""

def poisson_source(spec: PoissonSpec) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
    """The right-hand side on the whole lattice."""

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
        """
        Return hosts that ranks fill one after the other; host h holds sizes[h] ranks.
        """

    @staticmethod
    def of_equal(hosts: int, per_host: int) -> HostLayout:
        """
        Return hosts that ranks fill one after the other, with as many ranks on each.
        """

    @staticmethod
    def of_group(group: Group) -> HostLayout:
        """
        Return the hosts of a group: ranks that share memory are on one host. Hosts are numbered in the order of
        their first ranks. Collective.
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
    """
    What a map costs. An edge is an ordered pair of positions with traffic.
    """

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
    """
    Map a grid of ranks with messages between nearest neighbours to hosts. Raises BadInput.
    """

def map_schedule(
    schedule: Schedule,
    hosts: HostLayout,
    refine: bool = True,
    seed: int = 1,
    steps: int = -1,
    scotch: bool = False,
) -> RankMap:
    """
    Map the ranks of a schedule to hosts by the bytes between pairs. Raises BadInput.
    """

def map_cost(
    extents: Sequence[int],
    hosts: HostLayout,
    rank_at: Sequence[int],
    periodic: Sequence[bool] = [],
    bytes: Sequence[int] = [],
) -> MapCost:
    """
    Return the cost of a map of a grid: rank_at[p] is the rank at position p. Raises BadInput.
    """

def renumber(schedule: Schedule, rank_at: Sequence[int]) -> Schedule:
    """
    Return the same schedule with other rank numbers: rank_at[r] does what rank r did. Raises BadInput
    unless `rank_at` is a permutation of the ranks.
    """

class LatticeGeometry:
    """
    Where the sites of a periodic lattice lie: on which rank, and where there.
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
        """Sites of the whole lattice, direction 0 first."""

    @property
    def grid(self) -> tuple[int, ...]:
        """Ranks per direction."""

    @property
    def lanes(self) -> int:
        """Sites in a vector."""

    @property
    def width(self) -> int:
        """How far a site's neighbours are."""

    @property
    def parities(self) -> int:
        """2: even and odd sites lie apart."""

    @property
    def ranks(self) -> int: ...
    @property
    def block(self) -> tuple[int, ...]:
        """Sites of a rank, per direction."""

    @property
    def lane_grid(self) -> tuple[int, ...]:
        """Sub-blocks of a rank, per direction."""

    @property
    def sub_block(self) -> tuple[int, ...]:
        """Sites of a lane, per direction."""

    @property
    def vectors(self) -> int:
        """Own vectors of a rank."""

    @property
    def ghosts(self) -> int:
        """Vectors that are kept of other ranks."""

    def origin(self, rank: int) -> tuple[int, ...]:
        """The first site of a rank's block."""

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Where a rank stands in the grid."""

    def origin_parity(self, rank: int) -> int:
        """The parity of the first site of a rank's block."""

    def parity_range(self, parity: int) -> tuple[int, int, int]:
        """
        The vectors of a local parity: the first, the end of the interior, the end.
        """

    @property
    def sites(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None))]:
        """
        The lexicographic number within the block of the site in every vector and lane.
        """

    def neighbours(
        self, distance: int
    ) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None, None, None))]:
        """
        Per vector, direction and side (below, above): a vector's number, and 1 if its lanes are to
        be rotated.
        """

    def lane_source(self, direction: int, side: str) -> tuple[int, ...]:
        """Where each lane of a rotated neighbour comes from."""

    def face(self, direction: int, side: str, parity: int) -> Slice:
        """The vectors of a local parity that another rank needs."""

    def ghost(self, direction: int, side: str, parity: int) -> Slice:
        """Where the vectors of a local parity beyond an end are kept."""

    def lexicographic_pieces(self, direction: int, side: str, parity: int) -> int:
        """The pieces of that face in lexicographic order."""

    def halo(
        self, element_bytes: int, type: str, parity: int | None = None, only_rank: int | None = None
    ) -> Schedule: ...
    @property
    def rank_at(self) -> tuple[int, ...]:
        """The rank at each position of the grid; empty: its own number."""

def lattice_geometry_grid(extents: Sequence[int], ranks: int, width: int) -> list[int]: ...
def lattice_geometry_lanes(
    extents: Sequence[int], grid: Sequence[int], width: int, parities: int, max_lanes: int
) -> int: ...

class LatticeGauge:
    """
    The links of an SU(3) gauge field on a lattice that is split over ranks.
    """

    def __init__(
        self, group: Group, extents: Sequence[int], grid: Sequence[int], rank_at: Sequence[int] = []
    ) -> None:
        """
        Make a field of unit links. `extents` and `grid` list direction x first; `rank_at` is the
        rank at each position of the grid. Collective.
        """
    def set_links(self, links: Memory) -> None: ...
    def get_links(self) -> NDArray[numpy.complex128]: ...
    def set_random(self, seed: int) -> None:
        """Every link evenly from SU(3). Collective."""

    def plaquettes(self) -> tuple[float, float, float]:
        """
        Averages of Re tr / 3: over all plaquettes, those in space, those with time. Collective.
        """

    def link_trace(self) -> float:
        """The average of Re tr / 3 over all links. Collective."""

    def deviation(self) -> tuple[float, tuple[int, ...], int]:
        """
        How far the worst link is from SU(3), its site and direction. Collective.
        """

    def reunitarise(self) -> None:
        """Bring every link back to SU(3). Collective."""

    def heat_bath(self, beta: float, seed: int, sweep: int) -> None:
        """One sweep of the heat bath for the Wilson action. Collective."""

    def over_relax(self) -> None:
        """One sweep of over-relaxation. Collective."""

def lattice_field_strength(gauge: LatticeGauge) -> tuple[float, float, float]:
    """
    Energy by plaquettes and by clover leaves, topological charge. Collective.
    """

def lattice_polyakov_loop(gauge: LatticeGauge) -> complex:
    """The average of tr / 3 of the product of all links in time. Collective."""

def longest_stable_flow_step(dims: int) -> float:
    """The longest step of the flow that is stable on smooth fields."""

class LatticeFlow:
    """The gradient flow of a gauge field by the Wilson action."""

    def __init__(self, gauge: LatticeGauge) -> None: ...
    @property
    def time(self) -> float:
        """How far it has flowed."""

    def step(self, epsilon: float) -> None:
        """One step. Collective."""

    def try_step(self, epsilon: float, tolerance: float) -> float:
        """
        One step, if its error is at most the tolerance; otherwise nothing changes. Returns the
        error. Collective.
        """

    def step_within(self, epsilon: float, tolerance: float) -> tuple[float, float, float]:
        """
        A step of at most `epsilon` with at most this error: its length, its error, the next one's
        length. Collective.
        """

    def field_strength(self) -> tuple[float, float, float]:
        """
        Energy by plaquettes and by clover leaves, topological charge. Collective.
        """

    def copy_to(self, gauge: LatticeGauge) -> None:
        """Put the links into a gauge field. Collective."""

class LatticeHmc:
    """Hybrid Monte Carlo for the Wilson gauge action."""

    def __init__(
        self, gauge: LatticeGauge, beta: float, length: float, steps: int, leapfrog: bool, seed: int
    ) -> None: ...
    def run(self, number: int) -> tuple[float, bool]:
        """One trajectory. Collective."""

    def reverse(self, number: int) -> tuple[float, float]:
        """
        A trajectory there and back: what is left of the energy's difference and of the links'. Collective.
        """

    def copy_to(self, gauge: LatticeGauge) -> None:
        """Put the links into a gauge field. Collective."""

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
    """Fat and long links of this rank's block. Collective."""

def lattice_hisq_links(gauge: LatticeGauge, naik_epsilon: float, precision: str) -> tuple:
    """Fat, long and reunitarised links of this rank's block. Collective."""

def lattice_path_weights(name: str, parameter: float) -> tuple:
    """Conventional weights: of one, three, five, seven links, Lepage, long links."""

def lattice_smear_ape(gauge: LatticeGauge, alpha: float, steps: int, space_only: bool) -> None:
    """APE smearing in place. Collective."""

def lattice_smear_stout(gauge: LatticeGauge, rho: float, steps: int, space_only: bool) -> None:
    """Stout smearing in place. Collective."""

def lattice_multiply_staggered_phases(
    links: Annotated[NDArray[numpy.complex128], dict(order="C", device="cpu")],
    geometry: LatticeGeometry,
    rank: int,
    length: int,
    antiperiodic: bool,
    milc_phases: bool,
) -> None:
    """
    Multiplies a rank's block of links with the staggered phases, in place.
    """

class LatticeSolverReport:
    """What a solve did. Times, flops and bytes are those of this rank."""

    @property
    def iterations(self) -> int: ...
    @property
    def reliable_updates(self) -> int:
        """How often the residual was recomputed in the outer precision."""

    @property
    def residuals(self) -> list[float]:
        """|b - M x| / |b| of each solution."""

    @property
    def true_residual(self) -> float:
        """The largest of the residuals."""

    @property
    def converged(self) -> bool: ...
    @property
    def seconds(self) -> float: ...
    @property
    def communication_seconds(self) -> float: ...
    @property
    def flops(self) -> float: ...
    @property
    def bytes(self) -> float: ...

class LatticeStaggered:
    """The staggered operator of a gauge field, or of fat and long links."""

    def __init__(
        self, gauge: LatticeGauge, antiperiodic: bool, lanes: int, threads: int, milc_phases: bool
    ) -> None: ...
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
        """With faces and sums by "MPI", or "scalar" loops."""

    def link_bytes(self, precision: str) -> int:
        """Memory that this rank's links take as applications read them."""

    @property
    def lanes(self) -> int:
        """Sites in a vector."""

    @property
    def threads(self) -> int:
        """Threads of a rank."""

    @property
    def has_long_links(self) -> bool: ...
    def dslash(self, fields: Memory, precision: str, parity: int) -> NDArray[numpy.complex128]: ...
    def apply(
        self, fields: Memory, mass: float, dagger: bool, precision: str
    ) -> NDArray[numpy.complex128]: ...
    def apply_mdagm(self, fields: Memory, mass: float, precision: str) -> NDArray[numpy.complex128]: ...
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
    ) -> tuple[NDArray[numpy.complex128], LatticeSolverReport]: ...

class LatticeWilson:
    """Wilson quarks on a gauge field, with or without the clover term."""

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
    ) -> None: ...
    @property
    def lanes(self) -> int:
        """Sites in a vector."""

    @property
    def threads(self) -> int:
        """How many work on this rank's block."""

    def dslash(self, fields: Memory, dagger: bool) -> NDArray[numpy.complex128]: ...
    def apply(self, fields: Memory, dagger: bool) -> NDArray[numpy.complex128]: ...
    def precondition(self, fields: Memory, dagger: bool) -> NDArray[numpy.complex128]: ...
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
    ) -> tuple[NDArray[numpy.complex128], LatticeSolverReport]: ...

def lattice_clover_leaves(gauge: LatticeGauge) -> NDArray[numpy.complex128]:
    """Of every site of the block: [site][plane][row][column]. Collective."""

def lattice_clover_blocks(clover_leaves: Memory, weight: float, inverse: bool) -> NDArray[numpy.complex128]:
    """The clover term's blocks, [site][half][row][column]."""

def simd_levels() -> list[str]:
    """
    The instruction sets that this processor supports, the best last: values of ONEHOP_SIMD.
    """

def simd_level() -> str:
    """
    The instruction set that every kernel uses. Raises BadInput if ONEHOP_SIMD names none that this
    processor supports.
    """

def environment_variables() -> list[dict[str, str]]:
    """
    The table of environment variables, sorted by name: name, values, default, meaning, read_in, set_by.
    """

def environment_number(name: str) -> float | None:
    """
    The value of an environment variable that is a number, or None if it is unset or empty. Raises BadInput for an
    invalid value.
    """

def check_environment() -> None:
    """
    Checks ONEHOP_SIMD and all environment variables that are numbers. Raises BadInput for an invalid value.
    """

def lattice_targets() -> list[str]:
    """Kinds of processors whose kernels this one can run."""

def lattice_use_target(name: str) -> None:
    """
    Kernels for another kind of processor than the best, in this process; "" is the best.
    """

class Control:
    """The memory through which the ranks of a launch find each other."""

    @property
    def path(self) -> str:
        """Where ranks find it, as long as it is open."""

    def tell_ended(self, rank: int) -> None:
        """Tells the other ranks that this one's process has ended."""

    def close(self) -> None:
        """Gives the memory back."""

def create_control(ranks: int) -> Control: ...
def mpi_library() -> dict[str, Any]:
    """The MPI library that is, or would be, used. Does not initialise it."""

def tuning() -> str:
    """The tuning in force, as JSON."""

def tuning_origin() -> str:
    """ "built in", or the file that it was read from."""

def built_in_tuning() -> str:
    """The built-in one, as JSON."""

def tuning_file() -> str:
    """Where `onehop tune` keeps its answer."""

def check_tuning(json: str) -> str:
    """The same tuning, as onehop reads it. Raises BadInput if it is none."""

class BenchEffort:
    """How long a benchmark measures."""

    def __init__(self, seconds: float = 1.0, block_us: float = 400.0, min_rounds: int = 5) -> None: ...

def bench_ping_pong(
    group: Group, bytes: int, effort: BenchEffort, get: bool, peers: bool, qspi: bool = False
) -> list:
    """One message between two ranks, one way."""

def bench_exchange(
    group: Group, bytes: int, messages: int, effort: BenchEffort, peers: bool, qspi: bool = False
) -> list:
    """Several messages each way at once."""

def bench_codec(group: Group, codec: str, step: str, bytes: int, effort: BenchEffort) -> list:
    """Encoding or decoding so many bytes of float32."""

def bench_su3(group: Group, operation: str, single: bool, sites: int, effort: BenchEffort) -> list:
    """Algebra of SU(3) on arrays of so many sites."""

def bench_dslash(
    group: Group,
    extents: Sequence[int],
    single: bool,
    threads: int,
    variants: Sequence[tuple[str, str, bool, bool, bool, Sequence[int], bool]],
    effort: BenchEffort,
) -> tuple[float, float, list]:
    """
    The staggered hopping term. A variant is (name, role, simd, put, ordering, grid, faces).
    """

class BenchBandwidth:
    """What reading brings to all threads of a rank."""

    def __init__(self, group: Group, bytes: int, threads: int) -> None: ...
    def measure(self, times: int) -> float:
        """GB/s of this rank while all read. Collective."""

def bench_peak_gflops(single: bool) -> float:
    """Of one thread, in fused steps."""

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
    One application of the Wilson hopping term to sites of one parity: flop and bytes of a rank, and samples.
    """

def bench_smearing(
    group: Group, extents: Sequence[int], kind: str, single: bool, effort: BenchEffort
) -> tuple[float, float, list]:
    """
    Fat and long links: flop, as MILC counts them, and bytes of a rank, and samples.
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
) -> list:
    """One round of a schedule, from array to array."""

def bench_mpi_version() -> str:
    """The MPI to compare with."""

def bench_why_no_peers(group: Group) -> str:
    """Why there is no MPI to compare with; empty if there is. Collective."""

def bench_available_memory() -> int:
    """Bytes of memory that this process can still get."""

def bench_permutation(
    group: Group,
    local_bits: int,
    pairs: Sequence[tuple[int, int]],
    element_bytes: int,
    transport: str,
    effort: BenchEffort,
    peers: bool,
    codecs: Sequence[str] = [],
) -> list:
    """
    Pairs of a local bit and one of the rank's change places in a state of a power of two of ranks.
    """

def bench_poisson(group: Group, local: int, enlargement: int, effort: BenchEffort, peers: bool) -> list:
    """One iteration of the Poisson solver."""

def bench_allreduce(
    group: Group,
    bytes: int,
    effort: BenchEffort,
    peers: bool,
    variants: Sequence[tuple[str, str, str, str, int]],
    others: list,
) -> list:
    """
    A sum of float32 over all ranks: (name, role, microseconds of each round, error) of every candidate.
    """

def bench_try_stores(
    group: Group,
    bytes: int,
    both_ways: bool,
    choices: Sequence[tuple[str, int, int, int]],
    effort: BenchEffort,
) -> list:
    """
    Messages of one size with other settings of (stores, chunk_bytes, slot_bytes, slots).
    """

def bench_try_waits(
    group: Group, compute_us: float, choices: Sequence[tuple[int, int, int]], effort: BenchEffort
) -> list:
    """Steps of a ring with other settings of (spins, spins_oversubscribed, yields)."""

class Condition:
    """
    Whether an operation is done: classical bits, read as a number, compared with a value.
    """

    def __init__(self, clbits: Sequence[int], value: int, negated: bool = False) -> None: ...
    @property
    def clbits(self) -> tuple: ...
    @property
    def value(self) -> int: ...
    @property
    def negated(self) -> bool:
        """Done when the number is another one."""

    def __bool__(self) -> bool: ...
    def __eq__(self, other: object) -> bool: ...

class Register:
    """A named run of classical bits."""

    def __init__(self, name: str, first: int, size: int) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def first(self) -> int: ...
    @property
    def size(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

class Operation:
    """One operation of a circuit."""

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
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @name.setter
    def name(self, arg: str, /) -> None: ...
    @property
    def targets(self) -> tuple[int, ...]: ...
    @targets.setter
    def targets(self, arg: Sequence[int], /) -> None: ...
    @property
    def controls(self) -> tuple[int, ...]: ...
    @controls.setter
    def controls(self, arg: Sequence[int], /) -> None: ...
    @property
    def control_values(self) -> int:
        """Bit i: the value that controls[i] must have."""

    @control_values.setter
    def control_values(self, arg: int, /) -> None: ...
    @property
    def values(self) -> Annotated[NDArray[numpy.complex128], dict(shape=(None,))]:
        """The numbers of a matrix (row-major) or diagonal, copied."""

    @property
    def paulis(self) -> str: ...
    @property
    def angle(self) -> float: ...
    @property
    def clbits(self) -> tuple[int, ...]: ...
    @clbits.setter
    def clbits(self, arg: Sequence[int], /) -> None: ...
    @property
    def condition(self) -> Condition: ...
    @condition.setter
    def condition(self, arg: Condition, /) -> None: ...
    @property
    def angles(self) -> tuple[tuple[float, tuple[tuple[int, float], ...]], ...]:
        """Angles that depend on parameters: a constant, and a factor for each index of a parameter."""
    @angles.setter
    def angles(self, arg: Sequence[tuple[float, Sequence[tuple[int, float]]]], /) -> None: ...
    @property
    def is_gate(self) -> bool: ...
    @property
    def is_diagonal(self) -> bool: ...
    def matrix(self) -> Annotated[NDArray[numpy.complex128], dict(shape=(None,))]:
        """The matrix on its targets, controls left out: 4^k numbers, row-major."""

    def __eq__(self, other: object) -> bool: ...
    def __repr__(self) -> str: ...

class Circuit:
    """A quantum circuit as plain data."""

    def __init__(self, qubits: int, clbits: int = 0, name: str = "") -> None: ...
    @property
    def name(self) -> str: ...
    @name.setter
    def name(self, arg: str, /) -> None: ...
    @property
    def qubits(self) -> int: ...
    @property
    def clbits(self) -> int: ...
    @property
    def hidden_clbits(self) -> int:
        """Further classical bits after those of the source."""

    @hidden_clbits.setter
    def hidden_clbits(self, arg: int, /) -> None: ...
    @property
    def registers(self) -> tuple[Register, ...]: ...
    @registers.setter
    def registers(self, arg: Sequence[Register], /) -> None: ...
    @property
    def operations(self) -> tuple[Operation, ...]:
        """Copies, in program order."""

    def operation(self, index: int) -> Operation: ...
    def add(self, operation: Operation) -> None:
        """
        Append a copy of an operation, without checking it.

        Angles that depend on parameters refer to them by index into `parameters` of this circuit, also in an
        operation of another circuit.
        """

    def require_bound(self) -> None:
        """Raises BadInput if a gate depends on a parameter."""
    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
    @parameters.setter
    def parameters(self, arg: Sequence[str], /) -> None: ...
    def validate(self) -> None:
        """Raises BadInput that names the operation that cannot be."""

    def __len__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

def gate(name: str, qubits: Sequence[int], parameters: Sequence[float] = []) -> Operation:
    """The operation of a named gate."""

def parametrised_gate(
    name: str, qubits: Sequence[int], angles: Sequence[tuple[float, Sequence[tuple[int, float]]]]
) -> Operation:
    """The operation of a named gate whose angles depend on parameters."""

def bind(circuit: Circuit, values: Sequence[float]) -> Circuit:
    """The circuit with a value for each of its parameters."""

def with_rotations(circuit: Circuit) -> Circuit:
    """The circuit with parametrised gates as rotations and phases."""

class Gradients:
    """Expectation values with their derivatives."""

    @property
    def values(self) -> list[float]: ...
    @property
    def derivatives(self) -> NDArray[numpy.float64]: ...
    @property
    def forward_seconds(self) -> float: ...
    @property
    def backward_seconds(self) -> float: ...
    @property
    def backward_passes(self) -> float: ...
    @property
    def backward_multiply_adds(self) -> float: ...

class Compiled:
    """A circuit that is planned once."""

    def __init__(
        self,
        circuit: Circuit,
        group: Group,
        *,
        precision: str = "double",
        threads: int = 0,
        staging: int = 0,
        search_seconds: float = 1.0,
    ) -> None: ...
    @property
    def parameters(self) -> tuple[str, ...]: ...
    @property
    def ranks(self) -> int: ...
    @property
    def placement(self) -> Placement: ...
    def run(self, values: Sequence[float]) -> State: ...
    def run_many(
        self, bindings: NDArray[numpy.float64], sums: Sequence[PauliSum]
    ) -> NDArray[numpy.complex128]: ...
    def simulate(
        self,
        values: Sequence[float],
        *,
        shots: int = 0,
        seed: int = 0,
        observables: Sequence[PauliSum] = [],
    ) -> SimulationResult: ...
    def gradients(
        self,
        values: Sequence[float],
        sums: Sequence[PauliSum],
        weights: Sequence[float] = [],
        variance: bool = False,
    ) -> Gradients: ...

class TrajectoryResult:
    """The result of `simulate_trajectories`; the same on every rank."""

    @property
    def counts(self) -> list[int]: ...
    @property
    def values(self) -> NDArray[numpy.complex128]: ...
    @property
    def outcomes(self) -> NDArray[numpy.uint64]: ...
    @property
    def seconds(self) -> float: ...
    @property
    def ranks(self) -> int: ...
    @property
    def workers(self) -> int: ...
    @property
    def exchanges(self) -> int: ...
    @property
    def bytes_moved(self) -> int: ...
    @property
    def bytes_between_hosts(self) -> int: ...
    def take_state(self) -> State | None: ...

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
    """Run trajectories of a noisy circuit from |0...0>. Collective."""

def gate_names() -> list[tuple[str, int, int]]:
    """
    Every name that `gate` knows, with its numbers of qubits (-1: any) and parameters.
    """

class Stage:
    """
    An exchange between ranks (or none), and operations that every rank does by itself.
    """

    @property
    def swaps(self) -> tuple[tuple[int, int], ...]:
        """
        The exchange before it: pairs of a local bit and a bit of the rank's number.
        """

    @property
    def bits(self) -> tuple[int, ...]:
        """The bit of each wire after the exchange."""

    @property
    def operations(self) -> tuple[int, ...]:
        """Operations of the circuit, in the order of execution."""

    @property
    def fraction_moved(self) -> float:
        """Of a rank's amplitudes, in the exchange."""

class Placement:
    """Which qubits are local when."""

    @property
    def qubits(self) -> int: ...
    @property
    def ranks(self) -> int: ...
    @property
    def local_bits(self) -> int: ...
    @property
    def bytes_per_amplitude(self) -> int: ...
    @property
    def wires(self) -> tuple[int, ...]:
        """The wire that is each qubit at the end."""

    @property
    def first_bits(self) -> tuple[int, ...]:
        """Where each wire lies at the beginning."""

    @property
    def stages(self) -> tuple[Stage, ...]: ...
    @property
    def exchanges(self) -> int: ...
    @property
    def fraction_moved(self) -> float: ...
    @property
    def bytes_per_rank(self) -> int: ...
    def bytes_by_level(self, units: Sequence[int]) -> tuple[int, ...]:
        """
        Divide `bytes_per_rank` by the outermost border that the bytes cross: inside a unit of units[0] ranks, ...,
        beyond all units.
        """

    @property
    def baselines(self) -> dict[str, float]:
        """What other rules would move, as fractions."""

    def groups(self, rank: int = 0) -> list[list[dict[str, Any]]]:
        """
        List for each stage the passes that the engine makes over the amplitudes of a rank, as dictionaries.
        """

    def passes(self) -> float: ...

def place(
    circuit: Circuit,
    ranks: int,
    bytes_per_amplitude: int,
    search_seconds: float,
    bits: Sequence[int] = [],
    ranks_per_host: int = 0,
) -> Placement: ...
def place_simulation(
    circuit: Circuit, ranks: int, bytes_per_amplitude: int, search_seconds: float, ranks_per_host: int = 0
) -> Placement: ...
def place_applied(
    circuit: Circuit,
    ranks: int,
    bytes_per_amplitude: int,
    search_seconds: float,
    bits: Sequence[int],
    ranks_per_host: int = 0,
) -> Placement: ...
def plan_cache_counters() -> tuple[int, int]: ...
def usable_ranks(circuit: Circuit, ranks: int) -> int: ...

class MemoryNeed:
    """What a state needs and what there is, in bytes."""

    @property
    def per_rank(self) -> int: ...
    @property
    def in_all(self) -> int: ...
    @property
    def here(self) -> int:
        """Of the ranks on this machine."""

    @property
    def available(self) -> int:
        """To the ranks of this machine together."""

    @property
    def fits(self) -> bool: ...

def memory_need(qubits: int, ranks: int, precision: str, ranks_per_node: int) -> MemoryNeed: ...

class PauliSum:
    """A weighted sum of Pauli strings."""

    def __init__(self, terms: Sequence[tuple[complex, Sequence[tuple[int, str]]]]) -> None: ...
    @staticmethod
    def parse(text: str) -> PauliSum: ...
    @property
    def qubits(self) -> int:
        """One more than the highest qubit."""

    def __len__(self) -> int: ...
    @property
    def terms(self) -> tuple[tuple[complex, tuple[tuple[int, str], ...]], ...]: ...

class State:
    """A state vector split over the ranks of a group."""

    def __init__(self, group: Group, qubits: int, precision: str, threads: int, staging: int) -> None: ...
    @property
    def qubits(self) -> int: ...
    @property
    def local_bits(self) -> int: ...
    @property
    def ranks(self) -> int: ...
    @property
    def rank(self) -> int: ...
    @property
    def precision(self) -> str: ...
    @property
    def bits(self) -> tuple[int, ...]: ...
    @property
    def flips(self) -> int: ...
    @property
    def exchanges(self) -> int: ...
    @property
    def bytes_sent(self) -> int: ...
    @property
    def bytes_between_hosts(self) -> int:
        """Part of these bytes that went to ranks on other hosts."""

    @property
    def ranks_per_host(self) -> int:
        """Ranks on each host, for placements on this state; see the function of this name."""

    @ranks_per_host.setter
    def ranks_per_host(self, arg: int, /) -> None: ...
    def local(self) -> object:
        """This rank's amplitudes themselves, where `bits` and `flips` say."""

    def set_layout(self, bits: Sequence[int], flips: int) -> None: ...
    def set_basis_state(self, index: int) -> None: ...
    def set_amplitudes(
        self,
        amplitudes: Annotated[
            NDArray[numpy.complex128], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None: ...
    def run(self, circuit: Circuit, seed: int) -> list[int]: ...
    def apply(self, circuit: Circuit, search_seconds: float) -> None:
        """
        Applies gates without conditions as they are: their matrices need not be unitary.
        """

    def restore_order(self) -> None: ...
    def norm_squared(self) -> float: ...
    def amplitudes(
        self,
        indices: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> Annotated[NDArray[numpy.complex128], dict(shape=(None,))]: ...
    def gather(self) -> Annotated[NDArray[numpy.complex128], dict(shape=(None,))]: ...
    def probabilities(
        self, qubits: Sequence[int]
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...
    def inner_product(self, other: State) -> complex: ...
    def reduced_density_matrix(
        self, qubits: Sequence[int]
    ) -> Annotated[NDArray[numpy.complex128], dict(shape=(None,))]: ...
    def expectations(self, sums: Sequence[PauliSum]) -> list[complex]: ...
    def variances(self, sums: Sequence[PauliSum]) -> list[float]: ...
    def sample(
        self, qubits: Sequence[int], shots: int, seed: int
    ) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]: ...

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
        """
        The classical bits of every shot in words of 64; 0 for shots whose run is not finished.
        """

    @outcomes.setter
    def outcomes(
        self,
        arg: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        /,
    ) -> None: ...
    @property
    def waiting(self) -> list[tuple[list[bool], NDArray[numpy.uint64]]]:
        """
        Unfinished runs: the measurement record so far and the shots. The last one is in progress.
        """

    def add_waiting(
        self,
        record: Sequence[bool],
        shots: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None:
        """Appends an unfinished run."""

class Outcomes:
    """What measurements gave."""

    @property
    def clbits(self) -> int: ...
    @property
    def values(self) -> list[int]:
        """The distinct outcomes, ascending; bit i is classical bit i."""

    @property
    def counts(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Of each value."""

    @property
    def of_shot(self) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]:
        """The place in `values` of each shot's outcome."""

class SimulationResult:
    """What a simulation came to."""

    @property
    def outcomes(self) -> Outcomes: ...
    @property
    def expectations(self) -> Annotated[NDArray[numpy.complex128], dict(shape=(None,))]: ...
    @property
    def seconds(self) -> float: ...
    @property
    def ranks(self) -> int: ...
    @property
    def runs(self) -> int: ...
    @property
    def exchanges(self) -> int: ...
    @property
    def bytes_moved(self) -> int: ...
    @property
    def bytes_between_hosts(self) -> int:
        """Part of these bytes that was sent from one host to another."""

    @property
    def passes(self) -> float: ...
    @property
    def engine_seconds(self) -> float: ...
    @property
    def pass_seconds(self) -> float: ...
    @property
    def profile(self) -> list[dict[str, Any]]:
        """What took the time on this rank, in order; empty unless asked for."""

    def take_state(self) -> State:
        """The state, once."""

def ranks_per_host(group: Group) -> int:
    """
    Return the number of ranks on each host; 0 unless every host has the same number of ranks, a power of
    two, one after the other. Collective; the same on every rank.
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
) -> SimulationResult: ...

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

class Machine:
    """
    The description of a computer: nested levels of processors and the links that join them.
    """

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
    def multiply_adds_double(self) -> Figure:
        """
        Real multiply-adds per second of one processor in double precision; 0 if they are not known.
        """

    @property
    def multiply_adds_single(self) -> Figure:
        """
        Real multiply-adds per second of one processor in single precision; 0 if they are not known.
        """

    @property
    def processors(self) -> int:
        """Number of processors."""

    def job(self, processors: int) -> Machine:
        """
        Return the part of the machine that a job with this many processors gets: the smallest box
        that holds them.
        """

    def to_json(self, indent: int = -1) -> str:
        """Return the machine as JSON text. `indent` below 0 writes one line."""

    @staticmethod
    def from_json(text: str) -> Machine:
        """
        Read a machine from the text of `to_json`. Raises BadInput with the place of an error.
        """

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
        """
        One entry per message in their order, or one per piece of a message that is cut.
        """

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
    """
    Assign the messages of a schedule that leave their host to rails, round by round.
    """

class Level:
    """
    One level of a machine: what a message between two of its members costs.
    """

    @property
    def name(self) -> str:
        """What one unit of the level is called."""

    @property
    def routing(self) -> str:
        """
        How the members are joined: all_to_all, mesh, fat_tree, torus or dragonfly.
        """

    @property
    def extents(self) -> tuple[int, ...]:
        """Members per dimension or tier."""

    @property
    def topology(self) -> str:
        """Where the extents, links, interfaces and taper come from."""

    @property
    def latency(self) -> Figure:
        """
        Seconds between neighbours, from the first byte sent to the first received.
        """

    @property
    def hop_latency(self) -> Figure:
        """Seconds for every hop beyond the first."""

    @property
    def overhead(self) -> Figure:
        """
        Seconds that a processor is busy with each message it sends or receives.
        """

    @property
    def gap(self) -> Figure:
        """Least seconds between two messages of one processor."""

    @property
    def bandwidth(self) -> Figure:
        """Bytes per second of one link in one direction."""

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
        """
        Bytes per second between two routers of a dragonfly's group in one direction.
        """

    @property
    def group_bandwidth(self) -> Figure:
        """Bytes per second between two groups of a dragonfly in one direction."""

    @property
    def members(self) -> int:
        """Number of members."""

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
    bits: int, local_bits: int, permutation: Sequence[int], element_bytes: int, codec: str, type: str
) -> Traffic:
    """
    Return the messages of a permutation of index bits without building its schedule.
    """

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
        """
        Seconds from the end of the round before to the end of this one, each on the slowest rank.
        """

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
    """
    The time that a schedule takes on a machine, and the load of its links.
    """

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
    """
    Compute how long the traffic takes on a machine. `onehop.machine.simulate` explains it.
    """

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
        """
        Bytes of the arrays of the rank that has the most; 0 if they are not known.
        """

    @property
    def rounds(self) -> int:
        """Number of rounds."""

    def messages(self, round: int) -> tuple[tuple[int, int, int], ...]:
        """Return sender, receiver and bytes of every message of a round."""

    def on_rails(self, round: int, rails: Sequence[int]) -> Traffic:
        """
        Return the traffic with the messages of a round, in the order of `messages`, on these interfaces.
        """

    def listed(self) -> Traffic:
        """Return the same traffic with every message listed."""

    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str: ...
