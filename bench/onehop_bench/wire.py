"""Bytes between hosts: counted by the network interfaces, and the least that an operation needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from onehop.group import Group
from onehop.schedule import Schedule
from onehop_bench.hosts.counters import sent_bytes
from onehop_bench.result import AnyRow

__all__ = ["between_hosts", "host_numbers", "schedule_bytes"]

_COUNTED_BYTES = 2 << 20
_FEWEST_STEPS, _MOST_STEPS = 4, 100


def host_numbers(group: Group) -> list[int]:
    """The number of the host of each rank. Hosts are counted in the order of their first ranks. Collective."""
    first = [int(text) for text in group.allgather(str(min(group.local_ranks)).encode())]
    order = sorted(set(first))
    return [order.index(one) for one in first]


def schedule_bytes(schedule: Schedule, hosts: list[int]) -> list[int]:
    """The bytes that each host sends to others in a schedule, after encoding."""
    sent = [0] * (max(hosts) + 1)
    for one in schedule.rounds:
        for transfer in one.transfers:
            host = hosts[transfer.from_.rank]
            if host != hosts[transfer.to.rank]:
                sent[host] += schedule.bytes(transfer)
    return sent


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


def between_hosts(row: AnyRow, group: Group, step: Callable[[], object], minimum: list[int]) -> AnyRow:
    """Add to a row what its operation sends between hosts. Collective.

    Parameters
    ----------
    row : Row
        The row.
    group : Group
        The ranks.
    step : callable
        Performs the operation once.
    minimum : list of int
        The least bytes that each host must send.

    Returns
    -------
    Row
        The row with its last three attributes; the same row on one host.
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
    return replace(
        row,
        hosts=max(hosts) + 1,
        wire_bytes_per_host=float(sent[most]) / steps,
        minimum_bytes_per_host=float(minimum[most]),
    )
