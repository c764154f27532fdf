"""Trials of groups that are made from a key-value store, on pretended hosts between which UCX carries the messages."""

import random
from collections import Counter

from trials import LAUNCH_SECONDS, PROGRAMS, exchanges_line, expect, fail_one, set_environment, sums

from onehop import _core
from ranks import Ranks

# An exchange over UCX takes milliseconds when other programs have the processors: with more runs and reductions, trials
# that were only slow ended at the time limit.
RUNS, REDUCTIONS = 400, 30

# What notices a lost rank by itself. Barriers and preparation read the store, which waits as long as it likes.
WORK = ("plan", "channel", "allreduce")


def is_possible() -> bool:
    """Whether there is a UCX library."""
    return bool(_core.ucx_library()["path"])


def _use_store(ranks: Ranks, seed: int) -> random.Random:
    """Draw what carries the messages. The ranks take turns on two hosts, or each has its own."""
    source = random.Random(f"store {seed}")
    folder = ranks.folder / "store"
    folder.mkdir()
    ranks.environment |= {
        "SOAK_STORE": str(folder),
        "SOAK_HOSTS": source.choice(["2", "4"]),
        "ONEHOP_NETWORK": "ucx",
        "ONEHOP_UCX_MODE": source.choice(["messages", "messages", "puts"]),
    }
    set_environment(ranks, source)
    return source


def stored_exchanges(ranks: Ranks, seed: int) -> Counter[str]:
    """Random schedules on ranks that met through a store; every byte is compared with a model."""
    source = _use_store(ranks, seed)
    size, line = source.choice([2, 2, 3, 4]), exchanges_line(seed, source, RUNS)
    done = ranks.onehop("launch", "-n", size, *line, timeout=LAUNCH_SECONDS)
    expect(done.returncode == 0, f"{done.stdout}{done.stderr}"[-3000:])
    found = sums(done.stdout)
    is_right = (found["ucx_channels"] > 0) == (found["transfers_between_hosts"] > 0)
    expect(is_right, f"expected channels over UCX if, and only if, hosts exchange something: {done.stdout}")
    return found + Counter(ucx_runs=1, ucx_exchanges=found["exchanges"])


def stored_reductions(ranks: Ranks, seed: int) -> Counter[str]:
    """Random all-reduces between hosts."""
    source = _use_store(ranks, seed)
    line = [PROGRAMS / "reductions.py", seed, REDUCTIONS]
    done = ranks.onehop("launch", "-n", source.choice([2, 3, 4]), *line, timeout=LAUNCH_SECONDS)
    expect(done.returncode == 0, f"{done.stdout}{done.stderr}"[-3000:])
    return sums(done.stdout) + Counter(ucx_runs=1)


def stored_faults(ranks: Ranks, seed: int) -> Counter[str]:
    """A rank is killed, stopped for a while, exits or raises: ranks of all hosts name it in time."""
    _use_store(ranks, seed)
    found = fail_one(ranks, random.Random(seed), WORK)
    return found + Counter({f"ucx_{name}": number for name, number in found.items()})


TRIALS = (stored_exchanges, stored_reductions, stored_faults)
