"""`onehop bench gradients` and `bindings`: parametrized circuits, compared with other simulators.

Both have rows with `qubits`, `parameters`, `precision`, `peers`, `best_peer`, `best_peer_s`, `speedup` and `wrong`, as
those of `onehop bench circuits`. Times are in seconds, the best of several runs.

Rows of gradients also have their `case`, the observable, and its number of `terms`; `forward_s`, a run of the circuit
with the expectation value; `gradient_s`, the same with all derivatives; `times_forward`, their ratio;
`backward_passes` over ket and bra, and `backward_multiply_adds`, their real multiply-adds per amplitude; and
`share_of_peak`, multiply-adds of these passes per second of everything after the forward run, over the peak of all
threads. Those of bindings have `bindings`, their number, and `run_s`, the time of the expectation value of Z on qubit 0
for all of them, binding included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from onehop.cli.screen import Table
from onehop.options import LARGEST_INT, option
from onehop.quantum import Circuit, CompiledCircuit, Parameter, PauliSum, PauliTerm
from onehop.quantum import compile as compile_circuit
from onehop.quantum.profile import peak_flops
from onehop_bench.options import seconds_option
from onehop_bench.reference_simulators import GradientSimulator, WorkerSimulator
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

GRADIENT_CASES = {"one Z": 1, "1000 terms": 1000}
_GRADIENT_LAYERS = 10
_BINDING_LAYERS = 5
_LETTERS_PER_TERM = 4

Gates = Sequence[tuple[str, list[int], bool]]
"""Name and qubits of each gate, and whether it has a parameter."""


def strongly_entangling(qubits: int, layers: int) -> Gates:
    """Return PennyLane's StronglyEntanglingLayers.

    A layer rotates every qubit about Z, Y and Z, and then has a ring of CX over a distance that grows with the layer.
    """
    gates: list[tuple[str, list[int], bool]] = []
    for layer in range(layers):
        for qubit in range(qubits):
            gates += [(name, [qubit], True) for name in ("rz", "ry", "rz")]
        distance = layer % (qubits - 1) + 1
        gates += [("cx", [qubit, (qubit + distance) % qubits], False) for qubit in range(qubits)]
    return gates


def hardware_efficient(qubits: int, layers: int = _BINDING_LAYERS) -> Gates:
    """Return a hardware-efficient ansatz: a layer rotates every qubit about Y and Z, and then has a chain of CX."""
    gates: list[tuple[str, list[int], bool]] = []
    for _ in range(layers):
        for qubit in range(qubits):
            gates += [(name, [qubit], True) for name in ("ry", "rz")]
        gates += [("cx", [qubit, qubit + 1], False) for qubit in range(qubits - 1)]
    return gates


def _angles(gates: Gates, rows: int) -> np.ndarray:
    """Rows of angles of all parameters."""
    return np.random.default_rng(1).uniform(0, 2 * np.pi, (rows, sum(turns for *_, turns in gates)))


def _bound(gates: Gates, angles: Sequence[float]) -> list[tuple[str, list[int], float | None]]:
    """The gates with their angles, for a peer."""
    following = iter(angles)
    return [(name, which, next(following) if turns else None) for name, which, turns in gates]


def _compiled(gates: Gates, contest: Contest) -> CompiledCircuit:
    """Compile gates, each with a parameter of its own if it has one."""
    circuit = Circuit(contest.qubits)
    for count, (name, which, turns) in enumerate(gates):
        circuit.gate(name, which, [Parameter(f"angle{count}")] if turns else [])
    return compile_circuit(circuit, precision=contest.precision, threads=contest.threads)


def _observable(case: str, qubits: int) -> PauliSum:
    """Return the observable of a case: one Z, or random strings of four letters with random weights."""
    if GRADIENT_CASES[case] == 1:
        return PauliSum((PauliTerm(1.0, ((0, "Z"),)),))
    draw = np.random.default_rng(2)
    terms = []
    for _ in range(GRADIENT_CASES[case]):
        where = sorted(draw.choice(qubits, _LETTERS_PER_TERM, replace=False).tolist())
        letters = draw.choice(list("XYZ"), _LETTERS_PER_TERM).tolist()
        terms.append(PauliTerm(float(draw.normal()), tuple(zip(where, letters, strict=True))))
    return PauliSum(tuple(terms))


def _difference(size: Callable[[np.ndarray], float], ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.abs(theirs - ours).max()) / size(ours)


@dataclass(kw_only=True)
class Gradients(SimulatorOptions):
    seconds: float = seconds_option(60)
    cases: list[str] | None = cases_option("Observable", GRADIENT_CASES)
    peers: str = peers_option(GradientSimulator)

    simulator: ClassVar[type[WorkerSimulator]] = GradientSimulator
    known_cases: ClassVar[Sequence[str]] = tuple(GRADIENT_CASES)
    usual: ClassVar[Sequence[int]] = (16, 20, 24)
    largest: ClassVar[int] = 30
    states: ClassVar[int] = 3


def _gradient_row(contest: Contest) -> Row:
    gates = strongly_entangling(contest.qubits, _GRADIENT_LAYERS)
    angles = _angles(gates, 1)[0].tolist()
    observable = _observable(contest.case, contest.qubits)
    terms = [(term.coefficient.real, list(term.paulis)) for term in observable]
    compiled = _compiled(gates, contest)
    forward: list[float] = []
    backward: list[Any] = []

    def ours() -> tuple[list[float], np.ndarray]:
        begin = time.perf_counter()
        compiled.expectations(angles, [observable])
        middle = time.perf_counter()
        backward.append(compiled.gradients(angles, [observable]))
        forward.append(middle - begin)
        return [time.perf_counter() - middle], np.asarray(backward[-1].derivatives[0])

    def prepare(peer: GradientSimulator) -> None:
        peer.prepare(_bound(gates, angles), terms, contest.qubits, contest.precision)

    size = partial(_difference, lambda answer: max(1.0, float(np.abs(answer).max())))
    contest.measure(prepare, ours, lambda peer: peer.differentiate(0), size)
    found = backward[-1]
    done = 2 * found.backward_multiply_adds * 2**contest.qubits
    peak = peak_flops(contest.precision, contest.threads)
    return Row(
        case=contest.case,
        qubits=contest.qubits,
        parameters=len(angles),
        terms=len(observable),
        precision=contest.precision,
        forward_s=min(forward),
        gradient_s=contest.best(),
        times_forward=contest.best() / min(forward),
        **contest.against_peers(),
        backward_passes=found.backward_passes,
        backward_multiply_adds=found.backward_multiply_adds,
        share_of_peak=done / min(gradient.backward_seconds for gradient in backward) / peak,
    )


def _gradient_table(result: Bench) -> Table:
    caption = (
        "forward: the expectation value alone; x: the gradient's time over it;\n"
        "of peak: multiply-adds of the passes after the forward run, per second, over the peak"
    )
    columns = {
        "observable": "case",
        "n": "qubits",
        "type": "precision",
        "forward": seconds_column("forward_s"),
        "gradient": seconds_column("gradient_s"),
        "x": "times_forward",
        "of peak": lambda row: f"{100 * row.share_of_peak:.0f} %",
    }
    return peer_table(result, caption, columns)


def bench_gradients(options: Gradients) -> None:
    """Differentiate 10 StronglyEntanglingLayers by all their angles, and compare with other simulators.

    The derivatives of all simulators are compared.
    """

    def measure(peers: Sequence[Any]) -> Bench:
        about = f"{_GRADIENT_LAYERS} StronglyEntanglingLayers; "
        return contests("gradients", options, peers, _gradient_row, about)

    compare(options, measure, "derivatives", tables=(_gradient_table,))


@dataclass(kw_only=True)
class Bindings(SimulatorOptions):
    bindings: int = option(1000, "Number of values of all parameters.", low=1, high=LARGEST_INT)
    peers: str = peers_option(GradientSimulator)

    simulator: ClassVar[type[WorkerSimulator]] = GradientSimulator
    known_cases: ClassVar[Sequence[str]] = ("hardware-efficient",)
    usual: ClassVar[Sequence[int]] = (10,)
    quick_qubits: ClassVar[int] = 6
    largest: ClassVar[int] = 24


def _binding_row(contest: Contest, bindings: int) -> Row:
    gates = hardware_efficient(contest.qubits)
    values = _angles(gates, bindings)
    compiled = _compiled(gates, contest)

    def ours() -> tuple[list[float], np.ndarray]:
        begin = time.perf_counter()
        found = compiled.run_many(values, ["Z0"])[:, 0]
        return [time.perf_counter() - begin], np.asarray(found)

    def prepare(peer: GradientSimulator) -> None:
        bound = _bound(gates, values[0].tolist())
        peer.prepare(bound, [(1.0, [(0, "Z")])], contest.qubits, contest.precision)

    size = partial(_difference, lambda _: 1.0)
    contest.measure(prepare, ours, lambda peer: peer.evaluate(values, 0), size)
    return Row(
        qubits=contest.qubits,
        parameters=values.shape[1],
        bindings=bindings,
        precision=contest.precision,
        run_s=contest.best(),
        **contest.against_peers(),
    )


def _binding_table(result: Bench) -> Table:
    columns = {
        "n": "qubits",
        "parameters": "parameters",
        "bindings": "bindings",
        "type": "precision",
        "onehop": seconds_column("run_s"),
    }
    return peer_table(result, "times of all bindings together", columns)


def bench_bindings(options: Bindings) -> None:
    """Run a hardware-efficient ansatz with many values of its parameters, and compare with other simulators.

    The expectation values of all simulators are compared.
    """
    row = partial(_binding_row, bindings=20 if options.quick else options.bindings)

    def measure(peers: Sequence[Any]) -> Bench:
        about = f"{_BINDING_LAYERS} layers of a hardware-efficient ansatz; "
        return contests("bindings", options, peers, row, about)

    compare(options, measure, "values", tables=(_binding_table,))
