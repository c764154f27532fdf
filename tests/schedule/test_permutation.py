"""`permute_bits`: its transfers and the state after a run, compared with NumPy's transpose."""

import pytest

import onehop


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
