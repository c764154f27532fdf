"""`Profile`: the times of a simulation's passes over the amplitudes, exchanges between ranks, and other steps."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from onehop import _core
from onehop.group import Group

KINDS = ("first state", "exchange", "planning", "pass", "measurement", "sampling", "expectations")
"""The kinds of entries. `Profile.totals` adds "other", the time between entries."""
PARTS = ("preparing", "gather", "rotations", "pairs", "matrices", "diagonals", "scatter")
"""The parts of a pass. `Profile.parts` adds "other", the time in which threads wait for each other."""


def peak_flops(precision: str, threads: int) -> float:
    """Measure the floating-point operations per second of this many threads at once, from multiply-adds on registers.

    Encoded states are computed in single precision.
    """
    single = precision != "double"
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda _: _core.peak_gflops(single), range(threads))) * 1e9


@dataclass(frozen=True)
class Entry:
    """One timed step of a rank. The attributes from `tile_bits` on are those of a pass.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    run, stage : int
        Number of the run (one per measurement record) and of the stage of the placement; -1: no stage.
    begin, seconds : float
        Time from the beginning of the run to the step, and duration of the step.
    bytes : int
        Bytes that a pass reads and writes, or that this rank sends in an exchange.
    tile_bits : list of int, optional
        Bits of an amplitude's place that vary within a tile; empty for one operation applied directly in memory.
    gates : int
        Number of gates that begin with this pass.
    rotations, pairs, matrices, phases, tables : int
        Numbers of the engine's operations of each form.
    sweeps : int
        Number of sweeps over a tile in cache.
    multiply_adds : float
        Number of multiply-adds per amplitude.
    parts : dict from str to float, optional
        Seconds by `PARTS`, averaged over the threads.
    """

    kind: str
    run: int
    stage: int
    begin: float
    seconds: float
    bytes: int
    tile_bits: list[int] | None = None
    gates: int = 0
    rotations: int = 0
    pairs: int = 0
    matrices: int = 0
    phases: int = 0
    tables: int = 0
    sweeps: int = 0
    multiply_adds: float = 0
    parts: dict[str, float] | None = None

    @property
    def flops(self) -> float:
        """Floating-point operations per amplitude: two for a multiply-add."""
        return 2 * self.multiply_adds

    @property
    def flops_least(self) -> float:
        """Floating-point operations per amplitude of the least known method for the operations of this pass.

        4 for a rotation or a pair, 16 for a matrix of two qubits (Cartan's decomposition), 6 for all phases together.
        """
        return 4.0 * (self.rotations + self.pairs) + 16.0 * self.matrices + 6.0 * (self.phases > 0)


@dataclass(frozen=True)
class Profile:
    """The times of a simulation on each rank.

    Attributes
    ----------
    seconds : float
        Duration of the run on the slowest rank.
    ranks : list of list of Entry
        Entries of each rank, in the order in which they ended.
    pass_seconds : float
        Minimum time of a pass: reading and writing every amplitude once, on all ranks at the same time.
    pass_bytes : int
        Bytes that a rank reads and writes in a pass.
    peak : float
        Measured peak of a rank's threads, in floating-point operations per second (two for a multiply-add).
    amplitudes : int
        Number of amplitudes of a rank.
    """

    seconds: float
    ranks: list[list[Entry]]
    pass_seconds: float
    pass_bytes: int
    peak: float
    amplitudes: int

    @staticmethod
    def gather(group: Group, core: Any, amplitude_bytes: float, peak: float) -> Profile:
        """Collect the profiles of a core result of all ranks that have a state, each with its `peak`. Collective."""
        texts = group.allgather(json.dumps([core.seconds, peak, core.profile]).encode())
        of_ranks = [json.loads(text) for text in texts[: core.ranks]]
        listed = [[Entry(**entry) for entry in entries] for _, _, entries in of_ranks]
        slowest, least = max(one[0] for one in of_ranks), min(one[1] for one in of_ranks)
        amplitudes = 2**core.largest_state_qubits // core.ranks
        bytes_of_pass = round(2 * amplitude_bytes * amplitudes)
        return Profile(slowest, listed, core.pass_seconds, bytes_of_pass, least, amplitudes)

    @property
    def bandwidth(self) -> float:
        """Memory bandwidth of a rank in bytes per second, measured while all ranks use the memory."""
        return self.pass_bytes / self.pass_seconds

    def share(self, entry: Entry) -> float:
        """Return the fraction of the measured memory bandwidth that a pass reached."""
        return self.pass_seconds / entry.seconds if entry.seconds > 0 else 1.0

    def peak_share(self, entry: Entry) -> float:
        """Return the fraction of the measured arithmetic peak that a pass reached."""
        return entry.flops * self.amplitudes / (entry.seconds * self.peak) if entry.seconds > 0 else 0.0

    def totals(self, rank: int = 0) -> dict[str, float]:
        """Return the seconds of a rank by kind, including "other"."""
        totals = dict.fromkeys(KINDS, 0.0)
        for entry in self.ranks[rank]:
            totals[entry.kind] += entry.seconds
        totals["other"] = max(0.0, self.seconds - sum(totals.values()))
        return totals

    def parts(self, rank: int = 0) -> dict[str, float]:
        """Return the seconds of all passes of a rank by part, including "other"."""
        passes = [entry for entry in self.ranks[rank] if entry.kind == "pass"]
        parts = {part: sum((entry.parts or {}).get(part, 0.0) for entry in passes) for part in PARTS}
        parts["other"] = max(0.0, sum(entry.seconds for entry in passes) - sum(parts.values()))
        return parts

    def report(self) -> dict[str, Any]:
        """Return the profile for JSON.

        Passes also have `gb_per_s`, `share_of_bandwidth`, `flops`, `flops_least` and `peak_share`.
        """
        ranks = []
        for number, entries in enumerate(self.ranks):
            listed = [
                {
                    name: value
                    for name, value in asdict(entry).items()
                    if entry.kind == "pass" or name in _ALWAYS
                }
                for entry in entries
            ]
            for entry, values in zip(entries, listed, strict=True):
                if entry.kind == "pass":
                    values["share_of_bandwidth"] = self.share(entry)
                    values["flops"], values["flops_least"] = entry.flops, entry.flops_least
                    values["peak_share"] = self.peak_share(entry)
                if entry.bytes and entry.seconds > 0:
                    values["gb_per_s"] = entry.bytes / entry.seconds * 1e-9
            ranks.append(
                {
                    "rank": number,
                    "entries": listed,
                    "seconds_by_kind": self.totals(number),
                    "seconds_of_passes": self.parts(number),
                }
            )
        return {
            "seconds": self.seconds,
            "pass_seconds": self.pass_seconds,
            "pass_bytes": self.pass_bytes,
            "bandwidth_gb_per_s": self.bandwidth * 1e-9,
            "peak_gflops": self.peak * 1e-9,
            "ranks": ranks,
        }


_ALWAYS = ("kind", "run", "stage", "begin", "seconds", "bytes")
