"""Runs PyTorch's own tests of torch.distributed with onehop beside gloo, and lists the differences (`make torch`).

A test that gloo passes and onehop does not is an error, unless EXCEPTIONS names it. The tests are in the wheel of
torch; tests/support/torch_driver.py runs them. Gloo runs first, and onehop then runs what gloo has passed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

DRIVER = Path(__file__).resolve().parents[1] / "tests/support/torch_driver.py"
PYTHON_FOLDER = DRIVER.parents[2] / "python"
LIMIT_SECONDS = 1800
#: Tests that gloo passes and onehop does not have to, with the reason.
EXCEPTIONS: dict[str, str] = {}

Outcomes = dict[str, list[str]]


def run(backend: str, ranks: int, names: list[str]) -> Outcomes:
    """Run tests with a backend: the outcome and the error of each that ended within LIMIT_SECONDS."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        results, log = Path(folder, "results.json"), Path(folder, "log")
        command = [sys.executable, str(DRIVER), backend, str(ranks), str(results), *names]
        with log.open("w") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=output, env=environment(folder), start_new_session=True
            )
            try:
                process.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                print(f"torch_suite: {backend} was stopped after {LIMIT_SECONDS} s", file=sys.stderr)
            finally:
                with contextlib.suppress(ProcessLookupError):  # the driver, and ranks that it has left
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if not results.exists():
            raise SystemExit(f"torch_suite: the driver ran no test:\n{log.read_text()[-2000:]}")
        return json.loads(results.read_text())


def environment(folder: str) -> dict[str, str]:
    """Return the environment of the driver, whose temporary files are in a folder."""
    path = os.pathsep.join(filter(None, [str(PYTHON_FOLDER), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "TMPDIR": folder}


def compare(ranks: int, names: list[str]) -> dict[str, object]:
    """Run gloo, then onehop: the numbers and the tests that fail with onehop alone."""
    gloo = run("gloo", ranks, names)
    passed = [name for name, (outcome, _) in gloo.items() if outcome == "passed"]
    skipped = sum(outcome == "skipped" for outcome, _ in gloo.values())
    if not passed:
        words = next((words for outcome, words in gloo.values() if outcome == "failed"), "")
        raise SystemExit(f"torch_suite: gloo passed none of {len(gloo)} tests\n{words[-1500:]}")
    onehop = run("onehop", ranks, passed)
    failed = {name: onehop.get(name, ["", "did not run"])[1] for name in passed}
    failed = {name: words for name, words in failed.items() if onehop.get(name, [""])[0] != "passed"}
    return {
        "ranks": ranks,
        "tests": len(gloo),
        "skipped": skipped,
        "gloo": len(passed),
        "gloo_fails": sorted(name for name, (outcome, _) in gloo.items() if outcome == "failed"),
        "onehop": len(passed) - len(failed),
        "excepted": {name: EXCEPTIONS[name] for name in failed if name in EXCEPTIONS},
        "failed": {name: words for name, words in failed.items() if name not in EXCEPTIONS},
    }


def show(rows: list[dict[str, object]]) -> None:
    """Print the table and the failures."""
    print("| ranks | tests | skipped | gloo passes | onehop passes of these | excepted |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        cells = [row[key] for key in ("ranks", "tests", "skipped", "gloo", "onehop")]
        print("|", " | ".join(map(str, [*cells, len(row["excepted"])])), "|")
    for row in rows:
        for name, words in row["failed"].items():
            print(f"\n{name} fails with onehop on {row['ranks']} ranks:\n{words[-1500:]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", help="names of tests; default: all")
    parser.add_argument(
        "--ranks", type=int, nargs="+", default=[2, 4], help="numbers of ranks (default: 2 4)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE as well")
    options = parser.parse_args()
    rows = [compare(ranks, options.tests) for ranks in options.ranks]
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    show(rows)
    return any(row["failed"] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
