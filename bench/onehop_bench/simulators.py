"""The frame of the benchmarks that compare onehop with reference simulators."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from onehop.cli.busy import Load, load_text
from onehop.cli.common import progress
from onehop.doctor import host
from onehop.error import BadInput, Error
from onehop.options import LARGEST_INT, option
from onehop.text import bytes_text, seconds_text
from onehop_bench import native
from onehop_bench.measure import show
from onehop_bench.options import BenchOptions, names_option, numbers_option
from onehop_bench.reference_simulators import WorkerSimulator, find_simulators
from onehop_bench.result import Bench, Row
from onehop_bench.table import Columns, dict_columns, table_of

AMPLITUDE_BYTES = {"double": 16, "single": 8}
# The largest difference of two simulators' answers, relative to the size of the answer.
TOLERANCES = {"double": 1e-9, "single": 1e-3}
_PAUSE = 0.02  # seconds after which the threads of the previous simulator sleep
_FAR_BEHIND = 3.0  # a peer that takes this many times as long as the best one is measured in one round only


def cases_option(text: str, cases: Iterable[str]) -> Any:
    """The field of --case."""
    return option(None, f"{text}; may be repeated. All by default.", "--case", choices=tuple(cases))


def peers_option(kind: type[WorkerSimulator]) -> Any:
    """The field of --peers."""
    text = "Reference simulators to compare with, if they are installed."
    return option(",".join(kind.known), text, metavar="NAME,...|none")


@dataclass(kw_only=True)
class SimulatorOptions(BenchOptions):
    """The options of benchmarks beside reference simulators.

    A benchmark sets its `known_cases`, its usual numbers of qubits, those with --quick, the largest number, and the
    number of state vectors that a case may need at once (`states`), and the kind of simulators.
    """

    qubits: list[int] | None = numbers_option("Numbers of qubits.", "10,24,...")
    precision: list[str] = names_option(
        ["double"], "Precisions of the amplitudes.", choices=tuple(AMPLITUDE_BYTES)
    )
    threads: int = option(0, "Threads of each simulator. 0 uses one per core.", low=0, high=LARGEST_INT)

    known_cases: ClassVar[Sequence[str]] = ()
    usual: ClassVar[Sequence[int]] = (24,)
    quick_qubits: ClassVar[int] = 10
    largest: ClassVar[int] = 34
    states: ClassVar[int] = 1
    simulator: ClassVar[type[WorkerSimulator]] = WorkerSimulator

    def all(self) -> list[tuple[str, int, str]]:
        """The case, qubits and precision of each row.

        Raise BadInput if a number of qubits is out of range, or there is too little memory.
        """
        sizes = self.qubits or ([self.quick_qubits] if self.quick else self.usual)
        for qubits in sizes:
            if not 4 <= qubits <= self.largest:
                raise BadInput(f"expected --qubits from 4 to {self.largest}, found {qubits}")
        each = self.states * max(AMPLITUDE_BYTES[precision] for precision in self.precision)
        left = native.available_memory()
        if each << max(sizes) > left:
            raise BadInput(
                f"{max(sizes)} qubits need {bytes_text(each << max(sizes))} and this machine has "
                f"{bytes_text(left)} left: take --qubits of at most {(left // each).bit_length() - 1}"
            )
        cases = getattr(self, "cases", None) or self.known_cases
        return [
            (case, qubits, precision) for qubits in sizes for precision in self.precision for case in cases
        ]


@dataclass
class Contest:
    """One row while it is measured: onehop and the peers in turn, `seconds` for all of them.

    `say` is called with what is being measured. `times` has the seconds of each candidate's turns, those of onehop
    under "onehop". `wrong` has the peers whose answers differ from onehop's, with the largest difference; they cannot
    be the best peer.
    """

    case: str
    qubits: int
    precision: str
    threads: int
    peers: Sequence[Any]
    seconds: float
    say: Callable[[str], None]
    notes: list[str] = field(default_factory=list)
    times: dict[str, list[list[float]]] = field(default_factory=lambda: {"onehop": []})
    wrong: dict[str, float] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """The row, for notes."""
        return f"{self.case}, {self.qubits} qubits, {self.precision}"

    def measure(
        self,
        prepare: Callable[[Any], None],
        ours: Callable[[], tuple[list[float], np.ndarray]],
        theirs: Callable[[Any], tuple[list[float], np.ndarray]],
        difference: Callable[[np.ndarray, np.ndarray], float],
    ) -> None:
        """Let onehop and each peer take turns until the time is over.

        `prepare` gives the circuit to a peer. `ours` and `theirs` run onehop or a peer, and return the times and the
        answer. `difference` is that of our answer and a peer's, relative to the size of the answer.
        """
        deadline = time.perf_counter() + self.seconds
        running = [
            peer
            for peer in self.peers
            if self.precision in peer.precisions and self._works(peer, lambda peer=peer: prepare(peer))
        ]
        for _ in range(25):
            begin = time.perf_counter()
            for peer in [*running, None]:
                # onehop runs between any two peers: a peer may take long, and the machine changes meanwhile.
                time.sleep(_PAUSE)
                taken, answer = ours()
                self.times["onehop"].append(taken)
                if peer is None:
                    continue
                time.sleep(_PAUSE)

                def turn(peer: Any = peer, answer: np.ndarray = answer) -> None:
                    taken, found = theirs(peer)
                    self.times.setdefault(peer.name, []).append(taken)
                    off = difference(answer, found)
                    if not off <= TOLERANCES[self.precision]:
                        self.wrong[peer.name] = max(off, self.wrong.get(peer.name, 0.0))

                if not self._works(peer, turn):
                    running = [other for other in running if other is not peer]
            best = {peer.name: self.best(peer.name) for peer in running}
            fastest = min(best.values(), default=0.0)
            running = [peer for peer in running if best[peer.name] <= _FAR_BEHIND * fastest]
            if time.perf_counter() + (time.perf_counter() - begin) / 2 > deadline:
                break

    def _works(self, peer: Any, run: Callable[[], None]) -> bool:
        self.say(f"{self.what}: {peer.name}")
        try:
            run()
        except Error as error:
            self.notes.append(f"{self.what}: {error}")
            return False
        return True

    def best(self, name: str = "onehop") -> float:
        """The shortest time of a candidate."""
        return min(min(turn) for turn in self.times[name])

    def all_times(self, name: str = "onehop") -> list[float]:
        """All times of a candidate."""
        return [seconds for turn in self.times[name] for seconds in turn]

    def against_peers(self) -> dict[str, Any]:
        """The keys of a row that compare with the peers.

        They are `peers`, the best seconds of each; `best_peer`, the fastest one that is right, or None; `best_peer_s`;
        `speedup`, that over onehop's time; and `wrong`.
        """
        peers = {name: self.best(name) for name in self.times if name != "onehop"}
        best = min(peers.keys() - self.wrong.keys(), key=peers.__getitem__, default=None)
        seconds = None if best is None else peers[best]
        return {
            "peers": peers,
            "best_peer": best,
            "best_peer_s": seconds,
            "speedup": None if seconds is None else seconds / self.best(),
            "wrong": self.wrong,
        }


def contests(
    name: str,
    options: SimulatorOptions,
    peers: Sequence[Any],
    row: Callable[[Contest], Row],
    about: str = "",
) -> Bench:
    """Measure every row of the options with `row`; `about` says what is measured in the first note."""
    wanted = options.all()
    result = Bench(name, host(None))
    threads = options.threads or result.host["cores"]
    versions = ", ".join(f"{peer.name} {peer.version}".strip() for peer in peers) or "no other simulator"
    result.notes.append(f"{threads} threads; {about}compared with {versions}")

    def say(text: str) -> None:
        if not sys.stderr.isatty() and not options.quick:
            print(text, file=sys.stderr, flush=True)

    seconds = 0.001 if options.quick else options.seconds / len(wanted)
    with progress("measuring", len(wanted)) as advance:
        for what in wanted:
            contest = Contest(*what, threads, peers, seconds, say)
            result.rows.append(row(contest))
            result.notes += contest.notes
            advance(1)
    return result


def compare(
    options: SimulatorOptions, measure: Callable[[Sequence[Any]], Bench], what: str, **shown: Any
) -> None:
    """Start the reference simulators that `options.peers` names, measure with them, end them, and show the result.

    `shown` is as for `show`. Raise Error if the answers of a simulator, which are called `what`, are wrong.
    """
    options.all()
    asked: str = options.peers  # type: ignore[attr-defined]
    names = [] if asked == "none" else asked.split(",")
    load = Load()
    found, missing = find_simulators(names, options.threads or host()["cores"], options.simulator)
    try:
        result = measure(found)
    finally:
        for peer in found:
            peer.close()
    result.host["busy"] = load.found()  # after the peers have ended, so that their work counts as its own
    result.notes += [*missing, load_text(result.host["busy"])]
    show(options, result, **shown)
    refuse_wrong(what, result)


def refuse_wrong(what: str, result: Bench) -> None:
    """Raise Error if a peer's answers differ from onehop's."""
    wrong = [
        f"{getattr(row, 'case', what)}, {row.qubits} qubits, {row.precision}: those of {name} and onehop differ by "
        f"{off:.1e}, expected at most {TOLERANCES[row.precision]:g}"
        for row in result.rows
        for name, off in row.wrong.items()
    ]
    if wrong:
        raise Error(f"expected the same {what} from all simulators, found different ones: {'; '.join(wrong)}")


def seconds_column(key: str, digits: int = 3) -> Callable[[Row], str]:
    """The cells of a column of durations."""
    return lambda row: seconds_text(row[key], digits)


def peer_table(result: Bench, caption: str, columns: Mapping[str, Any]) -> Any:
    """A table with a line for each row, which ends with the time of each peer and the speedup over the best."""
    machine = f"{result.host['cpu']}, {result.host['cores']} cores, {result.host['simd']}"
    caption = f"{machine}\n{caption}\nspeedup: the best peer's time over onehop's"
    peers = dict_columns(result.rows, "peers", lambda seconds: seconds_text(seconds, 3))
    all_columns: Columns = {**columns, **peers, "speedup": "speedup"}
    return table_of(result.rows, f"onehop bench {result.bench}", caption, all_columns)
