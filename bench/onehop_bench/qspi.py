"""`onehop bench qspi`: ping-pong and 5-D halo through the drop-in interface `qspi`, as in its authors' report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onehop.figure import empty_figure, save_figure
from onehop.group import Group
from onehop.text import bytes_text
from onehop_bench import native
from onehop_bench.plot import SPEED_OF_LIGHT, log_scale, peer_looks, size_axis
from onehop_bench.result import Bench, Row, extended, machine_text, make_row, samples_of
from onehop_bench.run import Advance, Settings, _begin

__all__ = ["HALO_MESSAGES", "QSPI_PATTERNS", "QSPI_SIZES", "QspiRow", "qspi", "save_qspi_plot"]

QSPI_SIZES = (8, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
QSPI_PATTERNS = ("ping-pong", "5-D halo")
HALO_MESSAGES = 10  # two faces in each of five directions


@dataclass(frozen=True)
class QspiRow(Row):
    """One size of one of the two patterns.

    Attributes
    ----------
    pattern : str
        "ping-pong" or "5-D halo".
    message_bytes : int
        The size of one message.
    """

    pattern: str
    message_bytes: int


def qspi(group: Group, settings: Settings, advance: Advance, sizes: Sequence[int] = QSPI_SIZES) -> Bench:
    """Measure both patterns between two ranks, with qspi as `ours` and a plain channel as a variant.

    The time of the ping-pong is half a round trip. In the halo each rank sends ten messages to the other one and
    receives ten, all at once. ONEHOP_QSPI_TOGETHER=1 declares that, unless the variable is set already.
    """
    os.environ.setdefault("ONEHOP_QSPI_TOGETHER", "1")
    result = _begin("qspi", group, 2)
    effort = settings.effort(2 * len(sizes))
    for pattern in QSPI_PATTERNS:
        for size in sizes:
            halo = pattern == QSPI_PATTERNS[1]
            if halo:
                measured = native.exchange(group, size, HALO_MESSAGES, effort, settings.peers, qspi=True)
            else:
                measured = native.ping_pong(group, size, effort, False, settings.peers, qspi=True)
            count = f"{HALO_MESSAGES} x " if halo else ""
            row = make_row(
                f"{pattern}, {count}{bytes_text(size, exact=True)}",
                size * (HALO_MESSAGES if halo else 1),
                2,
                samples_of(measured),
            )
            result.rows.append(extended(row, QspiRow, pattern=pattern, message_bytes=size))
            advance(1)
    return result


def save_qspi_plot(result: Bench, file: str) -> None:
    """Draw the report's two figures, one above the other: times over the message size, and speedups over MPI.

    Raises
    ------
    Error
        matplotlib is not installed.
    BadInput
        The file cannot be written, or matplotlib does not know the format that its name ends with.
    """
    figure = empty_figure(10, 8)
    axes = figure.subplots(2, 2, sharex=True, squeeze=False)
    for (times, gains), pattern in zip(axes, QSPI_PATTERNS, strict=True):
        rows = [row for row in result.rows if isinstance(row, QspiRow) and row.pattern == pattern]
        _draw_pattern(times, gains, rows)
        times.set_title(f"{pattern}: time", fontsize=10)
        gains.set_title(f"{pattern}: MPI's time over qspi's", fontsize=10)
    for bottom in axes[1]:
        bottom.set_xlabel("size of a message")
    figure.suptitle(machine_text(result.host), fontsize=10)
    save_figure(figure, file, dpi=130)


def _draw_pattern(times: Any, gains: Any, rows: Sequence[QspiRow]) -> None:
    sizes = [row.message_bytes for row in rows]
    times.plot(sizes, [row.ours_us for row in rows], "o-", color="tab:red", label="qspi", zorder=3)
    names = list(dict.fromkeys(name for row in rows for name in row.peers))
    for name, look in peer_looks(names).items():
        times.plot(sizes, [row.peers.get(name) for row in rows], linestyle="--", label=name, **look)
        ratios = [row.ratios.get(name) for row in rows]
        gains.plot(sizes, [ratio and 1 / ratio for ratio in ratios], linestyle="--", label=name, **look)
    times.plot(sizes, [row.limit_us for row in rows], label="speed of light", **SPEED_OF_LIGHT)
    gains.axhline(1, color="black", linewidth=0.8)
    for axes in (times, gains):
        size_axis(axes, sizes)
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7)
    log_scale(times)
    times.set_ylabel("time in µs (median)")
    gains.set_ylabel("MPI's time over qspi's")
    gains.set_ylim(bottom=0)
