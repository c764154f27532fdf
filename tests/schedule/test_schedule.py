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
