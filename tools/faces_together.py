"""Sends what the ranks of a host have for another host in one message instead of one for each pair of ranks.

On two emulated hosts with two ranks each, every rank sends a face to each rank of the other host: four messages a host,
or one, for which a rank first collects those of its host in shared memory. Both are plans, which take turns. The
program prints the median times. It needs root and an MPI:

    python tools/faces_together.py 1gbit
"""

import sys
import time

import numpy as np

import onehop
from onehop_bench.hosts import Unavailable, emulated_hosts, launch_on_hosts

SIZES = (64, 1 << 10, 4 << 10, 16 << 10, 64 << 10)  # bytes of a face
SECONDS = 1.2  # for each size
HOSTS = ((0, 1), (2, 3))


def faces(size: int, together: bool) -> onehop.Schedule:
    """Build the schedule. A rank's first array has a face for each rank, the second what it gets from each rank."""
    place, part = onehop.Place, onehop.Slice.range
    arrays = [onehop.ArraySpec(name, 4 * size, 1) for name in ("sent", "received")]
    arrays += [
        onehop.ArraySpec(name, 4 * size, 1) for name in ("out", "in")
    ]  # of a host, by sender and receiver
    pairs = [(a, b) for here, there in (HOSTS, HOSTS[::-1]) for a in here for b in there]
    if not together:
        transfers = [
            onehop.Transfer(place(a, 0, part(b * size, size)), place(b, 1, part(a * size, size)))
            for a, b in pairs
        ]
        return onehop.Schedule("one by one", 4, arrays, [onehop.Round(transfers)])

    def at(a: int, b: int) -> onehop.Slice:
        return part((2 * (a % 2) + b % 2) * size, size)

    collect = [
        onehop.Transfer(place(a, 0, part(b * size, size)), place(a // 2 * 2, 2, at(a, b))) for a, b in pairs
    ]
    whole = part(0, 4 * size)
    across = [
        onehop.Transfer(place(0, 2, whole), place(2, 3, whole)),
        onehop.Transfer(place(2, 2, whole), place(0, 3, whole)),
    ]
    hand_out = [
        onehop.Transfer(place(b // 2 * 2, 3, at(a, b)), place(b, 1, part(a * size, size))) for a, b in pairs
    ]
    rounds = [onehop.Round(transfers) for transfers in (collect, across, hand_out)]
    return onehop.Schedule("together", 4, arrays, rounds)


def measure(group: onehop.Group) -> None:
    """Run both plans in turns, in blocks; rank 0 prints a table."""
    if group.rank == 0:
        print(f"{'bytes':>7} {'one by one, us':>15} {'together, us':>13} {'ratio (p10 to p90)':>22}")
    for size in SIZES:
        plans = []
        for together in (False, True):
            arrays = [np.zeros(4 * size, np.uint8) for _ in range(4)]
            plans.append((onehop.Plan(faces(size, together), group, arrays), arrays))
        repetitions = 200 if size <= 4 << 10 else 30
        times: list[list[float]] = []
        begin = time.perf_counter()
        while True:
            row = []
            for plan, (sent, received, *_) in plans:
                sent[:] = group.rank + len(times)
                received[:] = 0
                group.barrier()
                start = time.perf_counter()
                for _ in range(repetitions):
                    plan.run()
                row.append((time.perf_counter() - start) / repetitions)
                for other in HOSTS[1 - group.rank // 2]:
                    assert (received[other * size : (other + 1) * size] == (other + len(times)) % 256).all()
            slowest = np.max(
                [np.frombuffer(part) for part in group.allgather(np.array(row).tobytes())], axis=0
            )
            times.append(list(slowest))
            spent = np.array([time.perf_counter() - begin])
            if np.frombuffer(group.allgather(spent.tobytes())[0])[0] > SECONDS:
                break
        found = np.array(times)
        ratios = found[:, 1] / found[:, 0]
        if group.rank == 0:
            low, middle, high = np.percentile(ratios, [10, 50, 90])
            one, both = 1e6 * np.median(found, axis=0)
            print(
                f"{size:7} {one:15.1f} {both:13.1f} {f'{middle:.2f} ({low:.2f} to {high:.2f})':>22}",
                flush=True,
            )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} RATE, for example 1gbit, or 0 for no limit")
    if sys.argv[1] == "measure":
        measure(onehop.Group.world())
    else:
        try:
            with emulated_hosts(2, sys.argv[1]) as hosts:
                sys.exit(launch_on_hosts(hosts, 2, [sys.executable, __file__, "measure"]))
        except Unavailable as error:
            sys.exit(f"skipped: {error}")
