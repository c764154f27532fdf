"""Schedules as data in Python: made by hand, counted, verified, saved."""

import copy
import json
import pickle
from pathlib import Path

import pytest

import onehop
from onehop import ArraySpec, Place, Round, Schedule, Slice, Transfer


def small() -> Schedule:
    """Rank 0 sends two of its elements to rank 1, which adds them; and rank 1 moves one inside."""
    return Schedule(
        "small",
        ranks=2,
        arrays=[ArraySpec("u", [10, 12], element_bytes=8, type="float64")],
        rounds=[
            Round([Transfer(Place(0, 0, Slice.list([4, 2])), Place(1, 0, Slice.range(0, 2)), combine="add")]),
            Round([Transfer(Place(1, 0, Slice.range(0, 1)), Place(1, 0, Slice.range(11, 1)))]),
        ],
        must_cover=[Place(1, 0, Slice.range(11, 1))],
    )


def test_parts_can_be_read() -> None:
    schedule = small()
    assert (schedule.name, schedule.ranks, len(schedule.rounds)) == ("small", 2, 2)
    transfer = schedule.rounds[0].transfers[0]
    assert (transfer.from_.rank, transfer.to.rank) == (0, 1)
    assert (transfer.combine, transfer.codec) == ("add", "raw")
    assert transfer.from_.slice.indices == (4, 2)
    assert schedule.arrays[0].elements == (10, 12)
    assert schedule.arrays[0].elements_on(1) == 12
    assert schedule.bytes(transfer) == 16
    assert "rank 0" in schedule.describe(0, 0)


def test_representations_count_in_words() -> None:
    schedule = small()
    assert repr(schedule) == "<Schedule 'small': 2 ranks, 1 array, 2 rounds, 2 transfers>"
    assert repr(schedule.part(0)) == "<Schedule 'small': 2 ranks, 1 array, 2 rounds, 1 transfer>"
    assert repr(onehop.count(schedule)) == "<Count: 2 rounds, 1 message, 16 bytes, 8 bytes local>"


def test_nothing_can_be_appended_by_mistake() -> None:
    schedule = small()
    for sequence in (schedule.rounds, schedule.arrays, schedule.must_cover, schedule.rounds[0].transfers):
        assert isinstance(sequence, tuple)


def test_json_round_trip(tmp_path: Path) -> None:
    schedule = small()
    assert Schedule.from_json(schedule.to_json()) == schedule
    assert Schedule.from_json(schedule.to_json(2)) == schedule
    json.loads(schedule.to_json())
    schedule.save(tmp_path / "small.json")
    assert Schedule.load(tmp_path / "small.json") == schedule
    assert Schedule.load(str(tmp_path / "small.json")) == schedule
    assert pickle.loads(pickle.dumps(schedule)) == schedule
    assert copy.deepcopy(schedule) == schedule


def test_bad_json_says_where() -> None:
    text = small().to_json().replace('"add"', '"multiply"')
    with pytest.raises(onehop.BadInput, match=r"rounds\[0\]\.transfers\[0\].*multiply"):
        Schedule.from_json(text)
    with pytest.raises(onehop.BadInput):
        Schedule.from_json("not json")


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Schedule.load(tmp_path / "nothing.json")


def test_count() -> None:
    counted = onehop.count(small())
    assert (counted.rounds, counted.messages, counted.bytes, counted.bytes_local) == (2, 1, 16, 8)
    assert (counted.ranks[0].bytes_sent, counted.ranks[1].bytes_received, counted.ranks[1].bytes_local) == (
        16,
        16,
        8,
    )
    (pair,) = counted.pairs
    assert (pair.from_, pair.to, pair.messages, pair.bytes, pair.pieces, pair.pieces_received) == (
        0,
        1,
        1,
        16,
        2,
        1,
    )
    assert json.loads(counted.to_json())["bytes"] == 16


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (Slice(), []),
        (Slice.range(3, 4), [3, 4, 5, 6]),
        (Slice.box(1, [2, 3], [10, 2]), [1, 3, 5, 11, 13, 15]),
        (Slice.box(5, [3], [-2]), [5, 3, 1]),
        (Slice.subarray([4, 5], [1, 2], [2, 3]), [7, 8, 9, 12, 13, 14]),
        (Slice.list([9, 1, 2]), [9, 1, 2]),
    ],
    ids=repr,
)
def test_slices_visit_their_elements_in_order(made: Slice, expected: list[int]) -> None:
    assert made.element_numbers().tolist() == expected
    assert len(made) == made.elements == len(expected)
    assert sum(count for _, count in made.runs()) == len(expected)
    assert made.pieces == len(made.runs())
    assert made.bounds == ((min(expected), max(expected) + 1) if expected else (0, 0))
    assert eval(repr(made)).element_numbers().tolist() == expected


def test_what_no_memory_holds_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEHOP_TEST_FREE_MEMORY", "100000000")
    every_second = Slice.box(0, [2**40], [2])
    for list_all in (every_second.runs, every_second.element_numbers):
        with pytest.raises(
            onehop.BadInput, match=r"slice: expected what fits into the .* found about 1\.09951e\+12"
        ):
            list_all()
    with pytest.raises(onehop.BadInput, match="make the sizes smaller, or take one part"):
        onehop.halo(extents=(8,), grid=(2,), width=2**40)


def test_verify_finds_what_is_wrong() -> None:
    assert onehop.verify(small()) == []
    writes = [Transfer(Place(rank, 0, Slice.range(0, 1)), Place(2, 0, Slice.range(3, 1))) for rank in (0, 1)]
    twice = Schedule("twice", 3, [ArraySpec("u", 4)], [Round(writes)], [Place(2, 0, Slice.range(0, 4))])
    found = {violation.rule: violation for violation in onehop.verify(twice)}
    assert found.keys() == {"writes", "coverage"}
    assert (found["writes"].round, {found["writes"].transfer, found["writes"].other}) == (0, {0, 1})
    assert "rank 2" in found["writes"].message
    assert len(onehop.verify(twice, limit=1)) == 1
    with pytest.raises(onehop.BadInput):
        onehop.verify_or_throw(twice)
