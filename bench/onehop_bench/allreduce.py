"""`onehop bench allreduce`: a sum of float32 over all ranks, in the columns of nccl-tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop import _core
from onehop.cli.screen import Table
from onehop.codec import encoded_bytes
from onehop.collectives import Collectives
from onehop.group import Group
from onehop.text import bytes_text, counted
from onehop_bench import native
from onehop_bench.result import Bench, Row, extended, make_row, samples_of
from onehop_bench.run import Advance, Settings, _begin
from onehop_bench.table import BEST_PEER, RATIO, RATIO_COLUMN, machine_caption, table_of, time_columns
from onehop_bench.torch_groups import gloo_group, has_torch
from onehop_bench.wire import between_hosts, host_numbers

ALLREDUCE_SIZES = (8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20)
ALGORITHMS = ("one_shot", "two_shot")


@dataclass(frozen=True)
class AllReduceRow(Row):
    """One size and codec.

    Attributes
    ----------
    count : int
        Length of the array.
    type, codec : str
        Type of the numbers, and the codec that they are sent with.
    algbw, busbw : float
        Algorithm bandwidth, bytes of the array over the time in 10^9 per second; and bus bandwidth, that times
        2 (ranks - 1) / ranks, which makes different numbers of ranks comparable (nccl-tests).
    wrong : int
        Number of wrong results; 0, since a benchmark with wrong results ends with an error.
    error : float
        The largest error of a result over the largest exact result.
    """

    count: int
    type: str
    codec: str
    algbw: float
    busbw: float
    wrong: int
    error: float


def _gloo(group: Group, size: int) -> list[tuple[Any, ...]]:
    """The in-place sum of torch's gloo as a candidate; an empty list if torch is not installed."""
    if not has_torch():
        return []
    import torch

    gloo = gloo_group(group)
    tensor = torch.zeros(size // 4)
    memory = _core.Memory(tensor)
    return [("gloo", lambda: gloo.allreduce([tensor]).wait(), memory, memory)]


def _row(size: int, codec: str, ranks: int, measured: Sequence[tuple[Any, ...]]) -> AllReduceRow:
    samples = samples_of(measured)
    row = make_row(f"{bytes_text(size, exact=True)} {codec}", size, ranks, samples)
    error = next(error for _, role, _, error in measured if role == "ours")
    return extended(
        row,
        AllReduceRow,
        count=size // 4,
        type="float32",
        codec=codec,
        algbw=row.gigabytes_per_second,
        busbw=row.gigabytes_per_second * 2 * (ranks - 1) / ranks,
        wrong=0,
        error=error,
    )


def _between_hosts(
    row: AllReduceRow, group: Group, collectives: Collectives, size: int, codec: str
) -> AllReduceRow:
    hosts = max(host_numbers(group)) + 1
    operation = collectives.allreduce(size // 4, "float32", "sum", codec, "auto")
    source, result = (np.zeros(size // 4, np.float32) for _ in range(2))
    # A host sends what it adds to one share of the array, and then the sum of its own share, to all others.
    least = 2 * encoded_bytes(codec, "float32", size // 4) * (hosts - 1) // hosts
    return between_hosts(
        row,
        group,
        lambda: operation.run(_core.Memory(source), _core.Memory(result, True)),
        [least] * hosts,
    )


def allreduce(
    group: Group,
    settings: Settings,
    advance: Advance,
    sizes: Sequence[int] = ALLREDUCE_SIZES,
    codecs: Sequence[str] = ("raw",),
    in_place: bool = False,
) -> Bench:
    """Measure sums of float32 over all ranks. From 16 KiB on the clock runs only while the ranks reduce.

    `in_place`: every candidate has one array, which is source and result, as for `torch.distributed.all_reduce`.
    Otherwise gloo and vLLM's algorithm, which know nothing else, touch half as much memory as the others.
    """
    collectives = Collectives(group)
    result = _begin("allreduce", group, None, across=True)
    for size in sizes:
        # With more ranks than processors a block must be longer than the scheduler's time slices.
        effort = settings.effort(len(sizes), 400.0 if group.size <= 2 else 4000.0)
        variants = [("onehop", "ours", codecs[0], "auto", 0)]
        variants += [(f"onehop, {codec}", "variant", codec, "auto", 0) for codec in codecs[1:]]
        algorithms = ALGORITHMS if len(group.local_ranks) == group.size else (*ALGORITHMS, "by_host")
        variants += [(f"onehop, {name}", "variant", codecs[0], name, 0) for name in algorithms]
        others = _gloo(group, size) if settings.peers else []
        measured = native.allreduce(group, size, effort, settings.peers, variants, others, in_place)
        for codec in codecs:
            name = "onehop" if codec == codecs[0] else f"onehop, {codec}"
            chosen = [
                (one[0], "ours" if one[0] == name else "variant" if one[1] == "ours" else one[1], *one[2:])
                for one in measured
            ]
            row = _row(size, codec, group.size, chosen)
            result.rows.append(_between_hosts(row, group, collectives, size, codec))
        advance(1)
    return result


def make_allreduce_table(result: Bench) -> Table:
    """A table with the columns of nccl-tests and the ratio to the best peer."""
    title = f"onehop bench allreduce, {counted(result.rows[0].ranks, 'rank')}, sum"
    columns = {
        "size": lambda row: str(row.bytes),
        "count": lambda row: str(row.count),
        "type": lambda row: row.type,
        "codec": lambda row: row.codec,
        **time_columns(),
        "algbw GB/s": lambda row: f"{row.algbw:.2f}",
        "busbw GB/s": lambda row: f"{row.busbw:.2f}",
        "#wrong": lambda row: str(row.wrong),
        "error": lambda row: f"{row.error:.1e}",
        **BEST_PEER,
        **RATIO_COLUMN,
    }
    caption = f"{machine_caption(result.host)}\n{RATIO}"
    return table_of(result.rows, title, caption, columns, ("type", "codec", "best peer"))
