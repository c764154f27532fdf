"""`onehop bench readout`: shots and expectation values of a state, compared with other simulators.

A case is `sampling`, a million shots of all qubits, or `pauli`, the values of 1,000 strings of four letters. The state
is that of a few layers of brickwork, whose gates count. Rows have `case`, `qubits` and `precision`; seconds of onehop:
`ours_s`, the best of several runs, and the percentiles `p10_s`, `median_s` and `p90_s`; `peer_medians`; and `peers`,
`best_peer`, `best_peer_s`, `speedup` and `wrong` as those of `onehop bench circuits`. Compared are the values, and how
often each qubit is one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from onehop.cli.screen import Table
from onehop.options import LARGEST_INT, option
from onehop.quantum import PauliSum, PauliTerm
from onehop.quantum.state import State
from onehop_bench.circuits_cases import brickwork, to_circuit
from onehop_bench.options import seconds_option
from onehop_bench.reference_simulators import ReadoutSimulator, WorkerSimulator
from onehop_bench.result import Bench, Row
from onehop_bench.simulators import (
    Contest,
    SimulatorOptions,
    cases_option,
    compare,
    contests,
    peer_table,
    peers_option,
    seconds_column,
)

READOUT_CASES = ("sampling", "pauli")
_DEPTH = 8
_LETTERS = 4


@dataclass(kw_only=True)
class Readout(SimulatorOptions):
    seconds: float = seconds_option(60)
    cases: list[str] | None = cases_option("Reading to time", READOUT_CASES)
    shots: int = option(1_000_000, "Number of shots.", low=1, high=LARGEST_INT)
    strings: int = option(1000, "Number of Pauli strings.", low=1, high=LARGEST_INT)
    peers: str = peers_option(ReadoutSimulator)

    simulator: ClassVar[type[WorkerSimulator]] = ReadoutSimulator
    known_cases: ClassVar[Sequence[str]] = READOUT_CASES
    usual: ClassVar[Sequence[int]] = (20,)


def pauli_strings(qubits: int, count: int) -> list[list[tuple[int, str]]]:
    """Random strings of four letters."""
    draw = np.random.default_rng(2)
    return [
        [
            (int(q), str(draw.choice(list("XYZ"))))
            for q in sorted(draw.choice(qubits, _LETTERS, replace=False))
        ]
        for _ in range(count)
    ]


def _row(contest: Contest, shots: int, count: int) -> Row:
    gates = brickwork(contest.qubits, _DEPTH)
    strings = pauli_strings(contest.qubits, count)
    circuit = to_circuit(gates, contest.qubits)
    state = State(contest.qubits, precision=contest.precision, threads=contest.threads)
    sums = [PauliSum((PauliTerm(1.0, tuple(string)),)) for string in strings]

    def ours() -> tuple[list[float], np.ndarray]:
        state.set_basis_state(0)
        begin = time.perf_counter()
        state.run(circuit)
        found = state.sample(shots) if contest.case == "sampling" else state.expectations(sums)
        taken = time.perf_counter() - begin
        if contest.case == "pauli":
            return [taken], np.real(found)
        return [taken], np.array(
            [np.mean(found >> np.uint64(q) & np.uint64(1)) for q in range(contest.qubits)]
        )

    def difference(one: np.ndarray, other: np.ndarray) -> float:
        off = float(np.abs(one - other).max())
        # Shares of different shots differ, too: by less than six standard deviations, at most 1 / sqrt(2 shots) each.
        return 0.0 if contest.case == "sampling" and off < 6 / np.sqrt(2 * shots) else off

    contest.measure(
        lambda peer: peer.prepare(gates, strings, contest.qubits, contest.precision),
        ours,
        lambda peer: peer.read(contest.case, shots),
        difference,
    )
    low, middle, high = (float(value) for value in np.percentile(contest.all_times(), (10, 50, 90)))
    against = contest.against_peers()
    return Row(
        case=contest.case,
        qubits=contest.qubits,
        precision=contest.precision,
        ours_s=contest.best(),
        p10_s=low,
        median_s=middle,
        p90_s=high,
        peer_medians={name: float(np.median(contest.all_times(name))) for name in against["peers"]},
        **against,
    )


def _table(result: Bench) -> Table:
    columns = {
        "case": "case",
        "n": "qubits",
        "type": "precision",
        "onehop": seconds_column("ours_s"),
        "median": seconds_column("median_s"),
    }
    return peer_table(result, "times: the best of several runs, gates included", columns)


def bench_readout(options: Readout) -> None:
    """Sample a state and evaluate Pauli strings in it, and compare with other simulators.

    The expectation values of all simulators are compared, and how often each qubit is one.
    """
    shots, count = (1000, 20) if options.quick else (options.shots, options.strings)
    row = partial(_row, shots=shots, count=count)

    def measure(peers: Sequence[Any]) -> Bench:
        about = f"{shots:,} shots, {count:,} strings; "
        return contests("readout", options, peers, row, about)

    compare(options, measure, "values", tables=(_table,))
