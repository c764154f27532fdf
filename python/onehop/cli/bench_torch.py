"""`onehop bench` of backends of torch.distributed: training steps, and operations beside computing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from onehop.bench import parse_sizes
from onehop.bench.ddp import DDP_MODELS, ddp, make_ddp_table
from onehop.bench.overlap import COMPUTING, NICENESS, make_overlap_table, overlap, plot_overlap
from onehop.bench.result import Bench
from onehop.bench.run import Advance, Settings
from onehop.bench.torch_groups import has_torch
from onehop.cli.bench_hosts import (
    NO_HOSTS,
    HostsOption,
    LinksOption,
    OnHosts,
    PerHostOption,
    RateOption,
    ensure_hosts,
)
from onehop.cli.bench_options import PlotOption, QuickOption, SecondsOption
from onehop.cli.bench_show import show
from onehop.cli.common import JsonOption, MpiOption, RanksOption, check_plot, check_seconds, progress
from onehop.codec import CODECS
from onehop.error import BadInput
from onehop.group import Group
from onehop.launch import ensure_ranks_beside_mpi

__all__ = ["bench_ddp", "bench_overlap"]


def _measured(
    measure: Callable[[Group, Settings, Advance], Bench],
    cases: int,
    ranks: int | None,
    mpi: str | None,
    settings: Settings,
    on: OnHosts = NO_HOSTS,
) -> Bench:
    check_seconds(settings.seconds)
    on.check(ranks, mpi)
    if not has_torch():
        raise BadInput("expected PyTorch for this benchmark, found none; pip install torch")
    if not ensure_hosts(on, mpi):
        ensure_ranks_beside_mpi(ranks, mpi, default=2)
    group = Group.world()
    with progress("measuring", cases) as advance:
        return measure(group, settings, advance)


def _end() -> None:
    """End torch's groups, so that none of their threads outlives the interpreter."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def bench_ddp(
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
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    hosts: HostsOption = None,
    per_host: PerHostOption = None,
    rate: RateOption = None,
    links: LinksOption = None,
    seconds: SecondsOption = 60,
    quick: QuickOption = False,
    json_target: JsonOption = None,
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

    on = OnHosts(hosts, per_host, rate, links)
    result = _measured(measure, 2 * len(chosen), ranks, mpi, Settings(seconds, quick), on)
    show(result, json_target, None, make_ddp_table)
    _end()


def bench_overlap(
    size: Annotated[str, typer.Option("--size", metavar="4M", help="Bytes of each all-reduce.")] = "4M",
    ranks: RanksOption = None,
    mpi: MpiOption = None,
    seconds: SecondsOption = 30,
    quick: QuickOption = False,
    json_target: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Start asynchronous all-reduces of torch and compute until they are done; --plot draws the time line."""
    bytes_each = parse_sizes(size)
    if len(bytes_each) != 1 or bytes_each[0] < 4:
        raise BadInput(f"expected --size as one number of at least 4 bytes, found {size!r}")
    check_plot(plot)

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        return overlap(group, settings, advance, bytes_each[0])

    cases = (len(NICENESS) + 1) * len(COMPUTING)
    result = _measured(measure, cases, ranks, mpi, Settings(seconds, quick))
    draw: Any = plot_overlap
    show(result, json_target, plot, make_overlap_table, draw)
    _end()
