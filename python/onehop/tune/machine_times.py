"""Times of messages, exchanges and copies between two cores of this machine, for its machine file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop import _core
from onehop.group import Group
from onehop.schedule import ArraySpec, Place, Round, Schedule, Slice, Transfer, halo, halo_block

# Doubling from 4 KiB to 4 MiB: in between, stores and chunks change, and caches end.
MESSAGES = (8, 64, 256, 1 << 10, *(4 << 10 + i for i in range(11)))
EXCHANGES = (*MESSAGES, 8 << 20, 16 << 20)
COPIES = (64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20)
# Bytes that move when the two highest index bits of a rank's state are swapped, and how many index bits the state has:
# half of its elements move.
ELEMENT = 16
UPDATES = {ELEMENT << bits >> 1: bits for bits in (9, 13, 15, 17, 18, 19, 20, 21, 22, 23, 24)}
# Bytes that each rank sends in a round of a sum: short ones in one-shot sums, which have one round, longer ones in
# two-shot sums of twice as many bytes, which have two.
ONE_SHOT = (16, 128, 256, 1 << 10, 2 << 10, 8 << 10)
TWO_SHOT = (16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20)
BLOCKS = (*ONE_SHOT, *TWO_SHOT)
# From here on the clock runs only while data is exchanged.
TIMED_ALONE = 16 << 10
# Pieces of so many bytes are gathered and scattered, as many as make two faces of this length.
PIECES = (8, 64, 256, 1 << 10, 4 << 10)
FACE = 16 << 10
# A column of so many rows is copied inside the rank.
ROWS, COLUMNS = 2048, 40
# Microseconds of a piece where the difference of two measured times is smaller.
LEAST_PIECE = 1e-6
# Microseconds of an exchange inside a collective operation, likewise.
LEAST_EXCHANGE = 1e-3
PASSES = 3
# Large arrays are slow in their first rounds, in which their pages are mapped.
LEAST_ROUNDS = 9
LINE = 64

Table = list[tuple[int, float]]
MachineSamples = dict[str, dict[str, list[float]]]


@dataclass(frozen=True)
class MachineTimes:
    """What a machine file says about messages and copies: tables of bytes and microseconds.

    Of a message from one rank to the other (`one_way`), of one in each direction from array to array (`both_ways`), of
    one in each direction in a round of a sum (`in_collective`), of a copy on each rank at the same time (`copies`), of
    an exchange of two parts of memory on each rank at the same time (`updates`), and of an exchange of parts of both
    ranks' memory (`shared_updates`). Their microseconds do not descend. `packed_pieces` has the bytes of a piece and
    the microseconds for each such piece that a message gathers or scatters. A rank takes `copied_piece_us` for each
    piece of 8 bytes that it copies, and `used_line_us` to write a word of a line before an exchange and to read one
    after it.
    """

    one_way: Table
    both_ways: Table
    in_collective: Table
    copies: Table
    updates: Table
    shared_updates: Table
    packed_pieces: Table
    copied_piece_us: float
    used_line_us: float


def lines_out(schedule: Schedule, rank: int) -> int:
    """Count the cache lines that a rank sends to others: at least one for each piece."""
    lines = 0
    for one in schedule.rounds:
        for transfer in one.transfers:
            if transfer.from_.rank != rank or transfer.to.rank == rank:
                continue
            slice_, size = transfer.from_.slice, schedule.arrays[transfer.from_.array].element_bytes
            lines += slice_.pieces * -(-slice_.elements * size // (slice_.pieces * LINE))
    return lines


# The ranks' part


def _moves(size: int, across: bool) -> Schedule:
    numbers = size // 8
    everything = Slice.range(0, numbers)
    moves = [
        Transfer(Place(rank, 0, everything), Place(1 - rank if across else rank, 1, everything))
        for rank in (0, 1)
    ]
    return Schedule("moves", 2, [ArraySpec("out", numbers, 8), ArraySpec("in", numbers, 8)], [Round(moves)])


def _columns() -> dict[str, Any]:
    """A halo of two columns of numbers, with the rank itself."""
    return {"extents": (2 * ROWS, COLUMNS), "grid": (2, 1), "width": (0, 1), "periodic": (False, True)}


def _pieces(piece: int) -> dict[str, Any]:
    """A halo of two faces with the other rank, in pieces of so many bytes."""
    width = piece // 8
    # Both faces of a block are apart: the benchmark marks each with numbers of its own.
    extents = (FACE // piece, 2 * max(2 * width, COLUMNS))
    return {"extents": extents, "grid": (1, 2), "width": (0, width), "periodic": (False, True)}


def _by_role(measured: Sequence[tuple[str, str, list[float]]]) -> dict[str, list[float]]:
    return {role: us for _, role, us in measured}


def _exchange(
    group: Group, schedule: Schedule, arrays: list[np.ndarray], effort: Any
) -> dict[str, list[float]]:
    memory = [_core.Memory(array, True, "array") for array in arrays]
    return _by_role(_core.measure_halo(group, schedule, memory, effort, alone=True))


def _halo_of(group: Group, layout: dict[str, Any], effort: Any) -> dict[str, list[float]]:
    array = np.zeros(halo_block(**layout, rank=group.rank).shape)
    return _exchange(group, halo(**layout), [array], effort)


def _sum(group: Group, block: int, effort: Any) -> dict[str, list[float]]:
    """A sum in whose rounds each rank sends so many bytes."""
    size, algorithm = (block, "one_shot") if block in ONE_SHOT else (2 * block, "two_shot")
    kind = ("onehop", "ours", "raw", algorithm, 0)
    return {role: us for _, role, us, _ in _core.measure_allreduce(group, size, effort, False, [kind])}


def measure_machine(group: Group, seconds: float, passes: int = PASSES) -> MachineSamples:
    """Measure as one of two ranks, everything `passes` times over all `seconds`: all see every state of the machine.

    Return the samples in µs by name (`one_way 64`, `both_ways 64`, `in_collective 64`, `copies 64`, `updates 4096`,
    `shared_updates 4096`, `packed 64`, `copied`): `ours` of everything, `variant` with a clock that runs only while
    data moves.
    """
    tries: dict[str, Any] = {}
    for size in MESSAGES:
        tries[f"one_way {size}"] = lambda e, size=size: _by_role(_core.measure_ping_pong(group, size, e))
    for name, sizes, across in (("both_ways", EXCHANGES, True), ("copies", COPIES, False)):
        for size in sizes:
            tries[f"{name} {size}"] = lambda e, size=size, across=across: _exchange(
                group, _moves(size, across), [np.zeros(size // 8), np.zeros(size // 8)], e
            )
    for piece in PIECES:
        tries[f"packed {piece}"] = lambda e, piece=piece: _halo_of(group, _pieces(piece), e)
    for block in BLOCKS:
        tries[f"in_collective {block}"] = lambda e, block=block: _sum(group, block, e)
    for name, low in (("updates", -2), ("shared_updates", -1)):
        for size, bits in UPDATES.items():
            # The highest bits of a rank's state, or the highest one and that of the rank.
            tries[f"{name} {size}"] = lambda e, bits=bits, low=low: _by_role(
                _core.measure_permutation(group, bits, [(bits + low, bits + low + 1)], ELEMENT, e)
            )
    tries["copied"] = lambda e: _halo_of(group, _columns(), e)
    effort = _core.MeasureEffort(
        seconds=seconds / (len(tries) * passes), block_us=150.0, min_rounds=LEAST_ROUNDS
    )
    return joined({name: run(effort) for name, run in tries.items()} for _ in range(passes))


# The launcher's part


def joined(measured: Iterable[MachineSamples]) -> MachineSamples:
    """Join the samples of several measurements."""
    found: MachineSamples = {}
    for one in measured:
        for name, roles in one.items():
            for role, us in roles.items():
                found.setdefault(name, {}).setdefault(role, []).extend(us)
    return found


def _table(sizes: Sequence[int], microseconds: Sequence[float]) -> Table:
    """Make the times ascend: neighbours that descend get their geometric mean (pool adjacent violators)."""
    pools: list[list[float]] = []
    for us in microseconds:
        pools.append([us])
        while len(pools) > 1 and _mean(pools[-2]) > _mean(pools[-1]):
            last = pools.pop()
            pools[-1].extend(last)
    ascending = [_mean(pool) for pool in pools for _ in pool]
    return list(zip(sizes, ascending, strict=True))


def _mean(times: Sequence[float]) -> float:
    return times[0] if len(times) == 1 else float(np.exp(np.mean(np.log(times))))


def _at(table: Table, size: float) -> float:
    sizes, us = zip(*table, strict=True)
    return float(np.exp(np.interp(np.log(size), np.log(sizes), np.log(us))))


def times_from(measured: MachineSamples) -> MachineTimes:
    """Make tables from the samples of `measure_machine`: medians, and differences of medians."""

    def us(name: str, role: str = "ours") -> float:
        return float(np.median(measured[name][role]))

    used = [
        (us(f"both_ways {size}") - us(f"both_ways {size}", "variant")) / (size / LINE)
        for size in EXCHANGES
        if TIMED_ALONE <= size <= 16 * TIMED_ALONE
    ]
    used_line = max(0.0, float(np.median(used)))

    def both_ways(size: int) -> float:
        if size >= TIMED_ALONE:
            return us(f"both_ways {size}", "variant")
        # The clock would take longer than the exchange.
        return max(us(f"one_way {MESSAGES[0]}"), us(f"both_ways {size}") - used_line * -(-size // LINE))

    def in_collective(size: int) -> float:
        whole = us(f"in_collective {size}")
        if size in TWO_SHOT:
            return whole / 2  # the clock runs only while data moves
        return max(LEAST_EXCHANGE, whole - used_line * -(-size // LINE))

    exchanges = _table(EXCHANGES, [both_ways(size) for size in EXCHANGES])
    copies = _table(COPIES, [us(f"copies {size}") for size in COPIES])

    def packed(piece: int) -> float:
        # Each rank gathers the pieces of one message and scatters those of another.
        pieces = 2 * FACE // piece
        return (us(f"packed {piece}", "variant") - _at(exchanges, 2 * FACE)) / (2 * pieces)

    pieces, size = 2 * ROWS, 2 * ROWS * 8
    return MachineTimes(
        _table(MESSAGES, [us(f"one_way {size}") for size in MESSAGES]),
        exchanges,
        _table(BLOCKS, [in_collective(size) for size in BLOCKS]),
        copies,
        _table(list(UPDATES), [us(f"updates {size}") for size in UPDATES]),
        _table(list(UPDATES), [us(f"shared_updates {size}") for size in UPDATES]),
        _table(PIECES, [max(LEAST_PIECE, packed(piece)) for piece in PIECES]),
        max(0.0, (us("copied") - _at(copies, size)) / pieces),
        used_line,
    )
