"""Bytes between hosts: counted by the network interfaces, and the least that an operation needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from onehop.group import Group
from onehop.schedule import Schedule
from onehop_bench.result import Row

_COUNTED_BYTES = 2 << 20
_FEWEST_STEPS, _MOST_STEPS = 4, 100


def host_numbers(group: Group) -> list[int]:
    """The number of the host of each rank. Hosts are counted in the order of their first ranks. Collective."""
    first = [int(text) for text in group.allgather(str(min(group.local_ranks)).encode())]
    order = sorted(set(first))
    return [order.index(rank) for rank in first]


def schedule_bytes(schedule: Schedule, hosts: list[int]) -> list[int]:
    """The bytes that each host sends to others in a schedule, after encoding."""
    sent = [0] * (max(hosts) + 1)
    for each_round in schedule.rounds:
        for transfer in each_round.transfers:
            host = hosts[transfer.from_.rank]
            if host != hosts[transfer.to.rank]:
                sent[host] += schedule.bytes(transfer)
    return sent


def sent_bytes() -> int:
    """The bytes that all interfaces of this host but the loopback have sent since they came up, headers included."""
    total = 0
    for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
        device, counters = line.split(":", 1)
        if device.strip() != "lo":
            total += int(counters.split()[8])
    return total


def _counted(group: Group, hosts: list[int], step: Callable[[], object], steps: int) -> np.ndarray:
    group.barrier()
    before = sent_bytes()
    group.barrier()
    for _ in range(steps):
        step()
    group.barrier()
    counts = [int(text) for text in group.allgather(str(sent_bytes() - before).encode())]
    return np.array(
        [max(c for c, h in zip(counts, hosts, strict=True) if h == n) for n in range(max(hosts) + 1)]
    )


def between_hosts(
    row: Row, group: Group, step: Callable[[], object], minimum: list[int], busiest: float = 0
) -> Row:
    """Add to a row what its operation, which `step` performs once, sends between hosts. Collective.

    `minimum` has the least bytes that each host must send, and `busiest` the least that the host which sends most must
    send; 0: the largest of `minimum`. On one host the row stays as it is; on several it gets `hosts`, their number;
    `wire_bytes_per_host`, the bytes that a host sends in one operation, counted by its network interfaces, headers
    included, of the host that sends most (also as `busiest_host_bytes`); `minimum_bytes_per_host` of this host; and
    `minimum_busiest_host_bytes`.
    """
    hosts = host_numbers(group)
    if max(hosts) == 0:
        return row
    steps = int(np.clip(_COUNTED_BYTES // max(*minimum, 1), _FEWEST_STEPS, _MOST_STEPS))
    for _ in range(2):
        step()
    # Barriers send bytes, too.
    sent = _counted(group, hosts, step, steps) - _counted(group, hosts, step, 0)
    most = int(np.argmax(sent))
    row["hosts"] = max(hosts) + 1
    row["wire_bytes_per_host"] = row["busiest_host_bytes"] = float(sent[most]) / steps
    row["minimum_bytes_per_host"] = float(minimum[most])
    row["minimum_busiest_host_bytes"] = float(busiest or max(minimum))
    return row
