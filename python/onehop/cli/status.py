"""`onehop status`: what the ranks of a running program wait for."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from onehop.cli.common import JsonOptions, console, write_json
from onehop.cli.screen import Table
from onehop.options import LARGEST_INT, argument
from onehop.status import GroupStatus, Rank, status_of
from onehop.text import counted, seconds_text


@dataclass(kw_only=True)
class Status(JsonOptions):
    process: int | None = argument(
        "PID",
        "Process of a rank, or of the launcher of the program. Without it, all programs of this user.",
        None,
        low=1,
        high=LARGEST_INT,
    )


def status(options: Status) -> None:
    """Show what each rank of a running program waits for: which rank, which channel, and for how long.

    The command examines the processes of this machine only, and disturbs none of them. Ranks on other machines are
    named where a rank of this one waits for them.
    """
    groups = status_of(options.process)
    out = console(options.json)
    if not groups:
        out.print("no onehop program of this user runs on this machine")
    shown = [group for group in groups if group.size > 1] or groups
    for group in shown:
        out.print(_table(group))
        for line in (_verdict(group), _down(group)):
            if line:
                out.print(line)
    write_json(options.json, {"groups": [asdict(group) for group in groups]})


def _table(group: GroupStatus) -> Table:
    elsewhere = group.size - len(group.ranks)
    more = f", {elsewhere} of them on other machines" if elsewhere > 0 else ""
    title = f"Group of {counted(group.size, 'rank')}{more}"
    table = Table(">rank", ">process", "state", "waits for", "in", ">for", title=title)
    for rank in group.ranks:
        start: tuple[object, ...] = (rank.rank, rank.process, _state(rank))
        if not rank.waits:
            table.add_row(*start)
        for wait in rank.waits:
            table.add_row(*start, wait.who, wait.what, seconds_text(wait.seconds, 3))
            start = ("", "", "")
    return table


def _state(rank: Rank) -> str:
    if rank.reported_lost is not None and rank.reported_lost != rank.rank:
        return f"gave up: rank {rank.reported_lost} was lost"
    if rank.left:
        return "has left the group"
    return rank.state


def _down(group: GroupStatus) -> str:
    """Return a line that names the interfaces without messages."""
    names = sorted({name for rank in group.ranks for name in rank.interfaces_down})
    return f"Nothing arrives through {', '.join(names)}; other interfaces carry the messages" if names else ""


def _verdict(group: GroupStatus) -> str:
    """Return a line that names the ranks at which all waits end."""
    if group.waited_for:
        by_number = {rank.rank: rank for rank in group.ranks}
        names = []
        for number in group.waited_for[:8]:
            rank = by_number.get(number)
            names.append(
                f"rank {number} ({'on another machine' if rank is None else f'process {rank.process}, {_state(rank)}'})"
            )
        return "The waits end at " + ", ".join(names) + (", ..." if len(group.waited_for) > 8 else "")
    if any(wait.ranks for rank in group.ranks for wait in rank.waits):
        return "Ranks wait for each other in a circle"
    return ""
