"""`onehop bench collectives`: reduce-scatter, all-gather, broadcast and all-to-all of float32, beside MPI and gloo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop import _core
from onehop.cli.screen import Table
from onehop.collectives import plans
from onehop.group import Group
from onehop.text import bytes_text, counted, number
from onehop_bench import native
from onehop_bench.result import Bench, Row, extended, make_row, samples_of
from onehop_bench.run import Advance, Settings, _begin
from onehop_bench.table import BEST_PEER, RATIO, RATIO_COLUMN, machine_caption, table_of, time_columns
from onehop_bench.torch_groups import gloo_group, has_torch
from onehop_bench.wire import between_hosts, host_numbers

__all__ = ["COLLECTIVES", "COLLECTIVE_SIZES", "CollectiveRow", "collectives", "make_collective_table"]

COLLECTIVES = ("reduce_scatter", "allgather", "broadcast", "all_to_all")
COLLECTIVE_SIZES = (64, 1 << 10, 16 << 10, 256 << 10, 4 << 20)


@dataclass(frozen=True)
class CollectiveRow(Row):
    """One operation and size.

    Attributes
    ----------
    operation : str
        One of `COLLECTIVES`.
    """

    operation: str


def _gloo(gloo: Any, operation: str, source: Any, result: Any) -> Callable[[], Any]:
    """A function that runs an operation of gloo on two tensors, the same one for a broadcast."""
    calls = {
        "reduce_scatter": lambda: gloo._reduce_scatter_base(result, source).wait(),
        "allgather": lambda: gloo._allgather_base(result, source).wait(),
        "broadcast": lambda: gloo.broadcast([source]).wait(),
        "all_to_all": lambda: gloo.alltoall_base(result, source, [], []).wait(),
    }
    return calls[operation]


def _between_hosts(row: CollectiveRow, group: Group, lengths: Sequence[int]) -> CollectiveRow:
    """Count the bytes of an operation between hosts. A host must send a number once, to each host that needs it."""
    hosts = host_numbers(group)
    here = [hosts.count(number) for number in range(max(hosts) + 1)]
    source, result = (np.zeros(length, np.float32) for length in lengths)
    if row.operation == "broadcast":
        arguments: tuple[Any, ...] = (row.bytes, 0)
        result = source
        minimum = [row.bytes * (len(here) - 1), *[0] * (len(here) - 1)]
    elif row.operation == "allgather":
        arguments = ((source.nbytes,) * group.size,)
        minimum = [source.nbytes * ranks * (len(here) - 1) for ranks in here]
    elif row.operation == "reduce_scatter":
        arguments = (len(result), "float32")
        minimum = [result.nbytes * (group.size - ranks) for ranks in here]
    else:
        block = source.nbytes // group.size
        arguments = ((block,) * group.size, (block,) * group.size)
        minimum = [block * ranks * (group.size - ranks) for ranks in here]
    operation = plans(group).get(row.operation, *arguments)
    return between_hosts(
        row, group, lambda: operation.run(_core.Memory(source), _core.Memory(result, True)), minimum
    )


def collectives(
    group: Group,
    settings: Settings,
    advance: Advance,
    sizes: Sequence[int] = COLLECTIVE_SIZES,
    operations: Sequence[str] = COLLECTIVES,
) -> Bench:
    """Measure operations on arrays of float32. `sizes` are the bytes of the whole array, of all ranks' blocks.

    Between hosts the rows have the bytes that a host sends, too.
    """
    result = _begin("collectives", group, None, across=True)
    gloo = gloo_group(group) if settings.peers and has_torch() else None
    for operation in operations:
        for size in sizes:
            # With more ranks than processors a block must be longer than the scheduler's time slices.
            effort = settings.effort(len(sizes) * len(operations), 400.0 if group.size <= 2 else 4000.0)
            lengths = native.collective_lengths(operation, size, group.size)
            others = []
            if gloo is not None:
                import torch

                source = torch.zeros(lengths[0])
                target = source if operation == "broadcast" else torch.zeros(lengths[1])
                memory = _core.Memory(source, True), _core.Memory(target, True)
                others = [("gloo", _gloo(gloo, operation, source, target), *memory)]
            measured = native.collective(group, operation, size, effort, settings.peers, others)
            samples = samples_of(measured)
            whole = 4 * max(lengths)
            row = make_row(f"{operation} {bytes_text(whole, exact=True)}", whole, group.size, samples)
            result.rows.append(
                _between_hosts(extended(row, CollectiveRow, operation=operation), group, lengths)
            )
            advance(1)
    return result


def make_collective_table(result: Bench) -> Table:
    """A table with a line for each operation and size."""
    columns = {
        "operation": lambda row: row.case,
        **time_columns(),
        **BEST_PEER,
        "gloo µs": lambda row: number(row.peers.get("gloo")),
        **RATIO_COLUMN,
    }
    title = f"onehop bench collectives, {counted(result.rows[0].ranks, 'rank')}"
    caption = f"{machine_caption(result.host)}\n{RATIO}"
    return table_of(result.rows, title, caption, columns, ("operation", "best peer"))
