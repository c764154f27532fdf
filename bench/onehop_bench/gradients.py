"""`onehop bench gradients`: derivatives of expectation values, compared with other simulators' adjoint methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onehop.cli.screen import Table
from onehop.quantum import Circuit, CompiledCircuit, Parameter, PauliSum, PauliTerm
from onehop.quantum import compile as compile_circuit
from onehop.text import number
from onehop.tune.machine_file import multiply_adds
from onehop_bench.circuits_table import duration, peer_columns
from onehop_bench.reference_simulators import GradientSimulator
from onehop_bench.result import Bench
from onehop_bench.simulator_bench import BestPeer, Contest, SimulatorSettings, measure_all
from onehop_bench.table import Cell, table_of

__all__ = [
    "GRADIENT_CASES",
    "GradientRow",
    "GradientSettings",
    "compiled_ansatz",
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


def compiled_ansatz(
    qubits: int, gates: Sequence[tuple[str, list[int], bool]], precision: str, threads: int
) -> CompiledCircuit:
    """Compile gates, each with a parameter of its own if it has one."""
    circuit = Circuit(qubits)
    count = 0
    for name, which, turns in gates:
        circuit.gate(name, which, [Parameter(f"angle{count}")] if turns else [])
        count += turns
    return compile_circuit(circuit, precision=precision, threads=threads)


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


class _Contest(Contest):
    """One row while it is measured."""

    def __init__(self, case: str, qubits: int, threads: int, *others: Any) -> None:
        super().__init__(f"{case}, {qubits} qubits, {others[0]}", *others)
        self.case, self.qubits, self.threads = case, qubits, threads

    def row(self) -> GradientRow:
        gates = strongly_entangling(self.qubits, LAYERS)
        angles = iter(np.random.default_rng(1).uniform(0, 2 * np.pi, sum(one for *_, one in gates)).tolist())
        bound = [(name, which, next(angles) if turns else None) for name, which, turns in gates]
        values = [angle for *_, angle in bound if angle is not None]
        observable = observable_of(self.case, self.qubits)
        terms = [(one.coefficient.real, list(one.paulis)) for one in observable]
        compiled = compiled_ansatz(self.qubits, gates, self.precision, self.threads)
        forward: list[float] = []
        ours: list[float] = []
        backward: list[float] = []

        def differentiate() -> np.ndarray:
            begin = time.perf_counter()
            compiled.expectations(values, [observable])
            middle = time.perf_counter()
            self.found = compiled.gradients(values, [observable])
            forward.append(middle - begin)
            ours.append(time.perf_counter() - middle)
            backward.append(self.found.backward_seconds)
            return np.asarray(self.found.derivatives[0])

        self.measure(
            lambda peer: peer.prepare(bound, terms, self.qubits, self.precision),
            differentiate,
            lambda peer: peer.differentiate(0),
            lambda answer: max(1.0, float(np.abs(answer).max())),
        )
        best = BestPeer.of(min(ours), self.times, self.wrong)
        done = self.found.backward_multiply_adds * 2**self.qubits
        peak = multiply_adds(self.precision) * self.threads
        return GradientRow(
            case=self.case,
            qubits=self.qubits,
            parameters=len(values),
            terms=len(observable),
            precision=self.precision,
            forward_s=min(forward),
            gradient_s=min(ours),
            times_forward=min(ours) / min(forward),
            peers=self.times,
            best_peer=best.name,
            best_peer_s=best.seconds,
            speedup=best.speedup,
            wrong=self.wrong,
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

    def start(case: str, qubits: int, precision: str, threads: int, seconds: float) -> _Contest:
        return _Contest(case, qubits, threads, precision, peers, seconds, say)

    layers = f"{LAYERS} StronglyEntanglingLayers; "
    return measure_all("gradients", settings, peers, start, layers, advance)


def make_gradient_table(result: Bench) -> Table:
    """Make a table with a line for each row."""
    caption = (
        f"{result.host['cpu']}, {result.host['cores']} cores, {result.host['simd']}\n"
        "forward: the expectation value alone; x: the gradient's time over it;\n"
        "of peak: multiply-adds of the passes after the forward run, per second, over the peak;\n"
        "speedup: the best peer's time over onehop's"
    )
    columns: dict[str, Cell] = {
        "observable": lambda row: row.case,
        "n": lambda row: str(row.qubits),
        "type": lambda row: row.precision,
        "forward": lambda row: duration(row.forward_s),
        "gradient": lambda row: duration(row.gradient_s),
        "x": lambda row: number(row.times_forward),
        "of peak": lambda row: f"{100 * row.share_of_peak:.0f} %",
        **peer_columns(result.rows),
        "speedup": lambda row: number(row.speedup),
    }
    return table_of(result.rows, "onehop bench gradients", caption, columns, ("observable",))
