"""Random trials until the time is over: `make soak HOURS=1`, or soak.py [--hours H | --trials N] [--seed S] [KIND...].

Trial number k of a soak with seed S is a function of (S, k). Its name, KIND:NUMBER, repeats it: soak.py --repeat
faults:123456. Counts of every soak are appended to the log, a line of JSON. The exit code is 1 if there was an anomaly.
"""

import argparse
import contextlib
import json
import os
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import native  # noqa: E402
import stored  # noqa: E402
import trials as one_launch  # noqa: E402

from ranks import Ranks  # noqa: E402

KINDS = one_launch.KINDS | {one.__name__: one for one in (*native.TRIALS, *stored.TRIALS)}
# How often each kind is drawn.
WEIGHTS = {"exchanges": 6, "reductions": 2, "faults": 8, "limits": 2, "disks": 1, "circuits": 1, "hmc": 1}
WEIGHTS |= {"many_exchanges": 6, "many_kills": 6, "many_split_kills": 6, "long_messages": 3}
WEIGHTS |= {"stored_exchanges": 3, "stored_reductions": 1, "stored_faults": 6}
LARGEST = ("slowest_ms",)  # counts that are not added up


def trial(kind: str, seed: int) -> tuple[Counter[str], str]:
    """Run one trial in a folder of its own; return its counts and what was wrong."""
    with tempfile.TemporaryDirectory(prefix="onehop-soak-") as folder:
        ranks = Ranks(Path(folder))
        try:
            counts = KINDS[kind](ranks, seed)
            ranks.assert_nothing_left(10)
            return counts, ""
        except Exception as error:
            return Counter(), f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-2)}"
        finally:
            for pid in ranks.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
            ranks.assert_nothing_left_running(10)


def soak(kinds: list[str], seed: int, hours: float, trials: int) -> tuple[Counter[str], list[str]]:
    """Run trials until the time is over or their number is reached; return counts and the names of anomalies."""
    end = time.monotonic() + 3600 * hours
    counts: Counter[str] = Counter()
    anomalies: list[str] = []
    number = 0
    while number < trials and time.monotonic() < end:
        source = random.Random(f"{seed}/{number}")
        kind = source.choices(kinds, [WEIGHTS[one] for one in kinds])[0]
        name = f"{kind}:{source.randrange(2**31)}"
        found, wrong = trial(kind, int(name.partition(":")[2]))
        largest = {name: max(counts[name], found[name]) for name in LARGEST if name in found}
        counts += found + Counter(trials=1)
        for name, value in largest.items():
            counts[name] = value
        if wrong:
            anomalies.append(name)
            print(f"{name}: {wrong}", file=sys.stderr, flush=True)
        number += 1
        if number % 50 == 0:
            print(f"{number} trials, {len(anomalies)} anomalies: {dict(counts)}", flush=True)
    return counts, anomalies


def main() -> int:
    """Run the soak that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=1.0, help="how long (default 1)")
    parser.add_argument("--trials", type=int, default=sys.maxsize, help="at most as many trials")
    parser.add_argument("--seed", type=int, help="the seed of all trials (default: drawn)")
    parser.add_argument("--repeat", metavar="KIND:NUMBER", help="repeat one trial")
    parser.add_argument(
        "--log", type=Path, default=ROOT / "build/soak-counts.jsonl", help="where counts are appended"
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)} (default all)")
    asked = parser.parse_args()
    over_ucx = {one.__name__ for one in stored.TRIALS}
    kinds = asked.kinds or [kind for kind in KINDS if stored.is_possible() or kind not in over_ucx]
    if asked.repeat:
        kinds, _, number = [asked.repeat.partition(":")[0]], *asked.repeat.partition(":")[1:]
        if not number.isdecimal():
            parser.error(f"expected --repeat KIND:NUMBER, found {asked.repeat}")
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        parser.error(f"expected kinds out of {', '.join(KINDS)}, found {', '.join(unknown)}")
    if not asked.hours > 0 or asked.trials < 1:
        parser.error("expected --hours above 0 and --trials of at least 1")
    if not native.PROGRAM.exists() and {one.__name__ for one in native.TRIALS} & {*kinds}:
        names = ", ".join(one.__name__ for one in native.TRIALS)
        parser.error(f"{native.PROGRAM.name} is not built; run `make soak`, or leave out {names}")
    if over_ucx & {*kinds} and not stored.is_possible():
        parser.error(f"no UCX library was found; leave out {', '.join(sorted(over_ucx))}")
    if asked.repeat:
        counts, wrong = trial(kinds[0], int(number))
        print(f"{asked.repeat}: {wrong or dict(counts)}")
        return int(bool(wrong))
    seed = random.SystemRandom().randrange(2**31) if asked.seed is None else asked.seed
    begin = time.monotonic()
    counts, anomalies = soak(kinds, seed, asked.hours, asked.trials)
    seconds = round(time.monotonic() - begin)
    asked.log.parent.mkdir(parents=True, exist_ok=True)
    with asked.log.open("a") as log:
        entry = {
            "seed": seed,
            "kinds": kinds,
            "seconds": seconds,
            "counts": dict(counts),
            "anomalies": anomalies,
        }
        log.write(json.dumps(entry) + "\n")
    print(f"seed {seed}, {seconds} s, {len(anomalies)} anomalies")
    for name, count in sorted(counts.items()):
        print(f"  {name:22} {count:,}")
    for name in anomalies:
        print(f"repeat with: .venv/bin/python tests/soak/soak.py --repeat {name}", file=sys.stderr)
    return int(bool(anomalies))


if __name__ == "__main__":
    raise SystemExit(main())
