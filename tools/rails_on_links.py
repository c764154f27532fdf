"""Sends messages of unequal sizes between two hosts with three links, each message on an assigned link.

Two emulated hosts with two ranks each exchange 11 units. For each rule of `schedule_rails`, and without one, the
program prints the median time of an exchange, and what each link of the first host has carried, by the counters of the
interfaces. With mpi4py it also sends the messages by MPI_Isend and MPI_Irecv; Open MPI distributes long messages over
the links. It needs root, an MPI and UCX. A second argument is another number of links:

    python tools/rails_on_links.py 300mbit
    python tools/rails_on_links.py 300mbit 1
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import onehop
from onehop.machine.rails import schedule_rails
from onehop_bench.hosts import Unavailable, emulated_hosts, launch_on_hosts

RUNS = 15
UNIT = 256 << 10  # bytes
UNITS = {
    (0, 2): 4,
    (0, 3): 3,
    (1, 2): 2,
    (1, 3): 2,
}  # by the two ranks of a pair, which send each other as much
RULES = ("none", "by_rank", "round_robin", "longest_first", "optimum", "cut")


def exchange() -> onehop.Schedule:
    """Build the schedule. The first array of a rank has what it sends to each rank, the second what it receives."""
    place, most = onehop.Place, max(UNITS.values()) * UNIT
    transfers = []
    for (a, b), units in UNITS.items():
        for source, target in ((a, b), (b, a)):
            sent = onehop.Slice.range(target * most, units * UNIT)
            received = onehop.Slice.range(source * most, units * UNIT)
            transfers.append(onehop.Transfer(place(source, 0, sent), place(target, 1, received)))
    arrays = [onehop.ArraySpec(name, 4 * most, 1) for name in ("sent", "received")]
    return onehop.Schedule("unequal messages", 4, arrays, [onehop.Round(transfers)])


def carried(links: int) -> np.ndarray:
    """Bytes that this host has sent on each link."""
    counters = [f"/sys/class/net/e{link}/statistics/tx_bytes" for link in range(links)]
    return np.array([int(Path(counter).read_text()) for counter in counters])


def plain_mpi(rank: int, sent: np.ndarray, received: np.ndarray) -> Callable[[], None] | None:
    """Return a function that exchanges the messages by MPI alone; None without mpi4py."""
    try:
        from mpi4py import MPI
    except ImportError:
        return None
    most = max(UNITS.values()) * UNIT
    pairs = [(b if a == rank else a, units) for (a, b), units in UNITS.items() if rank in (a, b)]

    def run() -> None:
        requests = []
        for array, begin in ((received, MPI.COMM_WORLD.Irecv), (sent, MPI.COMM_WORLD.Isend)):
            requests += [
                begin(array[other * most : other * most + units * UNIT], other) for other, units in pairs
            ]
        MPI.Request.Waitall(requests)

    return run


def measure(group: onehop.Group, links: int) -> None:
    """Run the exchange with each rule, in turns, and print a table on rank 0."""
    schedule = exchange()
    sent = np.full(schedule.arrays[0].elements[0], group.rank, np.uint8)
    received = np.full_like(sent, 255)
    plans = {}
    for rule in RULES if links > 1 else ("none",):
        name, cut = ("optimum", True) if rule == "cut" else (rule, False)
        rails = None if rule == "none" else schedule_rails(schedule, 2, rails=links, rule=name, cut=cut)
        plans[rule] = onehop.Plan(schedule, group, [sent, received], transport="ucx", rails=rails).run
    mpi = plain_mpi(group.rank, sent, received)
    if mpi is not None:
        plans["MPI"] = mpi
    seconds = {rule: [] for rule in plans}
    moved = {rule: np.zeros(links) for rule in plans}
    for run in range(RUNS + 1):
        for rule, exchange_once in plans.items():
            received[:] = 255
            group.barrier()
            before, begin = carried(links), time.perf_counter()
            exchange_once()
            group.barrier()  # the time is that of the last rank
            if run > 0:  # the first run opens connections
                seconds[rule].append(time.perf_counter() - begin)
                moved[rule] += carried(links) - before
            ranks, counts = np.unique(received, return_counts=True)
            expected = {
                b if a == group.rank else a: n * UNIT for (a, b), n in UNITS.items() if group.rank in (a, b)
            }
            assert dict(zip(ranks, counts, strict=True)) == {
                **expected,
                255: received.size - sum(expected.values()),
            }
    if group.rank == 0:
        fastest = np.median(seconds["none"])
        print(f"{'rule':14} {'ms':>7} {'to none':>8}   units on each link")
        for rule in plans:
            middle = np.median(seconds[rule])
            on_links = " ".join(f"{units:5.2f}" for units in moved[rule] / RUNS / UNIT)
            print(f"{rule:14} {middle * 1e3:7.1f} {middle / fastest:8.2f}   {on_links}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(
            f"usage: {sys.argv[0]} RATE [LINKS], for example 300mbit or 1gbit, and 1 to 3 (the default) links"
        )
    if sys.argv[1] == "measure":
        measure(onehop.Group.world(), int(sys.argv[2]))
    else:
        number = int(sys.argv[2]) if len(sys.argv) == 3 else 3
        try:
            with emulated_hosts(2, sys.argv[1], number) as hosts:
                sys.exit(launch_on_hosts(hosts, 2, [sys.executable, __file__, "measure", str(number)]))
        except Unavailable as error:
            sys.exit(f"skipped: {error}")
