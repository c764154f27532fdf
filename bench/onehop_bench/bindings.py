"""`onehop bench bindings`: one circuit with many values of its parameters, compared with other simulators."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from rich.table import Table

from onehop.error import BadInput, Error
from onehop.quantum import Circuit, Parameter
from onehop.quantum import compile as compile_circuit
from onehop.text import number
from onehop_bench.circuits_table import duration
from onehop_bench.reference_simulators import GradientSimulator
from onehop_bench.result import Bench
from onehop_bench.simulator_bench import PAUSE, TOLERANCES, SimulatorSettings, measure_all
from onehop_bench.table import empty_table

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


@dataclass
class _Contest:
    """One row while it is measured."""

    qubits: int
    precision: str
    threads: int
    peers: Sequence[GradientSimulator]
    seconds: float
    bindings: int
    say: Callable[[str], None]
    notes: list[str] = field(default_factory=list)

    def row(self) -> BindingRow:
        gates = hardware_efficient(self.qubits)
        count = sum(turns for *_, turns in gates)
        self.values = np.random.default_rng(1).uniform(0, 2 * np.pi, (self.bindings, count))
        circuit = Circuit(self.qubits)
        names = iter(f"angle{place}" for place in range(count))
        for name, which, turns in gates:
            circuit.gate(name, which, [Parameter(next(names))] if turns else [])
        self.compiled = compile_circuit(circuit, precision=self.precision, threads=self.threads)
        first = iter(self.values[0].tolist())
        bound = [(name, which, next(first) if turns else None) for name, which, turns in gates]
        ours, times, wrong = self._rounds(self._prepared(bound))
        right = {name: seconds for name, seconds in times.items() if name not in wrong}
        best = min(right, key=lambda name: right[name], default=None)
        return BindingRow(
            qubits=self.qubits,
            parameters=count,
            bindings=self.bindings,
            precision=self.precision,
            run_s=min(ours),
            peers=times,
            best_peer=best,
            best_peer_s=None if best is None else right[best],
            speedup=None if best is None else right[best] / min(ours),
            wrong=wrong,
        )

    def _prepared(self, bound: Sequence[Any]) -> list[GradientSimulator]:
        running = []
        for peer in self.peers:
            if self.precision not in peer.precisions:
                continue
            try:
                peer.prepare(bound, [(1.0, [(0, "Z")])], self.qubits, self.precision)
                running.append(peer)
            except Error as error:
                self.notes.append(f"{self.qubits} qubits, {self.precision}: {error}")
        return running

    def _rounds(
        self, running: list[GradientSimulator]
    ) -> tuple[list[float], dict[str, float], dict[str, float]]:
        """Measure onehop and the peers in turn until the time is over."""
        ours: list[float] = []
        times: dict[str, float] = {}
        wrong: dict[str, float] = {}
        deadline = time.perf_counter() + self.seconds
        for _ in range(25):
            for peer in [*running, None]:
                time.sleep(PAUSE)
                begin = time.perf_counter()
                found = self.compiled.run_many(self.values, ["Z0"])[:, 0]
                ours.append(time.perf_counter() - begin)
                if peer is None:
                    continue
                time.sleep(PAUSE)
                self.say(f"{self.qubits} qubits, {self.precision}: {peer.name}")
                try:
                    taken, theirs = peer.evaluate(self.values, 0)
                except Error as error:
                    self.notes.append(f"{self.qubits} qubits, {self.precision}: {error}")
                    running = [one for one in running if one is not peer]
                    continue
                times[peer.name] = min(times.get(peer.name, taken[0]), *taken)
                off = float(np.abs(theirs - found).max())
                if not off <= TOLERANCES[self.precision]:
                    wrong[peer.name] = off
            if time.perf_counter() > deadline:
                break
        return ours, times, wrong


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
        return _Contest(qubits, precision, threads, peers, seconds, settings.bindings, say)

    about = f"{LAYERS} layers of a hardware-efficient ansatz; "
    return measure_all("bindings", settings, peers, contest, about, advance)


def make_binding_table(result: Bench) -> Table:
    """Make a table with a line for each row."""
    rows: list[Any] = result.rows
    names = list(dict.fromkeys(name for row in rows for name in row.peers))
    caption = (
        f"{result.host['cpu']}, {result.host['cores']} cores, {result.host['simd']}\n"
        "times of all bindings together; speedup: the best peer's time over onehop's"
    )
    table = empty_table("onehop bench bindings", caption)
    for name in ("n", "parameters", "bindings", "type", "onehop", *names, "speedup"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            str(row.qubits),
            str(row.parameters),
            str(row.bindings),
            row.precision,
            duration(row.run_s),
            *(duration(row.peers.get(name)) for name in names),
            number(row.speedup),
        )
    return table
