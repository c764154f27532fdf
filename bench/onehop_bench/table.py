"""A benchmark's rows as a table, with columns like those of the OSU benchmarks and NCCL's tests."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from onehop.cli.screen import Table, coloured
from onehop.text import bytes_text, counted, number
from onehop_bench.result import Bench, Row
from onehop_bench.rounding import RoundedRow


def coloured_ratio(ratio: float | None) -> str:
    """A ratio of times, green below 1 and red from there on."""
    text = number(ratio)
    if ratio is None:
        return text
    return coloured(text, "green" if ratio < 1 else "red")


def _cells(row: Row, sizes: bool, peers: bool, limits: bool) -> list[str]:
    ours = [number(value) for value in (row.ours_us, row.p10_us, row.p90_us)]
    return [
        row.case,
        *([str(row.bytes)] if sizes else []),
        *ours,
        f"{row.gigabytes_per_second:.2f}",
        *([row.best_peer or "-", number(row.best_peer_us), coloured_ratio(row.ratio)] if peers else []),
        *([number(row.limit_us), number(row.limit_ratio)] if limits else []),
    ]


def empty_table(title: str, caption: str | None = None) -> Table:
    """An empty table in the style of all benchmark tables."""
    return Table(title=title, caption=caption)


def machine_caption(host: dict[str, Any]) -> str:
    """The machine and its MPI, for captions."""
    caption = f"{host['cpu']}, {counted(host['cores'], 'core')}, {host['simd']}"
    return caption + (f"; {host['mpi']}" if host.get("mpi") else "")


Cell = Callable[[Any], str]


def table_of(
    rows: Sequence[Any], title: str, caption: str, columns: dict[str, Cell], texts: Container[str] = ()
) -> Table:
    """A table with a line for each row.

    Parameters
    ----------
    rows : sequence
        The rows.
    title, caption : str
        The texts above and below it.
    columns : dict
        The cell of each column, from its heading and a row.
    texts : container of str
        The headings of columns of text, whose cells begin at the left and may be folded.
    """
    table = empty_table(title, caption)
    for heading in columns:
        if heading in texts:
            table.add_column(heading)
        else:
            table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*(cell(row) for cell in columns.values()))
    return table


def time_columns(heading: str = "time µs", scale: float = 1) -> dict[str, Cell]:
    """Columns of onehop's time and its spread."""
    return {
        heading: lambda row: number(row.ours_us * scale),
        "p10": lambda row: number(row.p10_us * scale),
        "p90": lambda row: number(row.p90_us * scale),
    }


RATIO = "ratio: onehop's time over the best peer's in the same round; below 1 onehop is faster"
BEST_PEER: dict[str, Cell] = {
    "best peer": lambda row: row.best_peer or "-",
    "its µs": lambda row: number(row.best_peer_us),
}
RATIO_COLUMN: dict[str, Cell] = {"ratio": lambda row: coloured_ratio(row.ratio)}


def make_table(result: Bench) -> Table:
    """The table of a benchmark."""
    limits = any(row.limit_us is not None for row in result.rows)
    caption = machine_caption(result.host)
    peers = any(row.best_peer is not None for row in result.rows)
    if peers:
        caption += f"\n{RATIO}"
    if limits:
        caption += "\nspeed of light: the least time that the hardware allows, measured by bare code"
    # Where the cases are the sizes, as from 8 B to 4 MiB, a column for them says nothing new.
    sizes = any(row.case != bytes_text(row.bytes, exact=True) for row in result.rows if row.bytes)
    table = empty_table(f"onehop bench {result.bench}", caption)
    table.add_column("case")
    for name in (*(("bytes",) if sizes else ()), "µs", "p10", "p90", "GB/s"):
        table.add_column(name, justify="right")
    if peers:
        table.add_column("best peer")
    for name in (
        *(("its µs", "ratio") if peers else ()),
        *(("speed of\nlight µs", "x speed\nof light") if limits else ()),
    ):
        table.add_column(name, justify="right")
    for row in result.rows:
        if not isinstance(row, RoundedRow):
            table.add_row(*_cells(row, sizes, peers, limits))
    return table


def make_rounding_table(result: Bench) -> Table | None:
    """The bytes, time and error of each codec; None without codecs."""
    rows = [row for row in result.rows if isinstance(row, RoundedRow)]
    if not rows:
        return None
    table = empty_table(
        "with a codec, and raw", "ratio: time with the codec over that without it, in the same round"
    )
    table.add_column("case")
    for name in ("bytes", "of raw", "µs", "raw µs", "ratio", "error"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row.case,
            str(row.bytes),
            number(row.bytes / row.raw_bytes) if row.raw_bytes else "-",
            number(row.ours_us),
            number(row.raw_us),
            coloured_ratio(row.raw_ratio),
            f"{row.error:.1e}",
        )
    return table


def make_peer_table(result: Bench) -> Table | None:
    """The ratio to each peer, and the other variants; None if there are neither. The longer axis runs downwards."""
    rows = [row for row in result.rows if not isinstance(row, RoundedRow)]
    peers = list(dict.fromkeys(name for row in rows for name in row.peers))
    variants = list(dict.fromkeys(name for row in rows for name in row.variants))
    if not peers and not variants:
        return None
    others = [[name, *(coloured_ratio(row.ratios.get(name)) for row in rows)] for name in peers]
    others += [[f"{name}, µs", *(number(row.variants.get(name)) for row in rows)] for name in variants]
    lines = [["case", *(row.case for row in rows)], *others]
    if len(others) <= len(rows):
        lines = [list(line) for line in zip(*lines, strict=True)]
    titles = ["onehop's time over each peer's"] * bool(peers) + ["other variants, µs"] * bool(variants)
    table = empty_table("; ".join(titles))
    for place, heading in enumerate(lines[0]):
        table.add_column(heading, justify="right" if place else "left")
    for line in lines[1:]:
        table.add_row(*line)
    return table
