"""`onehop bench gradients`: derivatives of expectation values, compared with other simulators' adjoint methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from rich.table import Table

from onehop.error import Error
from onehop.quantum import Circuit, CompiledCircuit, Parameter, PauliSum, PauliTerm
from onehop.quantum import compile as compile_circuit
from onehop.text import number
from onehop.tune.machine_file import multiply_adds
from onehop_bench.circuits_table import duration
from onehop_bench.reference_simulators import GradientSimulator
from onehop_bench.result import Bench
from onehop_bench.simulator_bench import PAUSE, TOLERANCES, SimulatorSettings, measure_all
from onehop_bench.table import empty_table

__all__ = [
    "GRADIENT_CASES",
    "GradientRow",
    "GradientSettings",
    "gradient_bench",
    "make_gradient_table",
    "strongly_entangling",
]

GRADIENT_CASES = {"one Z": 1, "1000 terms": 1000}
LAYERS = 10
LETTERS_PER_TERM = 4


@dataclass(frozen=True)
class GradientSettings(SimulatorSettings):
    """The gradients to measure: names from `GRADIENT_CASES`. A gradient may need three states at once."""

    cases: Sequence[str] = tuple(GRADIENT_CASES)
    qubits: Sequence[int] = (16, 20, 24)

    known_cases: ClassVar[Sequence[str]] = tuple(GRADIENT_CASES)
    largest: ClassVar[int] = 30
    states: ClassVar[int] = 3


@dataclass(frozen=True)
class GradientRow:
    """One circuit and observable. Times are in seconds, the best of several runs.

    Attributes
    ----------
    case : str
        Name from `GRADIENT_CASES`.
    qubits, parameters, terms : int
        Numbers of qubits, of parameters, and of terms of the observable.
    precision : str
        "double" or "single".
    forward_s : float
        A run of the circuit with the expectation value.
    gradient_s : float
        The same with all derivatives.
    times_forward : float
        `gradient_s` over `forward_s`.
    peers : dict
        Time of each peer for the same derivatives.
    best_peer, best_peer_s, speedup
        The fastest peer, its time, and that over `gradient_s`; None without peers.
    wrong : dict
        Peers whose derivatives differ from onehop's, with the largest difference; they cannot be the best peer.
    backward_passes, backward_multiply_adds : float
        Passes over ket and bra, and their real multiply-adds per amplitude.
    share_of_peak : float
        Multiply-adds of these passes per second of everything after the forward run, over the peak of all threads.
    """

    case: str
    qubits: int
    parameters: int
    terms: int
    precision: str
    forward_s: float
    gradient_s: float
    times_forward: float
    peers: dict[str, float]
    best_peer: str | None
    best_peer_s: float | None
    speedup: float | None
    wrong: dict[str, float]
    backward_passes: float
    backward_multiply_adds: float
    share_of_peak: float


def strongly_entangling(qubits: int, layers: int) -> list[tuple[str, list[int], bool]]:
    """Return PennyLane's StronglyEntanglingLayers: name and qubits of each gate, and whether it has a parameter.

    A layer rotates every qubit about Z, Y and Z, and then has a ring of CX over a distance that grows with the layer.
    """
    gates: list[tuple[str, list[int], bool]] = []
    for layer in range(layers):
        for qubit in range(qubits):
            gates += [(name, [qubit], True) for name in ("rz", "ry", "rz")]
        distance = layer % (qubits - 1) + 1
        gates += [("cx", [qubit, (qubit + distance) % qubits], False) for qubit in range(qubits)]
    return gates


def observable_of(case: str, qubits: int) -> PauliSum:
    """Return the observable of a case: one Z, or random strings of four letters with random weights."""
    if GRADIENT_CASES[case] == 1:
        return PauliSum((PauliTerm(1.0, ((0, "Z"),)),))
    draw = np.random.default_rng(2)
    terms = []
    for _ in range(GRADIENT_CASES[case]):
        where = sorted(draw.choice(qubits, LETTERS_PER_TERM, replace=False).tolist())
        letters = draw.choice(list("XYZ"), LETTERS_PER_TERM).tolist()
        terms.append(PauliTerm(float(draw.normal()), tuple(zip(where, letters, strict=True))))
    return PauliSum(tuple(terms))


@dataclass
class _RowMeasurement:
    """One row while it is measured."""

    case: str
    qubits: int
    precision: str
    threads: int
    peers: Sequence[GradientSimulator]
    seconds: float
    say: Callable[[str], None]
    notes: list[str] = field(default_factory=list)

    def row(self) -> GradientRow:
        gates = strongly_entangling(self.qubits, LAYERS)
        angles = iter(np.random.default_rng(1).uniform(0, 2 * np.pi, sum(one for *_, one in gates)).tolist())
        bound = [(name, which, next(angles) if turns else None) for name, which, turns in gates]
        self.values = [angle for *_, angle in bound if angle is not None]
        self.observable = observable_of(self.case, self.qubits)
        self.compiled = self._compiled(gates)
        running = self._prepared(bound)
        forward, ours, backward, times, wrong = self._rounds(running)
        return self._sum_up(forward, ours, backward, times, wrong)

    def _compiled(self, gates: Sequence[tuple[str, list[int], bool]]) -> CompiledCircuit:
        circuit = Circuit(self.qubits)
        count = 0
        for name, which, turns in gates:
            circuit.gate(name, which, [Parameter(f"angle{count}")] if turns else [])
            count += turns
        return compile_circuit(circuit, precision=self.precision, threads=self.threads)

    def _prepared(self, bound: Sequence[Any]) -> list[GradientSimulator]:
        terms = [(one.coefficient.real, list(one.paulis)) for one in self.observable]
        running = []
        for peer in self.peers:
            if self.precision not in peer.precisions:
                continue
            try:
                peer.prepare(bound, terms, self.qubits, self.precision)
                running.append(peer)
            except Error as error:
                self._note(error)
        return running

    def _note(self, error: Error) -> None:
        self.notes.append(f"{self.case}, {self.qubits} qubits, {self.precision}: {error}")

    def _rounds(self, running: list[GradientSimulator]) -> tuple[Any, ...]:
        """Measure onehop and the peers in turn until the time is over."""
        forward: list[float] = []
        ours: list[float] = []
        backward: list[float] = []
        times: dict[str, float] = {}
        wrong: dict[str, float] = {}
        deadline = time.perf_counter() + self.seconds
        for _ in range(25):
            for peer in [*running, None]:
                time.sleep(PAUSE)
                begin = time.perf_counter()
                self.compiled.expectations(self.values, [self.observable])
                middle = time.perf_counter()
                found = self.compiled.gradients(self.values, [self.observable])
                forward.append(middle - begin)
                ours.append(time.perf_counter() - middle)
                backward.append(found.backward_seconds)
                self.found = found
                if peer is None:
                    continue
                time.sleep(PAUSE)
                self.say(f"{self.case}, {self.qubits} qubits, {self.precision}: {peer.name}")
                try:
                    taken, theirs = peer.differentiate(0)
                except Error as error:
                    self._note(error)
                    running = [one for one in running if one is not peer]
                    continue
                times[peer.name] = min(times.get(peer.name, taken[0]), *taken)
                off = float(np.abs(theirs - found.derivatives[0]).max())
                if not off <= TOLERANCES[self.precision] * max(1.0, float(np.abs(found.derivatives).max())):
                    wrong[peer.name] = off
            if time.perf_counter() > deadline:
                break
        return forward, ours, backward, times, wrong

    def _sum_up(
        self,
        forward: list[float],
        ours: list[float],
        backward: list[float],
        times: dict[str, float],
        wrong: dict[str, float],
    ) -> GradientRow:
        right = {name: seconds for name, seconds in times.items() if name not in wrong}
        first = min(right, key=lambda name: right[name], default=None)
        best = min(ours)
        done = self.found.backward_multiply_adds * 2**self.qubits
        peak = multiply_adds(self.precision) * self.threads
        return GradientRow(
            case=self.case,
            qubits=self.qubits,
            parameters=len(self.values),
            terms=len(self.observable),
            precision=self.precision,
            forward_s=min(forward),
            gradient_s=best,
            times_forward=best / min(forward),
            peers=times,
            best_peer=first,
            best_peer_s=None if first is None else right[first],
            speedup=None if first is None else right[first] / best,
            wrong=wrong,
            backward_passes=self.found.backward_passes,
            backward_multiply_adds=self.found.backward_multiply_adds,
            share_of_peak=done / min(backward) / peak,
        )


def gradient_bench(
    settings: GradientSettings,
    peers: Sequence[GradientSimulator],
    advance: Callable[[float], None] = lambda _amount: None,
    say: Callable[[str], None] = lambda _text: None,
) -> Bench:
    """Measure all derivatives of StronglyEntanglingLayers, onehop and the peers in turn.

    Parameters
    ----------
    settings : GradientSettings
    peers : sequence of GradientSimulator
        Simulators, each measured in the precisions that it supports.
    advance : callable
        Called with 1 after each row.
    say : callable
        Called with what is being measured.
    """

    def start(case: str, qubits: int, precision: str, threads: int, seconds: float) -> _RowMeasurement:
        return _RowMeasurement(case, qubits, precision, threads, peers, seconds, say)

    layers = f"{LAYERS} StronglyEntanglingLayers; "
    return measure_all("gradients", settings, peers, start, layers, advance)


def make_gradient_table(result: Bench) -> Table:
    """Make a table with a line for each row."""
    rows: list[Any] = result.rows
    names = list(dict.fromkeys(name for row in rows for name in row.peers))
    caption = (
        f"{result.host['cpu']}, {result.host['cores']} cores, {result.host['simd']}\n"
        "forward: the expectation value alone; x: the gradient's time over it;\n"
        "of peak: multiply-adds of the passes after the forward run, per second, over the peak;\n"
        "speedup: the best peer's time over onehop's"
    )
    table = empty_table("onehop bench gradients", caption)
    table.add_column("observable", no_wrap=True)
    for name in ("n", "type", "forward", "gradient", "x", "of peak", *names, "speedup"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row.case,
            str(row.qubits),
            row.precision,
            duration(row.forward_s),
            duration(row.gradient_s),
            number(row.times_forward),
            f"{100 * row.share_of_peak:.0f} %",
            *(duration(row.peers.get(name)) for name in names),
            number(row.speedup),
        )
    return table
