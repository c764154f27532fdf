"""The rows of `onehop bench circuits` as tables and as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from onehop.cli.screen import Table, coloured
from onehop.figure import empty_figure, save_figure
from onehop.text import number
from onehop_bench.circuits import CircuitRow
from onehop_bench.plot import draw_known, log_scale, peer_looks, shared_legend, time_unit
from onehop_bench.result import Bench, machine_text
from onehop_bench.table import Cell, empty_table, table_of

__all__ = ["duration", "make_circuit_peer_table", "make_circuit_table", "peer_columns", "save_circuit_plot"]

TYPES = {"double": "f64", "single": "f32"}


def _rows(result: Bench) -> list[CircuitRow]:
    return [cast(CircuitRow, row) for row in result.rows]


def duration(seconds: float | None, digits: int = 3) -> str:
    """The duration with `digits` digits and a unit; a dash for None."""
    if seconds is None:
        return "-"
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 0.9995:
            return f"{number(seconds * factor, digits)} {unit}"
    return f"{number(seconds * 1e6, digits)} µs"


def _speedup(value: float | None) -> str:
    text = number(value)
    if value is None:
        return text
    return coloured(text, "green" if value >= 1 else "red")


def make_circuit_table(result: Bench) -> Table:
    """A table with a line for each row: onehop's time and passes, and the best peer."""
    caption = (
        f"{result.host['cpu']}, {result.host['cores']} cores, {result.host['simd']}\n"
        "f64, f32: double and single precision; time: the best of several runs;\n"
        "plan: time to plan a circuit that was not planned before; x pass: time over that\n"
        "of one pass, which reads and writes the state once;\n"
        "speedup: the best peer's time over onehop's"
    )
    columns: dict[str, Cell] = {
        "case": lambda row: row.case,
        "n": lambda row: str(row.qubits),
        "type": lambda row: TYPES[row.precision],
        "time": lambda row: duration(row.ours_s),
        "plan": lambda row: duration(row.plan_s, 2),
        "passes": lambda row: f"{row.passes:g}",
        "x pass": lambda row: number(row.pass_times),
        "best peer": lambda row: row.best_peer or "-",
        "its time": lambda row: duration(row.best_peer_s),
        "speedup": lambda row: _speedup(row.speedup),
    }
    return table_of(result.rows, "onehop bench circuits", caption, columns, ("case", "best peer"))


def peer_columns(rows: Sequence[Any]) -> dict[str, Cell]:
    """A column with the time of each peer."""
    names = dict.fromkeys(name for row in rows for name in row.peers)
    return {name: lambda row, name=name: duration(row.peers.get(name)) for name in names}


def make_circuit_peer_table(result: Bench) -> Table | None:
    """The time and setting of each peer; None without peers."""
    rows = _rows(result)
    names = list(dict.fromkeys(name for row in rows for name in row.peers))
    if not names:
        return None
    chosen = {
        name: dict.fromkeys(row.settings.get(name, "default") for row in rows if name in row.peers)
        for name in names
    }
    settings = [f"{name} {', '.join(which)}" for name, which in chosen.items() if list(which) != ["default"]]
    table = empty_table(
        "every peer at its best setting", f"settings: {'; '.join(settings)}" if settings else None
    )
    table.add_column("case")
    for name in ("n", "type"):
        table.add_column(name, justify="right")
    for name in names:
        table.add_column(name, justify="right")
    for row in rows:
        cells = []
        for name in names:
            text = duration(row.peers.get(name))
            cells.append(coloured(f"{text}, wrong", "red") if name in row.wrong else text)
        table.add_row(row.case, str(row.qubits), TYPES[row.precision], *cells)
    return table


def _label(row: CircuitRow, rows: Sequence[CircuitRow]) -> str:
    return row.case if len({one.qubits for one in rows}) == 1 else f"{row.case}, {row.qubits} qubits"


def save_circuit_plot(result: Bench, file: str) -> None:
    """Draw all times, with a panel for each precision, and below them the speedup over the best peer.

    Raises
    ------
    Error
        matplotlib is not installed.
    BadInput
        The file cannot be written, or matplotlib does not know the format that its name ends with.
    """
    rows = _rows(result)
    precisions = list(dict.fromkeys(row.precision for row in rows))
    names = list(dict.fromkeys(name for row in rows for name in row.peers))
    figure = empty_figure(max(8, 0.5 * len(rows)), 7)
    parts = (3, 1) if names else (1,)  # without peers there is no speedup
    panels = figure.subplots(
        len(parts), len(precisions), squeeze=False, sharex="col", sharey="row", height_ratios=parts
    )
    factor, unit = time_unit([time for row in rows for time in (row.ours_s, row.pass_s)])
    for column, precision in enumerate(precisions):
        some = [row for row in rows if row.precision == precision]
        _draw_circuits(panels[0][column], some, peer_looks(names), factor)
        if names:
            _draw_speedups(panels[1][column], some)
        labels = [_label(row, some) for row in some]
        panels[-1][column].set_xticks(range(len(some)), labels, rotation=60, ha="right", fontsize=8)
        panels[0][column].set_title(f"{precision} precision", fontsize=10)
    log_scale(panels[0][0])
    panels[0][0].set_ylabel(f"time in {unit} (best run)")
    shared_legend(figure, panels[0])
    if names:
        panels[1][0].set_ylabel("speedup over\nthe best peer")
    figure.suptitle(f"onehop bench circuits: {machine_text(result.host)}", fontsize=10, wrap=True)
    save_figure(figure, file, dpi=130)


def _draw_circuits(
    axes: Any, rows: Sequence[CircuitRow], looks: dict[str, dict[str, Any]], factor: float
) -> None:
    """Draw the times of one precision, in seconds times `factor`."""
    places = list(range(len(rows)))
    axes.plot(places, [factor * row.ours_s for row in rows], "o", color="tab:red", label="onehop", zorder=3)
    for name, look in looks.items():
        times = [factor * row.peers[name] if name in row.peers else None for row in rows]
        draw_known(axes, places, times, linestyle="none", label=name, **look)
    light = {"marker": "_", "linestyle": "none", "color": "black", "markersize": 10}
    axes.plot(places, [factor * row.pass_s for row in rows], label="one pass over the state", **light)
    axes.grid(alpha=0.3)


def _draw_speedups(axes: Any, rows: Sequence[CircuitRow]) -> None:
    known = [(place, row.speedup) for place, row in enumerate(rows) if row.speedup is not None]
    if known:
        axes.bar(*zip(*known, strict=True), color="tab:red")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.grid(alpha=0.3)
