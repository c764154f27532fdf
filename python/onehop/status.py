"""What the ranks of a running program wait for, seen from outside: `onehop status`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onehop import _core
from onehop.error import Error
from onehop.text import counted

_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "in uninterruptible sleep",
    "T": "stopped",
    "t": "stopped by a debugger",
    "Z": "ended",
    "X": "ended",
}


@dataclass(frozen=True)
class Wait:
    """A wait of a rank."""

    ranks: list[int]  #: The ranks that it waits for; empty if they are not known.
    who: str  #: "rank 1 (process 7 on node2)"
    what: str  #: "channel 0 -> 1 (tag 3)"
    seconds: float  #: How long it has waited for them.


@dataclass(frozen=True)
class Rank:
    """A rank of a group, in a process of this machine."""

    rank: int
    process: int
    state: str  #: Of the process: running, sleeping, stopped, ...
    left: bool  #: Whether it has closed or aborted the group.
    reported_lost: int | None  #: The rank because of which it gave up.
    steps: int  #: Collective steps that it has begun.
    waits: list[Wait] = field(default_factory=list)
    #: Network interfaces through which nothing arrives from another host; messages use others.
    interfaces_down: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GroupStatus:
    """A group whose ranks, or some of them, are on this machine."""

    size: int
    waited_for: list[int]  #: Ranks that others wait for and that wait for no other rank.
    ranks: list[Rank]


def _process_table() -> dict[int, tuple[int, str]]:
    """Return the parent and the state of each process."""
    table = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text(errors="replace")
        except OSError:
            continue  # it has ended since
        state, parent = text.rpartition(")")[2].split()[:2]
        table[int(folder.name)] = (int(parent), _STATES.get(state, "sleeping"))
    return table


def _descendants(process: int, table: dict[int, tuple[int, str]]) -> list[int]:
    found = [process]
    for one in found:
        found += [child for child, (parent, _) in table.items() if parent == one]
    return found


def _pages(process: int) -> list[dict[str, Any]]:
    """Return the groups of a process; none if it may not be examined."""
    try:
        return _core.status_of_process(process)
    except Error:
        return []


def status_of(process: int | None = None) -> list[GroupStatus]:
    """Return the groups of a program that runs on this machine; without a process, all that this user may examine.

    `process` is a rank, or a process from which ranks descend, such as a launcher. All ranks on this machine of the
    groups that are found are listed. Raises Error if there is no such process, if it belongs to another user, or if it
    has no group.
    """
    table = _process_table()
    if process is None:
        roots = list(table)
    else:
        _core.status_of_process(process)  # raises for a process that cannot be examined
        roots = _descendants(process, table)
    pages = {one: _pages(one) for one in roots}
    groups = {page["group"] for some in pages.values() for page in some}
    if not groups and process is not None:
        raise Error(
            f"process {process} has no onehop group, and none of its children has: has the program made its group "
            "yet, has it ended, and does it run on this machine?"
        )
    for one in table:
        if one not in pages and groups != {0}:
            pages[one] = _pages(one)
    by_group: dict[Any, list[tuple[int, dict[str, Any]]]] = {}
    for one, some in pages.items():
        for page in some:
            if page["group"] not in groups or (page["group"] == 0 and one not in roots):
                continue
            by_group.setdefault((page["group"], page["size"]), []).append((one, page))
    made = [
        _group(size, members, {one: state for one, (_, state) in table.items()})
        for (_, size), members in by_group.items()
    ]
    return sorted(made, key=lambda group: (-group.size, group.ranks[0].process))


def _group(size: int, members: list[tuple[int, dict[str, Any]]], states: dict[int, str]) -> GroupStatus:
    members = sorted(members, key=lambda member: (member[1]["rank"], member[0]))
    ranks = []
    for process, page in members:
        behind = [other["rank"] for _, other in members if other["steps"] < page["steps"]]
        ranks.append(
            Rank(
                rank=page["rank"],
                process=process,
                state=states.get(process, "ended"),
                left=page["left"],
                reported_lost=page["reported_lost"] if page["reported_lost"] >= 0 else None,
                steps=page["steps"],
                waits=[_wait(one, behind, size, len(members)) for one in page["waits"]],
                interfaces_down=page["interfaces_down"],
            )
        )
    return GroupStatus(size, _waited_for(ranks), ranks)


def _wait(one: dict[str, Any], behind: list[int], size: int, here: int) -> Wait:
    if one["peer"] >= 0:
        return Wait([one["peer"]], one["peer_is"], one["what"], round(one["seconds"], 3))
    who = ", ".join(f"rank {rank}" for rank in behind[:8]) + (", ..." if len(behind) > 8 else "")
    if not behind:
        missing = size - here
        who = (
            f"{counted(missing, 'rank')} that {'is' if missing == 1 else 'are'} not on this machine"
            if missing > 0
            else "the other ranks"
        )
    return Wait(behind, who, one["what"], round(one["seconds"], 3))


def _waited_for(ranks: list[Rank]) -> list[int]:
    """Return the ranks at which the waits end: others wait for them, and they wait for nobody."""
    awaited = {peer for rank in ranks for wait in rank.waits for peer in wait.ranks}
    waiting = {rank.rank for rank in ranks if rank.waits and rank.state != "stopped"}
    return sorted(awaited - waiting)
