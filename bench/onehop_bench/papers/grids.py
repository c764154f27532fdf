"""Halo exchanges on grids of ranks in four dimensions, and the sums of a solver."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onehop.machine import Machine, Traffic, allreduce_traffic, message_traffic, simulate


def dslash_traffic(grid: Sequence[int], faces: Sequence[int]) -> Traffic:
    """Return the messages of a periodic halo exchange: `faces` are the bytes for a neighbour in each dimension."""
    ranks = np.arange(math.prod(grid)).reshape(tuple(grid))
    columns = []
    for dimension, size in enumerate(faces):
        for step in (1, -1):
            to = np.roll(ranks, -step, dimension).ravel()
            columns.append(np.stack([ranks.ravel(), to, np.full(ranks.size, size)], axis=1))
    messages = np.stack(columns, axis=1).reshape(-1, 3)
    messages = messages[messages[:, 0] != messages[:, 1]]
    return message_traffic(ranks.size, [[tuple(one) for one in messages.tolist()]])


def neighbour_places(nodes: Sequence[int], in_node: Sequence[int]) -> list[int]:
    """Return the place of every rank if neighbouring nodes are one hop apart on a torus of these extents."""
    grid = [count * inner for count, inner in zip(nodes, in_node, strict=True)]
    position = np.indices(grid).reshape(len(grid), -1)
    node = np.zeros(math.prod(grid), dtype=np.int64)
    inside = np.zeros_like(node)
    stride = 1
    for dimension, (extent, inner) in enumerate(zip(nodes, in_node, strict=True)):
        node += position[dimension] // inner * stride
        inside = inside * inner + position[dimension] % inner
        stride *= extent
    return [int(one) for one in math.prod(in_node) * node + inside]


def direct_sum_seconds(machine: Machine, ranks: int) -> float:
    """Return the seconds of a sum as onehop makes it: every rank sends its part, two numbers, to all others."""
    return simulate(allreduce_traffic(ranks, 2, dtype="float64", algorithm="one_shot"), machine).seconds


def sum_seconds(machine: Machine, ranks: int) -> float:
    """Return the seconds of a sum of one number by doubling: every step costs a message of the outermost level."""
    outer = machine.levels[-1]
    steps = math.ceil(math.log2(ranks)) if ranks > 1 else 0
    return steps * (2 * outer.overhead.value + outer.latency.value)
