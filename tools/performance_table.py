"""Print results of `onehop bench NAME --json FILE` as tables in Markdown.

    performance_table.py FILE...

Several files must be of the same benchmark. Their columns are printed side by side.
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


def seconds(value: float | None) -> str:
    if value is None:
        return "-"
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if value * factor >= 0.9995:
            return f"{number(value * factor)} {unit}"
    return f"{number(value * 1e6)} µs"


def print_circuits(rows: list[dict[str, Any]]) -> None:
    """Print a table for each number of qubits and precision, with one line for each case."""
    for qubits, precision in dict.fromkeys((row["qubits"], row["precision"]) for row in rows):
        print(f"\n| n = {qubits}, {precision} | time | passes | x pass | best peer | speedup |")
        print("|" + "---|" * 6)
        for row in rows:
            if (row["qubits"], row["precision"]) != (qubits, precision):
                continue
            name = row["best_peer"]
            peer = "-" if name is None else f"{name} {seconds(row['best_peer_s'])}"
            passes = [f"{row['passes']:g}", number(row["pass_times"])]
            line = [row["case"], seconds(row["ours_s"]), *passes, peer, f"**{number(row['speedup'])}**"]
            print("| " + " | ".join(line) + " |")


def main() -> None:
    results = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
    if results[0]["bench"] == "circuits":
        print_circuits([row for result in results for row in result["rows"]])
        return
    names = ["µs (p10 to p90)", "best peer, µs", "ratio", "speed of light, µs", "x speed of light"]
    header = ["case", *(names * len(results))]
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for rows in zip(*(result["rows"] for result in results), strict=True):
        print("| " + " | ".join([rows[0]["case"], *(cell for row in rows for cell in cells(row))]) + " |")


if __name__ == "__main__":
    main()
