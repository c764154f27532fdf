"""`onehop bench bindings`: one circuit with many values of its parameters, compared with other simulators."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onehop.cli.screen import Table
from onehop.error import BadInput
from onehop.text import number
from onehop_bench.circuits_table import duration, peer_columns
from onehop_bench.gradients import compiled_ansatz
from onehop_bench.reference_simulators import GradientSimulator
from onehop_bench.result import Bench
from onehop_bench.simulator_bench import BestPeer, Contest, SimulatorSettings, measure_all
from onehop_bench.table import Cell, table_of

__all__ = ["BindingRow", "BindingSettings", "binding_bench", "hardware_efficient", "make_binding_table"]

CASE = "hardware-efficient"
LAYERS = 5


@dataclass(frozen=True)
class BindingSettings(SimulatorSettings):
    """What to measure: also the number of values of all parameters.

    Raises
    ------
    BadInput
        There is no binding.
    """

    cases: Sequence[str] = (CASE,)
    qubits: Sequence[int] = (10,)
    seconds: float = 20
    bindings: int = 1000

    known_cases: ClassVar[Sequence[str]] = (CASE,)
    largest: ClassVar[int] = 24

    def __post_init__(self) -> None:
        if self.bindings < 1:
            raise BadInput(f"expected --bindings of 1 or more, found {self.bindings}")


@dataclass(frozen=True)
class BindingRow:
    """One circuit. Times are in seconds for all bindings, the best of several runs.

    Attributes
    ----------
    qubits, parameters, bindings : int
        Numbers of qubits, of parameters, and of their values.
    precision : str
        "double" or "single".
    run_s : float
        The expectation value of Z on qubit 0 for every binding, binding included.
    peers : dict
        Time of each peer for the same values.
    best_peer, best_peer_s, speedup
        The fastest peer, its time, and that over `run_s`; None without peers.
    wrong : dict
        Peers whose values differ from onehop's, with the largest difference; they cannot be the best peer.
    """

    qubits: int
    parameters: int
    bindings: int
    precision: str
    run_s: float
    peers: dict[str, float]
    best_peer: str | None
    best_peer_s: float | None
    speedup: float | None
    wrong: dict[str, float]


def hardware_efficient(qubits: int, layers: int = LAYERS) -> list[tuple[str, list[int], bool]]:
    """Return a hardware-efficient ansatz: name and qubits of each gate, and whether it has a parameter.

    A layer rotates every qubit about Y and Z, and then has a chain of CX.
    """
    gates: list[tuple[str, list[int], bool]] = []
    for _ in range(layers):
        for qubit in range(qubits):
            gates += [(name, [qubit], True) for name in ("ry", "rz")]
        gates += [("cx", [qubit, qubit + 1], False) for qubit in range(qubits - 1)]
    return gates


class _Contest(Contest):
    """One row while it is measured."""

    def __init__(self, qubits: int, threads: int, bindings: int, *others: Any) -> None:
        super().__init__(f"{qubits} qubits, {others[0]}", *others)
        self.qubits, self.threads, self.bindings = qubits, threads, bindings

    def row(self) -> BindingRow:
        gates = hardware_efficient(self.qubits)
        count = sum(turns for *_, turns in gates)
        values = np.random.default_rng(1).uniform(0, 2 * np.pi, (self.bindings, count))
        compiled = compiled_ansatz(self.qubits, gates, self.precision, self.threads)
        first = iter(values[0].tolist())
        bound = [(name, which, next(first) if turns else None) for name, which, turns in gates]
        ours: list[float] = []

        def run() -> np.ndarray:
            begin = time.perf_counter()
            found = compiled.run_many(values, ["Z0"])[:, 0]
            ours.append(time.perf_counter() - begin)
            return np.asarray(found)

        self.measure(
            lambda peer: peer.prepare(bound, [(1.0, [(0, "Z")])], self.qubits, self.precision),
            run,
            lambda peer: peer.evaluate(values, 0),
        )
        best = BestPeer.of(min(ours), self.times, self.wrong)
        return BindingRow(
            qubits=self.qubits,
            parameters=count,
            bindings=self.bindings,
            precision=self.precision,
            run_s=min(ours),
            peers=self.times,
            best_peer=best.name,
            best_peer_s=best.seconds,
            speedup=best.speedup,
            wrong=self.wrong,
        )


def binding_bench(
    settings: BindingSettings,
    peers: Sequence[GradientSimulator],
    advance: Callable[[float], None] = lambda _amount: None,
    say: Callable[[str], None] = lambda _text: None,
) -> Bench:
    """Measure expectation values of a hardware-efficient ansatz for many bindings, onehop and the peers in turn.

    Parameters
    ----------
    settings : BindingSettings
    peers : sequence of GradientSimulator
        Simulators, each measured in the precisions that it supports.
    advance : callable
        Called with 1 after each row.
    say : callable
        Called with what is being measured.
    """

    def contest(_case: str, qubits: int, precision: str, threads: int, seconds: float) -> _Contest:
        return _Contest(qubits, threads, settings.bindings, precision, peers, seconds, say)

    about = f"{LAYERS} layers of a hardware-efficient ansatz; "
    return measure_all("bindings", settings, peers, contest, about, advance)


def make_binding_table(result: Bench) -> Table:
    """Make a table with a line for each row."""
    caption = (
        f"{result.host['cpu']}, {result.host['cores']} cores, {result.host['simd']}\n"
        "times of all bindings together; speedup: the best peer's time over onehop's"
    )
    columns: dict[str, Cell] = {
        "n": lambda row: str(row.qubits),
        "parameters": lambda row: str(row.parameters),
        "bindings": lambda row: str(row.bindings),
        "type": lambda row: row.precision,
        "onehop": lambda row: duration(row.run_s),
        **peer_columns(result.rows),
        "speedup": lambda row: number(row.speedup),
    }
    return table_of(result.rows, "onehop bench bindings", caption, columns)
