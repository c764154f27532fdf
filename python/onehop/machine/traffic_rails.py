"""Rails of the messages of a schedule on a machine, as data for `simulate`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onehop import _core
from onehop._core import Machine, RailAssignment, RankMap, Schedule, Traffic
from onehop.arguments import whole_number, whole_numbers
from onehop.error import BadInput
from onehop.machine.hosts import host_level, host_rails
from onehop.machine.reader import machine_of
from onehop.rail_lists import listed_rails

__all__ = ["RAIL_RULES", "hosts_of_ranks", "machine_rails", "rails_from_json", "rails_to_json", "traffic_of"]

# Names of the ways to assign messages, with the rule of `assign_rails` and whether messages are cut.
RAIL_RULES = {
    "by_rank": ("by_rank", False),
    "round_robin": ("round_robin", False),
    "longest_first": ("longest_first", False),
    "optimum": ("optimum", False),
    "cut": ("optimum", True),
}
_LARGEST = 2**31 - 1
_MAX_BYTES = 2**63 - 1


def traffic_of(schedule: Schedule | Traffic) -> Traffic:
    """Return the messages of a schedule. Everything that a rank sends to another in one round is one message.

    Raises
    ------
    BadInput
        This is no schedule.
    """
    if isinstance(schedule, Traffic):
        return schedule
    if not isinstance(schedule, Schedule):
        raise BadInput(f"expected a Schedule or a Traffic, found {schedule!r}")
    return _core.traffic_of(schedule)


def placed(
    machine: Machine, ranks: int, places: Sequence[int] | RankMap | None
) -> tuple[Machine, Sequence[int]]:
    """Return the part of a machine that a job has, and the place of every rank on it, as `simulate` takes them."""
    if places is None:
        return machine.job(ranks), range(ranks)
    if isinstance(places, RankMap):
        return machine.job(len(places.position_of)), places.rank_at
    listed = whole_numbers(places, "ranks")
    for rank, place in enumerate(listed):
        if not 0 <= place < machine.processors:
            raise BadInput(
                f"ranks: expected places from 0 to {machine.processors - 1}, found place {place} of rank {rank}"
            )
    return machine, listed


def hosts_of_ranks(job: Machine, places: Sequence[int]) -> list[int]:
    """Return the host of every rank from its place."""
    _, size = host_level(job)
    return [place // size for place in places]


def machine_rails(
    schedule: Schedule | Traffic,
    machine: Machine | str | Path,
    *,
    ranks: Sequence[int] | RankMap | None = None,
    rule: str = "optimum",
    min_piece: int = 1,
) -> list[list[RailAssignment]]:
    """Assign the messages that leave a host of a machine to the interfaces of the host, or to its links.

    Parameters
    ----------
    schedule : Schedule or Traffic
        What moves.
    machine : Machine, str or path
        The machine, the name of an installed one, or the path of a TOML file. A host is a member of its outermost level
        of which the job has more than one member.
    ranks : sequence of int or RankMap, optional
        The place of every rank, as for `simulate`.
    rule : {"by_rank", "round_robin", "longest_first", "optimum", "cut"}
        How to choose; "cut" is the optimum if messages may be cut.
    min_piece : int
        The fewest bytes of a piece of a cut message.

    Returns
    -------
    list of list of RailAssignment
        One list per round of the traffic (`traffic_of`), which `simulate(rails=)` takes.

    Raises
    ------
    BadInput
        There is no such rule, or the machine has too few processors.
    """
    traffic = traffic_of(schedule)
    if not isinstance(rule, str) or rule not in RAIL_RULES:
        raise BadInput(f"expected a rule for rails (one of: {', '.join(RAIL_RULES)}), found {rule!r}")
    piece = whole_number(min_piece, "min_piece", 1)
    job, places = placed(machine_of(machine), traffic.ranks, ranks)
    number, speed = host_rails(host_level(job)[0])
    name, cut = RAIL_RULES[rule]
    hosts = hosts_of_ranks(job, places)
    return _core.assign_traffic_rails(traffic, hosts, [speed] * number, name, cut, piece)


def rails_to_json(rounds: Sequence[Sequence[RailAssignment]]) -> list[list[dict[str, int]]]:
    """Return rails as lists of objects for JSON."""
    return [
        [
            {
                "from": one.from_,
                "to": one.to,
                "rail": one.rail,
                "first_byte": one.first_byte,
                "bytes": one.bytes,
            }
            for one in assignments
        ]
        for assignments in listed_rails(rounds)
    ]


def rails_from_json(found: Any, where: str) -> list[list[RailAssignment]]:
    """Read what `rails_to_json` has made, or an object that has it as `rails`.

    Raises
    ------
    BadInput
        This is something else; `where` begins the message.
    """
    expected = "rails that `onehop rails --schedule -o` has written"
    rounds = found.get("rails") if isinstance(found, dict) else found
    if not isinstance(rounds, list) or not all(isinstance(one, list) for one in rounds):
        raise BadInput(f"{where}: expected {expected}, found {json.dumps(found, default=repr)[:60]}")
    keys = {
        "from": _LARGEST,
        "to": _LARGEST,
        "rail": _LARGEST,
        "first_byte": _MAX_BYTES,
        "bytes": _MAX_BYTES,
    }

    def one(entry: Any) -> RailAssignment:
        if not isinstance(entry, dict) or set(entry) != set(keys):
            raise BadInput(
                f"{where}: expected assignments with {', '.join(keys)}, found {json.dumps(entry, default=repr)[:60]}"
            )
        for key, largest in keys.items():
            if type(entry[key]) is not int or not 0 <= entry[key] <= largest:
                found_text = json.dumps(entry[key], default=repr)[:60]
                raise BadInput(f"{where}: expected {key} as a number from 0 to {largest}, found {found_text}")
        return RailAssignment(*(entry[key] for key in keys))

    return [[one(entry) for entry in assignments] for assignments in rounds]
