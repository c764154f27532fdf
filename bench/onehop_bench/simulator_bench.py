"""Settings and the outer loop of the benchmarks that compare onehop with reference simulators."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from onehop.doctor import host
from onehop.error import BadInput, Error
from onehop.text import bytes_text
from onehop_bench import native
from onehop_bench.result import Bench

__all__ = [
    "AMPLITUDE_BYTES",
    "PAUSE",
    "TOLERANCES",
    "BestPeer",
    "Contest",
    "RowMeasurement",
    "SimulatorSettings",
    "measure_all",
]

AMPLITUDE_BYTES = {"double": 16, "single": 8}
# The largest difference of two simulators' answers, relative to the size of the answer.
TOLERANCES = {"double": 1e-9, "single": 1e-3}
PAUSE = 0.02  # seconds after which the threads of the previous simulator sleep


@dataclass(frozen=True)
class SimulatorSettings:
    """What to measure.

    Attributes
    ----------
    cases : sequence of str
        Names from `known_cases`.
    qubits : sequence of int
        Numbers of qubits.
    precisions : sequence of str
        "double", "single".
    seconds : float
        Time for all rows together; every simulator runs at least once in each.
    threads : int
        Threads of every simulator; 0 uses as many as this process may use.
    known_cases : sequence of str
        Names of all cases of the benchmark.
    largest : int
        The largest number of qubits.
    states : int
        State vectors that a case may need at once.
    """

    cases: Sequence[str] = ()
    qubits: Sequence[int] = ()
    precisions: Sequence[str] = ("double",)
    seconds: float = 60
    threads: int = 0

    known_cases: ClassVar[Sequence[str]] = ()
    largest: ClassVar[int] = 34
    states: ClassVar[int] = 1

    def all(self) -> Iterator[tuple[str, int, str]]:
        """Yield the case, qubits and precision of each row."""
        for qubits in self.qubits:
            for precision in self.precisions:
                for case in self.cases:
                    yield case, qubits, precision

    def check(self) -> None:
        """Check the settings before the work starts.

        Raises
        ------
        BadInput
            A case or precision is unknown, the number of qubits is out of range, or there is too little memory.
        """
        for case in self.cases:
            if case not in self.known_cases:
                raise BadInput(f"expected --case as one of {', '.join(self.known_cases)}, found {case!r}")
        for precision in self.precisions:
            if precision not in AMPLITUDE_BYTES:
                raise BadInput(f"expected --precision as double, single or both, found {precision!r}")
        for qubits in self.qubits:
            if not 4 <= qubits <= self.largest:
                raise BadInput(f"expected --qubits from 4 to {self.largest}, found {qubits}")
        each = self.states * max(AMPLITUDE_BYTES[precision] for precision in self.precisions)
        left = native.available_memory()
        if each << max(self.qubits) > left:
            raise BadInput(
                f"{max(self.qubits)} qubits need {bytes_text(each << max(self.qubits))} and this machine has "
                f"{bytes_text(left)} left: take --qubits of at most {(left // each).bit_length() - 1}"
            )


class RowMeasurement(Protocol):
    """One row while it is measured."""

    notes: list[str]

    def row(self) -> Any:
        """Measure onehop and the peers in turn, and return the row."""


@dataclass(frozen=True)
class BestPeer:
    """The fastest of the peers whose answers are right; None without any.

    Attributes
    ----------
    name : str or None
        Its name.
    seconds, speedup : float or None
        Its time, and that over onehop's.
    """

    name: str | None = None
    seconds: float | None = None
    speedup: float | None = None

    @classmethod
    def of(cls, ours: float, times: dict[str, float], wrong: Container[str]) -> BestPeer:
        """Find it among the times of all peers."""
        right = {name: seconds for name, seconds in times.items() if name not in wrong}
        if not right:
            return cls()
        name = min(right, key=right.__getitem__)
        return cls(name, right[name], right[name] / ours)


@dataclass
class Contest:
    """One row of a benchmark of parametrized circuits while it is measured: onehop and the peers in turn.

    Attributes
    ----------
    what : str
        The row, for notes.
    precision : str
        "double" or "single".
    peers : sequence of GradientSimulator
        The simulators.
    seconds : float
        Time for all of them.
    say : callable
        Called with what is being measured.
    """

    what: str
    precision: str
    peers: Sequence[Any]
    seconds: float
    say: Callable[[str], None]
    notes: list[str] = field(default_factory=list)
    times: dict[str, float] = field(default_factory=dict)
    wrong: dict[str, float] = field(default_factory=dict)

    def measure(
        self,
        prepare: Callable[[Any], None],
        ours: Callable[[], np.ndarray],
        theirs: Callable[[Any], tuple[Sequence[float], np.ndarray]],
        size: Callable[[np.ndarray], float] = lambda _answer: 1.0,
    ) -> None:
        """Let onehop and each peer take turns until the time is over.

        Parameters
        ----------
        prepare : callable
            Gives the circuit to a peer.
        ours : callable
            Runs onehop once, and returns the answer.
        theirs : callable
            Runs a peer, and returns its times and its answer.
        size : callable
            The number to which the difference of two answers is compared.
        """
        running = [peer for peer in self.peers if self.precision in peer.precisions]
        running = [peer for peer in running if self._works(lambda peer=peer: prepare(peer))]
        deadline = time.perf_counter() + self.seconds
        for _ in range(25):
            for peer in [*running, None]:
                time.sleep(PAUSE)
                answer = ours()
                if peer is None:
                    continue
                time.sleep(PAUSE)
                self.say(f"{self.what}: {peer.name}")
                if not self._works(lambda peer=peer, answer=answer: self._turn(peer, theirs, answer, size)):
                    running = [one for one in running if one is not peer]
            if time.perf_counter() > deadline:
                break

    def _turn(self, peer: Any, theirs: Callable[[Any], Any], answer: np.ndarray, size: Any) -> None:
        taken, found = theirs(peer)
        self.times[peer.name] = min(self.times.get(peer.name, taken[0]), *taken)
        off = float(np.abs(found - answer).max())
        if not off <= TOLERANCES[self.precision] * size(answer):
            self.wrong[peer.name] = off

    def _works(self, run: Callable[[], None]) -> bool:
        try:
            run()
        except Error as error:
            self.notes.append(f"{self.what}: {error}")
            return False
        return True


def measure_all(
    name: str,
    settings: SimulatorSettings,
    peers: Sequence[Any],
    start: Callable[[str, int, str, int, float], RowMeasurement],
    about: str = "",
    advance: Callable[[float], None] = lambda _amount: None,
) -> Bench:
    """Measure every row of the settings.

    Parameters
    ----------
    name : str
        Name of the benchmark.
    settings : SimulatorSettings
    peers : sequence of Peer
        Simulators that take part.
    start : callable
        Makes the measurement of a row from its case, qubits, precision, threads and seconds.
    about : str
        What is measured, for the first note.
    advance : callable
        Called with 1 after each row.
    """
    settings.check()
    machine = host(None)
    threads = settings.threads or machine["cores"]
    result = Bench(name, machine)
    versions = ", ".join(f"{one.name} {one.version}".strip() for one in peers) or "no other simulator"
    result.notes.append(f"{threads} threads; {about}compared with {versions}")
    rows = list(settings.all())
    for case, qubits, precision in rows:
        measurement = start(case, qubits, precision, threads, settings.seconds / len(rows))
        result.rows.append(measurement.row())
        result.notes += measurement.notes
        advance(1)
    return result
