"""Reductions of integers by the torch backend: exact results of every type and operation, and the memory they take."""

import pytest

from ranks import Ranks
from torch_program import START, WITHOUT_TORCH, launch

pytest.importorskip("torch", reason=WITHOUT_TORCH)

BEGIN = (
    START
    + """
    import resource
    import numpy as np

    Op = dist.ReduceOp
"""
)

# Lengths of one and several slices of a reduction, in one and two dimensions.
EXACT = (
    BEGIN
    + """
    INTEGERS = ["bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
    OPS = {
        Op.SUM: np.add, Op.PRODUCT: np.multiply, Op.MIN: np.minimum, Op.MAX: np.maximum,
        Op.BAND: np.bitwise_and, Op.BOR: np.bitwise_or, Op.BXOR: np.bitwise_xor,
    }

    def inputs(name, shape):
        rng = np.random.default_rng(7)
        if name == "bool":
            return [rng.random(shape) < 0.5 for _ in range(size)]
        limits = np.iinfo(name)
        return [rng.integers(limits.min, limits.max, shape, name, endpoint=True) for _ in range(size)]

    def combined(arrays, op, name):
        # Python's integers are exact, and wrap round in the end; sums and products of bool are true unless 0.
        if name == "bool" and op in (Op.SUM, Op.PRODUCT):
            return OPS[op].reduce([one.astype(np.int64) for one in arrays]) != 0
        with np.errstate(over="ignore"):
            return OPS[op].reduce(np.stack(arrays)).astype(name)

    def plain(array):
        return torch.from_numpy(array.copy())

    def strided(array):
        # The same numbers in memory that is not contiguous.
        holder = torch.from_numpy(np.zeros((*array.shape, 2), array.dtype))
        holder[..., 0] = torch.from_numpy(array)
        return holder[..., 0]

    def same(tensor, expected):
        assert np.array_equal(tensor.numpy(), expected), (tensor.dtype, tensor.shape)

    for name in INTEGERS:
        for shape in ((5,), (6, 7), (6, 50_001)):
            arrays = inputs(name, shape)
            # Slices do not know the operation, so two of them suffice for an array of several.
            for op in (Op.SUM, Op.BXOR) if shape[-1] > 1000 else OPS:
                if name == "uint64" and op in (Op.MIN, Op.MAX):
                    continue
                total = combined(arrays, op, name)
                for make in (plain, strided):
                    mine = make(arrays[rank])
                    dist.all_reduce(mine, op=op)
                    same(mine, total)
                    mine = make(arrays[rank])
                    dist.reduce(mine, size - 1, op=op)
                    same(mine, total if rank == size - 1 else arrays[rank])
                    if shape[0] % size == 0:
                        result = make(np.zeros_like(np.split(total, size)[rank]))
                        dist.reduce_scatter_single(result, make(arrays[rank]), op=op)
                        same(result, np.split(total, size)[rank])
        # Several tensors at once, of one and several slices.
        first, second = inputs(name, (5,)), inputs(name, (300_000,))
        pair = [plain(first[rank]), strided(second[rank])]
        group.allreduce(pair, Op.BXOR).wait()
        same(pair[0], combined(first, Op.BXOR, name))
        same(pair[1], combined(second, Op.BXOR, name))
        for length in (3, 300_000):
            mine = torch.from_numpy(inputs(name, (length,))[0])
            assert name in raised(onehop.BadInput, lambda: dist.all_reduce(mine, op=Op.AVG))
    for op in (Op.SUM, Op.BOR):
        dist.all_reduce(torch.zeros(0, dtype=torch.int8), op=op)
        dist.reduce_scatter_single(torch.zeros(0, dtype=torch.bool), torch.zeros(0, dtype=torch.bool), op=op)
    dist.barrier()
    print("exact", flush=True)
"""
)


def test_every_reduction_of_integers_is_exact(ranks: Ranks) -> None:
    launch(ranks, 3, EXACT, "exact")


# Lengths on rank 0 and on the others: of one or several slices, and such that the first slices are equal.
UNEQUAL = (
    BEGIN
    + """
    for first, others in ((1, 2), (5, 400_000), (262_144, 524_288), (300_000, 600_000), (1_048_576, 524_288)):
        for op in (Op.SUM, Op.BOR):
            length = first if rank == 0 else others
            for act in (
                lambda: dist.all_reduce(torch.ones(length, dtype=torch.int8), op=op),
                lambda: dist.reduce_scatter_single(
                    torch.ones(length, dtype=torch.int8), torch.ones(size * length, dtype=torch.int8), op=op),
                lambda: group.allreduce(
                    [torch.ones(one, dtype=torch.int8) for one in (length, first + others - length)], op).wait(),
            ):
                raised(onehop.Mismatch, act)
            ones = torch.ones(3, dtype=torch.int8)  # the ranks are in step
            dist.all_reduce(ones)
            assert (ones == size).all()
    print("mismatches", flush=True)
"""
)


def test_other_lengths_are_a_mismatch_on_all_ranks(ranks: Ranks) -> None:
    launch(ranks, 2, UNEQUAL, "mismatches")


MEMORY = (
    BEGIN
    + """
    MIB = 1 << 20
    kinds = [(torch.uint8, Op.SUM), (torch.bool, Op.MAX), (torch.int8, Op.BOR), (torch.int16, Op.PRODUCT)]

    def everything(bytes):
        for dtype, op in kinds:
            tensor = torch.ones(bytes // dtype.itemsize, dtype=dtype)
            dist.all_reduce(tensor, op=op)
            dist.reduce_scatter_single(tensor[: len(tensor) // size], tensor, op=op)
            del tensor

    everything(4 * MIB)  # opens channels
    tensor = torch.ones(32 * MIB, dtype=torch.uint8)  # so much is needed for the tensor itself
    del tensor
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    everything(32 * MIB)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 16, f"{grown} MiB more than the tensor of 32 MiB"
    print("small", flush=True)
"""
)


def test_reductions_of_small_integers_take_little_memory(ranks: Ranks) -> None:
    launch(ranks, 2, MEMORY, "small")
