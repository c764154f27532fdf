"""`permute_bits`: its transfers and the state after a run, compared with NumPy's transpose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onehop


def transposed(state: np.ndarray, permutation: list[int]) -> np.ndarray:
    """Move the element at index x to the index whose bit permutation[i] is bit i of x."""
    bits = len(permutation)
    axes = [0] * bits  # axis d of a (2, ..., 2) array is bit bits - 1 - d
    for bit, to in enumerate(permutation):
        axes[bits - 1 - to] = bits - 1 - bit
    return state.reshape((2,) * bits).transpose(axes).reshape(-1)


def elements(slice_: onehop.Slice) -> np.ndarray:
    numbers = np.array([slice_.offset], dtype=np.int64)
    for extent, stride in zip(slice_.extents, slice_.strides, strict=True):
        numbers = (numbers[:, None] + stride * np.arange(extent)).reshape(-1)
    return numbers


def executed(schedule: onehop.Schedule, state: np.ndarray) -> np.ndarray:
    """The schedule carried out on the whole state: each round reads everything before it writes."""
    state = state.reshape(schedule.ranks, -1).copy()
    for round_ in schedule.rounds:
        before = state.copy()
        for t in round_.transfers:
            state[t.to.rank, elements(t.to.slice)] = before[t.from_.rank, elements(t.from_.slice)]
    return state.reshape(-1)


@st.composite
def permutations(draw: st.DrawFn) -> tuple[int, int, list[int]]:
    bits = draw(st.integers(1, 9))
    local = draw(st.integers(max(0, bits - 4), bits))
    return bits, local, draw(st.permutations(range(bits)))


@settings(deadline=None, max_examples=60)
@given(permutations())
def test_moves_what_a_transpose_moves(case: tuple[int, int, list[int]]) -> None:
    bits, local, permutation = case
    schedule = onehop.permute_bits(bits, local=local, permutation=permutation)
    state = np.arange(1 << bits)
    expected = transposed(state, permutation)
    assert np.array_equal(executed(schedule, state), expected)
    assert onehop.verify(schedule) == []
    assert len(schedule.rounds) == 1
    assert schedule.rounds[0].permutation == tuple(permutation)
    # An element is sent once if its rank changes, moved locally if only its place changes, and else left alone.
    destination = np.empty_like(state)
    destination[expected] = state
    counted = onehop.count(schedule)
    assert counted.bytes == 16 * np.count_nonzero(destination >> local != state >> local)
    inside = (destination >> local == state >> local) & (destination != state)
    assert counted.bytes_local == 16 * np.count_nonzero(inside)
    parts = [
        onehop.permute_bits(bits, local=local, permutation=permutation, rank=r) for r in range(schedule.ranks)
    ]
    assert parts == [schedule.part(r) for r in range(schedule.ranks)]
    assert onehop.merge(parts) == schedule
    assert onehop.Schedule.from_json(schedule.to_json()) == schedule
    slow = onehop.permute_bits_one_swap_at_a_time(bits, local=local, permutation=permutation)
    assert np.array_equal(executed(slow, state), expected)
    assert onehop.verify(slow) == []


def test_a_round_that_is_not_its_permutation_is_found() -> None:
    schedule = onehop.permute_bits(6, local=4, pairs=[(0, 4), (1, 5)])
    text = schedule.to_json().replace('"to":[4,5,2,3,0,1]', '"to":[4,5,3,2,0,1]')
    (violation,) = onehop.verify(onehop.Schedule.from_json(text), limit=1)
    assert violation.rule == "shape"
    assert "permute_bits" in violation.message
    plain = onehop.Schedule(
        "plain", schedule.ranks, list(schedule.arrays), [onehop.Round(list(schedule.rounds[0].transfers))]
    )
    assert onehop.verify(plain) == [], "swaps between ranks are exact exchanges in any case"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pairs": [(0, 9)]}, "expected bits from 0 to 5 in pairs, found 9"),
        ({"pairs": [(0, 1), (1, 2)]}, "found bit 1 in two"),
        ({"pairs": [(0, 1.5)]}, "pairs: expected a whole number, found 1.5"),
        ({"permutation": [0, 1, 2, 3, 4, 5.5]}, "permutation: expected a whole number, found 5.5"),
        ({"permutation": [0, 1, 2]}, "one entry for each of the 6 bits of the index, found 3 entries"),
        ({"permutation": [0, 1, 2, 3, 4, 4]}, "found 4 twice for bit 5"),
        ({"permutation": [0, 1, 2, 3, 4, 6]}, "found 6 for bit 5"),
        ({}, "either pairs or a permutation"),
        ({"pairs": [(0, 4)], "rank": 4}, "expected a rank from 0 to 3, found 4"),
        ({"pairs": [(0, 4)], "element_bytes": 0}, "expected elements of 1 byte or more, found 0"),
    ],
)
def test_bad_input(arguments: dict, message: str) -> None:
    with pytest.raises(onehop.BadInput, match=message):
        onehop.permute_bits(6, local=4, **arguments)
