"""`onehop bench bindings`: one circuit with many values of its parameters, compared with other simulators."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from onehop.bench.circuits_table import duration
from onehop.bench.reference_simulators import GradientSimulator
from onehop.bench.result import Bench
from onehop.bench.table import empty_table, number
from onehop.doctor import host
from onehop.error import BadInput, Error
from onehop.quantum import Circuit, Parameter
from onehop.quantum import compile as compile_circuit

__all__ = ["BindingRow", "BindingSettings", "binding_bench", "hardware_efficient", "make_binding_table"]

LAYERS = 5
TOLERANCES = {"double": 1e-9, "single": 1e-3}
PAUSE = 0.02  # seconds after which the threads of the previous simulator sleep


@dataclass(frozen=True)
class BindingSettings:
    """What to measure.

    Attributes
    ----------
    qubits : sequence of int
        Numbers of qubits.
    bindings : int
        Number of values of all parameters.
    precision : str
        "double" or "single".
    seconds : float
        Time for all rows together; every simulator runs at least once in each.
    threads : int
        Threads of every simulator; 0 uses as many as this process may use.
    """

    qubits: Sequence[int] = (10,)
    bindings: int = 1000
    precision: str = "double"
    seconds: float = 20
    threads: int = 0

    def check(self) -> None:
        """Check the settings before the work starts.

        Raises
        ------
        BadInput
            The precision is unknown, qubits are not in 2 to 24, or there is no binding.
        """
        if self.precision not in TOLERANCES:
            raise BadInput(f"expected --precision as double or single, found {self.precision!r}")
        for qubits in self.qubits:
            if not 2 <= qubits <= 24:
                raise BadInput(f"expected --qubits from 2 to 24, found {qubits}")
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


def _row(
    qubits: int,
    settings: BindingSettings,
    threads: int,
    peers: Sequence[GradientSimulator],
    notes: list[str],
    say: Callable[[str], None],
) -> BindingRow:
    gates = hardware_efficient(qubits)
    count = sum(turns for *_, turns in gates)
    values = np.random.default_rng(1).uniform(0, 2 * np.pi, (settings.bindings, count))
    circuit = Circuit(qubits)
    names = iter(f"angle{place}" for place in range(count))
    for name, which, turns in gates:
        circuit.gate(name, which, [Parameter(next(names))] if turns else [])
    compiled = compile_circuit(circuit, precision=settings.precision, threads=threads)
    first = iter(values[0].tolist())
    bound = [(name, which, next(first) if turns else None) for name, which, turns in gates]
    running = []
    for peer in peers:
        if settings.precision in peer.precisions:
            try:
                peer.prepare(bound, [(1.0, [(0, "Z")])], qubits, settings.precision)
                running.append(peer)
            except Error as error:
                notes.append(f"{qubits} qubits: {error}")
    ours: list[float] = []
    times: dict[str, float] = {}
    wrong: dict[str, float] = {}
    deadline = time.perf_counter() + settings.seconds / len(settings.qubits)
    for turn in range(25):
        for peer in [*running, None]:
            time.sleep(PAUSE)
            begin = time.perf_counter()
            found = compiled.run_many(values, ["Z0"])[:, 0]
            ours.append(time.perf_counter() - begin)
            if peer is None:
                continue
            say(f"{qubits} qubits, {settings.precision}: {peer.name}")
            time.sleep(PAUSE)
            try:
                taken, theirs = peer.evaluate(values, 0)
            except Error as error:
                notes.append(f"{qubits} qubits: {error}")
                running = [one for one in running if one is not peer]
                continue
            times[peer.name] = min(times.get(peer.name, taken[0]), *taken)
            off = float(np.abs(theirs - found).max())
            if not off <= TOLERANCES[settings.precision]:
                wrong[peer.name] = off
        if turn and time.perf_counter() > deadline:
            break
    right = {name: seconds for name, seconds in times.items() if name not in wrong}
    best = min(right, key=lambda name: right[name], default=None)
    return BindingRow(
        qubits=qubits,
        parameters=count,
        bindings=settings.bindings,
        precision=settings.precision,
        run_s=min(ours),
        peers=times,
        best_peer=best,
        best_peer_s=None if best is None else right[best],
        speedup=None if best is None else right[best] / min(ours),
        wrong=wrong,
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
    settings.check()
    about = host(None)
    threads = settings.threads or about["cores"]
    result = Bench("bindings", about)
    result.notes.append(
        f"{threads} threads; {LAYERS} layers; compared with "
        + (", ".join(f"{p.name} {p.version}".strip() for p in peers) or "no other simulator")
    )
    for qubits in settings.qubits:
        row = _row(qubits, settings, threads, peers, result.notes, say)
        result.rows.append(row)  # type: ignore[arg-type]
        advance(1)
    return result


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
