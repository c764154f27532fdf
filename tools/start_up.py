"""Print how long onehop takes to start, and how much it installs: start_up.py [--runs N] [PYTHON].

Each command runs N times (20), in turn with the others; the table has the median and the least wall time. Sizes are
those of the package that PYTHON imports, without bytecode.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    'python -c "import onehop"': ["-c", "import onehop"],
    'python -c "import onehop; onehop.Plan"': ["-c", "import onehop; onehop.Plan"],
    "onehop --version": ["-m", "onehop", "--version"],
    "onehop --help": ["-m", "onehop", "--help"],
    "onehop run --help": ["-m", "onehop", "run", "--help"],
}


def measure(python: str, runs: int) -> dict[str, list[float]]:
    """Return the seconds of each command."""
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(runs + 1):
        for name, arguments in COMMANDS.items():
            begin = time.perf_counter()
            subprocess.run([python, *arguments], stdout=subprocess.DEVNULL, check=True)
            if number > 0:  # the first run fills the caches
                seconds[name].append(time.perf_counter() - begin)
    return seconds


def sizes(python: str) -> Counter[str]:
    """Return the bytes of the installed package, by kind of file."""
    program = "import onehop, os; print(os.path.dirname(onehop.__file__))"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    found: Counter[str] = Counter()
    for file in Path(done.stdout.strip()).rglob("*"):
        if file.is_file() and file.suffix != ".pyc":
            kind = {".so": "extension", ".py": "Python", ".pyi": "Python"}.get(file.suffix, "data")
            found[kind] += file.stat().st_size
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="runs of each command (default 20)")
    parser.add_argument(
        "python", nargs="?", default=sys.executable, help="the Python to measure (default: this one)"
    )
    asked = parser.parse_args()
    if asked.runs < 1:
        parser.error("expected --runs of at least 1")
    for name, seconds in measure(asked.python, asked.runs).items():
        print(f"{name:42} {1000 * statistics.median(seconds):6.0f} ms   least {1000 * min(seconds):6.0f} ms")
    found = sizes(asked.python)
    for name, size in found.items():
        print(f"{name:42} {size / 2**20:6.2f} MiB")
    print(f"{'installed':42} {sum(found.values()) / 2**20:6.2f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
