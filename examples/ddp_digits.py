"""Training with compressed gradients: handwritten digits, raw, q8, q6 and q4, with and without error feedback.

    torchrun --nproc-per-node 2 examples/ddp_digits.py --plot digits.png --json digits.json

Every way is trained from the same random starts with the same batches, so that what differs is only how gradients
travel. The data are 1797 images of 8x8 pixels that come with scikit-learn.
"""

import argparse
import json
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

WAYS = [("raw", False)] + [(codec, feedback) for codec in ("q8", "q6", "q4") for feedback in (True, False)]
Data = tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
Run = dict[str, Any]
BATCH = 32  # images a rank and step


def name_of(codec: str, feedback: bool) -> str:
    return codec + (" + feedback" if feedback else "")


def load() -> Data:
    """Images and labels: (to train with, to test with)."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images = torch.tensor(digits.images[order] / 16, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target[order])
    return (images[:1437], labels[:1437]), (images[1437:], labels[1437:])


def make_model(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        *(torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2)),
        *(torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten()),
        *(torch.nn.Linear(512, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)),
    )


def train(codec: str, feedback: bool, seed: int, epochs: int, data: Data) -> Run:
    """One model from its random start to the end: what came of it, the same on every rank."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    (images, labels), (test_images, test_labels) = data
    model = DistributedDataParallel(make_model(seed))
    state = onehop.torch.CompressionState(codec=codec, feedback=feedback)
    model.register_comm_hook(state, onehop.torch.compressed_allreduce)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    shuffle = torch.Generator().manual_seed(seed)
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
        right = model.module(test_images).argmax(1) == test_labels
    return {
        "codec": codec,
        "feedback": feedback,
        "seed": seed,
        "losses": losses,
        "accuracy": right.float().mean().item(),
        "bytes": state.bytes_sent / state.bytes_raw,
    }


def check_same_everywhere(model: torch.nn.Module) -> None:
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    first = flat.clone()
    dist.broadcast(first, 0)
    assert torch.equal(flat, first), "the ranks' models differ"


def runs_of(results: list[Run], codec: str, feedback: bool) -> list[Run]:
    return [one for one in results if (one["codec"], one["feedback"]) == (codec, feedback)]


def spread(numbers: list[float]) -> float:
    return statistics.stdev(numbers) if len(numbers) > 1 else 0.0


def summarize(results: list[Run]) -> list[dict[str, Any]]:
    """A row for each way: its test accuracy, and how it differs from raw with the same start."""
    raw = runs_of(results, "raw", False)
    rows = []
    for codec, feedback in WAYS:
        runs = runs_of(results, codec, feedback)
        accuracy = [one["accuracy"] for one in runs]
        against = [one["accuracy"] - other["accuracy"] for one, other in zip(runs, raw, strict=True)]
        rows.append(
            {
                "way": name_of(codec, feedback),
                "bytes": runs[0]["bytes"],
                "loss": statistics.mean(one["losses"][-1] for one in runs),
                "accuracy": statistics.mean(accuracy),
                "spread": spread(accuracy),
                "against_raw": statistics.mean(against),
                "uncertainty": spread(against) / len(against) ** 0.5,
            }
        )
    return rows


def print_table(rows: list[dict[str, Any]], seeds: int) -> None:
    print(f"{seeds} starts each; accuracy on images that were not trained with, its spread over the starts,")
    print("and the mean difference from raw with the same start, with its standard error\n")
    print(f"{'':14}   bytes   last loss   accuracy   spread    against raw")
    for row in rows:
        print(
            f"{row['way']:14} {row['bytes']:6.1%} {row['loss']:11.5f} {row['accuracy']:10.2%} "
            f"{row['spread']:8.2%} {row['against_raw']:+8.2%} ± {row['uncertainty']:.2%}"
        )


def plot(results: list[Run], rows: list[dict[str, Any]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=[3, 2], layout="constrained")
    colours = {"raw": "black", "q8": "tab:blue", "q6": "tab:green", "q4": "tab:red"}
    for place, (codec, feedback) in enumerate(WAYS):
        runs = runs_of(results, codec, feedback)
        losses = np.array([one["losses"] for one in runs])
        epochs = np.arange(1, losses.shape[1] + 1)
        line = "-" if feedback or codec == "raw" else "--"
        left.plot(epochs, losses.mean(axis=0), line, color=colours[codec], label=name_of(codec, feedback))
        accuracy = [100 * one["accuracy"] for one in runs]
        right.plot(accuracy, [place] * len(accuracy), "o", color=colours[codec], alpha=0.35)
        right.plot(
            100 * rows[place]["accuracy"], place, "|", color=colours[codec], markersize=22, markeredgewidth=2
        )
    left.set(
        xlabel="epoch", ylabel="training loss, mean of all starts", yscale="log", title="Digits on 2 ranks"
    )
    left.legend()
    right.set_yticks(range(len(WAYS)), [name_of(*way) for way in WAYS])
    right.invert_yaxis()
    right.set(xlabel="test accuracy in %", title="Each start, and the mean (bar)")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="random starts for each way")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--backend", default="onehop", help="of torch.distributed: onehop, gloo, ...")
    parser.add_argument("--plot", help="draw the losses into this PNG")
    parser.add_argument("--json", help="write all figures into this file")
    options = parser.parse_args()
    if "RANK" not in os.environ:
        sys.exit(f"start it with torchrun: torchrun --nproc-per-node 2 {sys.argv[0]}")

    torch.set_num_threads(1)
    dist.init_process_group(options.backend)
    data = load()
    results = [
        train(codec, feedback, seed, options.epochs, data)
        for seed in range(options.seeds)
        for codec, feedback in WAYS
    ]
    if dist.get_rank() == 0:
        rows = summarize(results)
        print_table(rows, options.seeds)
        if options.json:
            figures = {"backend": options.backend, "ways": rows, "runs": results}
            Path(options.json).write_text(json.dumps(figures, indent=1))
        if options.plot:
            plot(results, rows, options.plot)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
