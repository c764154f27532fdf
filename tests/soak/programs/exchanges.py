"""Random verified schedules on the ranks of a launch; after each run every byte is compared with a model.

    exchanges.py SEED SCHEDULES RUNS [TRANSPORT]

All ranks draw the same schedules from the seed. The model holds the memory of all ranks as one array: a run moves its
elements by an index computed from the definition of a schedule, or, for transfers that add or are encoded, one transfer
after the other. Rank 0 prints `exchanges N schedules M`. A difference is an assertion that names seed and place.
"""

import sys
from typing import Any

import numpy as np
from meeting import host_of, is_stored, meet

import onehop
from onehop import ArraySpec, Place, Plan, Round, Schedule, Slice, Transfer, codec

TYPES = {"bytes": (np.uint8, "replace"), "int64": (np.int64, "add"), "float32": (np.float32, "codec")}
CODECS = ("raw", "fp16", "bf16", "fp8", "q8", "q6", "q4", "q3")


class Memory:
    """The arrays of all ranks, one after the other."""

    def __init__(self, rng: np.random.Generator, ranks: int, kind: str) -> None:
        self.dtype, self.mode = TYPES[kind]
        longest = int(rng.choice([5, 40, 300, 5000]))
        lengths = [
            [int(rng.integers(1, longest + 1)) for _ in range(ranks)] for _ in range(int(rng.integers(1, 3)))
        ]
        item = np.dtype(self.dtype).itemsize
        self.specs = [ArraySpec(f"a{k}", one, item, kind) for k, one in enumerate(lengths)]
        self.lengths = lengths
        self.starts = np.zeros((len(lengths), ranks), int)
        self.starts.flat[1:] = np.cumsum(np.array(lengths).ravel())[:-1]
        self.total = int(np.sum(lengths))
        self.model = self.fill(rng, self.total)

    def fill(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return random elements."""
        if self.dtype is np.float32:
            return rng.standard_normal(count).astype(np.float32)
        return rng.integers(0, 255, count).astype(self.dtype)

    def of(self, array: int, rank: int) -> slice:
        """Return where an array of a rank is."""
        start = int(self.starts[array, rank])
        return slice(start, start + self.lengths[array][rank])


def random_slice(rng: np.random.Generator, length: int, count: int) -> tuple[Slice, np.ndarray]:
    """Return a slice of `count` elements of an array, and their numbers."""
    kind = rng.integers(3)
    if kind == 0:
        numbers = rng.permutation(length)[:count]
        return Slice.list(numbers.tolist()), numbers
    stride = int(rng.integers(1, max(1, (length - 1) // max(1, count - 1)) + 1)) if kind == 1 else 1
    offset = int(rng.integers(0, length - (count - 1) * stride))
    if rng.integers(4) == 0:
        offset, stride = offset + (count - 1) * stride, -stride
    return Slice.box(offset, [count], [stride]), offset + stride * np.arange(count)


carriers = [0]  # channels of this rank over UCX, of all plans so far
between_hosts = [0]  # transfers between ranks of different hosts, of all schedules so far
Move = tuple[np.ndarray, np.ndarray, str, str, bool]  # from, to, combine, codec, inside a rank


def random_schedule(
    rng: np.random.Generator, memory: Memory, ranks: int
) -> tuple[Schedule, list[list[Move]]]:
    """Return a schedule that verify accepts, and what its rounds move as numbers of the model's elements."""
    rounds, moves = [], []
    for _ in range(int(rng.integers(1, 4))):
        transfers: list[Transfer] = []
        moved: list[Move] = []
        for _ in range(int(rng.integers(1, 3 * ranks + 2))):
            ends: list[Any] = []
            count = int(rng.integers(1, 1 + min(min(one) for one in memory.lengths)))
            for _ in range(2):
                array, rank = int(rng.integers(len(memory.lengths))), int(rng.integers(ranks))
                where, numbers = random_slice(rng, memory.lengths[array][rank], count)
                ends.append((Place(rank, array, where), numbers + memory.starts[array, rank], rank))
            (source, read, sender), (target, written, receiver) = ends
            combine = str(rng.choice(["replace", "add", "min", "max"])) if memory.mode == "add" else "replace"
            form = str(rng.choice(CODECS)) if memory.mode == "codec" else "raw"
            more = [*transfers, Transfer(source, target, combine, form)]
            if onehop.verify(Schedule("soak", ranks, memory.specs, [Round(more)])):
                continue
            transfers = more
            between_hosts[0] += host_of(sender) != host_of(receiver)
            moved.append((read, written, combine, form, sender == receiver))
        rounds.append(Round(transfers))
        moves.append(moved)
    return Schedule("soak", ranks, memory.specs, rounds), moves


def model_run(model: np.ndarray, moves: list[list[Move]]) -> None:
    """Do to the memory of all ranks what a run does."""
    for moved in moves:
        before = model.copy()
        for read, written, combine, form, inside in moved:
            values = before[read]
            if form != "raw" and not inside:
                codec.decode(form, codec.encode(form, values), values)
            if combine == "replace":
                model[written] = values
            else:
                operation = {"add": np.add, "min": np.minimum, "max": np.maximum}[combine]
                operation.at(model, written, values)


def check_schedule(group: onehop.Group, seed: list[int], runs: int, transport: str) -> int:
    """Run one random schedule many times; return how often."""
    rng = np.random.default_rng(seed)
    memory = Memory(rng, group.size, str(rng.choice(list(TYPES))))
    schedule, moves = random_schedule(rng, memory, group.size)
    onehop.verify_or_throw(schedule)
    mine = [memory.of(array, group.rank) for array in range(len(memory.lengths))]
    arrays = [group.empty(one.stop - one.start, memory.dtype) for one in mine]
    for array, place in zip(arrays, mine, strict=True):
        array[:] = memory.model[place]
    how = {
        "slots": int(rng.integers(0, 4)),
        "slot_bytes": int(rng.choice([0, 4096, 1 << 14])),
        "chunk_bytes": int(rng.choice([0, 64, 1024])),
    }
    plan = Plan(schedule, group, arrays, transport=transport, **how)
    carriers[0] += sum(channel["carrier"].startswith("ucx") for channel in plan.explain()["channels"])
    count = int(rng.integers(1, runs + 1))
    for run in range(count):
        place, value = int(rng.integers(memory.total)), memory.fill(rng, 1)
        memory.model[place] = value[0]
        for array, one in zip(arrays, mine, strict=True):
            if one.start <= place < one.stop:
                array[place - one.start] = value[0]
        if run % 2:
            plan.run()
        else:
            plan.start()
            plan.finish()
        model_run(memory.model, moves)
        for number, (array, one) in enumerate(zip(arrays, mine, strict=True)):
            assert array.tobytes() == memory.model[one].tobytes(), (
                f"wrong bytes: seed {seed}, run {run}, rank {group.rank}, array {number}, {how}, {transport}: "
                f"{schedule.to_json()}"
            )
    return count


def main() -> None:
    """Check the schedules that the command line asks for."""
    seed, schedules, runs = map(int, sys.argv[1:4])
    transport = sys.argv[4] if len(sys.argv) > 4 else "auto"
    group = meet()
    done = sum(check_schedule(group, [seed, number], runs, transport) for number in range(schedules))
    group.barrier()
    of_all = sum(int(one) for one in group.allgather(str(carriers[0]).encode()))
    if group.rank == 0:
        over_ucx = f" ucx_channels {of_all} transfers_between_hosts {between_hosts[0]}" if is_stored() else ""
        print(f"exchanges {done} schedules {schedules}{over_ucx}", flush=True)


if __name__ == "__main__":
    main()
