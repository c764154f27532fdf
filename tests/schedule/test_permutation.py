"""`permute_bits`: its transfers and the state after a run, compared with NumPy's transpose."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onehop

CASES = st.integers(1, 9).flatmap(
    lambda bits: st.tuples(st.integers(max(0, bits - 4), bits), st.permutations(range(bits)))
)


# Of a wrong permutation the library may never see the end of a cycle.
@pytest.mark.timeout(60, method="thread")
@settings(deadline=None, max_examples=60)
@given(CASES)
def test_moves_what_a_transpose_moves(case: tuple[int, list[int]]) -> None:
    local, permutation = case
    bits = len(permutation)
    state = np.arange(1 << bits)
    axes = [0] * bits  # axis d of a (2, ..., 2) array is bit bits - 1 - d
    for bit, to in enumerate(permutation):
        axes[bits - 1 - to] = bits - 1 - bit
    expected = state.reshape((2,) * bits).transpose(axes).reshape(-1)
    for make in (onehop.permute_bits_one_swap_at_a_time, onehop.permute_bits):
        schedule = make(bits, local=local, permutation=permutation)
        found = state.reshape(schedule.ranks, -1).copy()
        for round_ in schedule.rounds:
            before = found.copy()
            for t in round_.transfers:
                sent = before[t.from_.rank, t.from_.slice.element_numbers()]
                found[t.to.rank, t.to.slice.element_numbers()] = sent
        assert np.array_equal(found.reshape(-1), expected)
        assert onehop.verify(schedule) == []
    # An element is sent once if its rank changes, moved locally if only its place changes, and else left alone.
    stays = expected >> local == state >> local
    counted = onehop.count(schedule)
    assert counted.bytes == 16 * np.count_nonzero(~stays)
    assert counted.bytes_local == 16 * np.count_nonzero(stays & (expected != state))
    each = range(schedule.ranks)
    parts = [onehop.permute_bits(bits, local=local, permutation=permutation, rank=rank) for rank in each]
    assert parts == [schedule.part(rank) for rank in each]
    assert onehop.merge(parts) == schedule


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
