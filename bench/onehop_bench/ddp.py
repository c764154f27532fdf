"""`onehop bench ddp`: training steps of GPT-like models in DistributedDataParallel, with onehop and with gloo.

Times are those of a whole training step, or of its buckets alone: `what` is "step" or "buckets". Rows also have the
`model`, its layers and width, and its numbers of `parameters` and of `buckets` of gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from onehop.cli.screen import Table
from onehop.codec import CODECS
from onehop.collectives import allgather, allreduce, barrier
from onehop.cores import machine_cores
from onehop.error import Error
from onehop.group import Group
from onehop.text import bytes_text, counted, number
from onehop_bench.measure import Benchmark, Run, run
from onehop_bench.options import HostsOptions, RanksBenchOptions, names_option, seconds_option
from onehop_bench.result import Bench, Row, Samples, make_row
from onehop_bench.table import (
    RATIO_COLUMN,
    Columns,
    dict_columns,
    machine_caption,
    make_peer_table,
    table_of,
    time_columns,
)
from onehop_bench.torch_groups import check_torch, end_torch, process_groups

BATCH, LENGTH, WORDS = 2, 64, 1024
ROUNDS = 400
#: Models by name: layers, width and heads.
DDP_MODELS = {"2x128": (2, 128, 4), "4x256": (4, 256, 4), "6x512": (6, 512, 8)}


@dataclass(kw_only=True)
class Ddp(HostsOptions, RanksBenchOptions):
    seconds: float = seconds_option(60)
    models: list[str] = names_option(
        list(DDP_MODELS), "Models by layers and width.", choices=tuple(DDP_MODELS)
    )
    codecs: list[str] = names_option([], "Also train with gradients in these codecs.", choices=CODECS[1:])


def _gpt(layers: int, width: int, heads: int) -> Any:
    """A decoder that predicts the next of `WORDS` words."""
    import torch

    class Gpt(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = torch.nn.Embedding(WORDS, width)
            layer = torch.nn.TransformerEncoderLayer(
                width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            self.layers = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.logits = torch.nn.Linear(width, WORDS)
            mask = torch.nn.Transformer.generate_square_subsequent_mask(LENGTH)
            self.register_buffer("mask", mask)

        def forward(self, words: Any) -> Any:
            return self.logits(self.layers(self.words(words), mask=self.mask, is_causal=True))

    return Gpt()


class _Training:
    """One model in DistributedDataParallel on a process group."""

    def __init__(self, model: str, process_group: Any, rank: int, codec: str | None = None) -> None:
        import torch
        from torch.nn.parallel import DistributedDataParallel

        torch.manual_seed(0)
        self.model = DistributedDataParallel(_gpt(*DDP_MODELS[model]), process_group=process_group)
        self.lengths: list[int] = []
        if codec is None:
            self.model.register_comm_hook(process_group, self._noted_average)
        else:
            from onehop.torch import CompressionState, compression_hook

            state = CompressionState(process_group, codec, feedback=False)
            self.model.register_comm_hook(state, compression_hook)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 1e-3)
        draw = torch.Generator().manual_seed(rank)
        self.words = torch.randint(WORDS, (BATCH, LENGTH + 1), generator=draw)

    # Without annotations: DistributedDataParallel inspects those of a hook.
    def _noted_average(self, process_group, bucket):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        """What DistributedDataParallel does without a hook, with a note of the buckets' lengths."""
        import torch.distributed as dist

        self.lengths.append(bucket.buffer().numel())
        work = dist.all_reduce(bucket.buffer().div_(process_group.size()), group=process_group, async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    def step(self) -> None:
        import torch

        self.lengths.clear()
        self.optimizer.zero_grad()
        logits = self.model(self.words[:, :-1])
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), self.words[:, 1:].flatten()).backward()
        self.optimizer.step()

    def step_alone(self) -> None:
        """A step of which the gradients stay on the rank."""
        with self.model.no_sync():
            self.step()

    def gradients(self) -> np.ndarray:
        return np.concatenate([one.grad.reshape(-1).numpy() for one in self.model.parameters()])


def _buckets(process_group: Any, lengths: Sequence[int]) -> Callable[[], None]:
    """A function that averages the buckets of a step, all of them queued at once, without computing."""
    import torch
    import torch.distributed as dist

    buckets = [torch.zeros(length) for length in lengths]

    def run() -> None:
        works = [dist.all_reduce(bucket, group=process_group, async_op=True) for bucket in buckets]
        for work in works:
            work.wait()

    return run


def _measure(
    group: Group, candidates: dict[str, tuple[str, Callable[[], None]]], seconds: float, rounds: int
) -> list[Samples]:
    """Time all candidates in turn, each from a barrier to the end of the last rank."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    begin = perf_counter()
    for _ in range(rounds):
        for name, (_, step) in candidates.items():
            barrier(group)
            start = perf_counter()
            step()
            times[name].append(1e6 * (perf_counter() - start))
        # Rank 0's clock decides for all.
        if allgather(group, np.array([perf_counter() - begin]))[0, 0] > seconds and len(times[name]) >= 3:
            break
    samples = []
    for name, (role, _) in candidates.items():
        slowest = allreduce(group, np.array(times[name]), op="max")
        samples.append(Samples(name, role, slowest))
    return samples


def _rows(on: Run, model: str, groups: dict[str, Any], codecs: Sequence[str]) -> Iterator[Row]:
    """A row of training steps, whose bare code averages nothing, and one of their buckets alone."""
    trainings = {name: _Training(model, group, on.group.rank) for name, group in groups.items()}
    for codec in codecs:
        trainings[f"onehop, {codec}"] = _Training(model, groups["onehop"], on.group.rank, codec)
    for training in trainings.values():
        for _ in range(2):  # torch arranges the buckets anew after the first step
            training.step()
    _check(trainings, model)
    roles = {"onehop": "ours", "gloo": "peer"}
    steps = {name: (roles.get(name, "variant"), training.step) for name, training in trainings.items()}
    steps["computing alone"] = ("speed_of_light", trainings["onehop"].step_alone)
    lengths = list(trainings["onehop"].lengths)
    averages = {name: (roles[name], _buckets(group, lengths)) for name, group in groups.items()}
    parameters = sum(weights.numel() for weights in trainings["onehop"].model.parameters())
    more = {"model": model, "parameters": parameters, "buckets": len(lengths)}
    limit = 0.05 if on.quick else on.seconds / 2
    for what, candidates in (("step", steps), ("buckets", averages)):
        samples = _measure(on.group, candidates, limit, 3 if on.quick else ROUNDS)
        yield make_row(f"{model} {what}", 4 * parameters, on.group.size, samples, **more, what=what)


def _check(trainings: dict[str, _Training], model: str) -> None:
    """Raise Error unless all backends have averaged the same gradients."""
    found = {name: one.gradients() for name, one in trainings.items()}
    exact = found["gloo"]
    for name, gradients in found.items():
        bound = (1e-5 if name == "onehop" else 0.3) * float(np.abs(exact).max())
        off = float(np.abs(gradients - exact).max())
        if not off <= bound:
            raise Error(
                f"expected the gradients of gloo for {model}, found others with {name}: off by {off:g}"
            )


def make_ddp_table(result: Bench) -> Table:
    """A table with a line for each model, and one for its buckets alone."""

    def milliseconds(us: float | None) -> str:
        return number(us / 1e3 if us else None)

    columns: Columns = {
        "model": "case",
        "gradients": lambda row: bytes_text(row.bytes),
        "buckets": "buckets",
        **time_columns("time ms", 1e-3),
        **dict_columns(result.rows, "variants", milliseconds),
        "gloo ms": lambda row: milliseconds(row.peers["gloo"]),
        **RATIO_COLUMN,
        "alone ms": lambda row: milliseconds(row.limit_us),
    }
    title = f"onehop bench ddp, {counted(result.rows[0].ranks, 'rank')}"
    caption = (
        f"{machine_caption(result.host)}\n"
        "ratio: onehop's time over gloo's in the same round; below 1 onehop is faster\n"
        "alone: a step that averages nothing"
    )
    return table_of(result.rows, title, caption, columns)


def bench_ddp(options: Ddp) -> None:
    """Train GPT-like models with torch's DistributedDataParallel; the time of a step with onehop and with gloo.

    A second line for each model has the same buckets of gradients averaged without computing.
    """
    check_torch(options)

    def rows(on: Run) -> Iterator[Row]:
        threads = max(1, machine_cores() // len(on.group.local_ranks))
        groups = process_groups(on.group, threads)
        import torch

        on.result.host["torch"] = torch.__version__
        on.result.notes.append(
            f"torch {torch.__version__}, {counted(threads, 'thread')} per rank, {BATCH} x {LENGTH} words per rank and "
            "step"
        )
        for model in on.cases:
            yield from _rows(on, model, groups, options.codecs)

    benchmark = Benchmark(name="ddp", cases=options.models, rows=rows, across=True)
    run(options, benchmark, tables=(make_ddp_table, make_peer_table))
    end_torch()
