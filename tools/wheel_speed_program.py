"""One build's part of tools/wheel_speed.py: reads the names of cases, and prints `answer SECONDS` for each.

Rank 0 reads; the others learn the case from it. A case is set up when it is first asked for.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import onehop
from onehop import _core
from onehop.lattice import Gauge, Staggered, smearing
from onehop.lattice.phases import with_staggered_phases
from onehop.quantum.state import State
from onehop_bench.circuits_cases import make_gates, to_circuit

BLOCK = 12  # sites of the lattice in each direction, on one rank
Case = Callable[[], float]


def circuit(name: str, qubits: str) -> Case:
    """Seconds of a circuit in double precision."""
    made = to_circuit(make_gates(name, int(qubits)), int(qubits))
    state = State(int(qubits))

    def run() -> float:
        state.set_basis_state(0)
        begin = time.perf_counter()
        state.run(made)
        return time.perf_counter() - begin

    return run


def hisq(group: onehop.Group, precision: str) -> Case:
    """Seconds of a solve with the HISQ operator on a random field; the slowest rank counts."""
    extents, grid = (BLOCK,) * 3 + (BLOCK * group.size,), (1, 1, 1, group.size)
    gauge = Gauge(group, extents, grid)
    for sweep in range(2):
        gauge.heat_bath(6.0, 11, sweep)
    links = smearing.hisq_links(gauge)
    fat, long = (
        np.ascontiguousarray(
            with_staggered_phases(one, gauge.geometry, group.rank, length=length), np.complex128
        )
        for one, length in ((links.fat, 1), (links.long_links, 3))
    )
    operator = Staggered.of_links(group, extents, fat, long, grid)
    random = np.random.default_rng(group.rank)
    source = random.normal(size=(*operator.geometry.block_shape, 3)).astype(np.complex128)

    def run() -> float:
        group.barrier()
        found = operator.solve(source, 0.05, tolerance=1e-10, sloppy_precision=precision)
        assert found.converged
        return max(np.frombuffer(one)[0] for one in group.allgather(np.array([found.seconds]).tobytes()))

    return run


def pingpong(group: onehop.Group, size: str) -> Case:
    """Seconds of one message, one way."""
    effort = _core.MeasureEffort(seconds=0.15, block_us=400.0, min_rounds=5)

    def run() -> float:
        measured = _core.measure_ping_pong(group, int(size), effort)
        return 1e-6 * float(np.median(next(us for _, role, us in measured if role == "ours")))

    return run


def main() -> None:
    """Answer until the input ends."""
    group = onehop.Group.world()
    cases: dict[str, Case] = {}
    while True:
        line = sys.stdin.readline() if group.rank == 0 else ""
        line = group.allgather(line.encode())[0].decode()
        if not line:
            return
        words = line.split()
        if line not in cases:
            made = {"hisq": hisq, "pingpong": pingpong}
            cases[line] = circuit(*words[1:]) if words[0] == "circuit" else made[words[0]](group, *words[1:])
        seconds = cases[line]()
        if group.rank == 0:
            print("answer", float(seconds), flush=True)


if __name__ == "__main__":
    main()
