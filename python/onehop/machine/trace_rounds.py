"""The rounds of messages and the times of calculations of a trace, for `simulate`."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from onehop import _core
from onehop._core import Machine, Traffic
from onehop.arguments import whole_number
from onehop.codec import element_type, encoded_bytes
from onehop.error import BadInput
from onehop.machine.reader import machine_of
from onehop.machine.simulate import allreduce_traffic
from onehop.machine.trace_file import COLLECTIVES, Program, Step, groups_of, read_trace
from onehop.machine.traffic_rails import hosts_of_ranks

_MOST_MESSAGES = 4_000_000

Message = tuple[int, int, int]


@dataclass
class _Event:
    """A step of one rank, or all ends of a message or of a collective operation, which begin together."""

    step: Step
    ranks: list[int]
    waits: int = 0
    # Events, and what they wait for: begin, sent or end.
    then: list[tuple[int, str]] = field(default_factory=list)
    # The first round for a calculation behind it, and nanoseconds since the start of that round.
    calc: tuple[int, int] = (0, 0)
    message: int = 0  # the first round for a message behind it


def _stages(step: Step, ranks: Sequence[int]) -> list[list[Message]]:
    """Return the rounds of a collective operation, but for sums, to which a rank brings `step.size` bytes."""
    size, number, kind = step.size, len(ranks), step.kind
    if kind in ("REDUCE", "GATHER", "SCATTER", "BROADCAST") and step.peer not in ranks:
        raise BadInput(f"{step.where}: expected a root among the ranks of its group, found rank {step.peer}")
    others = [rank for rank in ranks if rank != step.peer]
    if kind in ("REDUCE", "GATHER"):
        return [[(rank, step.peer, size) for rank in others]]
    if kind in ("BROADCAST", "SCATTER"):
        part = size if kind == "BROADCAST" else -(-size // number)
        return [[(step.peer, rank, part) for rank in others]]
    # What each rank sends to each other one.
    length = {"ALL_GATHER": size, "BARRIER": 0}.get(kind, -(-size // number))
    return [[(a, b, length) for a in ranks for b in ranks if a != b]]


def _events(program: Program, ranks: int) -> list[_Event]:
    """Join the ends of messages, and of collective operations, and the steps that wait for each other."""
    groups = {"": list(range(ranks))} if len(program) < ranks else groups_of(program)
    events: list[_Event] = []
    of: list[list[int]] = []
    waiting: dict[Any, deque[int]] = defaultdict(deque)  # ends of messages without the other end
    gathered: dict[tuple[str, int], int] = {}
    for rank, steps in enumerate(program):
        of.append([])
        turns: dict[str, int] = defaultdict(int)
        for step in steps:
            number = len(events)
            if step.kind in COLLECTIVES:
                group = "" if len(program) < ranks else step.group
                number = gathered.setdefault((group, turns[group]), number)
                turns[group] += 1
                if number < len(events) and events[number].step.kind != step.kind:
                    raise BadInput(
                        f"{step.where}: expected {events[number].step.kind}, as in {events[number].step.where}, found "
                        f"{step.kind}"
                    )
                members = groups[group]
            elif step.kind == "calc":
                members = [rank]
            else:
                sends = step.kind == "send"
                pair = (rank, step.peer, step.tag) if sends else (step.peer, rank, step.tag)
                if waiting[(*pair, not sends)]:
                    number = waiting[(*pair, not sends)].popleft()
                    events[number].step = step if sends else events[number].step
                else:
                    waiting[(*pair, sends)].append(number)
                members = [pair[0], pair[1]]
            if number == len(events):
                events.append(_Event(step, members))
            of[-1].append(number)
    for pair, numbers in waiting.items():
        if numbers:
            step, end = events[numbers[0]].step, ("receive", "send")[not pair[-1]]
            raise BadInput(
                f"{step.where}: expected a {end} for the message from rank {pair[0]} to rank {pair[1]} with the tag "
                f"{pair[2]}, found none"
            )
    joined = Counter(number for numbers in of for number in numbers)
    for number in gathered.values():
        event = events[number]
        if len(program) == ranks and joined[number] != len(event.ranks):
            raise BadInput(
                f"{event.step.where}: expected {event.step.kind} on each of the {len(event.ranks)} ranks of its group, "
                f"found it on {joined[number]}"
            )
    for steps, numbers in zip(program, of, strict=True):
        for step, number in zip(steps, numbers, strict=True):
            events[number].waits += len(step.after) + len(step.beside)
            for before in step.after:
                events[numbers[before]].then.append(
                    (number, "sent" if steps[before].kind == "send" else "end")
                )
            for before in step.beside:
                events[numbers[before]].then.append((number, "begin"))
    return events


def trace_rounds(
    file: str | Path,
    ranks: int | None = None,
    *,
    codec: str = "raw",
    dtype: Any = "float32",
    algorithm: str = "auto",
    machine: Machine | str | Path | None = None,
) -> tuple[Traffic, list[float]]:
    """Return the messages of a trace in rounds, and the seconds that the slowest rank computes in each.

    Calculations and messages are in the first round that their dependencies leave. A calculation may be in the round of
    a message that its rank has sent before; a message that waits for a calculation is in a later round.

    Parameters
    ----------
    file : str or path
        GOAL, or an execution trace of Chakra (`.et`, or its JSON form) of rank 0; `NAME.1.et`, ... beside `NAME.0.et`
        are those of the other ranks.
    ranks : int, optional
        Number of ranks; one trace of Chakra without messages between pairs then stands for all of them.
    codec : str
        Format of the bytes on the wire, which the trace has as numbers of the type `dtype`.
    dtype : dtype
        Type of these numbers.
    algorithm : {"auto", "by_host", "two_shot", "one_shot"}
        Of all-reduces, as for `allreduce_traffic`.
    machine : Machine, str or path, optional
        The machine whose hosts decide the algorithm; by default ranks are on one host.

    Raises
    ------
    BadInput
        The file is malformed, a message or a collective operation lacks an end, or steps wait for each other.
    """
    if not isinstance(file, str | Path):
        raise BadInput(f"trace_rounds: expected the path of a file, found {type(file).__name__}")
    program = read_trace(file, None if ranks is None else whole_number(ranks, "ranks", 1, 1 << 20))
    number = ranks or len(program)
    kind, itemsize = element_type(dtype), np.dtype(dtype).itemsize

    def on_the_wire(size: int) -> int:
        return size if codec == "raw" else encoded_bytes(codec, kind, -(-size // itemsize))

    on_the_wire(0)
    hosts = [0] * number
    if machine is not None:
        hosts = hosts_of_ranks(machine_of(machine).job(number), range(number))

    def allreduce(step: Step, members: Sequence[int]) -> list[list[Message]]:
        traffic = allreduce_traffic(
            len(members),
            -(-step.size // itemsize),
            dtype=dtype,
            algorithm=algorithm,
            hosts=[hosts[rank] for rank in members],
        )
        listed = ([] if len(members) == 1 else traffic.messages(one) for one in range(traffic.rounds))
        return [[(members[a], members[b], size) for a, b, size in stage] for stage in listed]

    events = _events(program, number)
    ready = deque(index for index, event in enumerate(events) if not event.waits)
    rounds: dict[int, list[Message]] = defaultdict(list)
    busy: dict[Any, int] = defaultdict(int)  # nanoseconds of a lane of a rank in a round
    computed: dict[int, int] = defaultdict(int)
    done = messages = 0
    while ready:
        event = events[ready.popleft()]
        done += 1
        step = event.step
        begun = event.message if step.kind != "calc" else event.calc[0]
        if step.kind == "calc" and step.size:
            lane = (event.ranks[0], step.lane, begun)
            end = max(busy[lane], event.calc[1]) + step.size
            busy[lane] = end
            computed[begun] = max(computed[begun], end)
            event.calc, event.message = (begun, end), max(event.message, begun + 1)
        elif step.kind != "calc":
            pair = (event.ranks[0], event.ranks[-1], step.size)
            if step.kind == "ALL_REDUCE":
                stages = allreduce(step, event.ranks)
            else:
                stages = [[pair]] if step.kind in ("send", "recv") else _stages(step, event.ranks)
            for stage in stages:
                messages += len(stage)
                if messages > _MOST_MESSAGES:
                    raise BadInput(
                        f"{file}: expected at most {_MOST_MESSAGES} messages, found more; use fewer ranks"
                    )
                rounds[event.message] += [(a, b, on_the_wire(size)) for a, b, size in stage if a != b]
                event.message += 1
            event.calc = (event.message, 0)
        for other, what in event.then:
            later = events[other]
            later.calc = max(later.calc, event.calc if what == "end" else (begun, 0))
            later.message = max(later.message, begun if what == "begin" else event.message)
            later.waits -= 1
            if not later.waits:
                ready.append(other)
    if done < len(events):
        stuck = next(event for event in events if event.waits > 0)
        raise BadInput(
            f"{stuck.step.where}: expected steps in some order, found steps that wait for each other"
        )
    last = max([*rounds, *computed], default=-1) + 1
    if last == 0:
        raise BadInput(f"{file}: expected messages or calculations, found none")
    listed = [rounds.get(one, []) for one in range(last)]
    return _core.message_traffic(number, listed), [computed.get(one, 0) * 1e-9 for one in range(last)]
