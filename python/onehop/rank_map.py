"""The argument `map` of patterns: which rank takes which position of a grid."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from onehop import _core
from onehop.error import BadInput
from onehop.text import counted


def _layout(hosts: Any, positions: int) -> _core.HostLayout:
    """Return the hosts of a layout or a group; by default those of the group of all ranks."""
    if isinstance(hosts, _core.HostLayout):
        return hosts
    group = _core.Group.world() if hosts is None else hosts
    if not isinstance(group, _core.Group):
        raise BadInput(f"expected hosts as a HostLayout or a Group, found {hosts!r}")
    if group.size != positions:
        raise BadInput(
            f"map='auto': expected a group of the {counted(positions, 'rank')} of the grid, found one of "
            f"{group.size}; pass the "
            "hosts as hosts=onehop.topology.HostLayout(...)"
        )
    return _core.HostLayout.of_group(group)


def ranks_of_map(
    value: Any, hosts: Any, grid: Sequence[int], periodic: Sequence[bool], message_bytes: Sequence[int]
) -> list[int]:
    """Return the rank at each position of a grid; an empty list if rank r is at position r. Raises BadInput.

    `value` is the argument `map`: "auto", a RankMap, a sequence of int, or None. `hosts` says where the ranks run, for
    "auto".
    """
    if value is None:
        if hosts is not None:
            raise BadInput("expected map='auto' with hosts, found no map")
        return []
    if isinstance(value, str):
        if value != "auto":
            raise BadInput(f"expected map as 'auto', a RankMap or a sequence of ranks, found {value!r}")
        layout = _layout(hosts, math.prod(grid))
        found = _core.map_grid(list(grid), layout, list(periodic), list(message_bytes))
        return list(found.rank_at)
    if hosts is not None:
        raise BadInput(f"expected hosts with map='auto' only, found map={value!r}")
    ranks = value.rank_at if isinstance(value, _core.RankMap) else value
    try:
        return [operator.index(rank) for rank in ranks]
    except TypeError as error:
        raise BadInput(
            f"expected map as 'auto', a RankMap or a sequence of ranks, found {value!r}"
        ) from error
