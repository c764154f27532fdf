"""`onehop trace`: sum up the time line of a run."""

from __future__ import annotations

from dataclasses import dataclass

from onehop.cli.common import JsonOptions, RowsOptions, console, write_json
from onehop.cli.screen import Table
from onehop.options import argument, file_option
from onehop.text import bytes_text, seconds_text
from onehop.trace import save_trace_plot, summarize


@dataclass(kw_only=True)
class Trace(RowsOptions, JsonOptions):
    file: str = argument("FILE", "Trace that `onehop launch --trace FILE` or ONEHOP_TRACE=FILE has written.")
    plot: str | None = file_option(
        "Plot the times of the ranks, and who waited for whom, to FILE (.png, .svg or .pdf).", "the plot"
    )


def trace(options: Trace) -> None:
    """Sum up the trace of a run: who waited for whom and how long, bytes by link, and the time of each operation.

    chrome://tracing and https://ui.perfetto.dev show the time line itself.
    """
    found = summarize(options.file)
    screen = console(options.json)
    most = options.rows or None
    ranks = Table(">rank", ">time", ">waited", ">computed", ">sent", title="Ranks")
    for rank in found.ranks[:most]:
        waited = f"{seconds_text(rank.waited_s)} ({100 * rank.waited_s / max(rank.seconds, 1e-12):.0f} %)"
        ranks.add_row(
            rank.rank,
            seconds_text(rank.seconds),
            waited,
            seconds_text(rank.computed_s),
            bytes_text(rank.bytes),
        )
    screen.print(ranks)
    links = Table(
        ">from",
        ">to",
        ">bytes",
        ">waits",
        ">waited",
        title="Links, by the time for which the receiver waited",
    )
    for link in sorted(found.links, key=lambda one: (-one.waited_s, -one.bytes))[:most]:
        links.add_row(
            link.from_rank, link.to_rank, bytes_text(link.bytes), link.waits, seconds_text(link.waited_s)
        )
    screen.print(links)
    operations = Table("operation", "kind", ">count", ">time of all ranks", ">bytes", title="Operations")
    for one in found.operations[:most]:
        operations.add_row(
            one.name, one.category, one.count, seconds_text(one.seconds), bytes_text(one.bytes)
        )
    screen.print(operations)
    write_json(options.json, found.to_dict())
    if options.plot is not None:
        save_trace_plot(found, options.plot)
