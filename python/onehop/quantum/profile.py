"""`Profile`: the times of a simulation's passes over the amplitudes, exchanges between ranks, and other steps."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from onehop.group import Group

KINDS = ("first state", "exchange", "planning", "pass", "measurement", "sampling", "expectations")
"""The kinds of entries. `Profile.totals` adds "other", the time between entries."""
PARTS = ("preparing", "gather", "rotations", "pairs", "matrices", "diagonals", "scatter")
"""The parts of a pass. `Profile.parts` adds "other", the time in which threads wait for each other."""


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
    """

    seconds: float
    ranks: list[list[Entry]]
    pass_seconds: float
    pass_bytes: int

    @staticmethod
    def gather(
        group: Group,
        ranks: int,
        entries: list[dict[str, Any]],
        seconds: float,
        pass_seconds: float,
        pass_bytes: int,
    ) -> Profile:
        """Collect the profiles of the first `ranks` ranks of a group. Collective."""
        texts = group.allgather(json.dumps([seconds, entries]).encode())
        of_ranks = [json.loads(text) for text in texts[:ranks]]
        listed = [[Entry(**entry) for entry in entries] for _, entries in of_ranks]
        return Profile(max(seconds for seconds, _ in of_ranks), listed, pass_seconds, pass_bytes)

    @property
    def bandwidth(self) -> float:
        """Memory bandwidth of a rank in bytes per second, measured while all ranks use the memory."""
        return self.pass_bytes / self.pass_seconds

    def share(self, entry: Entry) -> float:
        """Return the fraction of the measured memory bandwidth that a pass reached."""
        return self.pass_seconds / entry.seconds if entry.seconds > 0 else 1.0

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
        """Return the profile for JSON; passes also have `gb_per_s` and `share_of_bandwidth`."""
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
            "ranks": ranks,
        }


_ALWAYS = ("kind", "run", "stage", "begin", "seconds", "bytes")
