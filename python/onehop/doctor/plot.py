"""The plot of `onehop doctor --all`: times and rates of the links between hosts as two matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from onehop.figure import empty_figure, save_figure

if TYPE_CHECKING:
    from onehop.doctor.allocation import Pair

_MOST_NUMBERS = 16  # hosts, up to which the squares have numbers


def save_links_plot(file: str, names: Sequence[str], pairs: Sequence[Pair]) -> None:
    """Draw the matrices of times and rates to a file. Raises BadInput, and Error without matplotlib."""
    size = max(3.0, 0.45 * min(len(names), 30))
    figure = empty_figure(2 * size + 2, size + 1)
    for place, (title, name) in enumerate(
        (("time of 16 bytes, µs", "us"), ("rate of 4 MiB, GB/s", "gb_per_s")), 1
    ):
        matrix = np.full((len(names), len(names)), np.nan)
        for one in pairs:
            matrix[one.a, one.b] = matrix[one.b, one.a] = getattr(one, name)
        axes = figure.add_subplot(1, 2, place)
        image = axes.imshow(matrix, cmap="viridis_r" if name == "us" else "viridis")
        axes.set_title(title)
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
        figure.colorbar(image, ax=axes, shrink=0.8)
        if len(names) <= _MOST_NUMBERS:
            for (row, column), value in np.ndenumerate(matrix):
                if np.isfinite(value):
                    axes.text(
                        column, row, f"{value:.3g}", ha="center", va="center", color="white", fontsize=7
                    )
    save_figure(figure, file)
