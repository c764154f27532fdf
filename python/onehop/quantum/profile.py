"""Where the time of a simulation went: passes over the amplitudes, exchanges between ranks, and what is around them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from onehop.group import Group

__all__ = ["KINDS", "PARTS", "Entry", "Profile"]

KINDS = ("first state", "exchange", "planning", "pass", "measurement", "sampling", "expectations")
"""What an entry may be; "other" is what lies between them."""
PARTS = ("preparing", "gather", "rotations", "pairs", "matrices", "diagonals", "scatter")
"""Where the time of a pass goes; "other" is the waiting of threads for each other."""


@dataclass(frozen=True)
class Entry:
    """Something that took time on a rank.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    run, stage : int
        The run (one per measurement record) and the stage of the placement; -1: no stage.
    begin, seconds : float
        When, since the run began, and for how long.
    bytes : int
        A pass: read and written. An exchange: sent by this rank.
    tile_bits : list of int
        Of a pass: the bits of an amplitude's place that run within a tile; empty: one operation straight in memory.
    gates, rotations, pairs, matrices, phases, tables : int
        Of a pass: how many gates begin with it, and the engine's operations that they became.
    sweeps : int
        Over a tile in cache, in a pass.
    multiply_adds : float
        For each amplitude, in a pass.
    parts : dict from str to float
        Seconds of a pass by `PARTS`, averaged over the threads.
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
    """Where the time went on each rank.

    Attributes
    ----------
    seconds : float
        From the beginning of the run to its end, of the slowest rank.
    ranks : list of list of Entry
        Of each rank, in the order of their ends.
    pass_seconds : float
        The least that a pass can take: reading and writing every amplitude once, all ranks at it together.
    pass_bytes : int
        Read and written by a rank in a pass.
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
        """The profile of the first `ranks` ranks of a group. Collective."""
        texts = group.allgather(json.dumps([seconds, entries]).encode())
        of_ranks = [json.loads(text) for text in texts[:ranks]]
        listed = [[Entry(**entry) for entry in entries] for _, entries in of_ranks]
        return Profile(max(seconds for seconds, _ in of_ranks), listed, pass_seconds, pass_bytes)

    @property
    def bandwidth(self) -> float:
        """Measured, of one rank beside the others, in bytes a second."""
        return self.pass_bytes / self.pass_seconds

    def share(self, entry: Entry) -> float:
        """Of the measured bandwidth that a pass reached."""
        return self.pass_seconds / entry.seconds if entry.seconds > 0 else 1.0

    def totals(self, rank: int = 0) -> dict[str, float]:
        """Seconds by kind on a rank, "other" included."""
        totals = dict.fromkeys(KINDS, 0.0)
        for entry in self.ranks[rank]:
            totals[entry.kind] += entry.seconds
        totals["other"] = max(0.0, self.seconds - sum(totals.values()))
        return totals

    def parts(self, rank: int = 0) -> dict[str, float]:
        """Seconds of all passes of a rank by part, "other" included."""
        passes = [entry for entry in self.ranks[rank] if entry.kind == "pass"]
        parts = {part: sum((entry.parts or {}).get(part, 0.0) for entry in passes) for part in PARTS}
        parts["other"] = max(0.0, sum(entry.seconds for entry in passes) - sum(parts.values()))
        return parts

    def report(self) -> dict[str, Any]:
        """All of it for JSON; passes with `gb_per_s` and `share_of_bandwidth`."""
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
            for entry, made in zip(entries, listed, strict=True):
                if entry.kind == "pass":
                    made["share_of_bandwidth"] = self.share(entry)
                if entry.bytes and entry.seconds > 0:
                    made["gb_per_s"] = entry.bytes / entry.seconds * 1e-9
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
