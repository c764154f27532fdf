"""Training with compressed gradients: handwritten digits, raw, q8, q6 and q4, with and without error feedback.

    torchrun --nproc-per-node 2 examples/ddp_digits.py --plot digits.svg --json digits.json

Every variant is trained from the same random starts with the same batches, so that only the format of the gradients
differs. One more raw training with the batches in another order shows the effect of chance. The data are the 1797
images of 8x8 pixels in scikit-learn.
"""

import argparse
import json
import math
import os
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel

import onehop.torch

CODECS = ("q8", "q6", "q4")
# Variants by name: codec, feedback, and whether the batches come in another order.
VARIANTS = {"raw": ("raw", False, False), "raw, other order": ("raw", False, True)}
VARIANTS |= {
    codec + " + feedback" * feedback: (codec, feedback, False)
    for codec in CODECS
    for feedback in (True, False)
}
Data = tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
Run = dict[str, Any]
BATCH = 32  # images per rank and step


def load() -> Data:
    """Return images and labels for training, and for testing."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images = torch.tensor(digits.images[order] / 16, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target[order])
    return (images[:1280], labels[:1280]), (images[1280:], labels[1280:])


def make_model(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        *(torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2)),
        *(torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten()),
        *(torch.nn.Linear(512, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)),
    )


def train(variant: str, seed: int, epochs: int, data: Data) -> Run:
    """Train one model from its random start, and return its losses and accuracy, the same on every rank."""
    codec, feedback, other_order = VARIANTS[variant]
    rank, ranks = dist.get_rank(), dist.get_world_size()
    (images, labels), (test_images, test_labels) = data
    model = DistributedDataParallel(make_model(seed))
    state = onehop.torch.CompressionState(codec=codec, feedback=feedback)
    model.register_comm_hook(state, onehop.torch.compression_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    shuffle = torch.Generator().manual_seed(seed + 1000 * other_order)
    steps, losses = len(labels) // (BATCH * ranks), []
    for _ in range(epochs):
        order = torch.randperm(len(labels), generator=shuffle)
        total = torch.zeros(1)
        for step in range(steps):
            first = (step * ranks + rank) * BATCH
            mine = order[first : first + BATCH]
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images[mine]), labels[mine])
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        losses.append(total.item() / (steps * ranks))
    state.close()
    check_same_everywhere(model)
    with torch.no_grad():
        logits = model.module(test_images)
        right = logits.argmax(1) == test_labels
    return {
        "variant": variant,
        "seed": seed,
        "losses": losses,
        "accuracy": right.float().mean().item(),
        "test_loss": torch.nn.functional.cross_entropy(logits, test_labels).item(),
        "bytes": state.bytes_sent / state.bytes_raw,
    }


def check_same_everywhere(model: torch.nn.Module) -> None:
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    first = flat.clone()
    dist.broadcast(first, 0)
    assert torch.equal(flat, first), "the ranks' models differ"


def runs_of(results: list[Run], variant: str) -> list[Run]:
    return [one for one in results if one["variant"] == variant]


def interval(numbers: list[float]) -> tuple[float, float]:
    """Return the mean, and half the width of its 95 % confidence interval (Student's t)."""
    from scipy.stats import t

    if len(numbers) < 2:
        return numbers[0], math.nan
    spread = statistics.stdev(numbers) / len(numbers) ** 0.5
    return statistics.mean(numbers), float(t.ppf(0.975, len(numbers) - 1)) * spread


def summarize(results: list[Run]) -> list[dict[str, Any]]:
    """Return a row per variant: loss and accuracy, and their differences from raw with the same start."""
    raw, rows = runs_of(results, "raw"), []
    for variant in VARIANTS:
        runs = runs_of(results, variant)
        row: dict[str, Any] = {"variant": variant, "bytes": runs[0]["bytes"]}
        for name in ("test_loss", "accuracy"):
            values = [one[name] for one in runs]
            differences = [one[name] - other[name] for one, other in zip(runs, raw, strict=True)]
            row[name], row[f"{name}_interval"] = interval(values)
            row[f"{name}_against_raw"], row[f"{name}_against_raw_interval"] = interval(differences)
        row["loss"] = statistics.mean(one["losses"][-1] for one in runs)
        rows.append(row)
    return rows


def print_table(rows: list[dict[str, Any]], seeds: int) -> None:
    print(
        f"{seeds} random starts per variant; means with 95 % confidence intervals. Loss and accuracy are those on the"
    )
    print("test images. A difference from raw is computed for each start separately.\n")
    print(
        f"{'':16}   bytes           test loss     minus that of raw          accuracy     minus that of raw"
    )
    for row in rows:
        first = row["variant"] == "raw"
        loss = f"{row['test_loss']:.4f} ± {row['test_loss_interval']:.4f}"
        loss_against = f"{row['test_loss_against_raw']:+.4f} ± {row['test_loss_against_raw_interval']:.4f}"
        accuracy = f"{row['accuracy']:.2%} ± {row['accuracy_interval']:.2%}"
        against = f"{row['accuracy_against_raw']:+.2%} ± {row['accuracy_against_raw_interval']:.2%}"
        print(
            f"{row['variant']:16} {row['bytes']:7.1%} {loss:>19} {'' if first else loss_against:>21} {accuracy:>17} "
            f"{'' if first else against:>21}"
        )


def plot(results: list[Run], rows: list[dict[str, Any]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(13.5, 7.5), layout="constrained")
    losses = {variant: np.array([one["losses"] for one in runs_of(results, variant)]) for variant in VARIANTS}
    epochs = np.arange(1, losses["raw"].shape[1] + 1)
    for codec, panel in zip(CODECS, axes.flat, strict=False):
        low, high = losses["raw"].min(axis=0), losses["raw"].max(axis=0)
        panel.fill_between(epochs, low, high, color="0.85", label="raw, smallest to largest")
        for variant, style in (("raw", "k-"), (f"{codec} + feedback", "C0--"), (codec, "C3:")):
            panel.plot(epochs, losses[variant].mean(axis=0), style, label=f"{variant}, mean", linewidth=2)
        panel.set(xlabel="epoch", ylabel="training loss", yscale="log", title=f"{codec}: losses")
        panel.legend()
    names = {
        "test_loss": ("test loss minus that of raw", 1),
        "accuracy": ("test accuracy minus that of raw, %", 100),
    }
    for panel, (name, (label, unit)) in zip(axes.flat[len(CODECS) :], names.items(), strict=False):
        for place, row in enumerate(rows[1:]):
            mean, width = row[f"{name}_against_raw"], row[f"{name}_against_raw_interval"]
            panel.errorbar(unit * mean, place, xerr=unit * width, fmt="o", capsize=5)
        panel.axvline(0, color="0.6", linewidth=1)
        panel.set_yticks(range(len(rows) - 1), [row["variant"] for row in rows[1:]])
        panel.invert_yaxis()
        panel.locator_params(axis="x", nbins=6)
        panel.set(xlabel=label, title="same starts; 95 % confidence intervals")
    axes.flat[-1].axis("off")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="Number of random starts per variant.")
    parser.add_argument("--epochs", type=int, default=12, help="Number of epochs.")
    parser.add_argument("--backend", default="onehop", help="Backend of torch.distributed: onehop, gloo, ...")
    parser.add_argument("--plot", help="Plot losses and accuracies to this PNG or SVG file.")
    parser.add_argument("--json", help="Write all results to this file.")
    options = parser.parse_args()
    if "RANK" not in os.environ:
        sys.exit(f"expected a launch by torchrun, found none: torchrun --nproc-per-node 2 {sys.argv[0]}")

    torch.set_num_threads(1)
    dist.init_process_group(options.backend)
    data = load()
    results = [
        train(variant, seed, options.epochs, data) for seed in range(options.seeds) for variant in VARIANTS
    ]
    if dist.get_rank() == 0:
        rows = summarize(results)
        print_table(rows, options.seeds)
        if options.json:
            figures = {"backend": options.backend, "variants": rows, "runs": results}
            Path(options.json).write_text(json.dumps(figures, indent=1))
        if options.plot:
            plot(results, rows, options.plot)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
