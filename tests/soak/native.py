"""Trials in C++ whose ranks are forked from one process: `onehop_soak`, which costs a few milliseconds a trial.

They make the large numbers: `many_exchanges` runs random schedules up to 3 * 10^5 times each, `long_messages` moves
messages of 4 to 256 KiB, `many_kills` and `many_split_kills` have a fault in each trial. The trials of the same
subjects in trials.py also include Python, the launcher and MPI.
"""

import random
import re
from collections import Counter
from pathlib import Path

from trials import expect, set_environment

from ranks import Ranks

PROGRAM = Path(__file__).resolve().parents[2] / "build/release/onehop_soak"
BATCHES, FAULTS = 4, 40


def _run(ranks: Ranks, kind: str, seed: int, count: int) -> Counter[str]:
    set_environment(ranks, random.Random(seed))
    line = [str(PROGRAM), kind, str(seed), str(count)]
    done = ranks.run(line, cwd=ranks.folder, timeout=900)
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr}"[-3000:])
    return Counter({name: int(number) for name, number in re.findall(r"(\w+) (\d+)", done.stdout)})


def many_exchanges(ranks: Ranks, seed: int) -> Counter[str]:
    """Random schedules, each up to 3 * 10^5 times; every byte of every run is compared with a model."""
    return _run(ranks, "exchanges", seed, BATCHES)


def long_messages(ranks: Ranks, seed: int) -> Counter[str]:
    """Plans, channels and reductions with messages of 4 to 256 KiB, whose senders choose their stores."""
    return _run(ranks, "long_messages", seed, BATCHES)


def many_kills(ranks: Ranks, seed: int) -> Counter[str]:
    """Faults of ranks at random work, or while they meet: every survivor is told in time which rank was lost."""
    return _run(ranks, "kills", seed, FAULTS)


def many_split_kills(ranks: Ranks, seed: int) -> Counter[str]:
    """The same in the world and in groups that are split from it, while plans are made and groups are closed."""
    return _run(ranks, "split_kills", seed, FAULTS)


TRIALS = (many_exchanges, long_messages, many_kills, many_split_kills)
