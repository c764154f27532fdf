"""Lists of rails: which network interface carries each message of each round of a schedule."""

from __future__ import annotations

from collections.abc import Iterable

from onehop._core import RailAssignment
from onehop.error import BadInput


def listed_rails(
    rails: object, expected: str = "one list of RailAssignment for each round"
) -> list[list[RailAssignment]]:
    """Return the argument `rails=` as lists, one for each round. Raises BadInput if this is something else."""
    if not isinstance(rails, Iterable) or isinstance(rails, str | bytes):
        raise BadInput(f"rails: expected {expected}, found {rails!r}")
    listed = []
    for number, one in enumerate(rails):
        if not isinstance(one, Iterable) or isinstance(one, str | bytes):
            raise BadInput(f"rails: expected {expected}, found {one!r} for round {number}")
        entries = list(one)
        for entry in entries:
            if not isinstance(entry, RailAssignment):
                raise BadInput(f"rails: expected a RailAssignment in round {number}, found {entry!r}")
        listed.append(entries)
    return listed
