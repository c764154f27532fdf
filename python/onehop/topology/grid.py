"""`Grid`: ranks that exchange data with their nearest neighbours, and its map to hosts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onehop import _core
from onehop._core import HostLayout, MapCost, RankMap, Schedule
from onehop.arguments import yes_or_no


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

    @property
    def _traffic(self) -> tuple[list[bool], Sequence[int]]:
        """Whether each dimension is periodic, and the bytes of its messages."""
        several = isinstance(self.periodic, Iterable)
        periodic = self.periodic if several else [self.periodic] * len(self.extents)
        return [yes_or_no(one, "map: periodic") for one in periodic], self.bytes or ()

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
        return _core.map_grid(self.extents, hosts, *self._traffic, yes_or_no(refine, "refine"), seed, steps)

    def cost(self, hosts: HostLayout, rank_at: Sequence[int]) -> MapCost:
        """Return the cost of any map: `rank_at[p]` is the rank at position p.

        Raises
        ------
        BadInput
            `rank_at` does not name a different rank for every position.
        """
        return _core.map_cost(self.extents, hosts, rank_at, *self._traffic)


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
    return _core.map_schedule(schedule, hosts, yes_or_no(refine, "refine"), seed, steps)


def renumber(schedule: Schedule, rank_at: Sequence[int] | RankMap) -> Schedule:
    """Return the same schedule with other rank numbers: `rank_at[r]` does what rank r did.

    Raises
    ------
    BadInput
        `rank_at` is no permutation of the ranks.
    """
    return _core.renumber(schedule, rank_at.rank_at if isinstance(rank_at, RankMap) else rank_at)
