"""The figure of a map: the grid, with one colour per host and lines between hosts."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop._core import RankMap
from onehop.error import BadInput
from onehop.figure import empty_figure, save_figure
from onehop.text import counted
from onehop.topology.grid import Grid

_LARGEST = 512  # positions per dimension of a figure
_DOTS = 64  # dots are drawn up to so many positions per dimension


def _colours(hosts: int) -> NDArray[np.float64]:
    """Return one light colour per host; the golden ratio keeps consecutive hosts apart."""
    return np.array(
        [colorsys.hls_to_rgb(host * 0.618034 % 1, 0.88 if host % 2 else 0.8, 0.6) for host in range(hosts)]
    )


def _planes(extents: tuple[int, ...]) -> tuple[int, int, int]:
    """Return rows, columns and number of the planes that a grid is drawn as."""
    if len(extents) == 1:
        return 1, extents[0], 1
    planes = 1
    for extent in extents[:-2]:
        planes *= extent
    return extents[-2], extents[-1], planes


def _draw_plane(axes: Any, hosts: NDArray[np.int64], colours: NDArray[np.float64]) -> None:
    rows, columns = hosts.shape
    axes.imshow(colours[hosts], interpolation="nearest", origin="upper")
    style = {"color": "tab:blue", "linewidth": 1.6 if max(rows, columns) <= _DOTS else 0.5}
    below = np.argwhere(hosts[1:] != hosts[:-1])
    axes.hlines(below[:, 0] + 0.5, below[:, 1] - 0.5, below[:, 1] + 0.5, **style)
    right = np.argwhere(hosts[:, 1:] != hosts[:, :-1])
    axes.vlines(right[:, 1] + 0.5, right[:, 0] - 0.5, right[:, 0] + 0.5, **style)
    if max(rows, columns) <= _DOTS:
        y, x = np.mgrid[:rows, :columns]
        axes.scatter(x, y, s=min(40.0, 2000 / max(rows, columns)), color="tab:orange", zorder=2)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color("tab:blue")


def check_map_figure(extents: Sequence[int]) -> None:
    """Check that a map on a grid of these extents can be drawn.

    Raises
    ------
    BadInput
        Its planes have more than 512 positions in a dimension.
    """
    rows, columns, _ = _planes(tuple(extents))
    if max(rows, columns) > _LARGEST:
        raise BadInput(
            f"map: expected at most {_LARGEST} positions in the dimensions of a plot, found {rows} x {columns}"
        )


def save_map_figure(grid: Grid, found: RankMap, file: str) -> None:
    """Draw a map on its grid: a dot per rank, a colour and a blue border per host.

    Grids of 3 dimensions and more are drawn as planes of their last two dimensions, up to 36 of them.

    Raises
    ------
    BadInput
        The planes have more than 512 positions in a dimension, or the file cannot be written.
    Error
        matplotlib is not installed.
    """
    check_map_figure(grid.extents)
    rows, columns, planes = _planes(tuple(grid.extents))
    hosts = np.array(found.host_at).reshape(planes, rows, columns)
    colours = _colours(int(hosts.max()) + 1)
    shown = min(planes, 36)
    across = int(np.ceil(np.sqrt(shown)))
    down = -(-shown // across)
    figure = empty_figure(
        *((8.0, 8.0 * max(0.3, min(1.5, rows / columns)) + 0.6) if shown == 1 else (9.0, 9.6))
    )
    panels = figure.subplots(down, across, squeeze=False)
    for number, axes in enumerate(panels.flat):
        if number >= shown:
            axes.set_axis_off()
            continue
        _draw_plane(axes, hosts[number], colours)
        if shown > 1:
            axes.set_title(f"plane {number}", fontsize=8)
    cost = found.cost
    more = "" if shown == planes else f"; the first {shown} of {planes} planes"
    figure.suptitle(
        f"{found.chosen}: {counted(cost.edges_between_hosts, 'edge')} between hosts, "
        f"{cost.busiest_host_edges} of the busiest{more}"
    )
    save_figure(figure, file, dpi=150)
