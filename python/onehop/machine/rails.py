"""Rails, the network interfaces of a host: which of them carries which message of the ranks of the host.

`assign_rails` makes the choice for one host and `schedule_rails` for a schedule. `compare_rails` computes the table of
`onehop rails`. docs/reference/rails.md derives the patterns and the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from onehop import _core
from onehop._core import RailAssignment, RailPlan
from onehop.arguments import (
    instance,
    is_sequence,
    real_number,
    real_numbers,
    whole_number,
    whole_numbers,
    yes_or_no,
)
from onehop.error import BadInput
from onehop.schedule import Schedule
from onehop.text import counted

__all__ = [
    "RailAssignment",
    "RailPlan",
    "assign_rails",
    "compare_rails",
    "halo_messages",
    "schedule_rails",
]

# Name of the command, rule of the library, and whether messages are cut.
ASSIGNMENTS = (
    ("pattern 1", "by_rank", False),
    ("round robin", "round_robin", False),
    ("longest first", "longest_first", False),
    ("optimum", "optimum", False),
    ("optimum, cut", "optimum", True),
)
# The talk's benchmark: 2-D blocks of 60x60 sites, so four messages of 60 sites per rank.
_TALK_FACES = (60, 60)
_TALK_MESSAGES = 4
_MAX_RAILS = 1024
_MAX_RANKS = 4096
_LARGEST = 2**63 - 1


def checked_speeds(rails: int | None, speeds: Sequence[float] | None) -> list[float]:
    """Return the speeds of all rails; equal ones if only their number is given."""
    if speeds is None and rails is None:
        raise BadInput("expected the number of rails or their speeds, found neither")
    rates = None if speeds is None else real_numbers(speeds, "speeds")
    number = len(rates or ()) if rails is None else whole_number(rails, "rails")
    if not 1 <= number <= _MAX_RAILS:
        raise BadInput(f"expected 1 to {_MAX_RAILS} rails, found {number}")
    if rates is None:
        return [1.0] * number
    if len(rates) != number:
        raise BadInput(
            f"expected one speed for each of {counted(number, 'rail')}, found {counted(len(rates), 'speed')}"
        )
    for rail, speed in enumerate(rates):
        if not 0 < speed < math.inf:
            raise BadInput(f"rail {rail}: expected a finite speed above 0, found {speed:g}")
    return rates


def assign_rails(
    messages: Sequence[tuple[int, int, int]],
    *,
    rails: int | None = None,
    speeds: Sequence[float] | None = None,
    rule: str = "optimum",
    cut: bool = False,
    min_piece: int = 1,
) -> RailPlan:
    """Assign messages that the ranks of one host send at the same time to the rails of the host.

    Parameters
    ----------
    messages : sequence of (int, int, int)
        Sender, receiver and bytes of each message. The receiver is only passed on.
    rails : int, optional
        Number of rails, all of the same speed.
    speeds : sequence of float, optional
        Bytes per second of each rail, instead of `rails`.
    rule : str
        "by_rank" (a rail for all messages of a rank), "round_robin", "longest_first" or "optimum".
    cut : bool
        Whether the rule "optimum" may cut messages.
    min_piece : int
        The fewest bytes of a piece of a cut message.

    Returns
    -------
    RailPlan
        The assignment of every message or piece, the bytes on every rail, and a lower bound. The rule "optimum" is
        exact for up to 12 messages, and for more if many have the same size; `optimal` says so.

    Raises
    ------
    BadInput
        There are no rails or more than 1024, a speed is not above 0 and finite, a size is below 0, or the rule is
        unknown or cannot cut.
    """
    return _core.assign_rails(messages, checked_speeds(rails, speeds), rule, yes_or_no(cut, "cut"), min_piece)


def schedule_rails(
    schedule: Schedule,
    ranks_per_host: int | Sequence[int],
    *,
    rails: int | None = None,
    speeds: Sequence[float] | None = None,
    rule: str = "optimum",
    cut: bool = False,
    min_piece: int = 1,
) -> list[list[RailAssignment]]:
    """Assign the messages of a schedule that leave their host to rails, round by round.

    Everything that a rank sends to another in one round is one message. Messages inside a host use no rail.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    ranks_per_host : int or sequence of int
        Number of ranks of every host, in the order of the ranks, or the host of each rank.
    rails, speeds, rule, cut, min_piece
        As for `assign_rails`. All hosts have the same rails.

    Returns
    -------
    list of list of RailAssignment
        The messages of each round, sorted by sender and receiver.

    Raises
    ------
    BadInput
        The ranks do not divide into such hosts, or an argument is wrong as for `assign_rails`.
    """
    instance(schedule, Schedule, "schedule")
    if not is_sequence(ranks_per_host):
        per_host = whole_number(ranks_per_host, "ranks_per_host")
        if per_host < 1 or schedule.ranks % per_host:
            raise BadInput(
                f"expected a number of ranks per host that divides the {counted(schedule.ranks, 'rank')} of "
                f"the schedule, found {per_host}"
            )
        ranks_per_host = [rank // per_host for rank in range(schedule.ranks)]
    return _core.assign_schedule_rails(
        schedule, ranks_per_host, checked_speeds(rails, speeds), rule, yes_or_no(cut, "cut"), min_piece
    )


def _checked_ranks(ranks: Sequence[int], faces: Sequence[int]) -> None:
    text = "x".join(map(str, ranks))
    if len(ranks) not in (1, len(faces)):
        raise BadInput(
            f"expected the ranks of a host as one number, or as {counted(len(faces), 'number')}, one per "
            "dimension of the "
            f"local lattice {'x'.join(map(str, faces))}, found {text}"
        )
    if min(ranks) < 1 or math.prod(ranks) > _MAX_RANKS:
        raise BadInput(f"expected 1 to {_MAX_RANKS} ranks of a host, found {text}")


def _grid(ranks: int | Sequence[int]) -> list[int]:
    return whole_numbers(ranks, "ranks") if is_sequence(ranks) else [whole_number(ranks, "ranks")]


def halo_messages(
    faces: Sequence[int], ranks: int | Sequence[int], *, inside: bool = True
) -> list[tuple[int, int, int]]:
    """List the messages of a halo exchange that the ranks of one host send.

    Every rank has the same local lattice, and sends its two faces of each dimension to its neighbours. The size of a
    face is the product of the other extents.

    Parameters
    ----------
    faces : sequence of int
        Extents of the local lattice of one rank.
    ranks : int or sequence of int
        Number of ranks of the host, or their grid, one number per dimension.
    inside : bool
        Whether messages between ranks of the host are listed. Leaving them out needs the grid.

    Returns
    -------
    list of (int, int, int)
        Sender, receiver and sites of each message, rank by rank in the order +x, -x, +y, and so on. A receiver outside
        of the host, or unknown without a grid, is -1.

    Raises
    ------
    BadInput
        An extent or number of ranks is below 1, the grid has another dimension than the lattice or is missing, or the
        sum of all sizes reaches 2^63.
    """
    grid = _grid(ranks)
    faces = whole_numbers(faces, "faces")
    inside = yes_or_no(inside, "inside")
    if not faces or min(faces) < 1:
        raise BadInput(
            f"expected extents of the local lattice of at least 1 each, found {'x'.join(map(str, faces)) or 'none'}"
        )
    _checked_ranks(grid, faces)
    if not inside and len(grid) != len(faces):
        raise BadInput(
            f"expected the ranks of a host as a grid of {counted(len(faces), 'number')}, to know which "
            "neighbours are inside, "
            f"found {grid[0]}"
        )
    volume = math.prod(faces)
    if 2 * math.prod(grid) * sum(volume // extent for extent in faces) > _LARGEST:
        raise BadInput(
            f"expected faces with a sum below 2^63 sites, found a local lattice of {'x'.join(map(str, faces))}"
        )
    messages = []
    coordinates = list(product(*map(range, grid)))
    numbers = {place: number for number, place in enumerate(coordinates)}
    for number, place in enumerate(coordinates):
        for dimension, extent in enumerate(faces):
            for step in (1, -1):
                receiver = -1
                if len(grid) == len(faces):
                    neighbour = (*place[:dimension], place[dimension] + step, *place[dimension + 1 :])
                    receiver = numbers.get(neighbour, -1)
                if inside or receiver < 0:
                    messages.append((number, receiver, volume // extent))
    return messages


def _measured(
    messages: list[tuple[int, int, int]], speeds: list[float], units: int, injected: float, **options: Any
) -> dict[str, Any]:
    """Assign messages, and express the busiest rail in units.

    All rails together carry the messages in the time in which the busiest would be `units`.
    """
    plan = assign_rails(messages, speeds=speeds, **options)
    total = sum(size for _, _, size in messages)
    scale = units * sum(speeds) / total if total else 0.0
    busiest = plan.busiest * scale
    return {
        "messages": len(messages),
        "busiest_rail": busiest,
        "lower_bound": plan.lower_bound * scale,
        "optimal": plan.optimal,
        "gb_per_s": injected * units / busiest if busiest else injected,
        "loads": list(plan.loads),
        "pieces": len(plan.assignments),
    }


def check_injected(gb_per_s: float) -> None:
    """Refuse bandwidths from which rates of infinity or zero follow, as machine files do."""
    if not 1e-30 <= gb_per_s <= 1e30:
        raise BadInput(f"expected an injected bandwidth from 1e-30 to 1e30 GB/s, found {gb_per_s:g}")


def compare_rails(
    ranks: int | Sequence[int],
    rails: int,
    faces: Sequence[int] = _TALK_FACES,
    *,
    injected: float = 40.8,
    speeds: Sequence[float] | None = None,
    inside: bool = True,
    min_piece: int = 1,
) -> dict[str, Any]:
    """Compare assignments of the messages of a halo exchange to the rails of a host.

    Each assignment is computed twice: for the messages of the talk "Implementation of neighboring communication in
    QWS", four equal ones per rank, and for the faces of a given local lattice.

    Parameters
    ----------
    ranks : int or sequence of int
        Number of ranks of the host, or their grid.
    rails : int
        Number of rails.
    faces : sequence of int
        Extents of the local lattice of one rank; by default those of the talk's benchmark.
    injected : float
        GB/s that the host injects if all rails are busy.
    speeds : sequence of float, optional
        Relative speed of each rail; equal by default. `injected` is their sum.
    inside : bool
        Whether messages between ranks of the host use rails too. The talk counts them.
    min_piece : int
        The fewest sites of a piece of a cut message.

    Returns
    -------
    dict
        `assignments` lists a dict for each assignment: its `name`, the load of the `busiest_rail` and the `gb_per_s`
        that result, and both for the messages of the `talk` and of the `faces`. `messages` says for which of the two
        the numbers beside the name are: for the talk's for its own two patterns, for the faces otherwise. Loads of the
        busiest rail are in units of which a host with all rails equally busy needs `units`.

    Raises
    ------
    BadInput
        An argument is out of range; see `assign_rails` and `halo_messages`.
    """
    injected = real_number(injected, "injected")
    check_injected(injected)
    shares = checked_speeds(rails, speeds)
    number = math.prod(_grid(ranks))
    cases = {
        "talk": halo_messages(_TALK_FACES, number),
        "faces": halo_messages(faces, ranks, inside=inside),
    }
    units = _TALK_MESSAGES * number
    assignments = []
    for name, rule, cut in ASSIGNMENTS:
        both = {
            case: _measured(messages, shares, units, injected, rule=rule, cut=cut, min_piece=min_piece)
            for case, messages in cases.items()
        }
        case = "talk" if rule in ("by_rank", "round_robin") else "faces"
        summary = {key: both[case][key] for key in ("busiest_rail", "gb_per_s")}
        assignments.append({"name": name, "messages": case, **summary, **both})
    return {
        "ranks": number,
        "grid": _grid(ranks) if is_sequence(ranks) else None,
        "rails": rails,
        "faces": list(faces),
        "injected": injected,
        "speeds": [injected * share / sum(shares) for share in shares],
        "inside": inside,
        "min_piece": min_piece,
        "units": units,
        "assignments": assignments,
    }
