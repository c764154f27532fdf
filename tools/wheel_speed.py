"""Compare installed builds of onehop in one run: wheel_speed.py [--rounds N] [--restarts N] [--json F] NAME=PYTHON...

Each NAME is a build: an interpreter that has onehop installed. Its programs run side by side with those of the other
builds and take turns, so that all see the same state of the machine; a program that does not measure sleeps. A turn is
two measurements, and only the second is kept: the first one after another program's turn is slower, by a third for
messages of 8 bytes, which once made one of two equal builds look faster. They are restarted several times, because the
placement of memory differs from start to start. The ratio of a case is the median over the rounds of the time of each
build over that of the last one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve().with_name("wheel_speed_program.py")
# The cases of a program on one rank with all cores, and of one on two ranks.
CASES = {
    1: (
        "circuit qft 22",
        "circuit brickwork 22",
        "circuit volume 22",
        "circuit tfim-1d 22",
        "hisq double",
        "hisq single",
    ),
    2: ("pingpong 8", "pingpong 4096", "pingpong 1048576", "hisq double"),
}


class Program:
    """The programs of one build: one for each number of ranks."""

    def __init__(self, python: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.processes = {
            ranks: subprocess.Popen(
                [python, "-m", "onehop", "launch", "-n", str(ranks), str(PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=PROGRAM.parent,
                env=environment,
            )
            for ranks in CASES
        }

    def ask(self, ranks: int, case: str) -> Any:
        """Measure a case once; return seconds."""
        process = self.processes[ranks]
        assert process.stdin is not None
        assert process.stdout is not None
        print(case, file=process.stdin, flush=True)
        for line in process.stdout:
            if "answer " in line:
                return json.loads(line.partition("answer ")[2])
        raise SystemExit(f"expected an answer to {case!r}, found the end of the program")

    def close(self) -> None:
        """End the programs."""
        for process in self.processes.values():
            process.communicate("")


def measure(
    builds: dict[str, str], rounds: int, restarts: int, only: str
) -> dict[tuple[int, str], dict[str, list[float]]]:
    """Return the seconds of every case and build, one entry a round."""
    found: dict[tuple[int, str], dict[str, list[float]]] = {
        (ranks, case): {name: [] for name in builds}
        for ranks, cases in CASES.items()
        for case in cases
        if only in case
    }
    names = list(builds)
    for _ in range(restarts):
        programs = {name: Program(python) for name, python in builds.items()}
        for ranks, case in found:  # the first measurement sets up, and is not kept
            for name in names:
                programs[name].ask(ranks, case)
        for number in range(rounds):
            for (ranks, case), seconds in found.items():
                for name in names if number % 2 else reversed(names):
                    programs[name].ask(ranks, case)
                    seconds[name].append(programs[name].ask(ranks, case))
        for one in programs.values():
            one.close()
    return found


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="measurements of each case that are kept after a start (default 5)",
    )
    parser.add_argument("--restarts", type=int, default=3, help="starts of the programs (default 3)")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose names contain this text")
    parser.add_argument("--json", type=Path, help="write the seconds to this file")
    parser.add_argument(
        "builds", nargs="+", metavar="NAME=PYTHON", help="a build, and the Python that has it"
    )
    asked = parser.parse_args()
    builds = dict(one.split("=", 1) for one in asked.builds if "=" in one)
    if len(builds) != len(asked.builds) or len(builds) < 2 or asked.rounds < 1 or asked.restarts < 1:
        parser.error("expected two or more different NAME=PYTHON, and at least one round and start")
    found = measure(builds, asked.rounds, asked.restarts, asked.only)
    if not found:
        cases = ", ".join(dict.fromkeys(case for some in CASES.values() for case in some))
        parser.error(f"expected --only with a part of one of {cases}; found {asked.only!r}")
    *others, last = builds
    print(
        f"{'case':34}"
        + "".join(f"{name + ', ms':>12}" for name in builds)
        + "".join(f"{one + '/' + last:>12}" for one in others)
    )
    for (ranks, case), seconds in found.items():
        row = f"{case + (', 2 ranks' if ranks == 2 else ''):34}"
        row += "".join(f"{1000 * statistics.median(seconds[name]):12.4g}" for name in builds)
        for name in others:
            ratios = [a / b for a, b in zip(seconds[name], seconds[last], strict=True)]
            row += f"{statistics.median(ratios):12.3f}"
        print(row)
    if asked.json:
        rows = [{"ranks": ranks, "case": case, "seconds": one} for (ranks, case), one in found.items()]
        asked.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
