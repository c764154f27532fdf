"""Channels from Python: messages, access to slots, and refused arguments."""

from typing import Any

import numpy as np
import pytest

import onehop
from onehop import Group
from threads import run_threads


@pytest.mark.parametrize("count", [0, 1, 7, 1000, 300_000])
@pytest.mark.parametrize("slots", [0, 1, 5])
def test_messages_arrive_in_order_and_unchanged(count: int, slots: int) -> None:
    def rank(group: Group) -> None:
        right, left = (group.rank + 1) % 3, (group.rank + 2) % 3
        ends = group.channels(send={right: 8 * count}, receive={left: 8 * count}, slots=slots)
        got = np.empty(count)
        for step in range(20):
            ends.send[right].put(np.arange(count) + 100.0 * group.rank + step)
            ends.receive[left].get(got)
            assert np.array_equal(got, np.arange(count) + 100.0 * left + step)

    run_threads(3, rank)


def test_slots_in_place_have_shape_and_type() -> None:
    def rank(group: Group) -> None:
        peer = 1 - group.rank
        like = np.empty((3, 4), "float32")
        ends = group.channels(send={peer: like}, receive={peer: ((3, 4), "float32")})
        for step in range(5):
            slot = ends.send[peer].slot()
            assert slot.shape == (3, 4)
            assert slot.dtype == np.float32
            slot[:] = step + 10 * group.rank
            ends.send[peer].put()
            got = ends.receive[peer].wait()
            assert got.shape == (3, 4)
            assert (got == step + 10 * peer).all()
            with pytest.raises(ValueError, match="read-only"):
                got[0, 0] = 1
            ends.receive[peer].release()

    run_threads(2, rank)


def test_bytes_are_what_a_plain_size_shows() -> None:
    def rank(group: Group) -> None:
        ends = group.channels(send={0: 5}, receive={0: 5})
        ends.send[0].put(b"hello")
        assert ends.receive[0].wait().tobytes() == b"hello"
        assert ends.receive[0].wait().dtype == np.uint8
        ends.receive[0].release()

    run_threads(1, rank)


def test_properties() -> None:
    def rank(group: Group) -> None:
        peer = 1 - group.rank
        ends = group.channels(send={peer: 16}, receive={peer: 16}, slots=2)
        sender, receiver = ends.send[peer], ends.receive[peer]
        assert (sender.bytes, sender.peer, sender.in_place, sender.ready) == (16, peer, True, True)
        assert (receiver.bytes, receiver.peer, receiver.in_place) == (16, peer, True)
        group.barrier()
        assert not receiver.ready
        group.barrier()
        for _ in range(2):
            sender.put(np.zeros(2))
        assert not sender.ready
        group.barrier()
        assert receiver.ready

    run_threads(2, rank)


@pytest.mark.parametrize(
    "send",
    [
        {5: 8},
        {-1: 8},
        {0: -8},
        {0: "eight"},
        {0: ((2, 2), "no type")},
        {"right": 8},
        {(0, 1, 2): 8},
        {0: None},
    ],
)
def test_bad_ends_and_messages(send: Any) -> None:
    with pytest.raises(onehop.BadInput):
        Group.alone().channels(send=send)


def test_what_one_rank_asks_wrongly_is_heard_by_all() -> None:
    layout = {"extents": (12,), "grid": (3,)}
    schedule = onehop.halo(**layout)

    def rank(group: Group) -> None:
        wrong = group.rank == 1
        short = np.zeros(4 if wrong else 6)[:: 2 if wrong else 1]
        cases = [
            (lambda: group.channels(send={0: "eight"} if wrong else {}), "as a number of bytes"),
            (lambda: group.channels(transport="pigeon" if wrong else "auto"), "expected a transport"),
            (lambda: onehop.Plan(schedule, group, [short]), "C-contiguous"),
            (lambda: onehop.Plan(schedule, group, [None] if wrong else [np.zeros(6)]), "found None"),
        ]
        for prepare, words in cases:
            with pytest.raises(onehop.BadInput if wrong else onehop.Error, match=words) as caught:
                prepare()
            assert ("failed on rank 1: " in str(caught.value)) == (not wrong)
        onehop.Plan(schedule, group, [np.zeros(6)]).run()

    run_threads(3, rank)


class TestWhatIsRefused:
    """Messages that do not fit, or that are no memory."""

    @pytest.fixture
    def ends(self) -> onehop.Channels:
        return Group.alone().channels(send={0: 32}, receive={0: 32})

    @pytest.mark.parametrize(
        ("message", "why"),
        [
            (np.zeros(3), "24"),
            (np.zeros(8)[::2], "C-contiguous"),
            (np.asfortranarray(np.zeros((2, 2))), "C-contiguous"),
            ([1.0, 2.0, 3.0, 4.0], "must be an array"),
            ("text", "must be an array"),
        ],
    )
    def test_put(self, ends: onehop.Channels, message: Any, why: str) -> None:
        with pytest.raises(onehop.BadInput, match=why):
            ends.send[0].put(message)

    def test_get_into_a_read_only_array(self, ends: onehop.Channels) -> None:
        array = np.zeros(4)
        array.flags.writeable = False
        ends.send[0].put(array)
        with pytest.raises(onehop.BadInput, match="read-only"):
            ends.receive[0].get(array)

    def test_slot_of_a_message_that_is_cut(self) -> None:
        ends = Group.alone().channels(send={0: 1 << 20}, receive={0: 1 << 20}, slot_bytes=4096)
        assert not ends.send[0].in_place
        with pytest.raises(onehop.BadInput):
            ends.send[0].slot()


def test_views_outlive_their_channel() -> None:
    ends = Group.alone().channels(send={0: 32}, receive={0: 32})
    ends.send[0].put(np.arange(4.0))
    got = ends.receive[0].wait()
    del ends
    assert got.view(float).tolist() == [0, 1, 2, 3]
