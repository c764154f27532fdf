"""Halos from Python, compared with NumPy on the global array."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onehop
from onehop import Group
from threads import run_threads


def owners(
    extent: int, below: int, above: int, start: int, size: int, periodic: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Along one dimension of a block: the global index of every position, and whether the global array has it."""
    index = np.arange(start - below, start + size + above)
    inside = (index >= 0) & (index < extent)
    if periodic and extent > 0:
        return index % extent, np.ones_like(inside)
    return np.where(inside, index, 0), inside


def expected_block(
    whole: np.ndarray, before: np.ndarray, block: onehop.HaloBlock, layout: dict
) -> np.ndarray:
    """Return the expected array of a rank after the exchange."""
    dims = whole.ndim
    if whole.size == 0:
        return before
    indices, reached, ghosts = [], np.ones(block.shape, bool), np.zeros(block.shape, int)
    for d in range(dims):
        below, above = layout["width"][d]
        index, there = owners(
            layout["extents"][d], below, above, block.start[d], block.extents[d], layout["periodic"][d]
        )
        ghost = np.ones(block.shape[d], int)
        ghost[below : below + block.extents[d]] = 0
        along = [1] * dims
        along[d] = -1
        indices.append(index)
        reached &= there.reshape(along)
        ghosts += ghost.reshape(along)
    written = reached & (ghosts >= 1) & (layout["corners"] | (ghosts == 1))
    return np.where(written.reshape(written.shape), whole[np.ix_(*indices)], before)


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    dims = draw(st.integers(1, 4))
    grids = st.lists(st.integers(1, 3), min_size=dims, max_size=dims)
    width = st.sampled_from([0, 1, 2, 3, 9])  # up to more than the whole array
    return {
        "extents": draw(st.lists(st.integers(0 if dims < 3 else 1, 7), min_size=dims, max_size=dims)),
        "grid": draw(grids.filter(lambda grid: np.prod(grid) <= 6)),
        "width": draw(st.lists(st.tuples(width, width), min_size=dims, max_size=dims)),
        "periodic": draw(st.lists(st.booleans(), min_size=dims, max_size=dims)),
        "corners": draw(st.booleans()),
    }


@settings(max_examples=60)
@given(
    layout=layouts(),
    dtypes=st.lists(st.sampled_from(["u1", "<f4", "<f8", "c16", "i2"]), min_size=1, max_size=3),
    slots=st.sampled_from([0, 1, 3]),
    slot_bytes=st.sampled_from([0, 64, 4096]),
)
def test_random_halos_against_numpy(
    layout: dict[str, Any], dtypes: list[str], slots: int, slot_bytes: int
) -> None:
    schedule = onehop.halo(**layout, dtype=dtypes)
    assert onehop.verify(schedule) == []
    counted = onehop.count(schedule)
    size = int(np.prod(layout["extents"]))
    numbers = np.arange(size).reshape(layout["extents"]) % 251 + 1
    wholes = [(numbers + n).astype(dtype) for n, dtype in enumerate(dtypes)]

    def rank(group: Group) -> None:
        block = onehop.halo_block(**layout, rank=group.rank)
        region = tuple(slice(s, s + e) for s, e in zip(block.start, block.extents, strict=True))
        fields = [np.zeros(block.shape, whole.dtype) for whole in wholes]
        for field, whole in zip(fields, wholes, strict=True):
            field[block.interior] = whole[region]
        expected = [
            expected_block(whole, field, block, layout) for whole, field in zip(wholes, fields, strict=True)
        ]
        # One rank takes the whole schedule, the others only their part: that is the same plan.
        mine = schedule if group.rank == 0 else onehop.halo(**layout, dtype=dtypes, rank=group.rank)
        plan = onehop.Plan(mine, group, fields, slots=slots, slot_bytes=slot_bytes)
        for run in range(1, 4):
            with plan:
                pass
            for field, right in zip(fields, expected, strict=True):
                assert np.array_equal(field, right)
            moved, planned = plan.counters, counted.ranks[group.rank]
            for name in ("messages_sent", "messages_received", "bytes_sent", "bytes_received", "bytes_local"):
                assert getattr(moved, name) == run * getattr(planned, name), name
            assert moved.runs == run

    run_threads(int(np.prod(layout["grid"])), rank)


def test_width_may_be_a_number_one_per_dimension_or_pairs() -> None:
    layout = {"extents": (8, 9), "grid": (2, 1)}
    shape = onehop.halo_block(**layout, rank=0, width=2).shape
    assert shape == onehop.halo_block(**layout, rank=0, width=[2, 2]).shape == (8, 13)
    assert onehop.halo_block(**layout, rank=0, width=[(2, 2), (2, 2)]).shape == shape
    assert onehop.halo_block(**layout, rank=0, width=[1, (0, 3)]).shape == (6, 12)
    assert onehop.halo(**layout, width=1) == onehop.halo(**layout, width=np.int64(1))


def test_block_says_where_it_lies() -> None:
    block = onehop.halo_block(extents=(10, 6), grid=(3, 2), rank=3, width=[1, (2, 0)])
    assert block.coords == (1, 1)
    assert block.start == (4, 3)
    assert block.extents == (3, 3)
    assert block.shape == (5, 5)
    assert block.interior == (slice(1, 4), slice(2, 5))


def test_fields_and_dtypes() -> None:
    layout = {"extents": (8,), "grid": (2,)}
    assert [array.element_bytes for array in onehop.halo(**layout, fields=3).arrays] == [8, 8, 8]
    mixed = onehop.halo(**layout, dtype=["float32", ("float64", 3)])
    assert [array.element_bytes for array in mixed.arrays] == [4, 24]
    # Everything for one neighbour is one message, whatever the number of fields.
    assert onehop.count(mixed).messages == 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"extents": ()}, "dimensions"),
        ({"grid": (2,)}, "grid"),
        ({"grid": (2, 0)}, "grid|rank"),
        ({"width": [1]}, "width"),
        ({"width": -1}, "width"),
        ({"width": [(1, 2, 3), 1]}, "width"),
        ({"periodic": [True]}, "periodic"),
        ({"dtype": "no type"}, "dtype"),
        ({"dtype": ["f4", "f8"], "fields": 3}, "fields"),
        ({"codec": "morse"}, "raw"),
        ({"rank": 7}, "rank"),
        ({"extents": (8.5, 8)}, "extents: expected a whole number, found 8.5"),
        ({"grid": (2.5, 1)}, "grid: expected a whole number, found 2.5"),
        ({"width": 1.5}, "width: expected a whole number, found 1.5"),
        ({"width": [(1, 1.5), 1]}, "width: expected a whole number, found 1.5"),
    ],
)
def test_bad_parameters(change: dict[str, Any], why: str) -> None:
    with pytest.raises(onehop.BadInput, match=why):
        onehop.halo(**{"extents": (8, 8), "grid": (2, 1), **change})


def test_periodic_boundaries_as_numbers() -> None:
    wanted = onehop.halo(extents=(8, 8), grid=(2, 1), periodic=[True, False])
    for one in ([1, 0], np.array([1, 0]), np.array([True, False])):
        found = onehop.halo(extents=(8, 8), grid=(2, 1), periodic=one)
        assert found.to_json() == wanted.to_json()
