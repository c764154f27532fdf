"""Exchanges with and without a codec: bytes, time and error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from onehop.group import Group
from onehop.permutation import permute_bits
from onehop.plan import Plan
from onehop.schedule import Schedule, halo, halo_block
from onehop_bench.result import Row, Samples, extended, make_row

__all__ = ["RoundedRow", "halo_rounding", "permutation_rounding", "rounded_row"]

MAX_LOCAL_BITS = 14


@dataclass(frozen=True)
class RoundedRow(Row):
    """One case with a codec.

    Attributes
    ----------
    codec : str
        Name of the codec.
    raw_us : float
        The median time without a codec.
    raw_ratio : float
        The time with the codec over that without: the median of the rounds' ratios.
    raw_bytes : int
        Bytes that one rank sends without a codec.
    error : float
        The root mean square of the change that the codec makes, over that of the data that the exchange moves, for
        normally distributed numbers.
    """

    codec: str
    raw_us: float
    raw_ratio: float
    raw_bytes: int
    error: float


def rounded_row(
    row: Row, samples: Sequence[Samples], names: tuple[str, str], codec: str, size: int, error: float
) -> RoundedRow:
    """Make the row of a codec from the samples of `row`'s case; `names` are those with and without the codec."""
    rounded, raw = (next(one for one in samples if one.name == name) for name in names)
    others = [one for one in samples if one.role in ("peer", "speed_of_light")]
    made = make_row(f"{row.case}, {codec}", size, row.ranks, [replace(rounded, role="ours"), *others])
    return extended(
        made,
        RoundedRow,
        codec=codec,
        raw_us=float(np.median(raw.us)),
        raw_ratio=float(np.median(rounded.us / raw.us)),
        raw_bytes=row.bytes,
        error=error,
    )


def _loss(group: Group, fill: Callable[[], np.ndarray], exact: Schedule, rounding: Schedule) -> float:
    """The distance between the results of two schedules, relative to the data that the first one moves. Collective."""
    before = fill()
    results = []
    for schedule in (exact, rounding):
        array = before.copy()
        Plan(schedule, group, [array]).run()
        results.append(array)
    moved = results[0] != before
    sums = np.array(
        [np.square(np.abs(results[1] - results[0])).sum(), np.square(np.abs(results[0][moved])).sum()]
    )
    lost, whole = sum(np.frombuffer(one) for one in group.allgather(sums.tobytes()))
    return float(np.sqrt(lost / whole)) if whole else 0.0


def halo_rounding(group: Group, layout: dict[str, object], codec: str) -> float:
    """The relative error that a codec causes in the ghosts of a halo. Collective."""
    shape = halo_block(**layout, rank=group.rank).shape
    random = np.random.default_rng([5, group.rank])

    def field() -> np.ndarray:
        real = random.normal(size=shape)
        return real if layout.get("dtype") != "complex128" else real + 1j * random.normal(size=shape)

    return _loss(group, field, halo(**layout), halo(**layout, codec=codec))


def permutation_rounding(group: Group, bits: int, pairs: Sequence[tuple[int, int]], codec: str) -> float:
    """The relative error that a codec causes in the amplitudes that move. Collective.

    The state is shortened to at most 2^14 amplitudes per rank.
    """
    rank_bits = group.size.bit_length() - 1
    local = min(bits - rank_bits, MAX_LOCAL_BITS)
    # The same pairs in the shorter state, counted from the same end of the local bits.
    lower = [pair[0] if pair[0] < len(pairs) else local - (bits - rank_bits - pair[0]) for pair in pairs]
    chosen = [(low, local + high - (bits - rank_bits)) for low, (_, high) in zip(lower, pairs, strict=True)]
    random = np.random.default_rng([6, group.rank])

    def state() -> np.ndarray:
        return random.normal(size=(1 << local, 2)).view(np.complex128)[:, 0]

    exact, rounding = (
        permute_bits(local + rank_bits, local=local, pairs=chosen, dtype="complex128", codec=one)
        for one in ("raw", codec)
    )
    return _loss(group, state, exact, rounding)
