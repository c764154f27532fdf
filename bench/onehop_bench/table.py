"""A benchmark's rows as a table, with columns like those of the OSU benchmarks and NCCL's tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onehop.cli.screen import Column, Table, coloured
from onehop.text import bytes_text, count_text, counted, number
from onehop_bench.result import Bench, Row

Columns = Mapping[str, "str | Callable[[Any], str]"]
"""The heading of each column, and the key of its values or a function that makes a cell from a row."""

RATIO = "ratio: onehop's time over the best peer's in the same round; below 1 onehop is faster"


def coloured_ratio(ratio: float | None) -> str:
    """A ratio of times, green below 1 and red from there on."""
    return number(ratio) if ratio is None else coloured(number(ratio), "green" if ratio < 1 else "red")


RATIO_COLUMN: Columns = {"ratio": lambda row: coloured_ratio(row.ratio)}
BEST_PEER: Columns = {"best peer": "best_peer", "its µs": "best_peer_us"}


def time_columns(heading: str = "time µs", scale: float = 1) -> Columns:
    """Columns of onehop's time and its spread."""
    keys = {heading: "ours_us", "p10": "p10_us", "p90": "p90_us"}
    return {name: lambda row, key=key: number(row[key] * scale) for name, key in keys.items()}


def dict_columns(rows: Sequence[Row], key: str, text: Callable[[float | None], str] = number) -> Columns:
    """A column for each name in the dictionaries that rows have under a key."""
    names = dict.fromkeys(name for row in rows for name in row[key])
    return {name: lambda row, name=name: text(row[key].get(name)) for name in names}


def machine_caption(host: Mapping[str, Any]) -> str:
    """The machine and its MPI, for captions."""
    caption = f"{host['cpu']}, {counted(host['cores'], 'core')}, {host['simd']}"
    return caption + (f"; {host['mpi']}" if host.get("mpi") else "")


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return count_text(value) if isinstance(value, int) else number(value)


def table_of(rows: Sequence[Row], title: str, caption: str | None, columns: Columns) -> Table:
    """A table with a line for each row. Columns of texts begin at the left and may be folded."""
    table = Table(title=title, caption=caption)
    for heading, what in columns.items():
        text = isinstance(what, str) and any(isinstance(row[what], str) for row in rows)
        table.columns.append(Column(heading if text else f">{heading}"))
    for row in rows:
        table.add_row(
            *(_cell(row[what]) if isinstance(what, str) else what(row) for what in columns.values())
        )
    return table


def make_table(result: Bench) -> Table:
    """The table of a benchmark."""
    rows = [row for row in result.rows if "raw_us" not in row]
    limits = any(row.limit_us is not None for row in rows)
    caption = machine_caption(result.host)
    peers = any(row.best_peer is not None for row in rows)
    if peers:
        caption += f"\n{RATIO}"
    if limits:
        caption += "\nbare code: moves or reads the same bytes, or computes alone"
    # Where the cases are the sizes, as from 8 B to 4 MiB, a column for them says nothing new.
    sizes = any(row.case != bytes_text(row.bytes, exact=True) for row in rows if row.bytes)
    columns: Columns = {
        "case": "case",
        **({"bytes": lambda row: bytes_text(row.bytes)} if sizes else {}),
        **time_columns("µs"),
        "GB/s": lambda row: f"{row.gigabytes_per_second:.2f}",
        **({**BEST_PEER, **RATIO_COLUMN} if peers else {}),
        **({"bare\ncode µs": "limit_us", "x bare\ncode": "limit_ratio"} if limits else {}),
    }
    return table_of(rows, f"onehop bench {result.bench}", caption, columns)


def make_rounding_table(result: Bench) -> Table | None:
    """The bytes, time and error of each codec; None without codecs."""
    rows = [row for row in result.rows if "raw_us" in row]
    columns: Columns = {
        "case": "case",
        "bytes": lambda row: bytes_text(row.bytes),
        "of raw": lambda row: number(row.bytes / row.raw_bytes if row.raw_bytes else None),
        "µs": "ours_us",
        "raw µs": "raw_us",
        "ratio": lambda row: coloured_ratio(row.raw_ratio),
        "error": lambda row: f"{row.error:.1e}",
    }
    caption = "ratio: time with the codec over that without it, in the same round"
    return table_of(rows, "with a codec, and raw", caption, columns) if rows else None


def make_peer_table(result: Bench) -> Table | None:
    """The ratio to each peer, and the other variants; None if there are neither. The longer axis runs downwards."""
    rows = [row for row in result.rows if "raw_us" not in row]
    ratios = dict_columns(rows, "ratios", coloured_ratio)
    variants = {f"{name}, µs": cell for name, cell in dict_columns(rows, "variants").items()}
    columns: Columns = {**ratios, **variants}
    if not columns:
        return None
    titles = ["onehop's time over each peer's"] * bool(ratios) + ["other variants, µs"] * bool(variants)
    if len(columns) <= len(rows):
        return table_of(rows, "; ".join(titles), None, {"case": "case", **columns})
    table = Table("case", title="; ".join(titles))
    for row in rows:
        table.columns.append(Column(f">{row.case}"))
    for name, cell in columns.items():
        table.add_row(name, *(cell(row) for row in rows))  # type: ignore[operator]
    return table
