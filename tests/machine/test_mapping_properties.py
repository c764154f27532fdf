"""Maps of random grids to random hosts: valid, never worse than any published map, and counted with NumPy alone."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onehop.topology import Grid, HostLayout


@st.composite
def grids_on_hosts(draw: st.DrawFn) -> tuple[Grid, list[int], list[int]]:
    """A grid, the sizes of its hosts, and the extents of a torus of hosts or nothing."""
    extents = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4).filter(lambda e: math.prod(e) <= 600))
    periodic = [draw(st.booleans()) for _ in extents]
    positions = math.prod(extents)
    if draw(st.booleans()):
        per_host = draw(st.sampled_from([n for n in range(1, positions + 1) if positions % n == 0]))
        sizes = [per_host] * (positions // per_host)
    else:
        sizes = []
        while sum(sizes) < positions:
            sizes.append(draw(st.integers(1, min(60, positions - sum(sizes)))))
    torus: list[int] = []
    if draw(st.booleans()):
        rest = len(sizes)
        while rest > 1:
            torus.append(draw(st.sampled_from([n for n in range(2, rest + 1) if rest % n == 0])))
            rest //= torus[-1]
        torus = torus or [1]
    return Grid(extents, periodic), sizes, torus


def counted(grid: Grid, host_at: np.ndarray, torus: list[int]) -> tuple[int, int, int]:
    """Directed edges between hosts, those of the busiest host, and hops on the torus."""
    leaving = np.zeros(host_at.max() + 1, int)
    places = np.array(np.unravel_index(np.arange(host_at.max() + 1), torus)) if torus else None
    hops = 0
    for axis, step in itertools.product(range(host_at.ndim), (-1, 1)):
        beside = np.roll(host_at, step, axis)
        outer = beside != host_at
        if not grid.periodic[axis]:
            edge: list[Any] = [slice(None)] * host_at.ndim
            edge[axis] = 0 if step == 1 else -1
            outer[tuple(edge)] = False
        np.add.at(leaving, host_at[outer], 1)
        if places is not None:
            apart = abs(places[:, host_at[outer]] - places[:, beside[outer]])
            hops += int(np.minimum(apart, np.array(torus)[:, None] - apart).sum())
    return int(leaving.sum()), int(leaving.max()), hops


def best_box(grid: Grid, per_host: int, torus: list[int]) -> tuple[int, int, int] | None:
    """The best of all tilings by equal boxes, tried one by one: edges, and those of the busiest host."""
    found = []
    for edges in itertools.product(
        *([n for n in range(1, extent + 1) if extent % n == 0] for extent in grid.extents)
    ):
        if math.prod(edges) != per_host:
            continue
        boxes = [extent // edge for extent, edge in zip(grid.extents, edges, strict=True)]
        at = np.indices(grid.extents) // np.array(edges).reshape((-1,) + (1,) * len(edges))
        found.append(counted(grid, np.ravel_multi_index(tuple(at), boxes), torus))
    return min(found) if found else None


@settings(max_examples=150, deadline=None)
@given(grids_on_hosts())
def test_no_published_map_is_better(case: tuple[Grid, list[int], list[int]]) -> None:
    grid, sizes, torus = case
    hosts = HostLayout(np.repeat(np.arange(len(sizes)), sizes).tolist(), torus=torus)
    found = grid.map(hosts)
    host_at = np.array(found.host_at).reshape(grid.extents)
    assert sorted(found.rank_at) == list(range(sum(sizes)))
    assert np.bincount(host_at.ravel()).tolist() == sizes
    edges, busiest, hops = counted(grid, host_at, torus)
    cost = found.cost
    assert (cost.edges_between_hosts, cost.busiest_host_edges) == (edges, busiest)
    assert cost.byte_hops == hops
    for one in found.candidates:
        assert (edges, hops) <= (one.cost.edges_between_hosts, one.cost.byte_hops), one.name
    row_major = np.repeat(np.arange(len(sizes)), sizes).reshape(grid.extents)
    assert edges <= counted(grid, row_major, torus)[0]
    if len(set(sizes)) == 1:
        box = best_box(grid, sizes[0], torus)
        assert box is None or edges <= box[0]
    if found.lower_bound is not None:
        assert found.lower_bound <= edges
    assert grid.map(hosts).rank_at == found.rank_at
