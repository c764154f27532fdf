"""Rows as a picture."""

from __future__ import annotations

from itertools import pairwise

from onehop.bench.result import Bench
from onehop.error import BadInput, Error


def save_plot(result: Bench, file: str) -> None:
    """Time over size, or over the cases where sizes do not ascend, onehop against all peers and the limit.

    Raises
    ------
    Error
        matplotlib is not installed.
    BadInput
        The file cannot be written, or its ending is no kind of picture.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Error(f"--plot needs matplotlib ({error}): pip install matplotlib") from error
    rows = result.rows
    sizes = [row.bytes for row in rows]
    by_size = min(sizes) > 0 and len(rows) > 1 and all(a < b for a, b in pairwise(sizes))
    places = sizes if by_size else list(range(len(rows)))
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    marker = "o" if by_size else "s"
    for name in dict.fromkeys(name for row in rows for name in row.peers):
        axes.plot(places, [row.peers.get(name) for row in rows], "--", marker=".", label=name, linewidth=1)
    if any(row.limit_us is not None for row in rows):
        axes.plot(places, [row.limit_us for row in rows], ":", color="black", label="limit")
    axes.plot(
        places, [row.ours_us for row in rows], marker=marker, color="tab:red", label="onehop", linewidth=2
    )
    axes.fill_between(
        places, [row.p10_us for row in rows], [row.p90_us for row in rows], color="tab:red", alpha=0.15
    )
    axes.set_yscale("log")
    if by_size:
        axes.set_xscale("log", base=2)
        axes.set_xlabel("bytes")
    else:
        axes.set_xticks(places, [row.case for row in rows], rotation=20, ha="right")
    axes.set_ylabel("µs, median (band: p10 to p90)")
    axes.set_title(
        f"onehop bench {result.bench}: {result.host['cpu']}, {result.host['mpi'] or 'no MPI'}", fontsize=10
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    try:
        figure.savefig(file, dpi=130)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot write the plot to {file}: {error}") from error
