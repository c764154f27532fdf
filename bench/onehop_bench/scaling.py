"""`onehop bench scaling`: circuits on 1, 2, 4 ... ranks, with a fixed state or a fixed part of it per rank."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from onehop.cores import machine_cores, usable_cores
from onehop.doctor import host
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum.circuit import Circuit
from onehop.quantum.generators import evolution, qpe, tfim
from onehop.quantum.simulator import Result, simulate
from onehop_bench.result import Bench, Row, Samples, extended, make_row

__all__ = ["SCALING_CASES", "Scaling", "ScalingRow", "scaling"]

STEPS = 10  # steps of the second-order Trotter formula


def _rectangle(qubits: int) -> tuple[int, int]:
    """The sides of the rectangle nearest to a square."""
    rows = next(side for side in range(int(qubits**0.5), 0, -1) if qubits % side == 0)
    return rows, qubits // rows


SCALING_CASES: dict[str, Callable[[int], Circuit]] = {
    "qpe": lambda qubits: qpe(qubits).to_circuit(),
    "tfim-1d": lambda qubits: evolution(tfim((qubits,)), qubits, steps=STEPS).to_circuit(),
    "tfim-2d": lambda qubits: evolution(
        tfim(_rectangle(qubits), lattice="triangular"), qubits, steps=STEPS
    ).to_circuit(),
}


@dataclass(frozen=True)
class Scaling:
    """The cases to measure.

    Attributes
    ----------
    cases : sequence of str
        Names from `SCALING_CASES`.
    kinds : sequence of str
        "strong": `qubits` on every number of ranks; "weak": one qubit more for each doubling, `qubits` on the largest.
    qubits : int
        Qubits of the largest state.
    threads : int
        Threads per rank.
    precision : str
        "double" or "single".
    seconds : float
        Time for all cases together; every case runs at least once.
    """

    cases: Sequence[str] = tuple(SCALING_CASES)
    kinds: Sequence[str] = ("strong", "weak")
    qubits: int = 24
    threads: int = 1
    precision: str = "double"
    seconds: float = 60

    def check(self, ranks: int) -> None:
        """Check the settings before the work starts.

        Raises
        ------
        BadInput
            A case, kind or precision is unknown, the number of ranks is no power of two, or there are too few qubits.
        """
        if ranks & (ranks - 1):
            raise BadInput(f"expected a number of ranks that is a power of two, found {ranks}")
        for case in self.cases:
            if case not in SCALING_CASES:
                raise BadInput(f"expected --case among {', '.join(SCALING_CASES)}, found {case!r}")
        for kind in self.kinds:
            if kind not in ("strong", "weak"):
                raise BadInput(f"expected --kind as strong, weak or both, found {kind!r}")
        if self.precision not in ("double", "single"):
            raise BadInput(f"expected --precision double or single, found {self.precision!r}")
        if not ranks.bit_length() + 3 <= self.qubits <= 40:
            raise BadInput(f"expected --qubits from {ranks.bit_length() + 3} to 40, found {self.qubits}")
        if self.threads < 1:
            raise BadInput(f"expected --threads of at least 1, found {self.threads}")

    def turns(self, ranks: int) -> Iterator[tuple[str, int, int, int]]:
        """Yield the kind, qubits, ranks and threads of each run of a case."""
        numbers = [1 << k for k in range(ranks.bit_length())]
        cores = usable_cores()
        for kind in self.kinds:
            for number in numbers:
                fewer = 0 if kind == "strong" else ranks.bit_length() - number.bit_length()
                yield kind, self.qubits - fewer, number, self.threads
            if kind == "strong" and cores != self.threads:
                yield kind, self.qubits, 1, cores


@dataclass(frozen=True)
class ScalingRow(Row):
    """One circuit on some of the ranks. Times exclude placement and allocation of memory.

    Attributes
    ----------
    kind : str
        "strong" or "weak".
    qubits, threads : int
        Qubits of the state, and threads per rank.
    seconds : float
        The median time.
    passes : float
        Passes over a rank's amplitudes.
    exchanges, bytes_moved : int
        Exchanges between ranks, and the bytes that all ranks send in them.
    speedup : float
        Gates times amplitudes per second, over the same on one rank with as many threads.
    cores : int
        Cores that ranks and threads can occupy; with one thread per rank, the limit of `speedup`.
    """

    kind: str
    qubits: int
    threads: int
    seconds: float
    passes: float
    exchanges: int
    bytes_moved: int
    speedup: float
    cores: int


def scaling(settings: Scaling, group: Group, advance: Callable[[float], None]) -> Bench:
    """Measure every case on 1, 2, 4 ... of the group's ranks in turn. Collective."""
    settings.check(group.size)
    if len(group.local_ranks) != group.size:
        raise BadInput("onehop bench scaling compares ranks of one machine: start all of them there")
    about = host(None)
    about["cores"] = machine_cores()
    result = Bench("scaling", about)
    parts = {
        1 << k: group.split(0 if group.rank < 1 << k else -1, group.rank)
        for k in range(group.size.bit_length())
    }
    for case in settings.cases:
        result.rows += _case(settings, case, group, parts, settings.seconds / len(settings.cases))
        advance(1)
    return result


def _case(
    settings: Scaling, case: str, group: Group, parts: dict[int, Group | None], seconds: float
) -> list[ScalingRow]:
    turns = list(settings.turns(group.size))
    circuits = {qubits: SCALING_CASES[case](qubits) for _, qubits, _, _ in turns}
    times: list[list[float]] = [[] for _ in turns]
    seen: dict[int, Result] = {}
    begin = time.perf_counter()
    while True:
        for i, (_, qubits, ranks, threads) in enumerate(turns):
            group.barrier()
            part = parts[ranks]
            mine = 0.0
            if part is not None:
                run = simulate(circuits[qubits], part, precision=settings.precision, threads=threads)
                mine = run.seconds
                seen[i] = run
                del run.state
            times[i].append(max(float(one) for one in group.allgather(repr(mine).encode())))
        spent = time.perf_counter() - begin
        rounds = len(times[0])
        if group.allgather(b"enough" if spent * (rounds + 1) / rounds > seconds else b"")[0]:
            break
    if group.rank != 0:
        return []
    work = [len(circuits[qubits]) * 2.0**qubits for _, qubits, _, _ in turns]
    return [_row(case, turns, i, times, seen[i], work) for i in range(len(turns))]


def _row(
    case: str,
    turns: list[tuple[str, int, int, int]],
    i: int,
    times: list[list[float]],
    run: Result,
    work: list[float],
) -> ScalingRow:
    kind, qubits, ranks, threads = turns[i]
    base = next(j for j, turn in enumerate(turns) if turn[0] == kind and turn[2] == 1)
    rate = np.array(times[base]) / np.array(times[i]) * (work[i] / work[base])
    samples = [Samples("onehop", "ours", np.array(times[i]) * 1e6)]
    row = make_row(f"{case}, {kind}", run.bytes_moved, ranks, samples)
    return extended(
        row,
        ScalingRow,
        kind=kind,
        qubits=qubits,
        threads=threads,
        seconds=float(np.median(times[i])),
        passes=run.passes,
        exchanges=run.exchanges,
        bytes_moved=run.bytes_moved,
        speedup=float(np.median(rate)),
        cores=min(ranks * threads, usable_cores()),
    )
