"""Random all-reduces on the ranks of a launch: `reductions.py SEED COUNT`. Rank 0 prints `reductions N`.

Integers, and floating-point numbers without a codec, are compared bit by bit with the sum in the order of ranks. With a
codec all ranks must have the same bits, and each number an error within the codec's bound.
"""

import os
import sys
import zlib

import numpy as np
from meeting import meet

import onehop

# Relative to the largest magnitude of a block; sums of P ranks are encoded once more.
BOUNDS = {"fp16": 2**-11, "bf16": 2**-8, "fp8": 2**-4, "q8": 1 / 127, "q6": 1 / 31, "q4": 1 / 7, "q3": 1 / 3}
TYPES = (np.int32, np.int64, np.float32, np.float64)


def same_everywhere(group: onehop.Group, array: np.ndarray) -> bool:
    """Whether all ranks have the same bits, by an exact all-reduce of a checksum."""
    digest = np.array([zlib.crc32(array.tobytes())], np.int64)
    low, high = onehop.allreduce(group, digest, op="min"), onehop.allreduce(group, digest, op="max")
    return bool(low[0] == high[0])


def by_host(arrays: list[np.ndarray]) -> np.ndarray:
    """The sum over hosts of the sums of their ranks, which long arrays between hosts may have."""
    hosts = int(os.environ.get("SOAK_HOSTS", "1"))
    total: np.ndarray | None = None
    for host in range(min(hosts, len(arrays))):
        ranks = arrays[host::hosts]
        part = ranks[0].copy()
        for one in ranks[1:]:
            part += one
        total = part if total is None else total + part
    assert total is not None
    return total


def check(group: onehop.Group, seed: list[int]) -> None:
    """Reduce arrays of one random shape."""
    rng = np.random.default_rng(seed)
    length = int(rng.choice([0, 1, 7, 100, 3000, 70_000])) + int(rng.integers(0, 33))
    codecs = [one for one in BOUNDS if one != "q3" or group.size == 2]  # three bits are for two ranks
    codec = str(rng.choice(["raw", *codecs])) if rng.integers(2) else "raw"
    dtype = np.float32 if codec != "raw" else TYPES[rng.integers(len(TYPES))]
    algorithm = str(rng.choice(["auto", "one_shot", "two_shot"]))
    everything = [rng.standard_normal(length) * 10 for _ in range(group.size)]
    arrays = [one.astype(dtype) for one in everything]
    found = onehop.allreduce(group, arrays[group.rank], codec=codec, algorithm=algorithm)
    about = (
        f"seed {seed}, {length} of {np.dtype(dtype)}, {codec}, {algorithm}, rank {group.rank} of {group.size}"
    )
    assert same_everywhere(group, found), f"other bits on other ranks: {about}"
    expected = arrays[0].copy()
    for one in arrays[1:]:
        expected += one
    if codec == "raw":
        right = {expected.tobytes()} | ({by_host(arrays).tobytes()} if algorithm == "auto" else set())
        assert found.tobytes() in right, f"wrong sum: {about}"
    elif length:
        largest = max(float(np.abs(one).max()) for one in [*arrays, expected])
        error = float(np.abs(found - expected).max())
        assert error <= BOUNDS[codec] * largest * (group.size + 1), f"error {error}: {about}"


def main() -> None:
    """Check as many reductions as the command line asks for."""
    seed, count = map(int, sys.argv[1:3])
    group = meet()
    for number in range(count):
        check(group, [seed, number])
    if group.rank == 0:
        print(f"reductions {count}", flush=True)


if __name__ == "__main__":
    main()
