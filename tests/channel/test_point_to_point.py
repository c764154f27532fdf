"""Messages between two ranks: lengths, tags, order, any source, and errors."""

import threading

import numpy as np
import pytest

from onehop import BadInput, Group, Mismatch, PeerLost, Timeout
from onehop.point_to_point import PACKET_BYTES, PointToPoint
from threads import run_threads


def test_messages_of_any_length_and_order() -> None:
    def one_rank(group: Group) -> None:
        messages = PointToPoint(group)
        rank, size = group.rank, group.size
        lengths = (0, 1, PACKET_BYTES - 16, PACKET_BYTES - 15, 100_000)
        for other in range(size):
            for tag, length in enumerate(lengths[: 3 if other != rank else None]):
                messages.send(other, np.full(length, rank * 16 + tag, np.uint8), tag)
        for other in range(size):
            for tag in reversed(range(3)):
                found = np.empty(lengths[tag], np.uint8)
                assert messages.receive(other, found, tag) == other
                assert (found == other * 16 + tag).all()
        messages.close()

    run_threads(3, one_rank)


def test_requests_are_served_in_their_order_and_other_tags_pass() -> None:
    def one_rank(group: Group) -> None:
        messages = PointToPoint(group)
        if group.rank == 0:
            boxes, order = [np.zeros(1, np.uint8) for _ in range(3)], []
            come = [threading.Event() for _ in range(3)]

            def want(number: int, tag: int) -> None:
                def done(sender: int, error: Exception | None) -> None:
                    assert error is None
                    order.append(number)
                    come[number].set()

                messages.request(1, boxes[number], tag, done)

            want(0, tag=7)
            want(1, tag=7)
            want(2, tag=8)
            assert come[2].wait(20)  # although an earlier request is still pending
            assert order == [2]
            messages.send(1, np.zeros(0, np.uint8))
            assert come[1].wait(20)
            assert [box[0] for box in boxes] == [1, 2, 3]
            assert order == [2, 0, 1]
        else:
            messages.send(0, np.full(1, 3, np.uint8), 8)
            messages.receive(0, np.zeros(0, np.uint8))
            messages.send(0, np.full(1, 1, np.uint8), 7)
            messages.send(0, np.full(1, 2, np.uint8), 7)
        group.barrier()
        messages.close()

    run_threads(2, one_rank)


def test_from_anybody() -> None:
    def one_rank(group: Group) -> None:
        messages = PointToPoint(group)
        box = np.zeros(1, np.uint8)
        if group.rank == 0:
            # Rank 2 sends only after 1 has been received, so that waiting for ranks in a fixed order would not end.
            for expected in (1, 2, 3):
                assert messages.receive(None, box) == expected
                assert box[0] == expected
                if expected < 3:
                    messages.send(expected + 1, box)
        else:
            if group.rank > 1:
                messages.receive(0, box)
            messages.send(0, np.full(1, group.rank, np.uint8))
        group.barrier()
        messages.close()  # threads without pending requests end

    run_threads(4, one_rank)


def test_what_goes_wrong_is_told() -> None:
    def one_rank(group: Group) -> None:
        messages = PointToPoint(group)
        box = np.zeros(4, np.uint8)
        if group.rank == 0:
            with pytest.raises(Mismatch, match="rank 1 sent 3 bytes with tag 1, but rank 0 expected 4"):
                messages.receive(1, box, 1)
            assert messages.receive(1, box, 1) == 1  # the next one is in order
            messages.timeout = 0.3
            with pytest.raises(Timeout, match="tag 2 from rank 1 or 2"):
                messages.receive(None, box, 2)
            messages.timeout = 20
            group.barrier()
            with pytest.raises(PeerLost):  # both have left
                messages.receive(None, box, 3)
        else:
            if group.rank == 1:
                messages.send(0, np.zeros(3, np.uint8), 1)
                messages.send(0, np.zeros(4, np.uint8), 1)
            group.barrier()
        messages.close()

    run_threads(3, one_rank)
    with pytest.raises(BadInput, match="group of one rank"):
        PointToPoint(Group.alone()).receive(None, np.zeros(1, np.uint8))
