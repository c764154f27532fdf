"""Seeds of the simulator's random numbers."""

from __future__ import annotations

import operator
import secrets
from typing import Any

from onehop.error import BadInput
from onehop.group import Group


def common_seed(seed: int | None, group: Group) -> int:
    """Return the seed, or if it is None a random one of 48 bits, the same on every rank. Collective if it is None."""
    if seed is None:
        return int.from_bytes(group.allgather(secrets.token_bytes(6))[0], "little")
    return require_seed(seed)


def require_seed(seed: Any, name: str = "seed") -> int:
    """Return a seed as an int. Raises BadInput unless it is a whole number of 64 bits."""
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 64:
        raise BadInput(f"{name}: expected a whole number from 0 to 2^64 - 1, found {seed!r}")
    return number
