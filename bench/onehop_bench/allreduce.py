"""`onehop bench allreduce`: a sum of float32 over all ranks, in the columns of nccl-tests.

Further keys of a row are `count`, the length of the array; `type` and `codec`; `algbw`, bytes of the array over the
time in 10^9 per second; `busbw`, that times 2 (ranks - 1) / ranks, which makes different numbers of ranks comparable;
`wrong`, the number of wrong results; and `error`, the largest error of a result over the largest exact result. With
--link there are also `wire_bytes` that a rank sends, without headers; and `fewer_bytes` and `faster`, the bytes and the
time of raw over those of the codec.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from onehop import _core
from onehop.cli.screen import Table
from onehop.codec import CODECS, encoded_bytes
from onehop.collectives import Collectives
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import current_launch
from onehop.options import option
from onehop.text import bytes_text, counted
from onehop_bench import native
from onehop_bench.hosts.launch import DESCRIPTION
from onehop_bench.measure import Benchmark, Run, longer_blocks, run
from onehop_bench.options import (
    HostsOptions,
    PlotOptions,
    RanksBenchOptions,
    names_option,
    parse_sizes,
    sizes_option,
)
from onehop_bench.result import Bench, Row, Samples, make_row, samples_of
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

_ALGORITHMS = ("one_shot", "two_shot")
_LINKED = 2  # hosts that a link joins


@dataclass(kw_only=True)
class AllReduce(HostsOptions, PlotOptions, RanksBenchOptions):
    sizes: list[int] | None = sizes_option("Bytes of the array.")
    codecs: list[str] = names_option(
        ["raw"], "Codecs. The first one is compared with the peers.", metavar="raw,q8,...", choices=CODECS
    )
    link: str | None = option(
        None,
        "Measure between two emulated hosts, joined by a link of this rate (needs root).",
        metavar="1Gbit",
    )
    in_place: bool = option(False, "One array is source and result, as in torch.distributed; raw only.")


def _gloo(group: Group, size: int) -> list[tuple[Any, ...]]:
    """The in-place sum of torch's gloo as a candidate; an empty list if torch is not installed."""
    if not has_torch():
        return []
    import torch

    gloo = gloo_group(group)
    tensor = torch.zeros(size // 4)
    memory = _core.Memory(tensor)
    return [("gloo", lambda: gloo.allreduce([tensor]).wait(), memory, memory)]


def _measured(on: Run, size: int, options: AllReduce) -> Sequence[tuple[Any, ...]]:
    first, *others = options.codecs
    variants = [("onehop", "ours", first, "auto", 0)]
    variants += [(f"onehop, {codec}", "variant", codec, "auto", 0) for codec in others]
    one_host = len(on.group.local_ranks) == on.group.size
    algorithms = _ALGORITHMS if one_host else (*_ALGORITHMS, "by_host")
    variants += [(f"onehop, {name}", "variant", first, name, 0) for name in algorithms]
    gloo = _gloo(on.group, size) if on.peers else []
    return native.allreduce(on.group, size, on.effort, on.peers, variants, gloo, options.in_place)


def _named(codec: str, options: AllReduce) -> str:
    """The name of the candidate with a codec."""
    return "onehop" if codec == options.codecs[0] else f"onehop, {codec}"


def _with_ours(samples: Sequence[Samples], name: str) -> list[Samples]:
    """The same samples, in which the candidate with this name is the one that is compared."""
    roles = {"ours": "variant"}
    return [
        Samples(one.name, "ours" if one.name == name else roles.get(one.role, one.role), one.us)
        for one in samples
    ]


def _row(size: int, codec: str, options: AllReduce, ranks: int, measured: Sequence[tuple[Any, ...]]) -> Row:
    name = _named(codec, options)
    case = f"{bytes_text(size, exact=True)} {codec}"
    row = make_row(case, size, ranks, _with_ours(samples_of(measured), name))
    rate = row.gigabytes_per_second
    row.update(count=size // 4, type="float32", codec=codec)
    row.update(algbw=rate, busbw=rate * 2 * (ranks - 1) / ranks, wrong=0)
    row["error"] = next(error for other, *_, error in measured if other == name)
    return row


def _add_savings(rows: Sequence[Row], options: AllReduce, measured: Sequence[tuple[Any, ...]]) -> None:
    """Add the bytes and the time of raw, or of the first codec, over those of each codec."""
    us = {candidate.name: candidate.us for candidate in samples_of(measured)}
    reference = next((row for row in rows if row.codec == "raw"), rows[0])
    raw = us[_named(reference.codec, options)]
    for row in rows:
        row["fewer_bytes"] = reference.wire_bytes / row.wire_bytes
        row["faster"] = float(np.median(raw / us[_named(row.codec, options)]))


def allreduce(options: AllReduce) -> Benchmark:
    """Sums of float32 over all ranks. From 16 KiB on the clock runs only while the ranks reduce.

    With one array for source and result, every candidate works as `torch.distributed.all_reduce` does. Otherwise gloo
    and vLLM's algorithm, which know nothing else, touch half as much memory as the others.
    """
    usual = "8,64,512,4K,16K,64K,256K,1M,4M,16M,64M" if options.link is None else "64K,256K,1M,4M,16M"

    def rows(on: Run) -> Iterator[Row]:
        collectives = Collectives(on.group)
        hosts = max(host_numbers(on.group)) + 1
        for size in on.cases:
            measured = _measured(on, size, options)
            source, result = (np.zeros(size // 4, np.float32) for _ in range(2))
            memory = _core.Memory(source), _core.Memory(result, True)
            found = []
            for codec in options.codecs:
                operation = collectives.allreduce(size // 4, "float32", "sum", codec, "auto")
                row = _row(size, codec, options, on.group.size, measured)
                if options.link is not None:
                    before = collectives.counters[1]
                    operation.run(*memory)
                    row["wire_bytes"] = collectives.counters[1] - before
                else:
                    # A host sends what it adds to one share of the array, and then the sum of its share, to all others.
                    least = 2 * encoded_bytes(codec, "float32", size // 4) * (hosts - 1) // hosts
                    between_hosts(row, on.group, partial(operation.run, *memory), [least] * hosts)
                found.append(row)
            if options.link is not None:
                _add_savings(found, options, measured)
            yield from found

    return Benchmark(
        name="allreduce" if options.link is None else "allreduce, link",
        cases=options.sizes or parse_sizes(usual),
        rows=rows,
        across=True,
        block_us=longer_blocks,
    )


def make_allreduce_table(result: Bench) -> Table:
    """A table with the columns of nccl-tests and the ratio to the best peer."""
    title = f"onehop bench allreduce, {counted(result.rows[0].ranks, 'rank')}, sum"
    columns = {
        "size": "bytes",
        **{key: key for key in ("count", "type", "codec")},
        **time_columns(),
        "algbw GB/s": lambda row: f"{row.algbw:.2f}",
        "busbw GB/s": lambda row: f"{row.busbw:.2f}",
        "#wrong": "wrong",
        "error": lambda row: f"{row.error:.1e}",
        **BEST_PEER,
        **RATIO_COLUMN,
    }
    return table_of(result.rows, title, f"{machine_caption(result.host)}\n{RATIO}", columns)


def make_link_table(result: Bench) -> Table:
    """A table with the columns of `make_allreduce_table` and the savings of each codec."""
    columns = {
        "size": lambda row: bytes_text(row.bytes, exact=True),
        "codec": "codec",
        **time_columns(),
        "algbw GB/s": lambda row: f"{row.algbw:.3f}",
        "busbw GB/s": lambda row: f"{row.busbw:.3f}",
        "#wrong": "wrong",
        "error": lambda row: f"{row.error:.0e}",
        "bytes sent": "wire_bytes",
        "fewer": lambda row: f"{row.fewer_bytes:.2f}",
        "faster": lambda row: f"{row.faster:.2f}",
    }
    caption = f"{machine_caption(result.host)}\nfewer, faster: bytes and time of raw over those of the codec"
    return table_of(result.rows, f"onehop bench {result.bench}", caption, columns)


def bench_allreduce(options: AllReduce) -> None:
    """Sum float32 arrays over all ranks, with the columns of nccl-tests.

    The peers are MPI_Allreduce, the algorithm of vLLM's CPU backend (on one machine, up to 8 ranks) and, if torch is
    installed, gloo.
    """
    if options.sizes and min(options.sizes) < 4:
        raise BadInput(f"expected --sizes of at least 4 bytes (one float32), found {min(options.sizes)}")
    if options.in_place and (options.codecs != ["raw"] or options.link is not None):
        raise BadInput("expected --in-place without --codecs and --link, found one of them")
    tables = (make_allreduce_table, make_peer_table)
    if options.link is not None:
        if options.hosts is not None:
            raise BadInput("--link and --hosts both emulate hosts: give one of them")
        options.refuse(
            ("per_host", "by_node", "rate", "links"),
            "says what --link says: one link, one rank on each of two hosts",
        )
        launched = current_launch() is not None and DESCRIPTION not in os.environ
        if launched or options.ranks not in (None, _LINKED):
            ranks = counted(_LINKED, "rank")
            raise BadInput(f"--link starts its own {ranks}: run it by itself, without a launch or -n")
        options.ranks, options.hosts, options.rate = None, _LINKED, options.link
        os.environ.setdefault("ONEHOP_NETWORK", "mpi")
        tables = (make_link_table, make_peer_table)
    run(options, allreduce(options), tables=tables)
