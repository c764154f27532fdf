"""`onehop bench` of backends of torch.distributed: training steps, and operations beside computing."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.codec import CODECS
from onehop.error import BadInput
from onehop.group import Group
from onehop_bench import parse_sizes
from onehop_bench.commands.start import Start, on_ranks
from onehop_bench.ddp import DDP_MODELS, ddp, make_ddp_table
from onehop_bench.overlap import COMPUTING, NICENESS, make_overlap_table, overlap, plot_overlap
from onehop_bench.result import Bench
from onehop_bench.run import Advance, Settings
from onehop_bench.torch_groups import has_torch

__all__ = ["bench_ddp", "bench_overlap"]


def _check_torch() -> None:
    if not has_torch():
        raise BadInput("expected PyTorch for this benchmark, found none; pip install torch")


def _end() -> None:
    """End torch's groups, so that none of their threads outlives the interpreter."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


@on_ranks(60, hosts=True, plot=False)
def bench_ddp(
    start: Start,
    models: Annotated[
        str,
        typer.Option(
            "--models", metavar="2x128,...", help="Models by layers and width, separated by commas."
        ),
    ] = ",".join(DDP_MODELS),
    codecs: Annotated[
        str | None,
        typer.Option("--codecs", metavar="q8,...", help="Also train with gradients in these codecs."),
    ] = None,
) -> None:
    """Train GPT-like models with torch's DistributedDataParallel; the time of a step with onehop and with gloo.

    A second line for each model has the same buckets of gradients averaged without computing.
    """
    chosen = models.split(",")
    unknown = [one for one in chosen if one not in DDP_MODELS]
    if unknown:
        raise BadInput(f"expected --models among {', '.join(DDP_MODELS)}, found {unknown[0]!r}")
    names = codecs.split(",") if codecs else []
    for name in names:
        if name not in CODECS[1:]:
            raise BadInput(f"expected --codecs among {', '.join(CODECS[1:])}, found {name!r}")

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return ddp(group, settings, advance, chosen, names)

    start.check()
    _check_torch()
    start.run(measure, 2 * len(chosen), table=make_ddp_table)
    _end()


@on_ranks(30)
def bench_overlap(
    start: Start,
    size: Annotated[str, typer.Option("--size", metavar="4M", help="Bytes of each all-reduce.")] = "4M",
) -> None:
    """Start asynchronous all-reduces of torch and compute until they are done; --plot draws the time line."""
    bytes_each = parse_sizes(size)
    if len(bytes_each) != 1 or bytes_each[0] < 4:
        raise BadInput(f"expected --size as one number of at least 4 bytes, found {size!r}")

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return overlap(group, settings, advance, bytes_each[0])

    cases = (len(NICENESS) + 1) * len(COMPUTING)
    start.check()
    _check_torch()
    start.run(measure, cases, table=make_overlap_table, draw=plot_overlap)
    _end()
