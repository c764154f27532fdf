"""Exchanges with and without a codec: bytes, time and error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from onehop.codec import CODECS
from onehop.group import Group
from onehop.permutation import permute_bits
from onehop.plan import Plan
from onehop.schedule import Schedule, halo, halo_block
from onehop_bench.options import PlotOptions, RanksBenchOptions, names_option
from onehop_bench.result import Row, Samples, make_row

_MAX_LOCAL_BITS = 14


@dataclass(kw_only=True)
class RoundingOptions(PlotOptions, RanksBenchOptions):
    """Codecs beside raw."""

    codecs: list[str] = names_option(
        [],
        "Codecs whose bytes, time and error are compared with raw.",
        metavar="fp16,q8,...",
        choices=CODECS[1:],
    )


def bytes_out(schedule: Schedule, rank: int) -> int:
    """The bytes that a rank sends to others, after encoding."""
    return sum(
        schedule.bytes(transfer)
        for each_round in schedule.rounds
        for transfer in each_round.transfers
        if transfer.from_.rank == rank != transfer.to.rank
    )


def rounded_row(
    row: Row, samples: Sequence[Samples], names: tuple[str, str], codec: str, size: int, error: float
) -> Row:
    """Make the row of a codec from the samples of `row`'s case; `names` are those with and without the codec.

    Its further keys are `codec`; `raw_us` and `raw_bytes`, the median time and the bytes without a codec; `raw_ratio`,
    the median of the rounds' ratios of the two times; and `error`, the root mean square of the change that the codec
    makes, over that of the data that the exchange moves, for normally distributed numbers.
    """
    rounded, raw = (next(one for one in samples if one.name == name) for name in names)
    others = [one for one in samples if one.role in ("peer", "speed_of_light")]
    return make_row(
        f"{row.case}, {codec}",
        size,
        row.ranks,
        [replace(rounded, role="ours"), *others],
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
    lost, whole = sum(np.frombuffer(part) for part in group.allgather(sums.tobytes()))
    return float(np.sqrt(lost / whole)) if whole else 0.0


def halo_rounding(group: Group, layout: dict[str, object], codec: str) -> float:
    """The relative error that a codec causes in the ghosts of a halo. Collective."""
    shape = halo_block(**layout, rank=group.rank).shape
    random = np.random.default_rng([5, group.rank])

    def field() -> np.ndarray:
        real = random.normal(size=shape)
        return real if layout["dtype"] != "complex128" else real + 1j * random.normal(size=shape)

    return _loss(group, field, halo(**layout), halo(**layout, codec=codec))


def permutation_rounding(group: Group, bits: int, pairs: Sequence[tuple[int, int]], codec: str) -> float:
    """The relative error that a codec causes in the amplitudes that move. Collective.

    The state is shortened to at most 2^14 amplitudes per rank.
    """
    rank_bits = group.size.bit_length() - 1
    local = min(bits - rank_bits, _MAX_LOCAL_BITS)
    # The same pairs in the shorter state, counted from the same end of the local bits.
    lower = [pair[0] if pair[0] < len(pairs) else local - (bits - rank_bits - pair[0]) for pair in pairs]
    chosen = [(low, local + high - (bits - rank_bits)) for low, (_, high) in zip(lower, pairs, strict=True)]
    random = np.random.default_rng([6, group.rank])

    def state() -> np.ndarray:
        return random.normal(size=(1 << local, 2)).view(np.complex128)[:, 0]

    exact, rounding = (
        permute_bits(local + rank_bits, local=local, pairs=chosen, dtype="complex128", codec=name)
        for name in ("raw", codec)
    )
    return _loss(group, state, exact, rounding)
