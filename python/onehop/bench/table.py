"""Rows as a table, with the columns that people know from OSU's and NCCL's tests."""

from __future__ import annotations

from rich.table import Table

from onehop.bench.result import Bench, Row


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


def _cells(row: Row, limits: bool) -> list[str]:
    cells = [
        row.case,
        str(row.bytes),
        number(row.ours_us),
        number(row.p10_us),
        number(row.p90_us),
        f"{row.gigabytes_per_second:.2f}",
        row.best_peer or "-",
        number(row.best_peer_us),
        _colour(row.ratio),
    ]
    return [*cells, number(row.limit_us), number(row.limit_ratio)] if limits else cells


def make_table(result: Bench) -> Table:
    """The table of a benchmark."""
    host = result.host
    caption = f"{host['cpu']}, {host['cores']} cores, {host['simd']}; {host['mpi'] or 'no MPI'}"
    limits = any(row.limit_us is not None for row in result.rows)
    table = Table(title=f"onehop bench {result.bench}", caption=caption, title_justify="left")
    table.add_column("case", no_wrap=True)
    for name in ("bytes", "µs", "p10", "p90", "GB/s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("best peer")
    for name in ("its µs", "ratio", *(("limit µs", "x limit") if limits else ())):
        table.add_column(name, justify="right", no_wrap=True)
    for row in result.rows:
        table.add_row(*_cells(row, limits))
    return table


def make_peer_table(result: Bench) -> Table | None:
    """The ratio to every peer, and the other ways; None if there is neither."""
    peers = list(dict.fromkeys(name for row in result.rows for name in row.peers))
    variants = list(dict.fromkeys(name for row in result.rows for name in row.variants))
    if not peers and not variants:
        return None
    table = Table(title="onehop over each peer; other ways, µs", title_justify="left")
    table.add_column("case", no_wrap=True)
    for name in (*peers, *variants):
        table.add_column(name, justify="right")
    for row in result.rows:
        ratios = [_colour(row.ratios.get(name)) for name in peers]
        table.add_row(row.case, *ratios, *(number(row.variants.get(name)) for name in variants))
    return table
