"""`onehop bench circuits`: circuits of the usual families, compared with other simulators at their best settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from onehop import _core
from onehop.error import Error
from onehop.quantum.state import State
from onehop_bench.circuits_cases import CIRCUIT_CASES, Gate, make_gates, to_circuit
from onehop_bench.reference_simulators import Peer, Timing
from onehop_bench.result import Bench, Row
from onehop_bench.simulator_bench import (
    AMPLITUDE_BYTES,
    PAUSE,
    TOLERANCES,
    BestPeer,
    SimulatorSettings,
    measure_all,
)

__all__ = ["CircuitRow", "CircuitSettings", "circuits", "wrong_answers"]

TRIAL_QUBITS = 20  # the most qubits of a circuit with which a peer's settings are tried
FAR_BEHIND = 3.0  # a peer that takes this many times as long as the best one is measured in one round only


@dataclass(frozen=True)
class CircuitSettings(SimulatorSettings):
    """The circuits to measure: names from `CIRCUIT_CASES`."""

    cases: Sequence[str] = tuple(CIRCUIT_CASES)
    qubits: Sequence[int] = (24,)
    precisions: Sequence[str] = ("double", "single")
    seconds: float = 600

    known_cases: ClassVar[Sequence[str]] = tuple(CIRCUIT_CASES)


@dataclass(frozen=True)
class CircuitRow(Row):
    """One circuit in one precision. Here `peers` are seconds, the best of several runs, and `ratio` compares best runs.

    Attributes
    ----------
    qubits, gates : int
        Numbers of qubits and gates.
    precision : str
        "double" or "single".
    ours_s, median_s : float
        Seconds of onehop, planning included: the best of several runs, and their median.
    plan_s : float
        Seconds of planning, if the plan is not cached.
    passes : float
        Passes of onehop over the state.
    pass_s : float
        Seconds of one pass, reading and writing the state once with as many threads: the best of the same run.
    pass_times : float
        `ours_s` over `pass_s`.
    best_peer_s, speedup : float or None
        Seconds of the fastest peer, and their ratio to `ours_s`.
    peer_medians : dict
        Median seconds of each peer.
    settings : dict
        The fastest setting of each peer.
    wrong : dict
        Peers whose amplitudes differ from onehop's, with the relative difference; they cannot be the best peer.
    """

    qubits: int
    gates: int
    precision: str
    ours_s: float
    median_s: float
    plan_s: float
    passes: float
    pass_s: float
    pass_times: float
    best_peer_s: float | None
    speedup: float | None
    peer_medians: dict[str, float]
    settings: dict[str, str]
    wrong: dict[str, float]


@dataclass
class Ours:
    """onehop, with the interface of a peer."""

    threads: int
    name: str = "onehop"
    version: str = ""
    precisions: Sequence[str] = ("double", "single")
    pass_seconds: list[float] = field(default_factory=list)

    def load(self, gates: Sequence[Gate], qubits: int, precision: str) -> list[str]:
        """Build the circuit."""
        self.circuit = to_circuit(gates, qubits)
        self.precision = precision
        self.pass_seconds = []
        return ["default"]

    def plan_seconds(self) -> tuple[float, float]:
        """Seconds of planning, and the number of passes of the plan."""
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            placement = _core.place(self.circuit, 1, AMPLITUDE_BYTES[self.precision], 1.0)
            passes = placement.passes()
            times.append(time.perf_counter() - begin)
        return min(times), passes

    def run(self, setting: str, seconds: float, indices: Sequence[int]) -> Timing:
        """Apply the circuit to |0...0>, repeatedly for `seconds` seconds and at least once."""
        state = State(self.circuit.qubits, precision=self.precision, threads=self.threads)
        self.pass_seconds += _pass_times(state.local(), self.threads)
        times: list[float] = []
        until = time.perf_counter() + seconds
        while not times or time.perf_counter() < until:
            state.set_basis_state(0)
            begin = time.perf_counter()
            state.run(self.circuit)
            times.append(time.perf_counter() - begin)
        return Timing(times, state.amplitudes(np.array(indices, np.uint64)))

    def compared_indices(self, seed: int = 1) -> list[int]:
        """Indices of amplitudes to compare: likely outcomes, the first and the last, and random ones."""
        qubits = self.circuit.qubits
        state = State(qubits, precision=self.precision, threads=self.threads)
        state.run(self.circuit)
        norm = state.norm()
        if abs(norm - 1) > TOLERANCES[self.precision]:
            raise Error(
                f"onehop lost the norm: {norm} instead of 1 ({self.circuit}, {self.precision} precision)"
            )
        likely = state.sample(32, seed=seed).tolist()
        random_indices = np.random.default_rng(seed).integers(1 << qubits, size=32).tolist()
        return sorted({0, (1 << qubits) - 1, *likely, *random_indices})

    def close(self) -> None:
        """Do nothing: there is no process to end."""


def _pass_times(amplitudes: np.ndarray, threads: int) -> list[float]:
    """Seconds of passes that negate every number; an even count of them leaves the state unchanged."""
    numbers = amplitudes.view(amplitudes.real.dtype)
    parts = np.array_split(numbers, threads if numbers.nbytes >= 1 << 20 else 1)
    times = []
    with ThreadPoolExecutor(len(parts)) as pool:
        for _ in range(4):
            begin = time.perf_counter()
            list(pool.map(lambda part: np.negative(part, out=part), parts))
            times.append(time.perf_counter() - begin)
    return times


def _best_setting(peer: Peer, case: str, qubits: int, precision: str) -> str:
    """The fastest setting of a peer on a circuit of at most `TRIAL_QUBITS` qubits."""
    trial = min(qubits, TRIAL_QUBITS)
    settings = peer.load(make_gates(case, trial), trial, precision)
    if len(settings) == 1:
        return settings[0]
    times = {}
    for setting in settings:
        peer.run(setting, 0, [0])
        times[setting] = min(peer.run(setting, 0.02, [0]).seconds)
    return min(times, key=lambda setting: times[setting])


def distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The norm of the difference over the norm of `ours`, after removing a global phase."""
    overlap = np.vdot(theirs, ours)
    phase = overlap / abs(overlap) if overlap != 0 else 1.0
    return float(np.linalg.norm(ours - phase * theirs) / np.linalg.norm(ours))


@dataclass
class _RowMeasurement:
    """One row while it is measured."""

    case: str
    qubits: int
    precision: str
    ours: Ours
    peers: Sequence[Peer]
    say: Callable[[str], None]
    seconds: float
    notes: list[str] = field(default_factory=list)
    wrong: dict[str, float] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def row(self) -> CircuitRow:
        begin = time.perf_counter()
        gates = make_gates(self.case, self.qubits)
        settings = self._settings(gates)
        self.ours.load(gates, self.qubits, self.precision)
        indices = self.ours.compared_indices()
        times = self._rounds(settings, indices, begin + self.seconds)
        return self._sum_up(len(gates), times, settings)

    def _peer(self, name: str) -> Peer:
        return next(peer for peer in self.peers if peer.name == name)

    def _note(self, error: Error) -> None:
        self.notes.append(f"{self.case}, {self.qubits} qubits, {self.precision}: {error}")

    def _settings(self, gates: Sequence[Gate]) -> dict[str, str]:
        """Find the best setting of each peer and load the circuit into it; leave out peers that fail."""
        settings: dict[str, str] = {}
        for peer in self.peers:
            if self.precision not in peer.precisions:
                continue
            self.say(f"{self.case}, {self.qubits} qubits, {self.precision}: settings of {peer.name}")
            try:
                settings[peer.name] = _best_setting(peer, self.case, self.qubits, self.precision)
                peer.load(gates, self.qubits, self.precision)
            except Error as error:
                settings.pop(peer.name, None)
                self._note(error)
        return settings

    def _rounds(
        self, settings: dict[str, str], indices: list[int], deadline: float
    ) -> dict[str, list[list[float]]]:
        """Measure rounds until the deadline: seconds of each candidate, a list for each round."""
        times: dict[str, list[list[float]]] = {"onehop": []}
        batch = 0.02 if self.qubits <= 18 else 0.0
        running = dict(settings)
        for count in range(25):
            begin = time.perf_counter()
            self.say(f"{self.case}, {self.qubits} qubits, {self.precision}: round {count + 1}")
            for name in [*running, "onehop again"]:
                # onehop runs between any two peers: a peer may take long, and the machine changes meanwhile.
                time.sleep(PAUSE)
                mine = self.ours.run("default", batch, indices)
                times["onehop"].append(mine.seconds)
                time.sleep(PAUSE)
                if name in running:
                    self._turn(name, running[name], batch, indices, mine.amplitudes, times)
            running = {name: setting for name, setting in running.items() if name not in self.failed}
            fastest = min((_best(times[name]) for name in running), default=0.0)
            running = {n: s for n, s in running.items() if _best(times[n]) <= FAR_BEHIND * fastest}
            if time.perf_counter() + (time.perf_counter() - begin) / 2 > deadline:
                break
        return times

    def _turn(
        self,
        name: str,
        setting: str,
        batch: float,
        indices: list[int],
        right: np.ndarray,
        times: dict[str, list[list[float]]],
    ) -> None:
        """A peer's part of a round, its answer compared with ours."""
        try:
            timing = self._peer(name).run(setting, batch, indices)
        except Error as error:
            self._note(error)
            self.failed.add(name)
            return
        times.setdefault(name, []).append(timing.seconds)
        off = distance(right, timing.amplitudes)
        if not off <= TOLERANCES[self.precision]:
            self.wrong[name] = max(off, self.wrong.get(name, 0.0))

    def _sum_up(
        self, gates: int, times: dict[str, list[list[float]]], settings: dict[str, str]
    ) -> CircuitRow:
        ours = times.pop("onehop")
        flat = [one for batch in ours for one in batch]
        plan_s, passes = self.ours.plan_seconds()
        pass_s = min(self.ours.pass_seconds)
        best = _best(ours)
        low, middle, high = (float(value) for value in np.percentile(flat, (10, 50, 90)))
        peers = {name: _best(batches) for name, batches in times.items()}
        first = BestPeer.of(best, peers, self.wrong)
        size = AMPLITUDE_BYTES[self.precision] << self.qubits
        return CircuitRow(
            case=self.case,
            bytes=size,
            ranks=1,
            ours_us=middle * 1e6,
            p10_us=low * 1e6,
            p90_us=high * 1e6,
            peers=peers,
            best_peer=first.name,
            best_peer_us=None if first.seconds is None else 1e6 * first.seconds,
            limit_us=pass_s * 1e6,
            ratio=None if first.seconds is None else best / first.seconds,
            ratios={name: best / seconds for name, seconds in peers.items()},
            limit="a pass",
            limit_ratio=best / pass_s,
            variants={},
            rounds=max(map(len, times.values()), default=len(ours)),
            qubits=self.qubits,
            gates=gates,
            precision=self.precision,
            ours_s=best,
            median_s=middle,
            plan_s=plan_s,
            passes=passes,
            pass_s=pass_s,
            pass_times=best / pass_s,
            best_peer_s=first.seconds,
            speedup=first.speedup,
            peer_medians={
                n: float(np.median([one for b in batches for one in b])) for n, batches in times.items()
            },
            settings={name: settings[name] for name in peers},
            wrong=self.wrong,
        )


def _best(batches: Sequence[Sequence[float]]) -> float:
    return min(min(batch) for batch in batches)


def circuits(
    settings: CircuitSettings,
    peers: Sequence[Peer],
    advance: Callable[[float], None] = lambda _amount: None,
    say: Callable[[str], None] = lambda _text: None,
) -> Bench:
    """Measure every circuit in every precision, onehop and the peers in turn.

    Parameters
    ----------
    settings : CircuitSettings
    peers : sequence of Peer
        Simulators, each measured at its best setting in the precisions that it supports.
    advance : callable
        Called with 1 after each row.
    say : callable
        Called with what is being measured.
    """

    def start(case: str, qubits: int, precision: str, threads: int, seconds: float) -> _RowMeasurement:
        return _RowMeasurement(case, qubits, precision, Ours(threads), peers, say, seconds)

    return measure_all("circuits", settings, peers, start, advance=advance)


def wrong_answers(result: Bench) -> list[str]:
    """A line for each peer whose amplitudes differ from onehop's."""
    return [
        f"{row.case}, {row.qubits} qubits, {row.precision}: the amplitudes of {name} and onehop differ by {off:.1e} of "
        f"their norm, expected at most {TOLERANCES[row.precision]:g}"
        for row in result.rows
        if isinstance(row, CircuitRow)
        for name, off in row.wrong.items()
    ]
