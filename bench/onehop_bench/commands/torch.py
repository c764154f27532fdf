"""`onehop bench` of backends of torch.distributed: training steps, and operations beside computing."""

from __future__ import annotations

from dataclasses import dataclass

from onehop.codec import CODECS
from onehop.error import BadInput
from onehop.options import option
from onehop_bench.commands.options import (
    HostsOptions,
    PlotOptions,
    RanksBenchOptions,
    Size,
    names_option,
    seconds_option,
)
from onehop_bench.commands.start import check, run
from onehop_bench.ddp import DDP_MODELS, ddp, make_ddp_table
from onehop_bench.overlap import COMPUTING, NICENESS, make_overlap_table, overlap, plot_overlap
from onehop_bench.torch_groups import has_torch

__all__ = ["bench_ddp", "bench_overlap"]


def _check(options: RanksBenchOptions) -> None:
    check(options)
    if not has_torch():
        raise BadInput("expected PyTorch for this benchmark, found none; pip install torch")


def _end() -> None:
    """End torch's groups, so that none of their threads outlives the interpreter."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


@dataclass(kw_only=True)
class Ddp(HostsOptions, RanksBenchOptions):
    """The options of `onehop bench ddp`."""

    seconds: float = seconds_option(60)
    models: list[str] = names_option(
        list(DDP_MODELS), "Models by layers and width.", choices=tuple(DDP_MODELS)
    )
    codecs: list[str] = names_option([], "Also train with gradients in these codecs.", choices=CODECS[1:])


def bench_ddp(options: Ddp) -> None:
    """Train GPT-like models with torch's DistributedDataParallel; the time of a step with onehop and with gloo.

    A second line for each model has the same buckets of gradients averaged without computing.
    """
    _check(options)
    run(
        options,
        lambda *on: ddp(*on, options.models, options.codecs),
        2 * len(options.models),
        flag=True,
        table=make_ddp_table,
    )
    _end()


@dataclass(kw_only=True)
class Overlap(PlotOptions, RanksBenchOptions):
    """The options of `onehop bench overlap`."""

    seconds: float = seconds_option(30)
    size: int = option(4 << 20, "Bytes of each all-reduce.", metavar="4M", kind=Size)


def bench_overlap(options: Overlap) -> None:
    """Start asynchronous all-reduces of torch and compute until they are done; --plot draws the time line."""
    if options.size < 4:
        raise BadInput(f"expected --size of at least 4 bytes, found {options.size}")
    _check(options)
    cases = (len(NICENESS) + 1) * len(COMPUTING)
    run(
        options,
        lambda *on: overlap(*on, options.size),
        cases,
        flag=True,
        table=make_overlap_table,
        draw=plot_overlap,
    )
    _end()
