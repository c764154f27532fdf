"""`onehop bench circuits`: circuits of the usual families, compared with other simulators at their best settings.

Here `peers` are seconds, the best of several runs, and `ratio` compares best runs. Further keys of a row are `qubits`,
`gates` and `precision`; `ours_s` and `median_s`, seconds of onehop, planning included: the best of several runs, and
their median; `plan_s`, seconds of planning, if the plan is not cached; `passes` over the state; `pass_s`, seconds of
one pass, reading and writing the state once with as many threads; `pass_times`, `ours_s` over `pass_s`;
`flops`, floating-point operations per amplitude of the passes (two for a multiply-add), `flops_least`, those of the
least known method, and `peak_share`, the rate of `flops` in `ours_s` over the measured peak of as many threads;
`best_peer_s` and `speedup`, seconds of the fastest peer, and their ratio to `ours_s`; `peer_medians`; `settings`, the
fastest of each peer; and `wrong`, peers whose amplitudes differ from onehop's, with the relative difference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from onehop import _core
from onehop.cli.screen import Table, coloured
from onehop.error import Error
from onehop.quantum.profile import peak_flops
from onehop.quantum.state import State
from onehop.text import number, seconds_text
from onehop_bench.bars import save_circuit_plot
from onehop_bench.circuits_cases import CIRCUIT_CASES, Gate, make_gates, to_circuit
from onehop_bench.flops import least_flops
from onehop_bench.options import PlotOptions, names_option, seconds_option
from onehop_bench.reference_simulators import WorkerSimulator
from onehop_bench.result import Bench, Row
from onehop_bench.simulators import (
    AMPLITUDE_BYTES,
    TOLERANCES,
    Contest,
    SimulatorOptions,
    cases_option,
    compare,
    contests,
    peers_option,
    seconds_column,
)
from onehop_bench.table import Columns, table_of

_TRIAL_QUBITS = 20  # the most qubits of a circuit with which a peer's settings are tried
_TYPES = {"double": "f64", "single": "f32"}


@dataclass(kw_only=True)
class Circuits(PlotOptions, SimulatorOptions):
    seconds: float = seconds_option(600)
    cases: list[str] | None = cases_option("Circuit to measure", CIRCUIT_CASES)
    precision: list[str] = names_option(
        ["double", "single"], "Precisions of the amplitudes.", choices=tuple(AMPLITUDE_BYTES)
    )
    peers: str = peers_option(WorkerSimulator)

    known_cases: ClassVar[Sequence[str]] = tuple(CIRCUIT_CASES)


@dataclass
class Ours:
    """A circuit in onehop."""

    gates: Sequence[Gate]
    qubits: int
    precision: str
    threads: int
    pass_seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.circuit = to_circuit(self.gates, self.qubits)

    def _state(self) -> State:
        return State(self.qubits, precision=self.precision, threads=self.threads)

    def plan(self) -> tuple[float, float, float]:
        """Seconds of planning, the number of passes of the plan, and their flops per amplitude."""
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            placement = _core.place_simulation(self.circuit, 1, AMPLITUDE_BYTES[self.precision], 1.0)
            passes = placement.passes()
            times.append(time.perf_counter() - begin)
        adds = sum(group["multiply_adds"] for stage in placement.groups() for group in stage)
        return min(times), passes, 2 * adds

    def run(self, seconds: float, indices: Sequence[int]) -> tuple[list[float], np.ndarray]:
        """Apply the circuit to |0...0> for `seconds`, at least once; the times, and amplitudes at the end."""
        state = self._state()
        self.pass_seconds += _pass_times(state.local(), self.threads)
        times: list[float] = []
        until = time.perf_counter() + seconds
        while not times or time.perf_counter() < until:
            state.set_basis_state(0)
            begin = time.perf_counter()
            state.run(self.circuit)
            times.append(time.perf_counter() - begin)
        return times, state.amplitudes(np.array(indices, np.uint64))

    def compared_indices(self, seed: int = 1) -> list[int]:
        """Indices of amplitudes to compare: likely outcomes, the first and the last, and random ones."""
        state = self._state()
        state.run(self.circuit)
        norm = state.norm()
        if abs(norm - 1) > TOLERANCES[self.precision]:
            raise Error(
                f"onehop lost the norm: {norm} instead of 1 ({self.circuit}, {self.precision} precision)"
            )
        likely = state.sample(32, seed=seed).tolist()
        random_indices = np.random.default_rng(seed).integers(1 << self.qubits, size=32).tolist()
        return sorted({0, (1 << self.qubits) - 1, *likely, *random_indices})


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


def _best_setting(peer: WorkerSimulator, contest: Contest) -> str:
    """The fastest setting of a peer on a circuit of at most `_TRIAL_QUBITS` qubits."""
    trial = min(contest.qubits, _TRIAL_QUBITS)
    settings = peer.load(make_gates(contest.case, trial), trial, contest.precision)
    if len(settings) == 1:
        return settings[0]
    times = {}
    for setting in settings:
        peer.run(setting, 0, [0])
        times[setting] = min(peer.run(setting, 0.02, [0]).seconds)
    return min(times, key=times.__getitem__)


def distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The norm of the difference over the norm of `ours`, after removing a global phase."""
    overlap = np.vdot(theirs, ours)
    phase = overlap / abs(overlap) if overlap != 0 else 1.0
    return float(np.linalg.norm(ours - phase * theirs) / np.linalg.norm(ours))


def _row(contest: Contest) -> Row:
    gates = make_gates(contest.case, contest.qubits)
    ours = Ours(gates, contest.qubits, contest.precision, contest.threads)
    indices = ours.compared_indices()
    batch = 0.02 if contest.qubits <= 18 else 0.0
    settings: dict[str, str] = {}

    def prepare(peer: WorkerSimulator) -> None:
        settings[peer.name] = _best_setting(peer, contest)
        peer.load(gates, contest.qubits, contest.precision)

    def theirs(peer: WorkerSimulator) -> tuple[list[float], np.ndarray]:
        timing = peer.run(settings[peer.name], batch, indices)
        return timing.seconds, timing.amplitudes

    contest.measure(prepare, lambda: ours.run(batch, indices), theirs, distance)
    against = contest.against_peers()
    peers = against["peers"]
    best, pass_s, fastest = contest.best(), min(ours.pass_seconds), against["best_peer_s"]
    low, middle, high = (float(value) for value in np.percentile(contest.all_times(), (10, 50, 90)))
    plan_s, passes, flops = ours.plan()
    peak = peak_flops(contest.precision, contest.threads)
    return Row(
        case=contest.case,
        bytes=AMPLITUDE_BYTES[contest.precision] << contest.qubits,
        ranks=1,
        ours_us=middle * 1e6,
        p10_us=low * 1e6,
        p90_us=high * 1e6,
        best_peer_us=None if fastest is None else 1e6 * fastest,
        limit_us=pass_s * 1e6,
        ratio=None if fastest is None else best / fastest,
        ratios={name: best / seconds for name, seconds in peers.items()},
        limit="a pass",
        limit_ratio=best / pass_s,
        variants={},
        rounds=max((len(contest.times[name]) for name in peers), default=len(contest.times["onehop"])),
        qubits=contest.qubits,
        gates=len(gates),
        precision=contest.precision,
        ours_s=best,
        median_s=middle,
        plan_s=plan_s,
        passes=passes,
        pass_s=pass_s,
        pass_times=best / pass_s,
        flops=flops,
        flops_least=least_flops(gates),
        peak_share=flops * 2**contest.qubits / best / peak,
        peer_medians={name: float(np.median(contest.all_times(name))) for name in peers},
        settings={name: settings[name] for name in peers},
        **against,
    )


def circuits(options: Circuits, peers: Sequence[WorkerSimulator]) -> Bench:
    """Measure every circuit in every precision, onehop and the peers in turn."""
    return contests("circuits", options, peers, _row)


def make_circuit_table(result: Bench) -> Table:
    """A table with a line for each row: onehop's time and passes, and the best peer."""
    caption = (
        f"{result.host['cpu']}, {result.host['cores']} cores, {result.host['simd']}\n"
        "f64, f32: double and single precision; time: the best of several runs;\n"
        "plan: time to plan a circuit that was not planned before; flops: per amplitude,\n"
        "and those of the least known method; peak: their rate over the measured peak;\n"
        "speedup: the best peer's time over onehop's"
    )

    def speedup(row: Row) -> str:
        if row.speedup is None:
            return "-"
        return coloured(number(row.speedup), "green" if row.speedup >= 1 else "red")

    columns: Columns = {
        "case": "case",
        "n": "qubits",
        "type": lambda row: _TYPES[row.precision],
        "time": seconds_column("ours_s"),
        "plan": seconds_column("plan_s", 2),
        "passes": lambda row: f"{row.passes:g}",
        "flops": lambda row: f"{row.flops:.0f}",
        "least": lambda row: f"{row.flops_least:.0f}",
        "peak": lambda row: f"{100 * row.peak_share:.0f} %",
        "best peer": "best_peer",
        "its time": seconds_column("best_peer_s"),
        "speedup": speedup,
    }
    return table_of(result.rows, "onehop bench circuits", caption, columns)


def make_circuit_peer_table(result: Bench) -> Table | None:
    """The time and setting of each peer; None without peers."""
    rows = result.rows
    names = list(dict.fromkeys(name for row in rows for name in row.peers))
    if not names:
        return None

    def time_of(name: str) -> Callable[[Row], str]:
        def cell(row: Row) -> str:
            text = seconds_text(row.peers.get(name), 3)
            return coloured(f"{text}, wrong", "red") if name in row.wrong else text

        return cell

    chosen = {
        name: list(dict.fromkeys(row.settings.get(name, "default") for row in rows if name in row.peers))
        for name in names
    }
    settings = [f"{name} {', '.join(which)}" for name, which in chosen.items() if which != ["default"]]
    columns: Columns = {
        "case": "case",
        "n": "qubits",
        "type": lambda row: _TYPES[row.precision],
        **{name: time_of(name) for name in names},
    }
    caption = f"settings: {'; '.join(settings)}" if settings else None
    return table_of(rows, "every peer at its best setting", caption, columns)


def bench_circuits(options: Circuits) -> None:
    """Run circuits on one rank with all its cores, and on reference simulators at their best settings.

    The amplitudes of all simulators are compared.
    """
    tables = (make_circuit_table, make_circuit_peer_table)
    compare(options, partial(circuits, options), "amplitudes", tables=tables, draw=save_circuit_plot)
