"""`Plan`: a schedule bound to a group and to arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onehop import _core
from onehop._core import PlanCounters, RailAssignment, Schedule
from onehop.arguments import instance, items, listed_rails, yes_or_no
from onehop.array_memory import NUMBER_TYPES, element_type, require_unmasked
from onehop.channel import heard_by_all
from onehop.device.arrays import device_array
from onehop.device.plans import DevicePlan
from onehop.error import BadInput
from onehop.group import Group
from onehop.options import Options, filled
from onehop.text import counted

if TYPE_CHECKING:
    from onehop._keywords import PlanKeywords, Unpack

__all__ = ["Plan", "PlanCounters"]


@dataclass(kw_only=True)
class PlanOptions(Options):
    """The options of `Plan`, which documents them."""

    transport: str = "auto"
    slots: int = 0
    slot_bytes: int = 0
    chunk_bytes: int = 0
    direct_puts: bool = True
    rails: Sequence[Sequence[RailAssignment]] | None = None
    verify: bool = False


class Plan(_core.Plan):
    """A schedule bound to a group and to arrays, prepared once and run any number of times. Collective over the group.

    `start()` begins a run and never waits, `finish()` completes it, `run()` does both. Compute between them what needs
    no data of other ranks. Until `finish()` returns, do not write data that the schedule reads, and do not touch data
    that it writes; with ONEHOP_GUARD=1 in the environment `finish` raises BadInput if the program did. As a context
    manager a plan starts at the beginning of the block and finishes at its end, unless the block raises:

        with plan:
            compute_interior()
        compute_boundary()

    Parameters
    ----------
    schedule : Schedule
        The whole schedule, or this rank's part of it.
    group : Group
        The ranks.
    arrays : sequence of arrays
        The schedule's arrays on this rank: C-contiguous NumPy arrays, or other objects with the buffer protocol or
        DLPack. Nothing is copied; the plan keeps the memory alive. Arrays that the schedule writes must be writable.
        None stands for an array that the schedule does not use on this rank. Of arrays on a device `Plan` makes an
        `onehop.device.DevicePlan`, and of the options below takes `verify` only; every rank then has such an array.

    Other Parameters
    ----------------
    transport : str
        "auto": shared memory within a machine, else MPI or UCX. Or "shared_memory", "mpi", "ucx", or "mock", which
        moves nothing and shows the cost of packing alone.
    slots : int
        Slots per channel; 0: two. 1 is single buffering.
    slot_bytes : int
        Largest size of a slot; 0: onehop chooses. Staging takes slots * slot_bytes per channel.
    chunk_bytes : int
        Bytes of a message that are announced at a time; 0: onehop chooses.
    direct_puts : bool
        Whether senders write long messages straight into the receiver's array where the ranks share it
        (`Group.empty`). Their data then crosses in one copy instead of two.
    rails : sequence of sequence of RailAssignment, optional
        The network interface that carries each message, or each piece of it, where a network with several interfaces
        carries messages: one list for each round, as `onehop.machine.rails.schedule_rails` makes them. By default, and
        for messages that are not listed, each part of a message takes the interface that has been given the fewest
        bytes for its speed. Where one interface or none carries messages, the lists are checked and change nothing.
    verify : bool
        Whether to refuse every schedule that `onehop.verify` refuses. ONEHOP_VERIFY=1 in the environment does so for
        all plans. Otherwise a plan checks less, in less time.

    Attributes
    ----------
    counters : PlanCounters
        Messages and bytes moved since the plan was made. One run moves `count(schedule).ranks[group.rank]`.
    staging_bytes : int
        Staging memory for incoming messages on this rank.

    Raises
    ------
    BadInput
        An array is too short, not contiguous, or read-only though the schedule writes it, or has numbers of another
        type than the schedule combines or encodes; there are not as many arrays as in the schedule; an option is of
        another type; `rails` are not those of this rank's messages; or the schedule breaks a rule that the plan checks.
        All other ranks raise Error with this rank's number and the reason.
    Mismatch
        On all ranks: the schedules of the ranks do not fit together.
    PeerLost, Timeout
        From `finish` and `run`: a rank has ended or did not arrive in time. The plan cannot be used afterwards.
    """

    def __new__(cls, schedule: Schedule, group: Group, arrays: Sequence[Any], **keywords: Any) -> Any:
        """Make a plan, or an `onehop.device.DevicePlan` of arrays on devices."""
        with heard_by_all(group):
            places = list(filter(None, map(device_array, arrays))) if isinstance(arrays, Sequence) else []
            for place in places:
                _core.Device.named(place.device)  # there is such a device
                instance(schedule, Schedule, "schedule")
        return DevicePlan(schedule, group, arrays, **keywords) if places else _core.Plan.__new__(cls)

    def __init__(
        self,
        schedule: Schedule,
        group: Group,
        arrays: Sequence[Any],
        **keywords: Unpack[PlanKeywords],
    ) -> None:
        with heard_by_all(group):
            options = PlanOptions.of("Plan", keywords)
            memory = _memory_of(instance(schedule, Schedule, "schedule"), group.rank, items(arrays, "arrays"))
            transport = instance(options.transport, str, "transport")
            core = filled(
                _core.PlanOptions(),
                rails=None if options.rails is None else listed_rails(options.rails),
                **{name: yes_or_no(getattr(options, name), name) for name in ("direct_puts", "verify")},
                **{name: getattr(options, name) for name in ("slots", "slot_bytes", "chunk_bytes")},
            )
        super().__init__(group, schedule, memory, transport, core)
        self._group, self._transport = group, transport
        self._memory = memory  # keeps the arrays' memory alive as long as the plan

    def explain(self) -> dict[str, Any]:
        """Say how the plan moves messages on this rank.

        Returns
        -------
        dict
            Plain data for JSON. `staging_bytes`, and `channels`: a list with an entry for each rank to which this one
            sends, then for each from which it receives. An entry has `direction` ("send" or "receive"), `peer`,
            `bytes` (of the longest message), `slots`, `slot_bytes` and `chunk_bytes`, and `carrier`: "shared_memory",
            "mpi", or for UCX how it carries messages, "ucx: active messages over tcp/eth0". A sender also has
            `stores`, the kind of stores that is the fastest so far, and `adaptive`: whether the sender tries the other
            kind while the plan runs; `direct_puts`, the number of fragments of messages that it has written straight
            into the receiver's array, and `direct_stores`, the best kind of stores for them so far; `rails`, the number
            of network interfaces among which its messages are divided, and `rails_assigned`: whether the argument
            `rails` divides them.
        """
        channels = self._channels()
        for channel in channels:
            channel["carrier"] = _core.carrier(self._group, channel["peer"], self._transport)
        return {"staging_bytes": self.staging_bytes, "channels": channels}


def _memory_of(schedule: Schedule, rank: int, arrays: list[Any]) -> list[_core.Memory]:
    """Return the memory of the arrays, after checking it against the schedule's use of each array on this rank."""
    specs = schedule.arrays
    if len(arrays) != len(specs):
        names = ", ".join(repr(spec.name) for spec in specs)
        raise BadInput(f"expected {counted(len(specs), 'array')} ({names}), found {len(arrays)}")
    memory = []
    for number, (array, spec, (read, written, computed)) in enumerate(
        zip(arrays, specs, _core.array_use(schedule, rank), strict=True)
    ):
        if array is None:
            if read or written:
                raise BadInput(
                    f"expected memory for array {number} ({spec.name!r}), which rank {rank} uses, found None"
                )
            array = bytearray()
        name = f"array {number} ({spec.name!r})"
        require_unmasked(array, name)
        memory.append(_core.Memory(array, written, name))
        _check_type(array, name, spec, computed)
        _check_size(array, name, spec, rank)
    return memory


def _check_type(array: Any, name: str, spec: _core.ArraySpec, computed: bool) -> None:
    """Refuse numbers in another byte order, and of another type where they are combined or encoded."""
    found, dtype = element_type(array), getattr(array, "dtype", None)
    real = {"complex64": "float32", "complex128": "float64"}.get(found, found)
    is_swapped = spec.type != "bytes" and not getattr(dtype, "isnative", True)
    if is_swapped or (computed and real in NUMBER_TYPES and real != spec.type):
        why = (
            "in this machine's byte order"
            if is_swapped
            else "as the schedule combines or encodes its numbers"
        )
        raise BadInput(f"{name} is {dtype}, expected {spec.type}, {why}")


def _check_size(array: Any, name: str, spec: _core.ArraySpec, rank: int) -> None:
    """Refuse an array that is too short, or has as many elements as it must, but longer ones; name type and shape."""
    dtype, shape = getattr(array, "dtype", None), tuple(getattr(array, "shape", ()))
    needed = spec.elements[rank] if rank < len(spec.elements) else 0
    item = getattr(dtype, "itemsize", None)
    if item is None or not needed:
        return
    count = math.prod(shape)
    if count * item >= needed * spec.element_bytes and (count != needed or item == spec.element_bytes):
        return
    kind = f"elements of {spec.element_bytes} B" if spec.type == "bytes" else spec.type
    found = f"{name} is {dtype} of shape {shape} on rank {rank}, expected {counted(needed, 'element')} of {spec.type}"
    if count == needed and str(dtype) != spec.type:
        found = f"{name} on rank {rank} is {dtype}, expected {kind} of shape {shape}"
    raise BadInput(found)
