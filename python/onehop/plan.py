"""`Plan`: a schedule bound to a group and to memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onehop import _core
from onehop._core import PlanCounters, Schedule
from onehop.channel import heard_by_all
from onehop.error import BadInput
from onehop.group import Group

__all__ = ["Plan", "PlanCounters"]


class Plan(_core.Plan):
    """A schedule bound to a group and to memory, prepared once and run as often as you like. Collective over the group.

    `start()` begins a run and never waits, `finish()` completes it, `run()` does both. In between is time for what
    needs no neighbour; what the schedule reads must not be written then, and what it writes must not be touched. As a
    context manager a plan starts at the beginning of the block and finishes at its end (not if the block raises):

        with plan:
            compute_interior()
        compute_boundary()

    Parameters
    ----------
    schedule : Schedule
        The whole, or this rank's part of it.
    group : Group
        The ranks.
    arrays : sequence of arrays
        The memory of the schedule's arrays on this rank: C-contiguous NumPy arrays, or anything else with the buffer
        protocol or DLPack. Nothing is copied; the plan keeps the memory alive. What the schedule writes must be
        writable. None stands for an array that the schedule does not touch on this rank.
    transport : str
        "auto": shared memory where it is, else MPI. Or "shared_memory", "mpi", "mock" (moves nothing: the cost of
        packing alone).
    slots : int
        Per channel; 0: two (1 is single buffering).
    slot_bytes : int
        Limit of one slot; 0: onehop chooses. Staging is slots * slot_bytes per channel.
    chunk_bytes : int
        How much of a message is announced at a time; 0: onehop chooses.

    Attributes
    ----------
    counters : PlanCounters
        What it has moved since it was made; for one run equal to `count(schedule).ranks[group.rank]`.
    staging_bytes : int
        Staging for incoming messages on this rank.

    Raises
    ------
    BadInput
        Arrays that are too short, not contiguous, read-only where written, or not as many as the schedule has. All
        other ranks raise Error with this rank's number and the reason.
    Mismatch
        On all ranks: the ranks' schedules do not fit together.
    PeerLost, Timeout
        From `finish` and `run`; the plan cannot be used after that.
    """

    def __init__(
        self,
        schedule: Schedule,
        group: Group,
        arrays: Sequence[Any],
        *,
        transport: str = "auto",
        slots: int = 0,
        slot_bytes: int = 0,
        chunk_bytes: int = 0,
    ) -> None:
        with heard_by_all(group):
            memory = _memory_of(schedule, group.rank, list(arrays))
        super().__init__(group, schedule, memory, transport, slots, slot_bytes, chunk_bytes)
        self._memory = memory  # kept in place as long as the plan lives


def _memory_of(schedule: Schedule, rank: int, arrays: list[Any]) -> list[_core.Memory]:
    """The memory of the arrays, looked at as the schedule uses it."""
    specs = schedule.arrays
    if len(arrays) != len(specs):
        names = ", ".join(repr(spec.name) for spec in specs)
        raise BadInput(f"expected {len(specs)} arrays ({names}), found {len(arrays)}")
    memory = []
    for number, (array, spec, (read, written)) in enumerate(
        zip(arrays, specs, _core.array_use(schedule, rank), strict=True)
    ):
        if array is None:
            if read or written:
                raise BadInput(
                    f"expected memory for array {number} ({spec.name!r}), which rank {rank} uses, found None"
                )
            array = bytearray()
        memory.append(_core.Memory(array, written, f"array {number} ({spec.name!r})"))
    return memory
