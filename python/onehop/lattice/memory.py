"""Checks that there is memory for a lattice before it is taken, as the library's own operators make them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onehop import _core
from onehop.group import Group

LINK_BYTES = 4 * 9 * 16  # the links of a site in four directions, in double precision
_MARGIN = 1.1  # for what an estimate leaves out: tables, stacks of threads, the heap's own memory
TABLE_BYTES = 80  # of a site: its place and its neighbours in a `Geometry`


def sites_on_a_rank(extents: Sequence[int], ranks: int) -> float:
    """Return the number of sites that each of the ranks has."""
    return float(np.prod([float(one) for one in extents])) / max(ranks, 1)


def require_memory(group: Group, extents: Sequence[int], needed: float, what: str) -> None:
    """Raise Error, on all ranks, if a machine has too little memory left for `needed` bytes on this rank. Collective.

    `what` names the computation in the message.
    """
    needed *= _MARGIN
    lattice = "x".join(map(str, extents))
    advice = "take a smaller lattice, or more machines"
    _core.require_memory(group, int(min(needed, 2.0**62)), f"{what} on a lattice of {lattice}", advice)
