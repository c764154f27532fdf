"""Collective operations on NumPy arrays of all types against NumPy, on one to four ranks."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onehop
from onehop.combine import operator_of
from threads import refused_on, run_threads

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

TYPES = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
EXTRA = ["bfloat16", "float8_e4m3fn", "float8_e5m2"] if ml_dtypes else []
UFUNCS = {
    "sum": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "prod": np.multiply,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "mean": np.add,
}
SHAPES = [(), (1,), (7,), (4, 3), (0, 2)]


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name)) if name in EXTRA else np.dtype(name)


def operators(dtype: np.dtype) -> list[str]:
    found = ["sum", "prod", "logical_and", "logical_or", "logical_xor"]
    found += ["min", "max"] if dtype.kind != "c" else []
    found += ["bitwise_and", "bitwise_or", "bitwise_xor"] if dtype.kind in "biu" else ["mean"]
    return found


def inputs(dtype: np.dtype, size: int, shape: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(size)
    if dtype.kind == "b":
        return [np.asarray(rng.random(shape) < 0.6) for _ in range(size)]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return [
            np.asarray(rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)) for _ in range(size)
        ]
    found = [rng.normal(size=shape) * (rng.random(shape) < 0.8) for _ in range(size)]
    if dtype.kind == "c":
        return [np.asarray(one + 1j * rng.normal(size=shape)).astype(dtype) for one in found]
    # Without -0, to which a small number may round: the larger of it and 0 depends on their order.
    return [np.asarray(np.asarray(one).astype(dtype) + dtype.type(0)) for one in found]


def expected(arrays: list[np.ndarray], op: str) -> np.ndarray:
    """Combine in the order of ranks as NumPy does; small floating-point numbers in float32, rounded once."""
    dtype = arrays[0].dtype
    small = dtype.kind not in "biuc" and dtype.itemsize <= 2
    with np.errstate(all="ignore"):
        wide = [one.astype(np.float32) if small else one for one in arrays]
        total = wide[0] != 0 if op.startswith("logical") else wide[0].copy()
        for one in wide[1:]:
            total = UFUNCS[op](total, one)
        if op == "mean":
            parts = np.ascontiguousarray(total).reshape(-1).view(total.real.dtype)
            total = (parts / parts.dtype.type(len(arrays))).view(total.dtype).reshape(total.shape)
        return np.asarray(total).astype(dtype)


def same(found: Any, wanted: np.ndarray) -> None:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert found.tobytes() == wanted.tobytes(), (found, wanted)


def gaps(array: np.ndarray) -> np.ndarray:
    """The same numbers in memory with gaps."""
    holder = np.zeros((*array.shape, 2), array.dtype)
    holder[..., 1] = array
    return holder[..., 1]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_reductions_of_every_type_have_the_bits_of_numpy(size: int) -> None:
    def one_rank(group: onehop.Group) -> None:
        for name in [*TYPES, *EXTRA]:
            dtype = dtype_of(name)
            for number, op in enumerate(operators(dtype)):
                for shape in (SHAPES[number % 5], (777,)):
                    arrays = inputs(dtype, size, shape)
                    own = arrays[group.rank]
                    total = expected(arrays, op)
                    same(onehop.allreduce(group, own, op), total)
                    out = gaps(np.zeros_like(total))
                    assert onehop.allreduce(group, gaps(own), op, out=out) is out
                    same(out.copy(), total)
                    root = size - 1
                    found = onehop.reduce(group, gaps(own), root, op)
                    assert (found is None) == (group.rank != root)
                    if found is not None:
                        same(found, total)
                    same(onehop.scan(group, own, op), expected(arrays[: group.rank + 1], op))

    run_threads(size, one_rank)


# Negative, signaling where it can be, with a payload; quiet; zeros. Then the quiet bit.
SPECIAL = {
    "float64": ([0xFFF0_0000_0000_0123, 0x7FF8_0000_0000_0007, 1 << 63, 0], 1 << 51),
    "float32": ([0xFF80_0123, 0x7FC0_0007, 1 << 31, 0], 1 << 22),
    "float16": ([0xFC13, 0x7E07, 0x8000, 0], 1 << 9),
    "bfloat16": ([0xFF93, 0x7FC7, 0x8000, 0], 1 << 6),
    "float8_e5m2": ([0xFD, 0x7F, 0x80, 0], 2),
    "float8_e4m3fn": ([0xFF, 0x7F, 0x80, 0], 0),
}


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("op", ["min", "max"])
def test_every_extreme_has_the_first_nan_and_the_first_zero(size: int, op: str) -> None:
    cases = np.array(list(np.ndindex(*[4] * size))).T  # all choices of a special number for each rank

    def one_rank(group: onehop.Group) -> None:
        for name in ["float64", "float32", "float16", *EXTRA]:
            dtype = dtype_of(name)
            bits, quiet_bit = np.array(SPECIAL[name][0], f"u{dtype.itemsize}"), SPECIAL[name][1]
            arrays = [np.ascontiguousarray(bits[row]).view(dtype) for row in cases]

            def wanted(ranks: int, bits: np.ndarray = bits, quiet_bit: int = quiet_bit) -> np.ndarray:
                # The first that is a NaN, else the first.
                first = np.argmax(cases[:ranks] < 2, axis=0)
                chosen = cases[first, np.arange(cases.shape[1])]
                return np.where(chosen < 2, bits[chosen] | bits.dtype.type(quiet_bit), bits[chosen])

            def has(found: np.ndarray, bits: np.ndarray) -> None:
                np.testing.assert_array_equal(found.view(bits.dtype), bits)

            own, rank, total = arrays[group.rank], group.rank, wanted(size)
            lengths = [total.size - size + 1, *[1] * (size - 1)]
            begin = sum(lengths[:rank])
            has(onehop.allreduce(group, own, op), total)
            has(onehop.scan(group, own, op), wanted(rank + 1))
            has(onehop.reduce_scatter(group, own, op, lengths=lengths), total[begin : begin + lengths[rank]])
            repeated = np.repeat(own[None], size, axis=0)
            has(onehop.reduce_scatter(group, repeated, op).reshape(-1), total)
            if (found := onehop.reduce(group, own, 0, op)) is not None:
                has(found, total)

    run_threads(size, one_rank)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8])
def test_blocks_of_equal_and_unequal_lengths(size: int) -> None:
    lengths = [3, 0, 2, 5, 1, 0, 4, 2][:size]
    begins = np.cumsum([0, *lengths])

    def one_rank(group: onehop.Group) -> None:
        rank = group.rank
        mine = slice(begins[rank], begins[rank + 1])
        for name in ("int8", "float32", "float16", "complex128", "bool", *EXTRA[:1]):
            dtype = dtype_of(name)
            arrays = inputs(dtype, size, (begins[-1], 3))
            even = inputs(dtype, size, (2 * size, 3))
            same(onehop.reduce_scatter(group, arrays[rank], lengths=lengths), expected(arrays, "sum")[mine])
            same(onehop.reduce_scatter(group, gaps(even[rank]), "max" if dtype.kind != "c" else "sum"),
                 expected(even, "max" if dtype.kind != "c" else "sum")[2 * rank : 2 * rank + 2])  # fmt: skip
            rows = gaps(arrays[0][mine])
            same(onehop.allgather(group, rows, lengths=lengths), arrays[0])
            same(onehop.allgather(group, arrays[rank]), np.stack(arrays))
            gathered = onehop.gather(group, rows, size - 1, lengths=lengths if rank == size - 1 else None)
            stacked = onehop.gather(group, arrays[rank], 0)
            if rank == size - 1:
                same(gathered, arrays[0])
            if rank == 0:
                same(stacked, np.stack(arrays))
            else:
                assert stacked is None
            out = gaps(np.zeros((lengths[rank], 3), dtype))
            root = size // 2
            source = arrays[0] if rank == root else None
            assert (
                onehop.scatter(group, source, root, lengths=lengths if rank == root else None, out=out) is out
            )
            same(out.copy(), arrays[0][mine])
            same(
                onehop.alltoall(group, even[rank]),
                np.concatenate([one[2 * rank : 2 * rank + 2] for one in even]),
            )
            found = onehop.alltoall(group, arrays[rank], lengths=lengths, received=[lengths[rank]] * size)
            same(found, np.concatenate([one[mine] for one in arrays]))
            copy = gaps(arrays[rank])
            assert onehop.broadcast(group, copy, size - 1) is copy
            same(copy.copy(), arrays[size - 1])
        text = np.array([f"rank {rank}"])
        assert onehop.broadcast(group, text, size - 1)[0] == f"rank {size - 1}"

    run_threads(size, one_rank)


def test_exclusive_scans_begin_with_the_neutral_element() -> None:
    def one_rank(group: onehop.Group) -> list[int]:
        own = np.array([group.rank + 2], np.uint8)
        return [
            int(onehop.scan(group, own, op, exclusive=True)[0])
            for op in ("sum", "prod", "bitwise_and", "bitwise_or", "logical_and")
        ]

    assert run_threads(3, one_rank) == [[0, 1, 255, 0, 1], [2, 2, 2, 2, 1], [5, 6, 2, 3, 1]]


def test_messages() -> None:
    def one_rank(group: onehop.Group) -> None:
        right, left = (group.rank + 1) % 3, (group.rank - 1) % 3
        big = np.arange(100_000.0) + group.rank
        requests = [
            onehop.isend(group, gaps(big), right, tag=7),
            onehop.isend(group, np.int8([5]), right, tag=1),
        ]
        small, target = np.zeros(1, np.int8), gaps(np.zeros(100_000))
        assert onehop.receive(group, small, left, tag=1) == left
        assert onehop.receive(group, target, tag=7) == left
        for request in requests:
            request.wait()
            assert request.test()
        assert small[0] == 5
        assert np.array_equal(target, np.arange(100_000.0) + left)
        onehop.send(group, np.array([group.rank]), group.rank)
        own = np.zeros(1, int)
        assert onehop.receive(group, own, group.rank) == group.rank == own[0]
        onehop.send(group, np.zeros(3), right)
        with pytest.raises(onehop.Mismatch, match="sent 24 bytes"):
            onehop.receive(group, np.zeros(2), left)
        onehop.barrier(group)

    run_threads(3, one_rank)


OPERATIONS: dict[str, Callable[[onehop.Group, np.ndarray], Any]] = {
    "allreduce": lambda group, array: onehop.allreduce(group, array, "bitwise_or"),
    "reduce": onehop.reduce,
    "reduce_scatter": lambda group, array: onehop.reduce_scatter(group, array, lengths=[3, 1]),
    "broadcast": lambda group, array: onehop.broadcast(group, array, 1),
    "gather": onehop.gather,
    "scatter": lambda group, array: onehop.scatter(group, array, 1, out=np.zeros(2, array.dtype)),
    "allgather": onehop.allgather,
    "alltoall": onehop.alltoall,
    "scan": onehop.scan,
    "send": lambda group, array: onehop.receive(group, array, 1),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("late", [True, False])
def test_a_rank_that_is_late_or_gone_is_named(name: str, late: bool) -> None:
    def one_rank(group: onehop.Group) -> str:
        array = np.arange(4)
        if name == "send" and group.rank == 1:
            onehop.send(group, array, 0)
        else:
            OPERATIONS[name](group, array)
        if group.rank == 1:
            if late:
                done.wait(30)
            elif name == "send":  # the end of a process does so
                group.__dict__["_messages"].paths.abort(onehop.Error("gone"))
            return ""
        group.timeout = 0.3
        if name == "send":
            group.__dict__["_messages"].paths.timeout = 0.3
        try:
            with pytest.raises(onehop.Timeout if late else onehop.PeerLost) as caught:
                OPERATIONS[name](group, array)
            return str(caught.value)
        finally:
            done.set()

    done = threading.Event()
    assert "rank 1" in run_threads(2, one_rank)[0]


@pytest.mark.parametrize(
    ("match", "call"),
    [
        ("that have an order for min, found complex", lambda g: onehop.scan(g, np.ones(2, complex), "min")),
        ("expected the operator sum, .* found 'nonsense'", lambda g: onehop.allreduce(g, np.ones(2), "nonsense")),
        ("for the mean, found int64", lambda g: onehop.reduce(g, np.ones(2, int), op="average")),
        ("expected integers or bool for bitwise_or", lambda g: onehop.allreduce(g, np.ones(2), "or")),
        ("expected the root as a rank from 0 to 1, found 2", lambda g: onehop.reduce(g, np.ones(2), 2)),
        ("expected the root as a rank", lambda g: onehop.broadcast(g, np.ones(2), -1)),
        ("numbers of 8 to 64 bits", lambda g: onehop.allreduce(g, np.ones(2, np.longdouble))),
        ("expected lengths as 2 numbers of rows", lambda g: onehop.allgather(g, np.ones(2), lengths=[1])),
        ("expected lengths as 2 numbers of rows", lambda g: onehop.reduce_scatter(g, np.ones(2), lengths=[1.5, 1.9])),
        ("expected an array of 1 row, as `lengths` says", lambda g: onehop.allgather(g, np.ones(2), lengths=[1, 1])),
        ("whose sum is the 3 rows", lambda g: onehop.reduce_scatter(g, np.ones(3), lengths=[1, 1])),
        ("multiple of 2 ranks, found shape .3,.; `lengths` may", lambda g: onehop.alltoall(g, np.ones(3))),
        ("expected an operator with a neutral element", lambda g: onehop.scan(g, np.ones(2), "max", exclusive=True)),
        ("expected `out` with shape .2,. and type float64", lambda g: onehop.scan(g, np.ones(2), out=np.ones(3))),
        ("onehop.patterns.allgather", lambda _: onehop.allgather(2, 3, 8)),
        ("onehop.patterns.allgather", lambda _: onehop.allgather(ranks=2, elements=3, element_bytes=8)),
        ("expected to as a rank from 0 to 1, found 5", lambda g: onehop.send(g, np.ones(2), 5)),
    ],
)  # fmt: skip
def test_refused(match: str, call: Callable[[onehop.Group], Any]) -> None:
    refused_on(2, match, call)


def test_ranks_that_differ_are_a_mismatch_on_all() -> None:
    calls: list[Callable[[onehop.Group, int], Any]] = [
        lambda group, rank: onehop.allreduce(group, np.ones(4, np.int8 if rank else np.int16)),
        lambda group, rank: onehop.scan(group, np.ones(4), "max" if rank else "min"),
        lambda group, rank: onehop.reduce(group, np.ones(4 + rank)),
        lambda group, rank: onehop.reduce(group, np.ones(4), rank),
        lambda group, rank: onehop.gather(group, np.ones(2 + rank)),
        lambda group, rank: onehop.gather(group, np.ones(2), rank),
        lambda group, rank: onehop.allgather(group, np.ones([3, 1][rank]), lengths=[[3, 1], [1, 1]][rank]),
    ]

    def one_rank(group: onehop.Group) -> None:
        for call in calls:
            with pytest.raises(onehop.Mismatch):
                call(group, group.rank)
            same(onehop.allreduce(group, np.ones(2)), np.full(2, 2.0))  # the next one works again

    run_threads(2, one_rank)


def test_names_of_operators() -> None:
    assert [operator_of(name) for name in ("average", "and", "sum")] == ["mean", "bitwise_and", "sum"]


def test_blocks_of_rows_that_are_combined_in_pieces() -> None:
    """More than one piece of 1 MiB per rank, with rows of several numbers."""
    rng = np.random.default_rng(3)
    for dtype, rows, lengths in ((np.int16, 90000, None), (np.float32, 50000, [10000, 40000])):
        arrays = rng.integers(0, 100, (2, rows, 9)).astype(dtype)

        def work(
            group: onehop.Group, arrays: np.ndarray = arrays, lengths: list[int] | None = lengths
        ) -> np.ndarray:
            return onehop.reduce_scatter(group, arrays[group.rank], lengths=lengths)

        found = run_threads(2, work)
        first = rows // 2 if lengths is None else lengths[0]
        np.testing.assert_array_equal(np.concatenate(found), arrays.sum(axis=0, dtype=dtype))
        assert len(found[0]) == first


def test_of_zeros_with_both_signs_the_first_is_the_result() -> None:
    zeros = np.array([[0.0, -0.0] * 20, [-0.0, 0.0] * 20])
    for dtype in (np.float16, np.float32, np.float64):
        for op in ("min", "max"):
            rows = zeros.astype(dtype)

            def work(group: onehop.Group, rows: np.ndarray = rows, op: str = op) -> list[np.ndarray]:
                mine = rows[group.rank]
                return [
                    onehop.allreduce(group, mine, op),
                    onehop.reduce(group, mine, 1, op),
                    onehop.scan(group, mine, op),
                ]

            for found in run_threads(2, work)[1]:
                np.testing.assert_array_equal(np.signbit(found), np.signbit(rows[0]))


def test_results_in_another_byte_order() -> None:
    """The numbers arrive, whatever the byte order of `out`."""

    def one_rank(group: onehop.Group) -> None:
        rank, swapped = group.rank, np.dtype(">f8")
        mine = np.array([1.0, 2.0]) + rank
        everything = [[1.0, 2.0], [2.0, 3.0]]
        codec = onehop.allreduce(group, mine.astype("f4"), codec="fp16", out=np.zeros(2, ">f4"))
        assert codec.tolist() == [3, 5]
        assert onehop.allreduce(group, mine, out=np.zeros(2, swapped)).tolist() == [3, 5]
        assert onehop.allreduce(group, mine.astype("i2"), out=np.zeros(2, ">i2")).tolist() == [3, 5]
        assert onehop.scan(group, mine, out=np.zeros(2, swapped)).tolist() == [[1, 2], [3, 5]][rank]
        assert onehop.reduce_scatter(group, mine, out=np.zeros(1, swapped)).tolist() == [[3], [5]][rank]
        for source, kind in ((mine, swapped), (mine.astype(swapped), np.dtype("<f8"))):
            assert onehop.allgather(group, source, out=np.zeros((2, 2), kind)).tolist() == everything
            assert onehop.alltoall(group, source, out=np.zeros(2, kind)).tolist() == [[1, 2], [2, 3]][rank]
            gathered = onehop.gather(group, source, out=np.zeros((2, 2), kind))
            assert gathered is None or gathered.tolist() == everything
        fields = [("a", "i4"), ("b", "f4")]
        for kind in ("f8" if rank else ">f8", "U2" if rank else ">U2", fields[:: 1 if rank else -1]):
            with pytest.raises(onehop.Mismatch):
                onehop.broadcast(group, np.zeros(2, kind))
        for call in (onehop.allreduce, onehop.scan, onehop.broadcast, onehop.allgather):
            with pytest.raises(onehop.BadInput, match="without a mask"):
                call(group, np.ma.array(mine, mask=[True, False]))
        if ml_dtypes:
            with pytest.raises(onehop.BadInput, match="array 0"):  # with gaps
                onehop.allreduce(group, [np.zeros(4, ml_dtypes.bfloat16)[::2]])

    run_threads(2, one_rank)
