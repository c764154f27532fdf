"""Ranks at work for a fault: `work.py KIND FAULT RANK AT`. Rank RANK does FAULT (exit, raise, or none) in step AT.

Each rank prints `process PID`, then `at work`; a survivor prints `lost RANK TIME` by the monotonic clock.
"""

import os
import sys
import time
from collections.abc import Callable

import numpy as np
from meeting import is_stored, meet

import onehop


def make_step(kind: str, group: onehop.Group) -> Callable[[], object]:
    """Return the operation that the ranks repeat."""
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    if kind == "plan":
        schedule = onehop.halo(extents=(16 * group.size, 16), grid=(group.size, 1))
        return onehop.Plan(schedule, group, [np.zeros((18, 18))]).run
    if kind == "channel":
        ring = group.channels(send={right: 1 << 16}, receive={left: 1 << 16}, slot_bytes=4096)
        message = np.zeros(1 << 13)

        def step() -> None:
            if group.rank == 0:
                ring.send[right].put(message)
            ring.receive[left].get(message)
            if group.rank != 0:
                ring.send[right].put(message)

        return step
    if kind == "allreduce":
        array = np.ones(10_000, np.float32)
        if is_stored():  # the first one opens channels through the store, which waits as long as it likes
            onehop.allreduce(group, array, codec="q8")
        return lambda: onehop.allreduce(group, array, codec="q8")
    if kind == "preparation":
        return lambda: group.channels(send={right: 8}, receive={left: 8})
    return group.barrier


def main() -> None:
    """Work until another rank is lost, or until this rank's own fault."""
    kind, fault, victim, at = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    print("process", os.getpid(), flush=True)
    try:
        group = meet()
        step = make_step(kind, group)
        group.barrier()
        print("at work", flush=True)
        number = 0
        while True:
            if group.rank == victim and number == at:
                if fault == "exit":
                    os._exit(7)
                if fault == "raise":
                    raise ValueError("the fault of this trial")
            step()
            number += 1
    except onehop.PeerLost as error:
        print("lost", error.rank, time.clock_gettime(time.CLOCK_MONOTONIC), flush=True)
        raise


if __name__ == "__main__":
    main()
