"""`Grid`: ranks that exchange data with their nearest neighbours, and its map to hosts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from onehop import _core
from onehop._core import HostLayout, MapCost, RankMap, Schedule
from onehop.arguments import whole_number, whole_numbers, yes_or_no
from onehop.error import BadInput

__all__ = ["Grid", "map_schedule", "renumber"]


def _integers(values: Any, what: str) -> list[int]:
    return whole_numbers(values, f"map: {what}")


def _search(refine: bool, seed: int, steps: int | None) -> tuple[bool, int, int]:
    """Return the settings of the search as C++ takes them."""
    proposed = -1 if steps is None else whole_number(steps, "steps", 0)
    return yes_or_no(refine, "refine"), whole_number(seed, "seed", 0), proposed


def _layout(hosts: Any) -> HostLayout:
    if not isinstance(hosts, HostLayout):
        raise BadInput(f"map: expected hosts as a HostLayout, found {hosts!r}")
    return hosts


def _schedule(schedule: Any) -> Schedule:
    if not isinstance(schedule, Schedule):
        raise BadInput(f"map: expected a Schedule, found {schedule!r}")
    return schedule


@dataclass(frozen=True)
class Grid:
    """A grid of ranks that exchange data with their nearest neighbours.

    Attributes
    ----------
    extents : tuple of int
        Positions per dimension, 1 to 6 dimensions. Positions are numbered in C order: the last dimension runs fastest.
    periodic : bool or tuple of bool
        Whether the grid is periodic, for all dimensions or each.
    bytes : tuple of int, optional
        Bytes of a message in each dimension. Default: 1, so that bytes are edges.
    """

    extents: tuple[int, ...]
    periodic: bool | tuple[bool, ...] = False
    bytes: tuple[int, ...] | None = None

    def _parts(self) -> tuple[list[int], list[bool], list[int]]:
        extents = _integers(self.extents, "a grid")
        periodic = (
            [yes_or_no(one, "map: periodic") for one in self.periodic]
            if isinstance(self.periodic, Iterable)
            else [yes_or_no(self.periodic, "map: periodic")] * len(extents)
        )
        return (
            extents,
            periodic,
            [] if self.bytes is None else _integers(self.bytes, "the bytes of a message"),
        )

    def map(
        self,
        hosts: HostLayout,
        *,
        refine: bool = True,
        seed: int = 1,
        steps: int | None = None,
    ) -> RankMap:
        """Choose which rank takes which position, so that few bytes leave a host.

        The map depends on the arguments only. It never has more weighted bytes between hosts than the best of the
        published algorithms.

        Parameters
        ----------
        hosts : HostLayout
            The hosts of the ranks. Ranks beyond the positions of the grid stay unused.
        refine : bool
            Whether to improve the best published map by a local search.
        seed : int
            Seed of the local search, from 0 on.
        steps : int, optional
            Number of exchanges that the local search proposes, from 0 on. Default: chosen by the size of the grid.

        Returns
        -------
        RankMap
            The map, with the costs of all candidates.

        Raises
        ------
        BadInput
            The hosts cannot hold the grid, or a parameter makes no sense.
        """
        extents, periodic, sizes = self._parts()
        return _core.map_grid(extents, _layout(hosts), periodic, sizes, *_search(refine, seed, steps))

    def cost(self, hosts: HostLayout, rank_at: Sequence[int]) -> MapCost:
        """Return the cost of any map: `rank_at[p]` is the rank at position p.

        Raises
        ------
        BadInput
            `rank_at` does not name a different rank for every position.
        """
        extents, periodic, sizes = self._parts()
        return _core.map_cost(extents, _layout(hosts), _integers(rank_at, "a map"), periodic, sizes)


def map_schedule(
    schedule: Schedule,
    hosts: HostLayout,
    *,
    refine: bool = True,
    seed: int = 1,
    steps: int | None = None,
) -> RankMap:
    """Choose which rank does what a rank of the schedule does, by the bytes between all pairs of ranks.

    The positions of the map are the ranks that the schedule names; `renumber(schedule, map.rank_at)` applies the map.
    Parameters as for `Grid.map`.

    Raises
    ------
    BadInput
        The hosts cannot hold the ranks of the schedule.
    """
    return _core.map_schedule(_schedule(schedule), _layout(hosts), *_search(refine, seed, steps))


def renumber(schedule: Schedule, rank_at: Sequence[int] | RankMap) -> Schedule:
    """Return the same schedule with other rank numbers: `rank_at[r]` does what rank r did.

    Raises
    ------
    BadInput
        `rank_at` is no permutation of the ranks.
    """
    ranks = (
        rank_at.rank_at if isinstance(rank_at, RankMap) else _integers(rank_at, "a permutation of the ranks")
    )
    if any(not 0 <= one < 2**31 for one in ranks):
        raise BadInput(f"map: expected a permutation of the ranks from 0, found {rank_at!r}")
    return _core.renumber(_schedule(schedule), ranks)
