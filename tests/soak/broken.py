"""Show that the soak finds broken builds: broken.py [--seconds S] [--seed S] [FAULT...].

Copies the sources to build/broken, breaks the copy with one fault of faults.py after the other, builds `onehop_soak`
from it and runs trials with ascending seeds until one is an anomaly. First, the unbroken copy runs the same kinds of
trials and must have none. The exit code is 1 if a fault is not found within the time, or the unbroken copy has an
anomaly.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))

from faults import FAULTS, Fault  # noqa: E402

PLACE = ROOT / "build/broken"
SOURCE = PLACE / "source"
PROGRAM = PLACE / "build/onehop_soak"
# Batches of exchanges or long messages, or faults, in one run of the program.
COUNTS = {"exchanges": 1, "long_messages": 1, "kills": 10, "split_kills": 10}
HANG_SECONDS = 90  # the program itself notices a hang after 60 s


def broken_text(fault: Fault, root: Path) -> dict[str, str]:
    """Return the broken text of each file that a fault changes; raise ValueError if it does not fit."""
    texts: dict[str, str] = {}
    for change in fault.changes:
        text = texts.get(change.file) or (root / change.file).read_text()
        if (found := text.count(change.old)) != change.times:
            raise ValueError(
                f"{fault.name}: expected {change.old!r} {change.times} times in {change.file}, found it {found} times"
            )
        texts[change.file] = text.replace(change.old, change.new)
    return texts


def copy_sources() -> None:
    """Bring the copy up to date with the files that git knows; unchanged files keep their times."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        to = SOURCE / name
        data = (ROOT / name).read_bytes()
        if not to.is_file() or to.read_bytes() != data:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(data)
    for stale in [one for one in SOURCE.rglob("*") if one.is_file()]:
        if str(stale.relative_to(SOURCE)) not in names:
            stale.unlink()


def build() -> None:
    """Build the program from the copy; raise SystemExit with the compiler's words if that fails."""
    environment = {**os.environ, "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"}
    found = subprocess.run([str(ROOT / "tools/find_compiler.sh")], capture_output=True, text=True, check=True)
    environment["CXX"] = found.stdout.strip()
    configure = ["cmake", "-S", str(SOURCE), "-B", str(PROGRAM.parent), "-G", "Ninja"]
    configure += ["-DCMAKE_BUILD_TYPE=Release", "-DONEHOP_TESTS=ON", "-DONEHOP_PYTHON=OFF"]
    jobs = os.environ.get("JOBS") or str(os.cpu_count())
    make = ["cmake", "--build", str(PROGRAM.parent), "--target", PROGRAM.name, "--parallel", jobs]
    for line in (configure, make):
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(line)} failed:\n{done.stdout}{done.stderr}"[-5000:])


def search(kind: str, seed: int, seconds: float) -> tuple[int, float, str]:
    """Run trials until one is an anomaly or the time is over; return their number, the time, and what was wrong."""
    begin = time.monotonic()
    trials = 0
    while time.monotonic() - begin < seconds:
        line = [str(PROGRAM), kind, str(seed + trials), str(COUNTS[kind])]
        trials += 1
        try:
            done = subprocess.run(line, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return trials, time.monotonic() - begin, "a hang of the whole trial"
        if done.returncode != 0:
            return trials, time.monotonic() - begin, short(done.stderr, done.returncode)
    return trials, time.monotonic() - begin, ""


def short(errors: str, code: int) -> str:
    """Return what an anomaly was in a few words: the first line that says so."""
    for words in (
        "wrong bytes",
        "wrong sum",
        "sums of reduction",
        "a hang",
        "a wrong rank",
        "was not told",
        "descriptor",
    ):
        for line in errors.splitlines():
            if words in line:
                return line.strip()[:100]
    return (errors.strip().splitlines() or [f"exit code {code}"])[0][:100]


def main() -> int:
    """Build and try the faults that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120, help="at most for each fault (default 120)")
    parser.add_argument("--seed", type=int, default=1, help="of the first trial (default 1)")
    parser.add_argument(
        "--log", type=Path, default=ROOT / "build/broken.jsonl", help="where results are appended"
    )
    names = [one.name for one in FAULTS]
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=f"{', '.join(names)} (default all)")
    asked = parser.parse_args()
    if unknown := [name for name in asked.faults if name not in names]:
        parser.error(f"expected faults out of {', '.join(names)}, found {', '.join(unknown)}")
    if not asked.seconds > 0 or asked.seed < 0:
        parser.error("expected --seconds above 0 and --seed of at least 0")
    chosen = [one for one in FAULTS if not asked.faults or one.name in asked.faults]
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        parser.error("expected a clone: the sources are copied from the files that git knows")
    missed = []
    copy_sources()
    build()
    print(f"{'build':24} {'kind':14} {'trials':>6} {'s':>6}  anomaly", flush=True)
    for kind in dict.fromkeys(one.kind for one in chosen):
        trials, seconds, wrong = search(kind, asked.seed, min(asked.seconds, 20))
        print(f"{'(unbroken)':24} {kind:14} {trials:6} {seconds:6.1f}  {wrong or 'none'}", flush=True)
        missed += ["unbroken"] if wrong else []
    for fault in chosen:
        texts = broken_text(fault, SOURCE)
        whole = {name: (SOURCE / name).read_text() for name in texts}
        try:
            for name, text in texts.items():
                (SOURCE / name).write_text(text)
            build()
            trials, seconds, wrong = search(fault.kind, asked.seed, asked.seconds)
        finally:
            for name, text in whole.items():
                (SOURCE / name).write_text(text)
        print(
            f"{fault.name:24} {fault.kind:14} {trials:6} {seconds:6.1f}  {wrong or 'NOT FOUND'}", flush=True
        )
        missed += [] if wrong else [fault.name]
        asked.log.parent.mkdir(parents=True, exist_ok=True)
        with asked.log.open("a") as log:
            entry = {"fault": fault.name, "trials": trials, "seconds": round(seconds, 1), "anomaly": wrong}
            log.write(json.dumps(entry) + "\n")
    if missed:
        print(f"broken.py: not as expected: {', '.join(missed)}", file=sys.stderr)
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main())
