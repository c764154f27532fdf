"""Rows as a table, with the columns that people know from OSU's and NCCL's tests."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table

from onehop.bench.result import Bench, Row
from onehop.bench.rounding import RoundedRow
from onehop.bench.sizes import size_text


def number(value: float | None, digits: int = 3) -> str:
    """So many significant digits, without an exponent; a dash for None."""
    if value is None:
        return "-"
    if value >= 10 ** (digits - 1):
        return f"{value:.0f}"
    text = f"{value:.{digits}g}"
    return text if "e" not in text else f"{value:.4f}"


def _colour(ratio: float | None) -> str:
    text = number(ratio)
    if ratio is None:
        return text
    return f"[green]{text}[/]" if ratio < 1 else f"[red]{text}[/]"


def _cells(row: Row, sizes: bool, peers: bool, limits: bool) -> list[str]:
    ours = [number(value) for value in (row.ours_us, row.p10_us, row.p90_us)]
    return [
        row.case,
        *([str(row.bytes)] if sizes else []),
        *ours,
        f"{row.gigabytes_per_second:.2f}",
        *([row.best_peer or "-", number(row.best_peer_us), _colour(row.ratio)] if peers else []),
        *([number(row.limit_us), number(row.limit_ratio)] if limits else []),
    ]


def empty_table(title: str, caption: str | None = None) -> Table:
    """A table without rows and columns, as all of them look."""
    look = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False, "show_edge": False}
    return Table(title=title, caption=caption, title_justify="left", caption_justify="left", **look)


def make_table(result: Bench) -> Table:
    """The table of a benchmark."""
    host = result.host
    limits = any(row.limit_us is not None for row in result.rows)
    caption = f"{host['cpu']}, {host['cores']} cores, {host['simd']}; {host['mpi'] or 'no MPI'}"
    peers = any(row.best_peer is not None for row in result.rows)
    if peers:
        caption += "\nratio: onehop's time over the best peer's in the same round; below 1 onehop is faster"
    # Where the cases are the sizes, as from 8 B to 4 MiB, a column for them says nothing new.
    sizes = any(row.case != size_text(row.bytes) for row in result.rows if row.bytes)
    table = empty_table(f"onehop bench {result.bench}", caption)
    table.add_column("case", overflow="fold", min_width=min(8, max(len(row.case) for row in result.rows)))
    for name in (*(("bytes",) if sizes else ()), "µs", "p10", "p90", "GB/s"):
        table.add_column(name, justify="right", no_wrap=True)
    if peers:
        table.add_column("best peer", overflow="fold", min_width=7)
    for name in (*(("its µs", "ratio") if peers else ()), *(("limit µs", "x limit") if limits else ())):
        table.add_column(name, justify="right", min_width=6)  # the heading may be two lines
    for row in result.rows:
        if not isinstance(row, RoundedRow):
            table.add_row(*_cells(row, sizes, peers, limits))
    return table


def make_rounding_table(result: Bench) -> Table | None:
    """What each codec saves and loses; None where there was none."""
    rows = [row for row in result.rows if isinstance(row, RoundedRow)]
    if not rows:
        return None
    table = empty_table(
        "with a codec, and raw", "ratio: time with the codec over that without it, in the same round"
    )
    table.add_column("case", overflow="fold")
    for name in ("bytes", "of raw", "µs", "raw µs", "ratio", "error"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.case,
            str(row.bytes),
            number(row.bytes / row.raw_bytes) if row.raw_bytes else "-",
            number(row.ours_us),
            number(row.raw_us),
            _colour(row.raw_ratio),
            f"{row.error:.1e}",
        )
    return table


def make_peer_table(result: Bench) -> Table | None:
    """The ratio to every peer, and the other ways; None if there is neither. What there is more of goes downwards."""
    rows = [row for row in result.rows if not isinstance(row, RoundedRow)]
    peers = list(dict.fromkeys(name for row in rows for name in row.peers))
    variants = list(dict.fromkeys(name for row in rows for name in row.variants))
    if not peers and not variants:
        return None
    ways = [[name, *(_colour(row.ratios.get(name)) for row in rows)] for name in peers]
    ways += [[f"{name}, µs", *(number(row.variants.get(name)) for row in rows)] for name in variants]
    lines = [["case", *(row.case for row in rows)], *ways]
    if len(ways) <= len(rows):
        lines = [list(line) for line in zip(*lines, strict=True)]
    titles = ["onehop over each peer"] * bool(peers) + ["other ways, µs"] * bool(variants)
    table = empty_table("; ".join(titles))
    for place, heading in enumerate(lines[0]):
        table.add_column(heading, justify="right" if place else "left", overflow="fold")
    for line in lines[1:]:
        table.add_row(*line)
    return table
