"""Collective operations of ranks on hosts with different numbers of ranks, also dealt in turns. Every rank runs this.

The layouts are parts of one launch of 3, 2 and 1 ranks on three hosts. Results are compared with NumPy bit by bit, and
the bytes that the busiest host sends with the least that it can send. The argument is the expected transport.
"""

import random
import sys
from collections.abc import Callable

import numpy as np
from collectives_program import Case, Ranks

from onehop import Group, _core, allgather, allreduce, alltoall, broadcast, reduce_scatter
from onehop_bench.hosts.launch import host_turns
from onehop_bench.wire import host_numbers, sent_bytes

# Ranks on each host, and whether they are dealt in turns.
LAYOUTS = {"3+2+1": False, "3+2": True, "2+1": False, "2+2": False, "1+1+1": False}


def cases(ranks: int) -> list[Case]:
    """Lengths on both sides of what a relay takes, of a piece, and that no number of ranks divides."""
    found: list[Case] = []

    def add(name: str, kind: str, elements: int, **more: object) -> None:
        number = len(found)
        in_place = number % 3 == 0 and name != "all_to_all"
        found.append(Case(name, kind, elements, in_place=in_place, offset=number % 61, **more))  # type: ignore[arg-type]

    for kind in ("float32", "int64", "bfloat16"):
        for elements in (1, 1001, 10_007, 150_001) if kind == "float32" else (1001, 40_005):
            for op, algorithm in (("sum", "auto"), ("max", "by_host"), ("mean", "auto"), ("sum", "two_shot")):
                if op != "mean" or kind != "int64":
                    add("allreduce", kind, elements, op=op, algorithm=algorithm)
            if kind == "float32":
                add("allreduce", kind, elements, codec="q8")
                add("reduce_scatter", kind, elements, codec="q8")
                add("reduce_scatter", kind, min(elements // 64, 200) * 64 * ranks, codec="q8")
            add("reduce_scatter", kind, elements)
            for name in ("allgather", "all_to_all", "allgather"):  # with equal and unequal lengths
                add(name, kind, min(elements, 20_001))
            for root in (0, ranks - 1):
                add("broadcast", kind, elements, root=root)
    add("allreduce", "float32", 525_001, algorithm="by_host")  # in two pieces
    return found


def check_bytes(group: Group) -> dict[str, float]:
    """The bytes of the busiest host over the least, for arrays of about 1 MiB."""
    hosts, size = host_numbers(group), group.size
    here = [hosts.count(host) for host in range(max(hosts) + 1)]
    block = (1 << 20) // 4 // size
    whole = np.ones(block * size, np.float32)
    steps: dict[str, tuple[Callable[[], object], float]] = {
        "allreduce": (lambda: allreduce(group, whole, out=whole), 2 * size * (len(here) - 1) / len(here)),
        "reduce_scatter": (lambda: reduce_scatter(group, whole), size - min(here)),
        "allgather": (
            lambda: allgather(group, whole[:block]),
            max(*here, size * (len(here) - 1) / len(here)),
        ),
        "broadcast": (lambda: broadcast(group, whole, root=size - 1), size),
        "alltoall": (lambda: alltoall(group, whole), max(ranks * (size - ranks) for ranks in here)),
    }
    found = {}
    for name, (step, least) in steps.items():
        step()
        group.barrier()
        before = sent_bytes()
        group.barrier()
        for _ in range(4):
            step()
        group.barrier()
        counts = [int(text) for text in group.allgather(str(sent_bytes() - before).encode())]
        found[name] = max(counts) / 4 / (4 * block * least)
    return found


def main() -> None:
    world = Group.world()
    hosts, kept = host_numbers(world), []
    for layout, in_turns in LAYOUTS.items():
        counts = [int(count) for count in layout.split()[0].split("+")]
        parts = [
            [rank for rank, at in enumerate(hosts) if at == host][:count] for host, count in enumerate(counts)
        ]
        order = [rank for part in parts for rank in part]
        if in_turns:
            order = [parts[host].pop(0) for host in host_turns(counts)]
        mine = world.rank in order
        group = world.split(0 if mine else -1, order.index(world.rank) if mine else 0)
        if mine:
            ranks, work = Ranks(group), cases(group.size)
            kept.append(ranks)  # a group that closes would delay this rank, and those that wait for it
            random.Random(layout + sys.argv[1]).shuffle(work)
            for case in work[: len(work) // 4]:
                ranks.run(case)
            for rank in set(range(group.size)) - set(group.local_ranks):
                assert _core.carrier(group, rank, "auto").startswith(sys.argv[1])
            sums = {bytes(part) for part in group.allgather(ranks.checksum.to_bytes(4, "little"))}
            assert len(sums) == 1, f"the results of the ranks have {len(sums)} checksums"
            ratios = check_bytes(group)
            assert max(ratios.values()) < 1.1, (layout, ratios)
            if group.rank == 0:
                sys.stdout.write(f"right {layout}: {len(work) // 4}\n")
        world.barrier()


if __name__ == "__main__":
    main()
