"""Prints results of `onehop bench NAME --json FILE` as the tables of docs/performance.md.

performance_table.py FILE... : files of the same benchmark stand side by side, as runs in several phases of the machine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def cells(row: dict[str, Any]) -> list[str]:
    peer = "-" if row["best_peer"] is None else f"{row['best_peer']} {number(row['best_peer_us'])}"
    spread = f"{number(row['ours_us'])} ({number(row['p10_us'])} to {number(row['p90_us'])})"
    limit = "-" if row["limit_us"] is None else f"{number(row['limit_us'])}"
    return [spread, peer, f"**{number(row['ratio'])}**", limit, number(row["limit_ratio"])]


def main() -> None:
    results = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
    names = ["µs (p10 to p90)", "best peer, µs", "ratio", "limit, µs", "x limit"]
    header = ["case", *(names * len(results))]
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for rows in zip(*(result["rows"] for result in results), strict=True):
        print("| " + " | ".join([rows[0]["case"], *(cell for row in rows for cell in cells(row))]) + " |")


if __name__ == "__main__":
    main()
