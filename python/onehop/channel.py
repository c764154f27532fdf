"""Channels: prepared one-way paths between two ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onehop import _core
from onehop._core import Receiver, Sender
from onehop.arguments import instance
from onehop.error import BadInput

__all__ = ["Channels", "Receiver", "Sender", "open_channels"]

End = int | tuple[int, int]
Message = int | tuple[Any, Any] | Any


@dataclass(frozen=True)
class Channels:
    """The channel ends that `Group.channels` opened on this rank.

    Attributes
    ----------
    send : dict of Sender
        Sending ends. The keys are those passed to `Group.channels`: the receiving rank, or (rank, tag).
    receive : dict of Receiver
        Receiving ends. The keys are the sending rank, or (rank, tag).
    """

    send: dict[End, Sender] = field(default_factory=dict)
    receive: dict[End, Receiver] = field(default_factory=dict)


def _message(end: End, message: Message) -> tuple[int, Callable[[np.ndarray], np.ndarray] | None]:
    """Return the size of one message in bytes, and a function that views a slot's bytes as the message's array.

    The function is None for a message that is given as a number of bytes.
    """
    if isinstance(message, (int, np.integer)):
        return int(message), None
    try:
        if isinstance(message, tuple):
            shape, dtype = message[0], np.dtype(message[1])
        else:
            shape, dtype = message.shape, np.dtype(message.dtype)
        count = int(np.prod(shape, dtype=object))
    except (AttributeError, IndexError, TypeError, ValueError):
        raise BadInput(
            f"expected a message for channel {end} as a number of bytes, an array like it, or (shape, dtype), "
            f"found {message!r}"
        ) from None
    return count * dtype.itemsize, lambda memory: memory.view(dtype).reshape(shape)


def _peer_and_tag(end: End) -> tuple[int, int]:
    try:
        peer, tag = end if isinstance(end, tuple) else (end, 0)
        return int(peer), int(tag)
    except (TypeError, ValueError):
        raise BadInput(f"expected a channel's other end as a rank or (rank, tag), found {end!r}") from None


@contextmanager
def heard_by_all(group: _core.Group) -> Iterator[None]:
    """Report an exception of the enclosed code to all other ranks, which then raise Error, and raise it here.

    Use it around the local checks that precede a collective call. The collective call itself reports its own errors.
    """
    try:
        yield
    except Exception as error:
        _core.refuse_channels(group, str(error) or type(error).__name__)
        raise


def open_channels(
    group: _core.Group,
    *,
    send: Mapping[End, Message] | None = None,
    receive: Mapping[End, Message] | None = None,
    slots: int = 0,
    slot_bytes: int = 0,
    chunk_bytes: int = 0,
    transport: str = "auto",
) -> Channels:
    """Open the channels of a group; see `Group.channels`."""
    wanted: list[tuple[bool, End, Message]] = []
    specs, shapers = [], []
    with heard_by_all(group):
        instance(transport, str, "transport")
        for name, ends in (("send", send), ("receive", receive)):
            listed = instance({} if ends is None else ends, Mapping, name).items()
            wanted += [(name == "send", end, message) for end, message in listed]
        for sends, end, message in wanted:
            peer, tag = _peer_and_tag(end)
            size, shaper = _message(end, message)
            specs.append(_core.ChannelSpec(sends, peer, size, tag, slots, slot_bytes, chunk_bytes))
            shapers.append(shaper)
    channels = Channels()
    for (sends, end, _), made in zip(
        wanted, _core.open_channels(group, specs, shapers, transport), strict=True
    ):
        (channels.send if sends else channels.receive)[end] = made
    return channels
