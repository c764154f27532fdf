"""Measure what preparing a group and a plan costs with the number of ranks, and print a table.

    preparation.py [--plot FILE.svg] [--json FILE] [TESTS]

TESTS is the program with the C++ tests (build/release/onehop_tests). Its ranks are threads of one process. Each makes a
group and a plan of a halo with six neighbours, over a transport that moves nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from onehop.error import Error
from onehop.figure import empty_figure, save_figure
from onehop.output import write_file

ROOT = Path(__file__).resolve().parents[1]
FILTER = ["--gtest_filter=Preparation.DISABLED_OfManyRanks", "--gtest_also_run_disabled_tests"]


def measure(program: str) -> list[dict[str, float]]:
    """Run the measurement and return a row for each number of ranks."""
    try:
        done = subprocess.run([program, *FILTER], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Error(f"{program} failed ({error}); `make test-cpp` builds it") from error
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not rows:
        raise Error(f"expected lines of JSON from {program}, found none; is it built from this source?")
    return rows


def draw(rows: list[dict[str, float]], file: str) -> None:
    """Draw time and memory over the number of ranks."""
    figure = empty_figure(8, 3.6)
    ranks = [row["ranks"] for row in rows]
    time, memory = figure.subplots(1, 2)
    time.loglog(ranks, [row["seconds"] for row in rows], marker="o", color="#0072b2")
    # Every rank reads what all others have said about themselves.
    last = rows[-1]
    square = [last["seconds"] * (count / last["ranks"]) ** 2 for count in ranks]
    time.loglog(ranks, square, ":", color="black", label="proportional to the square of ranks")
    time.yaxis.set_major_formatter("{x:g}")
    time.set(ylabel="all ranks together, s")
    time.legend(fontsize=8)
    memory.semilogx(ranks, [row["kept_bytes"] / 1e6 for row in rows], marker="o", color="#0072b2")
    memory.set_ylim(bottom=0)
    memory.set(ylabel="memory that a rank keeps, MB")
    for axes in (time, memory):
        axes.set_xticks(ranks, [f"{count:,}" for count in ranks], minor=False)
        axes.set_xticks([], minor=True)
        axes.set(xlabel="ranks")
        axes.grid(alpha=0.3)
    save_figure(figure, file)


def main() -> int:
    """Measure, print, and write what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE", help="draw time and memory over the number of ranks")
    parser.add_argument("--json", metavar="FILE", help="write the rows to a JSON file")
    parser.add_argument("tests", nargs="?", default=str(ROOT / "build/release/onehop_tests"))
    asked = parser.parse_args()
    try:
        rows = measure(asked.tests)
        print(f"{'ranks':>6} {'seconds':>8} {'MB a rank':>10} {'most ms of a rank':>18}")
        for row in rows:
            most = 1e3 * row["most_seconds_of_a_rank"]
            kept = row["kept_bytes"] / 1e6
            print(f"{row['ranks']:6,} {row['seconds']:8.2f} {kept:10.2f} {most:18.1f}")
        if asked.json:
            write_file(asked.json, (json.dumps({"rows": rows}, indent=2) + "\n").encode(), "the rows")
        if asked.plot:
            draw(rows, asked.plot)
    except Error as error:
        print(f"preparation.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
