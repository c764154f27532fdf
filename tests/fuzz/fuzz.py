"""Build and run the fuzz targets: `make fuzz SECONDS=60`, or fuzz.py [--seconds S] [--jobs N] [--seed N]
[TARGET...].

Each target runs for the given time, two at once. An input that broke something is in build/fuzz-findings/TARGET, with
the output of the target. The inputs that reach new code are kept in build/fuzz-corpus, so that the next run starts from
them. A line of JSON with the counts of each run goes to build/fuzz-counts.jsonl.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BUILD = ROOT / "build"
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(HERE))

MEBIBYTES = 2048  # a hard limit on a target; each input has a much lower one
INPUT_SECONDS = 10
SHOWN = 400  # bytes of an input that broke something, so that a log of CI suffices to reproduce it
# Their child process ends after 3 seconds of processor time, which takes longer where other programs run.
HDF5 = ("state", "checkpoint", "hamlib")


@dataclass(frozen=True)
class Run:
    """What a run of one target found."""

    target: str
    inputs: int
    seconds: float
    corpus: int
    finding: str


def native(name: str) -> Path:
    """Return the program of a target in C++."""
    return BUILD / "fuzz" / f"fuzz_{name}"


def write_corpus(names: list[str]) -> None:
    """Write samples, seeds and dictionary of each target to build/fuzz-corpus."""
    import samples
    from targets import NATIVE, TARGETS

    made = {name: (one.samples, one.words) for name, one in TARGETS.items()}
    made |= {name: (make, words) for name, (make, _, words) in NATIVE.items()}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            make, words = made[name]
            place = BUILD / "fuzz-corpus" / name
            place.mkdir(parents=True, exist_ok=True)
            for number, data in enumerate([*make(Path(folder)), *samples.seeds(name)]):
                (place / f"sample-{number}").write_bytes(data)
            place.with_suffix(".dict").write_text(samples.dictionary(words or ("\0",)))


def run(name: str, seconds: float, longest: int, seed: int) -> Run:
    """Run one target for some seconds. The same seed gives the same inputs; 0 gives others in each run."""
    place = BUILD / "fuzz-corpus" / name
    findings = BUILD / "fuzz-findings" / name
    shutil.rmtree(findings, ignore_errors=True)
    findings.mkdir(parents=True)
    program = [str(native(name))] if native(name).exists() else [sys.executable, str(HERE / "drive.py"), name]
    options = {
        "max_total_time": max(1, round(seconds)),
        "timeout": INPUT_SECONDS * (3 if name in HDF5 else 1),
        "rss_limit_mb": MEBIBYTES,
        "max_len": longest,
        "seed": seed,
        "artifact_prefix": f"{findings}/",
        "dict": place.with_suffix(".dict"),
        "print_final_stats": 1,
        "reload": 0,
    }
    line = [*program, *(f"-{option}={value}" for option, value in options.items()), str(place)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    if seed:
        environment["PYTHONHASHSEED"] = "0"
    log = findings / "log"
    begin = time.monotonic()
    with log.open("wb") as output, tempfile.TemporaryDirectory() as folder:
        try:
            code = subprocess.run(
                line,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                env={**environment, "TMPDIR": folder},
                cwd=folder,
                timeout=seconds + 120,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = 124
    text = log.read_text(errors="replace")
    executed = re.search(r"number_of_executed_units:\s*(\d+)", text)
    finding = "" if code == 0 and executed else _reason(text, code)
    return Run(
        name,
        int(executed[1]) if executed else 0,
        round(time.monotonic() - begin, 1),
        len(list(place.iterdir())),
        finding,
    )


def _reason(text: str, code: int) -> str:
    for pattern in (
        r"^violated: .*",
        r"Uncaught Python exception: ===\s*\n.*",
        r"^ERROR: .*",
        r"^.*ERROR: .*",
        r"^SUMMARY.*",
    ):
        if found := re.search(pattern, text, re.M):
            return found[0].splitlines()[-1][:200]
    return f"ended with exit code {code}"


def _show(one: Run) -> None:
    """Print a finding, and the beginning of its first input, to stderr."""
    place = BUILD / "fuzz-findings" / one.target
    print(f"{one.target}: {one.finding}\n    see {place}", file=sys.stderr)
    for file in sorted(file for file in place.iterdir() if file.name != "log")[:1]:
        data = file.read_bytes()
        shown = f"{data[:SHOWN]!r}{'...' if len(data) > SHOWN else ''}"
        print(f"    {file.name}, {len(data)} bytes: {shown}", file=sys.stderr)


def main() -> int:
    """Run all targets, or the named ones; return 1 if there are findings."""
    from targets import NATIVE, TARGETS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="time of each target (default 60)")
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="makes the same inputs in each run (default 0: others in each run)",
    )
    parser.add_argument("--jobs", type=int, default=2, help="targets that run at once (default 2)")
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"{', '.join([*NATIVE, *TARGETS])} (default all)"
    )
    asked = parser.parse_args()
    names = asked.targets or [*NATIVE, *TARGETS]
    if unknown := [name for name in names if name not in NATIVE and name not in TARGETS]:
        parser.error(f"expected targets out of {', '.join([*NATIVE, *TARGETS])}, found {', '.join(unknown)}")
    if not asked.seconds > 0 or asked.jobs < 1 or not 0 <= asked.seed < 2**32:
        parser.error("expected --seconds above 0, --jobs of at least 1 and --seed of 0 to 4294967295")
    if missing := [name for name in names if name in NATIVE and not native(name).exists()]:
        parser.error(f"the targets {', '.join(missing)} are not built; run `make fuzz`")
    write_corpus(names)
    longest = {name: one.longest for name, one in TARGETS.items()} | {
        name: one[1] for name, one in NATIVE.items()
    }
    with ThreadPoolExecutor(asked.jobs) as pool:
        runs = []
        for one in pool.map(lambda name: run(name, asked.seconds, longest[name], asked.seed), names):
            runs.append(one)
            print(f"{one.target:15} {one.inputs:10,} inputs  {one.finding or 'ok'}", flush=True)
    with (BUILD / "fuzz-counts.jsonl").open("a") as counts:
        counts.write(json.dumps({"seconds": asked.seconds, "runs": [asdict(one) for one in runs]}) + "\n")
    bad = [one for one in runs if one.finding]
    print(f"{sum(one.inputs for one in runs):,} inputs, {len(bad)} findings")
    for one in bad:
        _show(one)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
