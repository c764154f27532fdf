"""Show the result of a benchmark, write it as JSON and draw it."""

from __future__ import annotations

from collections.abc import Callable

from rich.table import Table

from onehop.cli.common import console, own_rank, write_json
from onehop_bench.plot import save_plot
from onehop_bench.result import Bench
from onehop_bench.table import make_peer_table, make_rounding_table, make_table

__all__ = ["show"]


def show(
    result: Bench,
    json_target: str | None,
    plot: str | None = None,
    table: Callable[[Bench], Table] = make_table,
    draw: Callable[[Bench, str], None] = save_plot,
) -> None:
    """Print tables and notes on rank 0, and write JSON and a plot if they are asked for."""
    screen = console(json_target)
    screen.print(table(result))
    for further in (make_rounding_table(result), make_peer_table(result)):
        if further is not None:
            screen.print()
            screen.print(further)
    for note in result.notes:
        screen.print(note, markup=False)
    write_json(json_target, result.to_dict())
    if plot is not None and own_rank() == 0:
        draw(result, plot)
