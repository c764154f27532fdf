"""The lengths from which compressing pays on the ranks of a process group, by the measurements of `onehop tune`."""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakKeyDictionary

import torch.distributed as dist

from onehop import _core
from onehop.torch.gradients import group_from_process_group

__all__ = ["measured_threshold"]

_NEVER = sys.maxsize
_known: WeakKeyDictionary[Any, dict[str, int]] = WeakKeyDictionary()


def measured_threshold(process_group: Any, codec: str) -> int:
    """Return the bytes from which a reduction with a codec takes less time than raw. The first call is collective.

    All ranks return the number of rank 0, so that they choose alike if their tuning files differ.

    Parameters
    ----------
    process_group : ProcessGroup or None
        The ranks; None: the default group.
    codec : str
        One of `onehop.codec.CODECS`, except "raw".
    """
    known = _known.setdefault(process_group or dist.group.WORLD, {})
    if codec not in known:
        group = group_from_process_group(process_group)
        in_memory = len(group.local_ranks) == group.size
        mine = _core.compress_above(codec, in_memory, group.size)
        known[codec] = int(group.allgather(str(_NEVER if mine is None else mine).encode())[0])
    return known[codec]
