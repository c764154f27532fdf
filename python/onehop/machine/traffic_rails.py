"""The hosts of a job on a machine, and the rails of the messages of a schedule, as data for `simulate`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onehop import _core
from onehop._core import Level, Machine, RailAssignment, RankMap, Schedule, Traffic
from onehop.arguments import instance, listed_rails, whole_numbers
from onehop.error import BadInput
from onehop.machine.reader import machine_of

# Names of the ways to assign messages, with the rule of `assign_rails` and whether messages are cut.
RAIL_RULES = {
    "by_rank": ("by_rank", False),
    "round_robin": ("round_robin", False),
    "longest_first": ("longest_first", False),
    "optimum": ("optimum", False),
    "cut": ("optimum", True),
}
# The keys of an assignment in JSON, and its attributes, in the order of its constructor.
_FIELDS = {"from": "from_", "to": "to", "rail": "rail", "first_byte": "first_byte", "bytes": "bytes"}


def host_level(job: Machine) -> tuple[Level, int]:
    """Return the level that joins the hosts of a job, and the processors of a host.

    A host is a member of the outermost level with more than one member: of Mira, a node.
    """
    outer = max((number for number, one in enumerate(job.levels) if one.members > 1), default=0)
    return job.levels[outer], math.prod(one.members for one in job.levels[:outer])


def host_rails(level: Level) -> tuple[int, float]:
    """Return the number of interfaces or links of a host, and the bytes per second of each.

    Raise BadInput if the route of a message leaves no choice: a torus or a mesh whose members have no own interfaces.
    """
    if level.interfaces:
        return level.interfaces, level.injection.value / level.interfaces
    if level.routing in ("torus", "mesh"):
        raise BadInput(
            f"expected hosts with interfaces that a message can choose from, found a {level.routing} without any "
            f"(level {level.name}): there the route of a message determines its link"
        )
    if level.injection.value:
        return level.links, min(level.bandwidth.value, level.injection.value / level.links)
    return level.links, level.bandwidth.value


def traffic_of(schedule: Schedule | Traffic) -> Traffic:
    """Return the messages of a schedule. Everything that a rank sends to another in one round is one message.

    Raises
    ------
    BadInput
        This is no schedule.
    """
    return (
        schedule
        if isinstance(schedule, Traffic)
        else _core.traffic_of(instance(schedule, Schedule, "schedule"))
    )


def placed(
    machine: Machine, ranks: int, places: Sequence[int] | RankMap | None
) -> tuple[Machine, Sequence[int]]:
    """Return the part of a machine that a job has, and the place of every rank on it, as `simulate` takes them."""
    if places is None:
        return machine.job(ranks), range(ranks)
    if isinstance(places, RankMap):
        return machine.job(len(places.position_of)), places.rank_at
    places = whole_numbers(places, "ranks")
    for rank, place in enumerate(places):
        if not 0 <= place < machine.processors:
            raise BadInput(
                f"ranks: expected places from 0 to {machine.processors - 1}, found place {place} of rank {rank}"
            )
    return machine, places


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
    if rule not in tuple(RAIL_RULES):
        raise BadInput(f"expected a rule for rails (one of: {', '.join(RAIL_RULES)}), found {rule!r}")
    job, places = placed(machine_of(machine), traffic.ranks, ranks)
    number, speed = host_rails(host_level(job)[0])
    name, cut = RAIL_RULES[rule]
    hosts = hosts_of_ranks(job, places)
    return _core.assign_traffic_rails(traffic, hosts, [speed] * number, name, cut, min_piece)


def rails_to_json(rounds: Sequence[Sequence[RailAssignment]]) -> list[list[dict[str, int]]]:
    """Return rails as lists of objects for JSON."""
    return [
        [{key: getattr(one, name) for key, name in _FIELDS.items()} for one in assignments]
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

    def one(entry: Any) -> RailAssignment:
        if not isinstance(entry, dict) or set(entry) != set(_FIELDS):
            raise BadInput(
                f"{where}: expected assignments with {', '.join(_FIELDS)}, found {json.dumps(entry, default=repr)[:60]}"
            )
        for key, value in entry.items():
            largest = 2**63 - 1 if "byte" in key else 2**31 - 1
            if type(value) is not int or not 0 <= value <= largest:
                found_text = json.dumps(value, default=repr)[:60]
                raise BadInput(f"{where}: expected {key} as a number from 0 to {largest}, found {found_text}")
        return RailAssignment(*(entry[key] for key in _FIELDS))

    return [[one(entry) for entry in assignments] for assignments in rounds]
