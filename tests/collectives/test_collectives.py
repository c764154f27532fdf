"""Collective operations on tensors: comparison with NumPy, exact integers, the same bits on all ranks."""

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onehop
from bench_runner import measure
from onehop import BadInput, Mismatch, collectives
from onehop.codec import CODECS
from ranks import SURVIVORS, Ranks
from threads import run_threads

INTEGERS = (np.int32, np.int64)
FLOATS = (np.float16, np.float32, np.float64)


def source(rank: int, count: int, dtype: type, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng([seed, rank])
    if dtype in INTEGERS:
        return random.integers(-(2**20), 2**20, count).astype(dtype)
    return random.standard_normal(count).astype(dtype)


@settings(max_examples=20)
@given(
    size=st.integers(2, 6),
    dtype=st.sampled_from(FLOATS),
    spread=st.integers(0, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_sums_are_within_the_stated_bound_of_exact_ones(
    size: int, dtype: type, spread: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    count = 400
    # Numbers of very different magnitudes, many of which nearly cancel.
    everything = [random.normal(size=count) * 2.0 ** random.integers(-spread, spread + 1, count)]
    for rank in range(1, size):
        mine = random.normal(size=count) * 2.0 ** random.integers(-spread, spread + 1, count)
        everything.append(np.where(random.random(count) < 0.5, -everything[rank - 1] * 1.001, mine))
    given = [one.astype(dtype) for one in everything]

    found = run_threads(size, lambda group: onehop.allreduce(group, given[group.rank]))[0]
    unit = (size - 1) * (2.0**-53 if dtype == np.float64 else 2.0**-24)
    for i in range(count):
        numbers = [float(one[i]) for one in given]
        exact = math.fsum(numbers)  # compensated: rounded once
        bound = unit / (1 - unit) * math.fsum(map(abs, numbers)) + abs(exact) * 2.0**-53
        if dtype == np.float16:
            bound += max((abs(exact) + bound) * 2.0**-11, 2.0**-25)
        assert abs(float(found[i]) - exact) <= bound


def test_several_arrays_in_one_go_in_place() -> None:
    def one_rank(group: onehop.Group) -> None:
        parts = [np.full((2, 3), group.rank + 1.0), np.zeros(0), np.arange(500.0), np.array(7.0)]
        found = onehop.allreduce(group, parts, out=parts)
        assert found[0] is parts[0]
        assert (parts[0] == 6).all()
        assert np.array_equal(parts[2], 3 * np.arange(500.0))
        assert parts[3] == 21

    run_threads(3, one_rank)


def test_prepared_operations_are_kept_and_bounded() -> None:
    group = onehop.Group.alone()
    first = collectives.plans(group)
    for count in range(collectives.MAX_PLANS + 20):
        onehop.allreduce(group, np.zeros(count))
        onehop.allreduce(group, np.zeros(5))
    assert len(first) == collectives.MAX_PLANS
    assert collectives.plans(group) is first
    kept = first.get("allreduce", 5, "float64", "sum", "raw", "auto")
    assert first.get("allreduce", 5, "float64", "sum", "raw", "auto") is kept


def test_says_what_is_wrong() -> None:
    group = onehop.Group.alone()
    for array, message in (
        (np.zeros(3, "M8[s]"), "datetime64"),
        (np.zeros(3, ">f8"), "byte order"),
        ([np.zeros(3), np.zeros(3, np.float32)], "one type"),
        ([1.0, 2.0], "found a float"),
        (3, "found a int"),
    ):
        with pytest.raises(BadInput, match=message):
            onehop.allreduce(group, array)
    with pytest.raises(BadInput, match="out"):
        onehop.allreduce(group, np.zeros(3), out=np.zeros(4))
    with pytest.raises(BadInput, match=r"mean of int32"):
        onehop.allreduce(group, np.zeros(3, np.int32), "mean")
    with pytest.raises(BadInput, match="found 'median'"):
        onehop.allreduce(group, np.zeros(3), "median")
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(BadInput, match="read-only"):
        onehop.allreduce(group, frozen, out=frozen)

    def one_rank(pair: onehop.Group) -> None:
        with pytest.raises(BadInput, match="multiple of 2"):
            onehop.reduce_scatter(pair, np.zeros(3))

    run_threads(2, one_rank)


PROCESSES = """
    import os, signal, sys
    import numpy as np
    import onehop

    group = onehop.Group.world()
    for count in (2, 1000, 1 << 20):
        found = onehop.allreduce(group, np.full(count, group.rank + 1, np.float32))
        assert (found == group.size * (group.size + 1) // 2).all()
    try:
        onehop.allreduce(group, np.zeros(100 + (group.rank == 1), np.float32))
    except onehop.Mismatch as error:
        assert "101 float32" in str(error) and "100 float32" in str(error), error
    else:
        raise SystemExit("no Mismatch")
    onehop.barrier(group)
    assert onehop.allreduce(group, np.ones(3))[0] == group.size
    if group.rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        while True:
            onehop.allreduce(group, np.zeros(50_000))
    except onehop.PeerLost as error:
        assert error.rank == 2
        print(f"rank {group.rank} lost {error.rank}", flush=True)
"""


def test_on_processes_mismatch_everywhere_and_a_dead_rank_is_named(ranks: Ranks) -> None:
    done = ranks.launch(3, PROCESSES, *SURVIVORS)
    assert done.returncode != 0
    assert "rank 0 lost 2" in done.stdout, done.stdout + done.stderr
    assert "rank 1 lost 2" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("message", "run"),
    [
        (
            r"24 float32 in shape \(6, 4\)",
            lambda group, odd: onehop.allreduce(group, np.zeros((6, 4) if odd else (4, 6), np.float32)),
        ),
        (
            r"9 float64 in shapes of its own \(sum\)",
            lambda group, odd: onehop.allreduce(group, [np.zeros(5 - odd), np.zeros(4 + odd)]),
        ),
        (
            r"blocks of 1000 int64 in shape \(2, 500\)",
            lambda group, odd: collectives.reduce_scatter(
                group, np.zeros((8, 500) if odd else (4, 1000), np.int64)
            ),
        ),
        (
            "80 bytes of int64 from",
            lambda group, odd: onehop.broadcast(group, np.zeros(10, np.int64 if odd else np.float64)),
        ),
        (
            r"320 bytes in all of float64 in shape \(5, ...\)",
            lambda group, odd: collectives.allgather(group, np.zeros((5, 2) if odd else (2, 5))),
        ),
        (
            "a broadcast of 16 bytes from rank 0",
            lambda group, odd: onehop.broadcast(group, np.zeros(16 if odd else 8, np.uint8)),
        ),
        (
            "an all-to-all of a type, shape or root of its own",
            lambda group, odd: collectives.all_to_all(group, np.zeros((4, 2), "c16" if odd else "f8")),
        ),
    ],
)
def test_mismatch_is_raised_on_every_rank(message: str, run: Callable[[onehop.Group, bool], object]) -> None:
    def one_rank(group: onehop.Group) -> None:
        with pytest.raises(Mismatch, match=f"rank 1 runs .*{message}"):
            run(group, group.rank == 1)

    run_threads(4, one_rank)


class Elsewhere:
    """A tensor on another device, as far as onehop looks at it."""

    dtype, shape, device = "torch.float32", (4,), SimpleNamespace(type="cuda")


def test_should_allreduce_says_why_not() -> None:
    assert collectives.should_allreduce(np.zeros(5, np.float32), "q6")
    for array, codec, reason in (
        (np.zeros((4, 4))[:, 1], "raw", "contiguous"),
        (np.zeros(4, np.uint8), "q8", "uint8"),
        (np.zeros(4, np.int32), "q8", "int32"),
        (np.zeros(4), "q9", "q9"),
        ("text", "raw", "float32"),
        (Elsewhere(), "raw", "on cuda"),
    ):
        verdict = collectives.should_allreduce(array, codec)
        assert not verdict
        assert reason in verdict.reason
    for dtype in (np.int8, np.int32, np.bool_, np.complex64, np.float16):
        for op in ("sum", "average", "min", "bitwise_and", "logical_or", "other"):
            verdict = collectives.should_allreduce(np.ones(3, dtype), op=op)
            try:
                onehop.allreduce(onehop.Group.alone(), np.ones(3, dtype), op)
            except BadInput:
                assert not verdict
            else:
                assert verdict
    (mean,) = onehop.allreduce(onehop.Group.alone(), [np.ones(3)], "average")
    assert mean.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["O", [("a", "O"), ("b", "f8")]])
def test_python_objects_are_not_moved(dtype: Any) -> None:
    group, array = onehop.Group.alone(), np.zeros(4, dtype)
    moves = (onehop.broadcast, onehop.allgather, onehop.gather, onehop.scatter, onehop.alltoall)
    for move in moves:
        with pytest.raises(BadInput, match="has Python objects, which cannot be moved"):
            move(group, array)
    with pytest.raises(BadInput, match="has Python objects, which cannot be moved"):
        onehop.Plan(onehop.halo(extents=(2,), grid=(1,)), group, [memoryview(array)])


def test_a_nan_anywhere_gives_a_nan() -> None:
    """On every rank, in all types, operations and codecs, and in a long array as in one that fits into the header."""

    def rank(group: onehop.Group) -> None:
        kinds = [(dtype, "raw") for dtype in FLOATS] + [(np.float32, c) for c in CODECS if c != "q3"]
        cases = [(12, "min"), (12, "max"), *((3000, op) for op in ("min", "max", "sum", "mean"))]
        for (dtype, codec), (count, op) in itertools.product(kinds, cases):
            array = np.full(count, group.rank + 1, dtype)
            array[4 * group.rank + 1] = np.nan
            expected = np.isin(np.arange(count), [1, 5, 9])
            found = onehop.allreduce(group, array, op, codec)
            assert (np.isnan(found) == expected).all(), (dtype, codec, count, op)
            block = onehop.reduce_scatter(group, array, op, codec)
            assert (np.isnan(block) == np.split(expected, 3)[group.rank]).all(), (dtype, codec, count, op)

    run_threads(3, rank)


def test_codecs_compress_above_a_size() -> None:
    def one_rank(group: onehop.Group) -> None:
        mine = source(group.rank, 5000, np.float32)
        exact = onehop.allreduce(group, mine)
        assert onehop.allreduce(group, mine, codec="q8").tobytes() != exact.tobytes()
        raw = onehop.allreduce(group, mine, codec="q8", compress_above=20_001)
        assert raw.tobytes() == exact.tobytes()
        # As the table says, from there on.
        above = collectives.plans(group).collectives.compress_above("q8")
        assert above is not None
        assert above > 4
        for count, encoded in ((above // 4 - 1, False), (above // 4, True)):
            some = np.full(count, 0.1, np.float32) * (1 + group.rank)
            automatic = onehop.allreduce(group, some, codec="q8", compress_above="auto")
            wanted = onehop.allreduce(group, some, codec="q8" if encoded else "raw")
            assert automatic.tobytes() == wanted.tobytes()
        with pytest.raises(BadInput, match="compress_above"):
            onehop.allreduce(group, some, codec="q8", compress_above="always")

    run_threads(3, one_rank)


def test_benchmark_has_the_columns_of_nccl_tests(ranks: Ranks) -> None:
    rows = measure(ranks, "allreduce", "-n", "2", "--sizes", "8,64K", "--mpi", "none")["rows"]
    assert [(row["case"], row["bytes"], row["count"]) for row in rows] == [
        ("8 B raw", 8, 2),
        ("64 KiB raw", 65536, 16384),
    ]
    for row in rows:
        assert (row["type"], row["wrong"]) == ("float32", 0)
        assert row["error"] < 1e-6
        assert row["busbw"] == row["algbw"] > 0  # two ranks
        assert set(row["variants"]) == {"onehop, one_shot", "onehop, two_shot", "onehop, shared arrays"}


def test_addresses_of_arrays_of_other_lengths() -> None:
    """run_at, which torch's backend uses, checks lengths as start does, and finds a missing address."""
    operation = onehop._core.Collectives(onehop.Group.alone()).allreduce(4, "float64")
    source, result = np.arange(4.0), np.zeros(4)
    at, to = source.ctypes.data, result.ctypes.data
    for lengths in ((24, 32), (32, 24), (32, 40), (0, 0), (2**63, 32)):
        with pytest.raises(BadInput, match="expected a source of 32 bytes and a result of 32 bytes, found"):
            operation.run_at(at, lengths[0], to, lengths[1])
    for addresses in ((0, to), (at, 0)):
        with pytest.raises(BadInput, match="expected the address of an array, found none"):
            operation.run_at(addresses[0], 32, addresses[1], 32)
    operation.run_at(at, 32, to, 32)
    np.testing.assert_array_equal(result, source)
