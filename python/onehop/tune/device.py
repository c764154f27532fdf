"""The part of `onehop tune --device`: one or two shots by length, and the length from which a codec pays, on cards."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from onehop import _core
from onehop.collective_plans import plans
from onehop.device.arrays import array, device_array
from onehop.device.sums import DeviceSums
from onehop.error import Error
from onehop.group import Group
from onehop.tune.allreduce import LARGE, SIZES, Variant, lossy_for

KINDS = ("cuda", "hip", "processor")
#: Kernels add the arrays of so many ranks.
RANKS = (2, 4, 8)
# A rule has chunks, which kernels do not use.
VARIANTS: list[Variant] = [("one_shot", 256 << 10), ("two_shot", 256 << 10)]
_LAUNCHES = 8  # for each time


def variants_for(_size: int, _encoded: bool) -> list[Variant]:
    """The algorithms to try for arrays of a size."""
    return VARIANTS


def ranks_on(kind: str) -> list[int]:
    """The numbers of ranks that the cards of a kind allow. Raises Error if there are too few."""
    if kind == "processor":
        return [2]
    count, reason = _core.device_count(kind)
    if count < 2:
        why = f": {reason}" if reason else ""
        raise Error(f"expected two cards of {kind} or more, whose sums are measured, found {count}{why}")
    return [ranks for ranks in RANKS if ranks <= count]


def key_of(ranks: int) -> int | None:
    """The "ranks" of the table for so many ranks."""
    return None if ranks == RANKS[-1] else ranks


def device_of(group: Group, device: str) -> str:
    """The device of a rank: the one with a number, or card r of a kind for rank r."""
    return device if device == "processor" or ":" in device else f"{device}:{group.rank}"


def measure_device(
    group: Group,
    device: str,
    seconds: float,
    sizes: Sequence[int | None] = SIZES,
    codecs: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Measure as one rank: for every size the samples of raw and of every codec, by variant; µs."""
    name = device_of(group, device)
    sums = DeviceSums(plans(group), name)
    queue = sums.make_stream()  # which is destroyed with this object
    stream = queue.native
    codecs = codecs or ["raw", *lossy_for(group.size)]
    # Freeing memory of a card waits for the kernels of others, so all sizes use the same.
    held = array(np.ones(LARGE // 4, np.float32), name)
    place = device_array(held)
    assert place is not None
    measured = []
    for up_to in sizes:
        elements = (LARGE if up_to is None else up_to) // 4
        us: dict[str, list[list[float]]] = {codec: [[] for _ in VARIANTS] for codec in codecs}
        begin = perf_counter()
        while True:
            for codec in codecs:
                for shots, samples in enumerate(us[codec], 1):
                    group.barrier()
                    start = perf_counter()
                    for _ in range(_LAUNCHES):
                        sums.core.run(
                            stream, place.address, place.address, elements, "float32", "sum", codec, shots
                        )
                    sums.core.wait(stream)
                    samples.append((perf_counter() - start) * 1e6 / _LAUNCHES)
            enough = perf_counter() - begin >= seconds / len(sizes)
            if json.loads(group.allgather(json.dumps(enough).encode())[0]):
                break
        measured.append({"up_to": up_to, "us": us})
    return measured


def tables_of(
    measured: dict[int, Any], choose: Callable[[Any, dict[str, Any]], tuple[dict[str, Any], Any]]
) -> tuple[list[dict[str, Any]], list[tuple[str, Any]]]:
    """The tables in use with those of the measured numbers of ranks; and what was chosen for each."""
    tables = json.loads(_core.reduce_tables())
    kept = [one for one in tables if one["transport"] != "cards"]
    cards = {one["ranks"]: one for one in tables if one["transport"] == "cards"}
    told = []
    for ranks, samples in measured.items():
        cards[key_of(ranks)], choices = choose(samples, cards[key_of(ranks)])
        told.append((f"{ranks} cards", choices))
    return [*kept, *(cards[key] for key in (2, 4, None))], told
