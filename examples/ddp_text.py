"""Training a small transformer with compressed gradients, on text that ships with Python.

    torchrun --nproc-per-node 2 examples/ddp_text.py --seeds 20 --steps 120 --plot text.svg --json text.json

The model predicts the next byte of the reference of the Python language in the module `pydoc_data.topics`. Every
variant is trained from the same random starts with the same batches, so that only the format of the gradients differs.
One more raw training with other batches shows the effect of chance. Beside the codecs is PowerSGD, the hook of PyTorch
that sends two narrow factors of each gradient matrix; its first steps are raw. `--lossless` measures the lossless
compression of the gradients instead: its ratio and speed, in float32 and bfloat16.
"""

import argparse
import json
import math
import os
import statistics
import sys
import time
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power_sgd
from torch.nn.parallel import DistributedDataParallel

import onehop.torch
from onehop import _core

# Variants by name: codec or the rank of PowerSGD, feedback, and whether the batches are others.
VARIANTS: dict[str, tuple[str | int, bool, bool]] = {
    "raw": ("raw", False, False),
    "raw, other batches": ("raw", False, True),
    "q8": ("q8", False, False),
    "q6": ("q6", False, False),
    "q4": ("q4", False, False),
    "q4 + feedback": ("q4", True, False),
    "q3 + feedback": ("q3", True, False),
    "PowerSGD, rank 16": (16, True, False),
    "PowerSGD, rank 4": (4, True, False),
}
POWER_SGD_FROM = 10  # the step from which PowerSGD compresses
LENGTH, BATCH, WIDTH, LAYERS, HEADS = 64, 8, 128, 5, 4
Run = dict[str, Any]


class Transformer(torch.nn.Module):
    """A decoder of about a million parameters that predicts bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = torch.nn.Embedding(128, WIDTH)
        self.places = torch.nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        layer = torch.nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.logits = torch.nn.Linear(WIDTH, 128)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Return the logits of the byte after each byte of `text`."""
        mask = torch.nn.Transformer.generate_square_subsequent_mask(text.shape[1])
        return self.logits(self.layers(self.bytes(text) + self.places, mask=mask, is_causal=True))


def load() -> tuple[torch.Tensor, torch.Tensor]:
    """Return the text as bytes, for training and for testing."""
    text = "\n".join(topics[name] for name in sorted(topics)).encode("ascii", "replace")
    numbers = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    last = len(numbers) * 9 // 10
    return numbers[:last], numbers[last:]


def batch_of(text: torch.Tensor, batch: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random pieces of the text, and the bytes that follow each of theirs."""
    begins = torch.randint(len(text) - LENGTH - 1, (batch,), generator=generator)
    pieces = torch.stack([text[begin : begin + LENGTH + 1] for begin in begins.tolist()])
    return pieces[:, :-1], pieces[:, 1:]


def loss_of(model: torch.nn.Module, text: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(model(text).flatten(0, 1), following.flatten())


def optimizer_for(model: torch.nn.Module, steps: int) -> tuple[torch.optim.Optimizer, Any]:
    """Return Adam, and a schedule: up during a tenth of the steps, then down to zero."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    warm = max(steps // 10, 1)

    def factor(step: int) -> float:
        return min((step + 1) / warm, 0.5 + 0.5 * math.cos(math.pi * step / steps))

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


class Codec:
    """Gradients in a codec of onehop."""

    def __init__(self, model: DistributedDataParallel, codec: str, feedback: bool) -> None:
        self.state = onehop.torch.CompressionState(codec=codec, feedback=feedback)
        model.register_comm_hook(self.state, onehop.torch.compression_hook)

    def close(self, steps: int) -> float:
        """End the hook, and return the share of the bytes that was sent."""
        self.state.close()
        return self.state.bytes_sent / self.state.bytes_raw


class PowerSGD:
    """Gradients in the factors of PowerSGD, with its error feedback."""

    def __init__(self, model: DistributedDataParallel, rank: int) -> None:
        self.state = power_sgd.PowerSGDState(
            None, matrix_approximation_rank=rank, start_powerSGD_iter=POWER_SGD_FROM
        )
        model.register_comm_hook(self.state, power_sgd.powerSGD_hook)

    def close(self, steps: int) -> float:
        """Return the share of the bytes that was sent."""
        rate, _, _ = self.state.compression_stats()  # of the steps that were compressed
        first = min(POWER_SGD_FROM, steps)
        return (first + (steps - first) / rate) / steps if steps > first else 1.0


def train(variant: str, seed: int, steps: int, data: tuple[torch.Tensor, torch.Tensor]) -> Run:
    """Train one model from its random start, and return its losses, the same on every rank."""
    codec, feedback, others = VARIANTS[variant]
    torch.manual_seed(seed)
    model = DistributedDataParallel(Transformer())
    hook = PowerSGD(model, codec) if isinstance(codec, int) else Codec(model, codec, feedback)
    optimizer, schedule = optimizer_for(model, steps)
    draw = torch.Generator().manual_seed(1000 * seed + 7 * others + dist.get_rank() + 1)
    losses = torch.zeros(steps)
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, *batch_of(data[0], BATCH, draw))
        loss.backward()
        optimizer.step()
        schedule.step()
        losses[step] = loss.detach()
    share = hook.close(steps)
    dist.all_reduce(losses, dist.ReduceOp.AVG)
    check_same_everywhere(model)
    with torch.no_grad():
        test = loss_of(model.module, *batch_of(data[1], 256, torch.Generator().manual_seed(0)))
    return {
        "variant": variant,
        "seed": seed,
        "losses": [losses[i : i + 10].mean().item() for i in range(0, steps, 10)],
        "test_loss": test.item(),
        "bytes": share,
    }


def check_same_everywhere(model: torch.nn.Module) -> None:
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    first = flat.clone()
    dist.broadcast(first, 0)
    assert torch.equal(flat, first), "the ranks' models differ"


def interval(numbers: list[float]) -> tuple[float, float]:
    """Return the mean, and half the width of its 95 % confidence interval (Student's t)."""
    from scipy.stats import t

    if len(numbers) < 2:
        return numbers[0], math.nan
    spread = statistics.stdev(numbers) / len(numbers) ** 0.5
    return statistics.mean(numbers), float(t.ppf(0.975, len(numbers) - 1)) * spread


def summarize(results: list[Run]) -> list[dict[str, Any]]:
    """Return a row per variant: its loss on the test text, and the difference from raw with the same start."""
    raw, rows = {one["seed"]: one["test_loss"] for one in results if one["variant"] == "raw"}, []
    for variant in VARIANTS:
        runs = [one for one in results if one["variant"] == variant]
        loss, width = interval([one["test_loss"] for one in runs])
        against, against_width = interval([one["test_loss"] - raw[one["seed"]] for one in runs])
        rows.append(
            {
                "variant": variant,
                "bytes": runs[0]["bytes"],
                "test_loss": loss,
                "interval": width,
                "against_raw": against,
                "against_raw_interval": against_width,
            }
        )
    return rows


def print_table(rows: list[dict[str, Any]], seeds: int) -> None:
    print(
        f"{seeds} random starts per variant; means with 95 % confidence intervals. The loss is that on the test text."
    )
    print(f"{'':20}   bytes           test loss      difference from raw, same start")
    for row in rows:
        loss = f"{row['test_loss']:.4f} ± {row['interval']:.4f}"
        against = f"{row['against_raw']:+.4f} ± {row['against_raw_interval']:.4f}"
        print(
            f"{row['variant']:20} {row['bytes']:7.1%} {loss:>19} {'' if row['variant'] == 'raw' else against:>28}"
        )


def plot(results: list[Run], rows: list[dict[str, Any]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for variant in VARIANTS:
        runs = [one["losses"] for one in results if one["variant"] == variant]
        means = [statistics.mean(losses) for losses in zip(*runs, strict=True)]
        left.plot([10 * step + 5 for step in range(len(means))], means, label=variant, linewidth=1.2)
    left.set(xlabel="step", ylabel="training loss in nats per byte", title="means over the starts")
    left.legend()
    for place, row in enumerate(rows[1:]):
        right.errorbar(row["against_raw"], place, xerr=row["against_raw_interval"], fmt="o", capsize=5)
    right.axvline(0, color="0.6", linewidth=1)
    right.set_yticks(range(len(rows) - 1), [row["variant"] for row in rows[1:]])
    right.invert_yaxis()
    right.locator_params(axis="x", nbins=6)
    right.set(xlabel="test loss minus that of raw", title="same starts; 95 % confidence intervals")
    figure.savefig(path, dpi=110)


def measure_lossless(steps: int, data: tuple[torch.Tensor, torch.Tensor]) -> list[dict[str, Any]]:
    """Return the ratio and the speed of lossless compression for the gradients of one rank, at some steps."""
    torch.manual_seed(0)
    model, rows = Transformer(), []
    optimizer, schedule = optimizer_for(model, steps)
    draw = torch.Generator().manual_seed(1)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, *batch_of(data[0], BATCH, draw)).backward()
        gradient = torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()])
        optimizer.step()
        schedule.step()
        if step in (0, steps // 2, steps - 1):
            for numbers in (gradient, gradient.bfloat16()):
                rows.append({"step": step, **ratio_and_speed(numbers)})
    return rows


def ratio_and_speed(numbers: torch.Tensor) -> dict[str, Any]:
    """Return the share of the bytes that lossless compression leaves, and its speed in GB of numbers per second."""
    kind, size = str(numbers.dtype).removeprefix("torch."), numbers.numel() * numbers.element_size()
    wire = torch.empty(_core.lossless_most_bytes(kind, numbers.numel()), dtype=torch.uint8)
    back = torch.empty_like(numbers)
    times: dict[str, list[float]] = {"encode": [], "decode": []}
    for _ in range(20):
        begin = time.perf_counter()
        used = _core.lossless_encode(kind, numbers, wire)
        middle = time.perf_counter()
        _core.lossless_decode(kind, wire[:used], back)
        times["decode"].append(time.perf_counter() - middle)
        times["encode"].append(middle - begin)
    assert torch.equal(back, numbers)
    speeds = {f"{name}_gb_per_s": size / 1e9 / statistics.median(some) for name, some in times.items()}
    return {"type": kind, "numbers": numbers.numel(), "bytes": used / size, **speeds}


def show_lossless(rows: list[dict[str, Any]]) -> None:
    print(f"{'step':>6} {'type':10} {'numbers':>9} {'bytes':>7} {'encode GB/s':>12} {'decode GB/s':>12}")
    for row in rows:
        print(
            f"{row['step']:6} {row['type']:10} {row['numbers']:9} {row['bytes']:7.1%} "
            f"{row['encode_gb_per_s']:12.2f} {row['decode_gb_per_s']:12.2f}"
        )


def all_runs(seeds: int, steps: int, data: tuple[torch.Tensor, torch.Tensor], file: str | None) -> list[Run]:
    """Train all variants. With a file, go on where it ends, and write it after every start."""
    results: list[Run] = []
    if file and Path(file).exists():
        results = json.loads(Path(file).read_text())["runs"]
        if any(len(one["losses"]) != math.ceil(steps / 10) for one in results):
            sys.exit(f"expected the results of {steps} steps in {file}, found others; name another file")
    dist.barrier()
    for seed in range(len(results) // len(VARIANTS), seeds):
        results += [train(variant, seed, steps, data) for variant in VARIANTS]
        if file and dist.get_rank() == 0:
            Path(file).write_text(json.dumps({"variants": summarize(results), "runs": results}, indent=1))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="Number of random starts per variant.")
    parser.add_argument("--steps", type=int, default=200, help="Number of steps.")
    parser.add_argument("--backend", default="onehop", help="Backend of torch.distributed: onehop, gloo, ...")
    parser.add_argument(
        "--lossless", action="store_true", help="Measure lossless compression of the gradients."
    )
    parser.add_argument("--plot", help="Plot the losses to this PNG or SVG file.")
    parser.add_argument(
        "--json", help="Write results to this file after every start; go on where an existing file ends."
    )
    options = parser.parse_args()
    if "RANK" not in os.environ:
        sys.exit(f"expected a launch by torchrun, found none: torchrun --nproc-per-node 2 {sys.argv[0]}")
    if options.seeds < 1 or options.steps < 10:
        parser.error(f"expected 1 seed and 10 steps or more, found {options.seeds} and {options.steps}")
    torch.set_num_threads(1)
    dist.init_process_group(options.backend)
    data = load()
    if options.lossless:
        rows = measure_lossless(options.steps, data)
        if dist.get_rank() == 0:
            show_lossless(rows)
            if options.json:
                Path(options.json).write_text(json.dumps(rows, indent=1))
    else:
        results = all_runs(options.seeds, options.steps, data, options.json)
        if dist.get_rank() == 0:
            rows = summarize(results)
            print_table(rows, options.seeds)
            if options.plot:
                plot(results, rows, options.plot)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
