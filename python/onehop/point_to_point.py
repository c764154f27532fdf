"""Messages of any length with tags between two ranks, over channels prepared once."""

from __future__ import annotations

from collections import deque

import numpy as np

from onehop.error import Mismatch
from onehop.group import Group

PACKET_BYTES = 64 << 10
_HEADER = 16  # two int64: the tag, and the bytes of the message that are still to come with this packet


class PointToPoint:
    """A path from every rank to every other one. Making it is collective.

    Messages between two ranks with the same tag arrive in the order in which they were sent. A message may be received
    after others with other tags; those are kept until somebody wants them. Each path and direction is for one thread at
    a time.

    Parameters
    ----------
    group : Group
        The ranks.
    """

    def __init__(self, group: Group) -> None:
        self._rank = group.rank
        others = [rank for rank in range(group.size) if rank != group.rank]
        sizes = dict.fromkeys(others, PACKET_BYTES)
        self._channels = group.channels(send=sizes, receive=sizes, slots=4, slot_bytes=PACKET_BYTES)
        own: deque[tuple[int, np.ndarray]] = deque()
        self._kept: dict[int, deque[tuple[int, np.ndarray]]] = {group.rank: own}
        self._kept.update((rank, deque()) for rank in others)

    def send(self, other: int, message: np.ndarray, tag: int = 0) -> None:
        """Send bytes; returns when they may be overwritten."""
        if other == self._rank:
            self._kept[other].append((tag, message.copy()))
            return
        sender = self._channels.send[other]
        at = 0
        while True:
            slot = sender.slot()
            slot[:_HEADER].view(np.int64)[:] = (tag, message.size - at)
            part = min(PACKET_BYTES - _HEADER, message.size - at)
            slot[_HEADER : _HEADER + part] = message[at : at + part]
            sender.put()
            at += part
            if at >= message.size:
                return

    def receive(self, other: int, message: np.ndarray, tag: int = 0) -> None:
        """Wait for the next message with this tag and copy it.

        Raises
        ------
        Mismatch
            It has another length.
        """
        kept = self._kept[other]
        for place, (its_tag, whole) in enumerate(kept):
            if its_tag == tag:
                del kept[place]
                self._check(other, whole.size, message.size, tag)
                message[:] = whole
                return
        while True:
            its_tag, left = self._look(other)
            if its_tag == tag:
                self._check(other, left, message.size, tag)
                self._copy(other, message)
                return
            whole = np.empty(left, np.uint8)
            self._copy(other, whole)
            kept.append((its_tag, whole))

    def _look(self, other: int) -> tuple[int, int]:
        tag, left = self._channels.receive[other].wait()[:_HEADER].view(np.int64)
        return int(tag), int(left)

    def _copy(self, other: int, message: np.ndarray) -> None:
        receiver = self._channels.receive[other]
        at = 0
        while True:
            part = min(PACKET_BYTES - _HEADER, message.size - at)
            message[at : at + part] = receiver.wait()[_HEADER : _HEADER + part]
            receiver.release()
            at += part
            if at >= message.size:
                return

    def _check(self, other: int, sent: int, expected: int, tag: int) -> None:
        if sent != expected:
            raise Mismatch(
                f"rank {other} sent {sent} bytes with tag {tag}, but rank {self._rank} receives {expected}"
            )
