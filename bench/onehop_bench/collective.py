"""`onehop bench collectives`: reduce-scatter, all-gather, broadcast and all-to-all of float32, beside MPI and gloo.

A row has the name of its `operation` as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop import _core
from onehop.cli.screen import Table
from onehop.collectives import plans
from onehop.group import Group
from onehop.text import bytes_text, counted, number
from onehop_bench import native
from onehop_bench.measure import Benchmark, Run, longer_blocks, run
from onehop_bench.options import (
    HostsOptions,
    PlotOptions,
    RanksBenchOptions,
    names_option,
    parse_sizes,
    seconds_option,
    sizes_option,
)
from onehop_bench.result import Bench, Row, make_row, samples_of
from onehop_bench.table import (
    BEST_PEER,
    RATIO,
    RATIO_COLUMN,
    machine_caption,
    make_peer_table,
    table_of,
    time_columns,
)
from onehop_bench.torch_groups import gloo_group, has_torch
from onehop_bench.wire import between_hosts, host_numbers

COLLECTIVES = ("reduce_scatter", "allgather", "broadcast", "all_to_all")


@dataclass(kw_only=True)
class CollectivesBench(HostsOptions, PlotOptions, RanksBenchOptions):
    seconds: float = seconds_option(40)
    sizes: list[int] | None = sizes_option("Bytes of the whole array.", "64,1K,...")
    operations: list[str] = names_option(list(COLLECTIVES), "Operations.", choices=COLLECTIVES)


def _lengths(operation: str, size: int, ranks: int) -> tuple[int, int]:
    """Lengths of a rank's source and result for arrays of `size` bytes, divided into blocks of whole cache lines."""
    block = 16 * max(size // (64 * ranks), 1)
    whole = block * ranks
    return block if operation == "allgather" else whole, block if operation == "reduce_scatter" else whole


def _gloo(gloo: Any, operation: str, lengths: Sequence[int]) -> list[tuple[Any, ...]]:
    """An operation of gloo on two tensors, the same one for a broadcast, as a candidate."""
    import torch

    source = torch.zeros(lengths[0])
    result = source if operation == "broadcast" else torch.zeros(lengths[1])
    calls: dict[str, Callable[[], Any]] = {
        "reduce_scatter": lambda: gloo._reduce_scatter_base(result, source).wait(),
        "allgather": lambda: gloo._allgather_base(result, source).wait(),
        "broadcast": lambda: gloo.broadcast([source]).wait(),
        "all_to_all": lambda: gloo.alltoall_base(result, source, [], []).wait(),
    }
    return [("gloo", calls[operation], _core.Memory(source, True), _core.Memory(result, True))]


def _operation(group: Group, operation: str, lengths: Sequence[int]) -> Any:
    """The operation in onehop, from arrays to arrays of these lengths."""
    source, result = (4 * length for length in lengths)
    blocks = (source // group.size,) * group.size
    arguments: dict[str, tuple[Any, ...]] = {
        "broadcast": (source, 0),
        "allgather": ((source,) * group.size,),
        "reduce_scatter": (result // 4, "float32"),
        "all_to_all": (blocks, blocks),
    }
    return plans(group).get(operation, *arguments[operation])


def _between_hosts(row: Row, group: Group, lengths: Sequence[int]) -> Row:
    """Count the bytes of an operation between hosts.

    A host must send each number of its own once (others may pass it on), its sums for the blocks of other hosts, and
    its messages to them. In an all-gather each number also crosses to every other host.
    """
    hosts = host_numbers(group)
    here = [hosts.count(host) for host in range(max(hosts) + 1)]
    source, result = (np.zeros(length, np.float32) for length in lengths)
    block = (
        min(source.nbytes, result.nbytes) if row.operation != "all_to_all" else source.nbytes // group.size
    )
    minimum = {
        "broadcast": [source.nbytes, *[0] * (len(here) - 1)],
        "allgather": [block * ranks for ranks in here],
        "reduce_scatter": [block * (group.size - ranks) for ranks in here],
        "all_to_all": [block * ranks * (group.size - ranks) for ranks in here],
    }
    operation = _operation(group, row.operation, lengths)
    memory = (
        _core.Memory(source, True),
        _core.Memory(source if row.operation == "broadcast" else result, True),
    )
    least = minimum[row.operation]
    shared = block * group.size * (len(here) - 1) / len(here) if row.operation == "allgather" else 0
    return between_hosts(row, group, lambda: operation.run(*memory), least, max(*least, shared))


def make_collective_table(result: Bench) -> Table:
    """A table with a line for each operation and size."""
    columns = {
        "operation": "case",
        **time_columns(),
        **BEST_PEER,
        "gloo µs": lambda row: number(row.peers.get("gloo")),
        **RATIO_COLUMN,
    }
    title = f"onehop bench collectives, {counted(result.rows[0].ranks, 'rank')}"
    return table_of(result.rows, title, f"{machine_caption(result.host)}\n{RATIO}", columns)


def bench_collectives(options: CollectivesBench) -> None:
    """Reduce-scatter, all-gather, broadcast and all-to-all of float32, beside MPI and, with torch, gloo."""

    def rows(on: Run) -> Iterator[Row]:
        ranks = on.group.size
        gloo = gloo_group(on.group) if on.peers and has_torch() else None
        for operation, size in on.cases:
            lengths = _lengths(operation, size, ranks)
            others = [] if gloo is None else _gloo(gloo, operation, lengths)
            ours = _operation(on.group, operation, lengths)
            kind = COLLECTIVES.index(operation)
            measured = native.collective(on.group, kind, ours, on.effort, on.peers, others)
            whole = 4 * max(lengths)
            case = f"{operation} {bytes_text(whole, exact=True)}"
            row = make_row(case, whole, ranks, samples_of(measured), operation=operation)
            yield _between_hosts(row, on.group, lengths)

    sizes = options.sizes or parse_sizes("64,1K,16K,256K,4M")
    cases = [(operation, size) for operation in options.operations for size in sizes]
    benchmark = Benchmark(name="collectives", cases=cases, rows=rows, across=True, block_us=longer_blocks)
    run(options, benchmark, tables=(make_collective_table, make_peer_table))
