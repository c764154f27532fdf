"""`onehop bench qspi`: ping-pong and 5-D halo through the drop-in interface `qspi`, as in its authors' report.

Rows have their `pattern` and `message_bytes`, the size of one message, as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from onehop.error import BadInput
from onehop.figure import empty_figure, save_figure
from onehop.text import bytes_text
from onehop_bench import native
from onehop_bench.measure import Benchmark, Run, run
from onehop_bench.options import PlotOptions, RanksBenchOptions, parse_sizes, sizes_option
from onehop_bench.plot import draw_speedups, draw_times
from onehop_bench.result import Bench, Row, machine_text, make_row, samples_of

_PATTERNS = {"ping-pong": 1, "5-D halo": 10}  # messages at once: two faces in each of five directions


@dataclass(kw_only=True)
class Qspi(PlotOptions, RanksBenchOptions):
    sizes: list[int] | None = sizes_option("Bytes per message; multiples of 8.")


def save_qspi_plot(result: Bench, file: str) -> None:
    """Draw the report's two figures, one above the other: times over the message size, and speedups over MPI."""
    figure = empty_figure(10, 8)
    for (times, gains), pattern in zip(figure.subplots(2, 2, sharex=True), _PATTERNS, strict=True):
        rows = [row for row in result.rows if row.pattern == pattern]
        sizes = [row.message_bytes for row in rows]
        draw_times(times, rows, sizes, "qspi")
        draw_speedups(gains, rows, sizes)
        times.set_title(f"{pattern}: time", fontsize=10)
        gains.set_title(f"{pattern}: MPI's time over qspi's", fontsize=10)
        for axes in (times, gains):
            axes.set_xlabel("size of a message")
    figure.suptitle(machine_text(result.host), fontsize=10)
    save_figure(figure, file, dpi=130)


def bench_qspi(options: Qspi) -> None:
    """Measure ping-pong and a 5-D halo exchange through the drop-in interface qspi.

    --plot draws the two figures of qspi's report.
    """
    sizes = options.sizes or parse_sizes("8,64,256,1K,4K,16K,64K,256K,1M")
    if any(size < 8 or size % 8 for size in sizes):
        raise BadInput(f"expected --sizes as multiples of 8, found {','.join(map(str, sizes))}")
    os.environ.setdefault("ONEHOP_QSPI_TOGETHER", "1")

    def rows(on: Run) -> Iterator[Row]:
        for pattern, size in on.cases:
            messages = _PATTERNS[pattern]
            if messages > 1:
                measured = native.exchange(on.group, size, messages, on.effort, on.peers, qspi=True)
            else:
                measured = native.ping_pong(on.group, size, on.effort, False, on.peers, qspi=True)
            count = f"{messages} x " if messages > 1 else ""
            case = f"{pattern}, {count}{bytes_text(size, exact=True)}"
            samples = samples_of(measured)
            yield make_row(case, size * messages, 2, samples, pattern=pattern, message_bytes=size)

    cases = [(pattern, size) for pattern in _PATTERNS for size in sizes]
    run(options, Benchmark(name="qspi", cases=cases, rows=rows, exactly=2), flag=False, draw=save_qspi_plot)
