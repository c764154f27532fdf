"""Collective operations of many types, lengths and algorithms, against NumPy bit by bit. Every rank runs this program.

The order of the operations is random but the same on all ranks, so that each follows every kind of other one. Arguments
are the expected transport between hosts ("mpi" or "ucx") and a number that changes the order, and with more than two
ranks also which half of the operations is run. The output is the number of operations and a checksum of the results
that all ranks have.
"""

import functools
import random
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onehop import Group, _core, codec
from onehop.array_memory import memory_of
from onehop.collectives import Collectives, plans

KIB = 1024
STORED = {  # bfloat16 is stored as the upper half of a float32
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": np.uint16,
    "int32": np.int32,
    "int64": np.int64,
}
CODECS = ("fp16", "bf16", "fp8", "q8", "q6", "q4", "q3")
# The relative error of one rounding, as docs/reference/codecs.md has it: of the largest magnitude among 32 numbers.
ERROR = {"fp16": 2048, "bf16": 256, "fp8": 16, "q8": 252, "q6": 61.5, "q4": 13.8, "q3": 5.95}
GUARD, FILL = 0xA5, 0x5C
MOST = 4 * (1024 * KIB + 8)


def bytes_of(kind: str) -> int:
    return int(np.dtype(STORED[kind]).itemsize)


def lengths(kind: str) -> list[int]:
    """Numbers of elements below, at and above the lengths at which the way of an all-reduce changes, and odd ones."""
    size = bytes_of(kind)
    # What follows a header in its message, slots between two ranks over MPI, what a relay takes, one-shot; blocks and
    # broadcasts between two hosts that go by host.
    limits = [256, 16 * KIB, 32 * KIB, 63 * KIB - 64, 63 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB]
    found = {0, 1, 7, 1001, 126 * KIB // size + 1, (1024 * KIB + 8) // size, (2048 * KIB) // size + 3}
    for limit in limits:
        found |= {limit // size - 1, limit // size, limit // size + 1}
    return sorted(found)


def widened(kind: str, array: np.ndarray) -> np.ndarray:
    """The type in which elements are combined."""
    if kind == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32) if kind == "float16" else array


def narrowed(kind: str, array: np.ndarray) -> np.ndarray:
    if kind == "bfloat16":
        bits = array.view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return array.astype(STORED[kind])


COMBINE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "sum": np.add,
    "mean": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "prod": np.multiply,
}


def combined(op: str, arrays: list[np.ndarray]) -> np.ndarray:
    total = arrays[0].copy()
    for array in arrays[1:]:
        total = COMBINE[op](total, array)
    return total / total.dtype.type(len(arrays)) if op == "mean" else total


def rounded(name: str, array: np.ndarray) -> np.ndarray:
    """An array of float32 or float64 after encoding and decoding."""
    return codec.decode(name, codec.encode(name, array), np.empty_like(array))


def largest_of_blocks(array: np.ndarray) -> np.ndarray:
    """The largest magnitude among the 32 numbers of each block, for each number."""
    padded = np.zeros(-(-array.size // 32) * 32)
    padded[: array.size] = np.abs(array)
    return np.repeat(padded.reshape(-1, 32).max(axis=1, initial=0), 32)[: array.size]


@dataclass(frozen=True)
class Case:
    """One operation; `algorithm` of a reduction, `root` of a broadcast."""

    name: str
    kind: str
    elements: int
    op: str = "sum"
    codec: str = "raw"
    algorithm: str = "auto"
    root: int = 0
    in_place: bool = False
    shared: bool = False
    offset: int = 0


@functools.cache
def bytes_from(rank: int) -> np.ndarray:
    """The bytes that a rank sends."""
    return np.random.default_rng(rank).integers(0, 256, MOST + 4096, np.uint8)


@functools.cache
def numbers_from(kind: str, rank: int) -> np.ndarray:
    """The numbers that a rank contributes."""
    generator, count = np.random.default_rng([rank, *kind.encode()]), 2048 * KIB // bytes_of(kind) + 1024
    if kind.startswith("int"):
        return generator.integers(-(2**31), 2**31, count).astype(STORED[kind])
    numbers = generator.standard_normal(count, np.float32)
    return narrowed(kind, numbers) if kind == "bfloat16" else numbers.astype(STORED[kind])


class Memory:
    """Private and shared memory for sources and results, with guards around each array."""

    def __init__(self, group: Group) -> None:
        size = MOST + 4096
        self._areas = {
            (what, shared): group.empty(size, np.uint8) if shared else np.zeros(size, np.uint8)
            for what in ("source", "result")
            for shared in (False, True)
        }

    def take(self, what: str, case: Case, size: int) -> np.ndarray:
        """Bytes at an address that is a multiple of the element only."""
        begin = 64 + 8 * (case.offset % 8)
        around = self._areas[what, case.shared][begin - 64 : begin + size + 64]
        around[:64] = around[64 + size :] = GUARD
        around[64 : 64 + size] = FILL
        return around[64 : 64 + size]

    def intact(self, what: str, case: Case, size: int) -> bool:
        begin = 64 + 8 * (case.offset % 8)
        around = self._areas[what, case.shared][begin - 64 : begin + size + 64]
        return bool((around[:64] == GUARD).all() and (around[64 + size :] == GUARD).all())


class Ranks:
    """Runs cases on this rank and compares the results with what NumPy makes of the sources of all ranks."""

    def __init__(self, group: Group) -> None:
        self.group, self.memory, self.checksum = group, Memory(group), 0
        here = np.array(group.local_ranks, np.int32).tobytes()
        all_hosts = [tuple(np.frombuffer(part, np.int32)) for part in group.allgather(here)]
        self.hosts = sorted(set(all_hosts))  # in the order of their first ranks
        self.bytes = [bytes_from(rank) for rank in range(group.size)]

    def sources(self, case: Case, elements: int) -> list[np.ndarray]:
        begin = case.offset
        return [numbers_from(case.kind, r)[begin : begin + elements] for r in range(self.group.size)]

    def run(self, case: Case) -> None:
        getattr(self, "_" + case.name)(case)

    def _perform(
        self, case: Case, operation: _core.Collective, sent: np.ndarray, size: int, at: int = -1
    ) -> np.ndarray:
        """Run an operation on a copy of `sent`. In place the source is `at` bytes into the result, or around it."""
        sent = sent.view(np.uint8)
        if not case.in_place:
            source, result = (
                self.memory.take("source", case, sent.size),
                self.memory.take("result", case, size),
            )
        elif size >= sent.size:
            result = self.memory.take("result", case, size)
            source = result[at : at + sent.size]
        else:
            source = self.memory.take("result", case, sent.size)
            result = source[at : at + size]
        source[:] = sent
        operation.run(memory_of(source, False, "the source"), memory_of(result, True, "the result"))
        found = result.copy()
        assert self.memory.intact("result", case, max(sent.size, size) if case.in_place else size), case
        if not case.in_place:
            assert self.memory.intact("source", case, sent.size), case
            assert np.array_equal(source, sent), f"{case} has changed the source"
        return found

    def _compare(self, case: Case, found: np.ndarray, expected: np.ndarray, how: str = "") -> None:
        expected = np.ascontiguousarray(expected).view(np.uint8)
        if not np.array_equal(found, expected):
            wrong = np.flatnonzero(found != expected)
            raise AssertionError(
                f"rank {self.group.rank}: {case} {how}: {wrong.size} of {found.size} bytes differ, from byte "
                f"{wrong[0]} to byte {wrong[-1]}: {found[wrong[:8]]}, expected {expected[wrong[:8]]}"
            )

    def _hosts(self, values: list[np.ndarray], case: Case) -> list[np.ndarray]:
        """The results of the hosts, each rounded once."""
        return [
            widened(case.kind, narrowed(case.kind, combined(case.op, [values[rank] for rank in ranks])))
            for ranks in self.hosts
        ]

    def _encoded(self, case: Case, values: list[np.ndarray]) -> np.ndarray:
        """The documented result with a codec, which rounds every value and the combined ones."""
        result = rounded(case.codec, combined(case.op, [rounded(case.codec, value) for value in values]))
        if case.op == "sum":
            largest = [largest_of_blocks(value) for value in values]
            exact = combined("sum", [value.astype(np.float64) for value in values])
            once = sum(largest) / ERROR[case.codec]
            bound = once + (largest_of_blocks(exact) + once.max(initial=0)) / ERROR[case.codec]
            assert (np.abs(result - exact) <= 1.001 * bound + 1e-6).all(), case
        return result

    def _allreduce(self, case: Case) -> None:
        shape = (case.elements,)
        arguments = (case.elements, case.kind, case.op, case.codec, case.algorithm, 0, shape)
        operation = plans(self.group).get("allreduce", *arguments)
        sources = self.sources(case, case.elements)
        found = self._perform(case, operation, sources[self.group.rank], sources[0].nbytes, 0)
        values = [widened(case.kind, source) for source in sources]
        if operation.algorithm == "by_host":
            values = self._hosts(values, case)
        else:
            assert case.algorithm in ("auto", operation.algorithm) or operation.algorithm == "two_shot", case
        total = combined(case.op, values) if case.codec == "raw" else self._encoded(case, values)
        self._compare(case, found, narrowed(case.kind, total), operation.algorithm)
        self.checksum = zlib.crc32(found, self.checksum)

    def _reduce_scatter(self, case: Case) -> None:
        size, rank = self.group.size, self.group.rank
        block = case.elements // size
        operation = plans(self.group).get(
            "reduce_scatter", block, case.kind, case.op, case.codec, 0, (block,), case.algorithm
        )
        sources = self.sources(case, block * size)
        bytes_of_block = block * sources[0].itemsize
        found = self._perform(case, operation, sources[rank], bytes_of_block, rank * bytes_of_block)
        values = [widened(case.kind, source[rank * block : (rank + 1) * block]) for source in sources]
        if operation.algorithm == "by_host":
            assert case.algorithm == "auto", case
            values = self._hosts(values, case)
        total = combined(case.op, values) if case.codec == "raw" else self._encoded(case, values)
        self._compare(case, found, narrowed(case.kind, total), operation.algorithm)

    def _blocks(self, case: Case) -> list[int]:
        """Lengths of blocks in bytes: equal, or for an odd offset unequal ones, of which the first is empty."""
        size = case.elements * bytes_of(case.kind)
        if case.offset % 2 == 0:
            return [size] * self.group.size
        return [0, *(size // (r + 1) for r in range(1, self.group.size))]

    def _allgather(self, case: Case) -> None:
        blocks, rank = self._blocks(case), self.group.rank
        content = ("bytes", (case.elements, -1, case.offset % 2))
        operation = plans(self.group).get("allgather", tuple(blocks), *content)
        sources = [self.bytes[r][case.offset : case.offset + block] for r, block in enumerate(blocks)]
        found = self._perform(case, operation, sources[rank], sum(blocks), sum(blocks[:rank]))
        self._compare(case, found, np.concatenate(sources))
        self.checksum = zlib.crc32(found, self.checksum)

    def _broadcast(self, case: Case) -> None:
        size, root = case.elements * bytes_of(case.kind), case.root % self.group.size
        operation = plans(self.group).get("broadcast", size, root, case.kind, (case.elements,))
        sent = self.bytes[root][case.offset : case.offset + size]
        mine = sent if root == self.group.rank else np.full(size, FILL, np.uint8)
        found = self._perform(case, operation, mine, size, 0)
        self._compare(case, found, sent)
        self.checksum = zlib.crc32(found, self.checksum)

    def _all_to_all(self, case: Case) -> None:
        """Rank r sends `blocks[(r + s) % ranks]` bytes to rank s."""
        blocks, rank, size = self._blocks(case), self.group.rank, self.group.size
        to = [[blocks[(r + s) % size] for s in range(size)] for r in range(size)]
        content = ("bytes", (case.elements, -1, case.offset % 2))
        operation = plans(self.group).get(
            "all_to_all", tuple(to[rank]), tuple(row[rank] for row in to), *content
        )
        total = sum(blocks)
        sources = [array[case.offset : case.offset + total] for array in self.bytes]
        found = self._perform(case, operation, sources[rank], total)
        begins = [sum(row[:rank]) for row in to]
        parts = [sources[r][begin : begin + to[r][rank]] for r, begin in enumerate(begins)]
        self._compare(case, found, np.concatenate(parts))


def cases(size: int) -> list[Case]:
    found: list[Case] = []

    def add(name: str, kind: str, elements: int, **more: object) -> None:
        number = len(found)
        more.setdefault("in_place", number % 3 == 0 and name != "all_to_all")
        more.setdefault("shared", number % 4 == 1)
        found.append(Case(name, kind, elements, offset=number % 61, **more))  # type: ignore[arg-type]

    for kind in STORED:
        ops = [op for op in COMBINE if op != "mean" or not kind.startswith("int")]
        for number, elements in enumerate(lengths(kind)):
            for algorithm in ("auto", "one_shot", "two_shot", "by_host"):
                add("allreduce", kind, elements, algorithm=algorithm, op=ops[len(found) % len(ops)])
            algorithm = ("auto", "auto", "two_shot")[number % 3]
            add("reduce_scatter", kind, elements, algorithm=algorithm, op=ops[len(found) % len(ops)])
            if elements * bytes_of(kind) <= MOST // 4:
                name = ("allgather", "broadcast", "all_to_all")[(number + bytes_of(kind)) % 3]
                add(name, kind, elements, root=number)
                if kind == "float64":
                    for name in ("allgather", "broadcast", "all_to_all"):
                        add(name, kind, elements, root=number)
        if kind.startswith("int"):
            continue
        for name in CODECS:
            if name == "q3" and size > 2:
                continue
            for elements in (1, 33, 1001, 17 * KIB, 64 * KIB + 5):
                algorithm = ("auto", "one_shot", "two_shot", "by_host")[len(found) % 4]
                op = ("sum", "sum", "mean")[len(found) % 3]
                add("allreduce", kind, elements, codec=name, algorithm=algorithm, op=op)
            for elements in (5000, 50_000):
                add("reduce_scatter", kind, elements, codec=name)
    return found


def main() -> None:
    group = Group.world()
    ranks, work = Ranks(group), cases(group.size)
    random.Random(int(sys.argv[2])).shuffle(work)
    if group.size > 2:  # which share the cores, and take turns
        work = work[: len(work) // 2]
    for case in work:
        ranks.run(case)
    for rank in range(group.size):
        if rank != group.rank:
            expected = "shared_memory" if rank in group.local_ranks else sys.argv[1]
            found = _core.carrier(group, rank, "auto")
            assert found.startswith(expected), (rank, found, expected)
    Collectives(group).barrier()
    sums = {bytes(part) for part in group.allgather(ranks.checksum.to_bytes(4, "little"))}
    assert len(sums) == 1, f"the results of the ranks have {len(sums)} checksums"
    sys.stdout.write(
        f"right {len(work)} {ranks.checksum:08x}\n"
    )  # in one piece, beside the lines of other ranks


if __name__ == "__main__":
    main()
